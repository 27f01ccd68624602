//! Reading rows.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{AnyDevice, Device};

use super::layout::KEY_OFFSET;
use crate::format::{SerialId, VersionWords};
use crate::ids::{EpochNumber, TableId};

const META_OFFSET: u64 = 32;
/// Bytes of both versions, from the beginning of a row: what [`versions`] reads.
pub const VERSIONS_BYTES: u64 = META_OFFSET;

/// Reads the two versions of a row.
#[inline]
pub fn versions(device: &AnyDevice, row: u64) -> [VersionWords; 2] {
    let image = device.image();
    [0, 16].map(|at| VersionWords {
        serial_id: image.load_u64(row + at),
        pointer: image.load_u64(row + at + 8),
    })
}

/// The slot of the version that the checkpoint holds, if the row existed then: the newest with an
/// epoch not after it (O-27, O-28). Versions of later epochs are leftovers of a crash.
pub fn checkpoint_slot(
    versions: &[VersionWords; 2],
    checkpoint_epoch: EpochNumber,
) -> Option<usize> {
    (0..2)
        .filter(|&i| {
            let sid = SerialId(versions[i].serial_id);
            sid.0 != 0 && sid.epoch() <= checkpoint_epoch
        })
        .max_by_key(|&i| versions[i].serial_id)
}

/// Table, key length and checksum of a row.
pub fn meta(device: &AnyDevice, row: u64) -> (TableId, u64, u32) {
    let word = device.image().load_u64(row + META_OFFSET);
    (TableId(word as u16), word >> 16 & 0xffff, (word >> 32) as u32)
}

/// What reading the key of a row reads, with its length: offset and bytes.
pub fn key_read(row: u64, key_bytes: u64) -> (u64, u64) {
    (row + META_OFFSET, KEY_OFFSET - META_OFFSET + key_bytes)
}

/// The key of a row.
///
/// # Safety
/// The row was initialised, and it is not initialised again while the slice lives.
pub unsafe fn key(device: &AnyDevice, row: u64) -> &[u8] {
    // SAFETY: forwarded to the caller.
    unsafe { key_at(device.image().base() as usize, row) }
}

/// [`key`] for those who know only the address of the image.
///
/// # Safety
/// As [`key`]; `base` is the address of a mapped image.
#[inline]
pub unsafe fn key_at<'i>(base: usize, row: u64) -> &'i [u8] {
    let row = (base + row as usize) as *const u8;
    // SAFETY: the row is inside the mapped image; its key never changes while it is allocated, and
    // a key lies inside its row, as `initialise` and the scan check.
    unsafe {
        let len = row.add(META_OFFSET as usize + 2).cast::<u16>().read();
        std::slice::from_raw_parts(row.add(KEY_OFFSET as usize), len as usize)
    }
}

/// Table and versions of a row, for those who know only the address of the image.
///
/// # Safety
/// The row was initialised and has a version; `base` is the address of a mapped image.
pub unsafe fn head_at(base: usize, row: u64) -> (TableId, [VersionWords; 2]) {
    let words = (base + row as usize) as *const AtomicU64;
    // SAFETY: the words of a row's head, aligned, and only accessed as atomics.
    let word = |at: usize| unsafe { (*words.add(at)).load(Ordering::Relaxed) };
    let version = |at| VersionWords { serial_id: word(at), pointer: word(at + 1) };
    (TableId(word(META_OFFSET as usize / 8) as u16), [version(0), version(2)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Position;

    fn words(serial_id: SerialId, pointer: u64) -> VersionWords {
        VersionWords { serial_id: serial_id.0, pointer }
    }

    /// O-26, O-27: whatever subset of the two words of the overwritten slot reached the device, in
    /// whatever order, the checkpoint's version is found; so the header needs no repair at
    /// recovery.
    #[test]
    fn o_26_every_torn_header_leads_to_the_checkpoint() {
        let checkpoint = 9;
        let current = words(SerialId::new(EpochNumber(8), Position(3)), 0x11);
        let stales =
            [words(SerialId(0), 0), words(SerialId::new(EpochNumber(5), Position(1)), 0x22)];
        for stale in stales {
            let new = words(SerialId::new(EpochNumber(10), Position(7)), 0x33);
            for mask in 0..4 {
                let torn = VersionWords {
                    serial_id: if mask & 1 != 0 { new.serial_id } else { stale.serial_id },
                    pointer: if mask & 2 != 0 { new.pointer } else { stale.pointer },
                };
                assert_eq!(checkpoint_slot(&[current, torn], EpochNumber(checkpoint)), Some(0));
                assert_eq!(checkpoint_slot(&[torn, current], EpochNumber(checkpoint)), Some(1));
            }
        }
    }

    #[test]
    fn o_28_rows_born_after_the_checkpoint_do_not_exist_in_it() {
        let born = words(SerialId::new(EpochNumber(10), Position(0)), 0x1);
        let updated = words(SerialId::new(EpochNumber(11), Position(0)), 0x1);
        assert_eq!(checkpoint_slot(&[born, updated], EpochNumber(9)), None);
        assert_eq!(checkpoint_slot(&[born, updated], EpochNumber(10)), Some(0));
        assert_eq!(checkpoint_slot(&[born, updated], EpochNumber(11)), Some(1));
    }
}
