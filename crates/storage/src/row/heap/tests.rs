//! Where inline values of every length lie.

use pmem::{AnyDevice, Device, Dram, Port};

use super::*;
use crate::format::{SerialId, TableRecord};
use crate::ids::{EpochNumber, Position, TableId};
use crate::row::{Content, First, NewVersion, Shape, initialise, versions, write_version};

fn layout(key_bytes_max: u32, row_bytes: u32, shared_heap_bytes: u32) -> RowLayout {
    let record = TableRecord {
        name: [0; 48],
        row_bytes,
        key_bytes_max,
        value_bytes_max: 500,
        index_kind: 1,
        inline_heap: shared_heap_bytes,
        ..crate::catalog::UNUSED
    };
    RowLayout::new(TableId(0), &record)
}

#[test]
fn o_32_halves_never_overlap() {
    for key_bytes_max in [8, 24, 25, 60, 256] {
        for row_bytes in (64..1024).step_by(64) {
            let layout = layout(key_bytes_max, row_bytes, 0);
            assert!(layout.half_offset(0, 1) >= layout.half_offset(0, 0) + layout.half_bytes);
            if layout.half_bytes > 0 {
                assert!(layout.half_offset(0, 1) + layout.half_bytes <= u64::from(row_bytes));
            }
        }
    }
}

/// O-32: for every heap of a row of 256 bytes and every two lengths, whichever of the two is
/// written beside the other: if both are inline, they have no byte in common, nor a byte in one
/// word, and lie in the heap. If they are not, it is because they would.
#[test]
fn o_32_values_of_a_shared_heap_never_overlap() {
    for (key_bytes_max, heap_bytes) in
        (8..=192).step_by(8).map(|bytes| (8, bytes)).chain([(25, 176), (40, 168)])
    {
        let layout = layout(key_bytes_max, 256, heap_bytes);
        let heap_bytes = u64::from(heap_bytes);
        let (heap, heap_end) = (layout.heap_offset, layout.heap_offset + heap_bytes);
        assert!(heap_end <= 256);
        for front in 0..=heap_bytes + 1 {
            for back in 0..=heap_bytes + 1 {
                let pointers = [ValuePointer::inline(front), ValuePointer::inline(back)];
                let fits = layout.fits_beside(1, back, pointers[0]);
                assert_eq!(fits, layout.fits_beside(0, front, pointers[1]), "{front} {back}");
                assert_eq!(fits, !layout.overlap(pointers), "{front} {back}");
                let [at, behind] = [0, 1].map(|slot| {
                    let at = layout.value_offset(4096, slot, pointers[slot]) - 4096;
                    assert!(at.is_multiple_of(8) && (heap..=heap_end).contains(&at));
                    at
                });
                if fits {
                    assert!(at + front <= heap_end && behind + back <= heap_end);
                    assert!(front * back == 0 || (at + front).next_multiple_of(8) <= behind);
                } else {
                    let back_start = heap_bytes.saturating_sub(back) & !7;
                    assert!(front.max(back) > heap_bytes || front > back_start);
                }
            }
        }
    }
}

/// A value of which the other slot keeps nothing has the whole heap, and one in a pool takes
/// nothing of it.
#[test]
fn a_value_alone_has_the_whole_heap() {
    let layout = layout(8, 256, 168);
    for slot in [0, 1] {
        for other in [ValuePointer(0), ValuePointer::inline(0), ValuePointer::external(4096, 400)] {
            for len in 0..=500 {
                assert_eq!(layout.fits_beside(slot, len, other), len <= 168, "{len} {other:?}");
                assert_eq!(layout.fits_alone(len), len <= 168, "{len}");
            }
        }
    }
}

/// Halves know nothing of each other.
#[test]
fn o_32_halves_do_not_depend_on_the_other_version() {
    let layout = layout(8, 256, 0);
    for len in 0..=200 {
        for other in [ValuePointer(0), ValuePointer::inline(64), ValuePointer::external(4096, 400)]
        {
            assert_eq!(layout.fits_beside(1, len, other), len <= layout.half_bytes);
        }
        assert_eq!(layout.fits_alone(len), len <= layout.half_bytes);
    }
    assert!(!layout.overlap([ValuePointer::inline(64); 2]));
}

/// No table with a shared heap is written by lines or words, and where two of the longest values
/// do not fit together, some may need a pool.
#[test]
fn a_shared_heap_has_no_shape() {
    for (value_bytes_max, may_be_external) in [(8, false), (64, false), (80, false), (81, true)] {
        let record = TableRecord {
            row_bytes: 256,
            key_bytes_max: 8,
            value_bytes_max,
            index_kind: 1,
            inline_heap: 168,
            ..crate::catalog::UNUSED
        };
        let layout = RowLayout::new(TableId(0), &record);
        assert_eq!(layout.may_be_external(), may_be_external, "{value_bytes_max}");
        assert_eq!(layout.shape(), Shape::Any);
        assert!(!layout.has_line_halves() && layout.shape() == Shape::Any);
    }
}

/// O-32: what is written, for every two lengths that fit together and in both slots, is there, and
/// so is the version beside it and the row behind: nothing is padded into them.
#[test]
fn o_32_a_store_leaves_the_other_version_alone() {
    const ROW: u64 = 4096;
    let device = AnyDevice::new(Dram::new(1 << 20, 4096).unwrap());
    device.grow_image(1 << 20).unwrap();
    let mut port = Port::new(AnyDevice::of(&device), 0);
    for (key_bytes_max, heap_bytes) in [(8, 168), (8, 192), (40, 168)] {
        let layout = layout(key_bytes_max, 256, heap_bytes);
        let (heap_bytes, values) = (u64::from(heap_bytes), [[0xaa; 200], [0xbb; 200]]);
        for len in 0..=heap_bytes {
            for other in 0..=heap_bytes {
                for slot in [0, 1] {
                    if !layout.fits_beside(slot, len, ValuePointer::inline(other)) {
                        continue;
                    }
                    // SAFETY: this test owns the image.
                    unsafe {
                        port.store_bytes(ROW, &[0xcc; 512]);
                        initialise(&mut port, ROW, &layout, &[1; 8]);
                        for (slot, len) in [(1 - slot, other), (slot, len)] {
                            let sid = SerialId::new(EpochNumber(1 + slot as u64), Position(0));
                            let value = &values[slot][..len as usize];
                            let content = Content::Bytes(value, None);
                            let version = NewVersion { slot, sid, content, first: First::No };
                            write_version(&mut port, ROW, &layout, &version);
                        }
                    }
                    for (slot, words) in versions(device.as_ref(), ROW).iter().enumerate() {
                        let pointer = ValuePointer(words.pointer);
                        let at = layout.value_offset(ROW, slot, pointer);
                        // SAFETY: as above.
                        let value = unsafe { device.image().slice(at, pointer.value_bytes()) };
                        assert!(value.iter().all(|byte| *byte == values[slot][0]), "{len} {other}");
                    }
                    // SAFETY: as above.
                    let behind = unsafe { device.image().slice(ROW + 256, 256) };
                    assert!(behind.iter().all(|byte| *byte == 0xcc), "{len} {other}");
                }
            }
        }
    }
}
