//! A persistent row: one header line with two versions, then the inline heap in two fixed halves
//! (NV 5.3).
//!
//! Version slot i keeps its inline value in half i, so a new value never overlaps the bytes of the
//! other version (O-32) and nothing has to be copied from slot to slot: a final write overwrites
//! the slot that is not the checkpoint's, serial id first, then the pointer, in one line (O-26,
//! docs/decisions/0001). Which slot is newest follows from the serial ids alone.
//!
//! Knows nothing of epochs in progress except the number of the last checkpoint.

use std::sync::LazyLock;

use pmem::{Device, Port};

use crate::format::{
    KEY_BYTES_IN_HEADER, ROW_HEADER_BYTES, SerialId, TableRecord, ValuePointer, VersionWords,
};
use crate::line::{LINE, padded_line};
use crate::new_value::NewValue;
use crate::plant::{Plant, planted};
use crate::{class_bytes, class_of};

/// Offset of the key in a row; it goes on past the header line.
const KEY_OFFSET: u64 = ROW_HEADER_BYTES - KEY_BYTES_IN_HEADER;
const META_OFFSET: u64 = 32;
/// Bytes of both versions, from the beginning of a row: what [`versions`] reads.
pub const VERSIONS_BYTES: u64 = META_OFFSET;
/// All lines of a value: for [`NewVersion::lines`].
pub const ALL_LINES: u64 = u64::MAX;

/// Where things are in the rows of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLayout {
    /// Catalog position of the table.
    pub table: u16,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Offset of the inline heap.
    pub heap_offset: u64,
    /// Bytes of each half of the inline heap: the longest inline value.
    pub half_bytes: u64,
    /// Longest key.
    pub key_bytes_max: u64,
    /// Longest value.
    pub value_bytes_max: u64,
}

impl RowLayout {
    /// The layout that a catalog record gives.
    pub fn new(table: u16, record: &TableRecord) -> Self {
        let key_bytes_max = u64::from(record.key_bytes_max);
        let heap_offset = ROW_HEADER_BYTES
            + key_bytes_max.saturating_sub(KEY_BYTES_IN_HEADER).next_multiple_of(16);
        let row_bytes = u64::from(record.row_bytes);
        let half = row_bytes.saturating_sub(heap_offset) / 2;
        // Whole lines where there are any: a half that shares no line with the other is written by
        // itself.
        let half_bytes = if half >= 64 { half & !63 } else { half & !15 };
        Self {
            table,
            row_bytes,
            heap_offset,
            half_bytes,
            key_bytes_max,
            value_bytes_max: u64::from(record.value_bytes_max),
        }
    }

    /// Smallest row size, a multiple of 64, in which both versions of every value are inline.
    pub fn row_bytes_all_inline(key_bytes_max: u32, value_bytes_max: u32) -> u32 {
        let heap = ROW_HEADER_BYTES as u32
            + key_bytes_max.saturating_sub(KEY_BYTES_IN_HEADER as u32).next_multiple_of(16);
        let half = value_bytes_max.next_multiple_of(if value_bytes_max > 48 { 64 } else { 16 });
        (heap + 2 * half).next_multiple_of(64)
    }

    /// Offset of the inline half of a version slot.
    #[inline(always)]
    pub fn half_offset(&self, row: u64, slot: usize) -> u64 {
        row + self.heap_offset + slot as u64 * self.half_bytes
    }

    /// Whether the inline halves are whole lines, so that no line is shared and a value is followed
    /// by zeros up to the end of its last line.
    #[inline(always)]
    pub fn has_line_halves(&self) -> bool {
        self.half_bytes > 0
            && self.half_bytes.is_multiple_of(LINE as u64)
            && self.heap_offset.is_multiple_of(LINE as u64)
    }

    /// Whether values of this length are inline.
    #[inline(always)]
    pub fn is_inline(&self, len: u64) -> bool {
        len <= self.half_bytes
    }

    /// Whether all keys have exactly 8 bytes. The rows of such a table get their key with their
    /// first version, because the index knows the key.
    #[inline(always)]
    pub fn has_exact_keys(&self) -> bool {
        self.key_bytes_max == 8
    }

    /// Offset of a version's value.
    #[inline(always)]
    pub fn value_offset(&self, row: u64, slot: usize, pointer: ValuePointer) -> u64 {
        pointer.external_offset().unwrap_or_else(|| self.half_offset(row, slot))
    }
}

/// A checksum of nothing yet. Kept, because making one asks the processor what it can do.
static EMPTY_CRC: LazyLock<crc32fast::Hasher> = LazyLock::new(crc32fast::Hasher::new);

/// Checksum of what never changes in a row.
pub fn key_crc(table: u16, key: &[u8]) -> u32 {
    let mut hasher = EMPTY_CRC.clone();
    if let Ok(key) = <[u8; 8]>::try_from(key) {
        let both = u128::from(table) | u128::from(u64::from_le_bytes(key)) << 16;
        hasher.update(&both.to_le_bytes()[..10]);
        return hasher.finalize();
    }
    hasher.update(&table.to_le_bytes());
    hasher.update(key);
    hasher.finalize()
}

/// Reads the two versions of a row.
#[inline(always)]
pub fn versions<D: Device>(device: &D, row: u64) -> [VersionWords; 2] {
    let image = device.image();
    [0, 16].map(|at| VersionWords {
        serial_id: image.load_u64(row + at),
        pointer: image.load_u64(row + at + 8),
    })
}

/// The slot of the version that the checkpoint holds, if the row existed then: the newest with an
/// epoch not after it (O-27, O-28). Versions of later epochs are leftovers of a crash.
pub fn checkpoint_slot(versions: &[VersionWords; 2], checkpoint_epoch: u64) -> Option<usize> {
    (0..2)
        .filter(|&i| {
            let sid = SerialId(versions[i].serial_id);
            sid.0 != 0 && sid.epoch() <= checkpoint_epoch
        })
        .max_by_key(|&i| versions[i].serial_id)
}

/// Table, key length and checksum of a row.
pub fn meta<D: Device>(device: &D, row: u64) -> (u16, u64, u32) {
    let word = device.image().load_u64(row + META_OFFSET);
    (word as u16, word >> 16 & 0xffff, (word >> 32) as u32)
}

/// What reading the key of a row reads, with its length: offset and bytes.
pub fn key_read(row: u64, key_bytes: u64) -> (u64, u64) {
    (row + META_OFFSET, KEY_OFFSET - META_OFFSET + key_bytes)
}

/// The key of a row.
///
/// # Safety
/// The row was initialised, and nobody re-initialises it while the slice lives.
pub unsafe fn key<D: Device>(device: &D, row: u64) -> &[u8] {
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

/// The header line of a row without versions, with as much of the key as it holds.
fn header_line(layout: &RowLayout, key: &[u8]) -> [u8; LINE] {
    assert!(key.len() as u64 <= layout.key_bytes_max, "key length was checked at admission");
    let mut line = [0u8; LINE];
    line[32..34].copy_from_slice(&layout.table.to_le_bytes());
    line[34..36].copy_from_slice(&(key.len() as u16).to_le_bytes());
    line[36..40].copy_from_slice(&key_crc(layout.table, key).to_le_bytes());
    let head = key.len().min(KEY_BYTES_IN_HEADER as usize);
    line[40..40 + head].copy_from_slice(&key[..head]);
    line
}

/// Prepares a freshly allocated row: no versions, the key. Not flushed: the row's first version is
/// written in the same epoch and flushes it, or the row is freed again.
///
/// # Safety
/// The caller owns the row: it allocated it in this phase and has not published it.
pub unsafe fn initialise<D: Device>(port: &mut Port<D>, row: u64, layout: &RowLayout, key: &[u8]) {
    let line = header_line(layout, key);
    let head = key.len().min(KEY_BYTES_IN_HEADER as usize);
    // SAFETY: owned by the caller.
    unsafe {
        port.store_bytes(row, &line);
        if key.len() > head {
            port.store_bytes(row + ROW_HEADER_BYTES, &key[head..]);
        }
    }
}

/// A version to write.
#[derive(Debug, Clone, Copy)]
pub struct NewVersion<'v> {
    /// Version slot.
    pub slot: usize,
    /// Writer.
    pub sid: SerialId,
    /// Value; all of it at hand, unless it is inline and halves are whole lines.
    pub value: NewValue<'v>,
    /// Pool slot for a value that is not inline.
    pub external: Option<u64>,
    /// Which lines of an inline value differ from what its half holds: a bit for each of the first
    /// 63, and one for all further ones. Only these are written, where halves are whole lines.
    pub lines: u64,
    /// Whether whole lines are stored past the cache; else they are stored and flushed.
    pub past_cache: bool,
}

/// Whether a version is its row's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// It is not: the key is durable.
    No,
    /// It is, and the key, which [`initialise`] stored, must become durable with it.
    Yes,
}

/// Writes a version: the value, then serial id, then pointer (O-26). Flushed, not fenced: the fence
/// before the checkpoint covers it, and until then the epoch of the serial id says that it does not
/// count. Returns the offset of the value.
///
/// # Safety
/// The caller owns the row's slot in this phase, and the pool slot at `external` if there is one.
pub unsafe fn write_version<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    version: NewVersion<'_>,
    first: First,
) -> u64 {
    let words = row + version.slot as u64 * 16;
    // SAFETY: owned by the caller.
    let (at, pointer) = unsafe { write_value(port, row, layout, &version) };
    // SAFETY: as above.
    unsafe {
        if planted(port.device().as_ref(), Plant::PointerBeforeSid) {
            port.store_u64(words + 8, pointer.0);
            port.store_u64(words, version.sid.0);
        } else {
            port.store_u64(words, version.sid.0);
            port.store_u64(words + 8, pointer.0);
        }
    }
    let is_first = first == First::Yes;
    if !is_first && planted(port.device().as_ref(), Plant::HeaderNotFlushed) {
        return at;
    }
    port.flush(row, if is_first { layout.heap_offset } else { ROW_HEADER_BYTES });
    at
}

/// Writes the first version of a row of a table with exact keys, of which nothing is stored yet:
/// as [`write_version`], with the key. The whole header is written as one line.
///
/// # Safety
/// As [`write_version`]; the caller owns the whole row.
pub unsafe fn write_with_key<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    key: &[u8; 8],
    version: NewVersion<'_>,
) -> u64 {
    // SAFETY: owned by the caller.
    let (at, pointer) = unsafe { write_value(port, row, layout, &version) };
    let mut line = header_line(layout, key);
    let words = version.slot * 16;
    line[words..words + 8].copy_from_slice(&version.sid.0.to_le_bytes());
    line[words + 8..words + 16].copy_from_slice(&pointer.0.to_le_bytes());
    // SAFETY: as above.
    unsafe { store_whole(port, row, &line, version.past_cache) };
    at
}

/// Writes the value of a version; where it is, and the pointer to it.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
unsafe fn write_value<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    version: &NewVersion<'_>,
) -> (u64, ValuePointer) {
    let NewVersion { slot, value, external, lines, past_cache, .. } = *version;
    let len = value.len() as u64;
    let whole = value.in_one_piece().filter(|_| lines == ALL_LINES || !layout.has_line_halves());
    let (at, pointer, room) = match external {
        Some(at) => (at, ValuePointer::external(at, len), class_bytes(class_of(len))),
        None => {
            assert!(layout.is_inline(len), "a value of {len} bytes is not inline");
            (layout.half_offset(row, slot), ValuePointer::inline(len), layout.half_bytes)
        }
    };
    // SAFETY: owned by the caller.
    unsafe {
        match whole {
            Some(whole) => store_value(port, at, whole, room, past_cache),
            None => {
                assert!(layout.has_line_halves() && external.is_none(), "no place for lines");
                store_lines(port, at, &value, lines, past_cache);
            }
        }
    }
    (at, pointer)
}

/// Stores whole lines: past the cache, so that none of them has to be read to be written, or with
/// ordinary stores and a flush. Durable after the next fence.
///
/// # Safety
/// The caller owns the lines.
#[inline(always)]
unsafe fn store_whole<D: Device>(port: &mut Port<D>, at: u64, lines: &[u8], past_cache: bool) {
    // SAFETY: owned by the caller.
    unsafe {
        if past_cache {
            port.store_nt(at, lines);
        } else {
            port.store_bytes(at, lines);
            port.flush(at, lines.len() as u64);
        }
    }
}

/// Stores a value where `room` bytes are its own, in whole lines where there are any. What follows
/// the value in its last line is zeroed. Durable after the next fence.
///
/// # Safety
/// The caller owns the room.
unsafe fn store_value<D: Device>(
    port: &mut Port<D>,
    at: u64,
    value: &[u8],
    room: u64,
    past_cache: bool,
) {
    let whole = value.len() - value.len() % LINE;
    let (lines, rest) = value.split_at(whole);
    // SAFETY: owned by the caller, and what is stored fits the room.
    unsafe {
        if planted(port.device().as_ref(), Plant::FirstLineOnly) {
            port.store_bytes(at, value);
            return port.flush(at, value.len().min(LINE) as u64);
        }
        if !at.is_multiple_of(LINE as u64) {
            port.store_bytes(at, value);
            return port.flush(at, value.len() as u64);
        }
        if !lines.is_empty() {
            store_whole(port, at, lines, past_cache);
        }
        if rest.is_empty() {
            return;
        }
        let at = at + whole as u64;
        if room >= (whole + LINE) as u64 {
            store_whole(port, at, &padded_line(rest), past_cache);
        } else {
            port.store_bytes(at, rest);
            port.flush(at, rest.len() as u64);
        }
    }
}

/// Stores the lines of a value that differ from what lies there; as [`store_value`] otherwise.
///
/// # Safety
/// The caller owns the lines of the value.
unsafe fn store_lines<D: Device>(
    port: &mut Port<D>,
    at: u64,
    value: &NewValue<'_>,
    lines: u64,
    past_cache: bool,
) {
    let mut from = 0;
    while from < value.len().div_ceil(LINE) {
        let differs = |line: usize| lines >> line.min(63) & 1 != 0;
        if !differs(from) {
            from += 1;
            continue;
        }
        let mut to = from + 1;
        while to < value.len().div_ceil(LINE) && differs(to) {
            to += 1;
        }
        let run = at + (from * LINE) as u64;
        let mut at = run;
        for piece in value.pieces(from * LINE..value.len().min(to * LINE)) {
            let room = piece.len().next_multiple_of(LINE) as u64;
            // SAFETY: owned by the caller.
            unsafe { store_value(port, at, piece, room, past_cache) };
            if at > run {
                port.count_joined(at);
            }
            at += room;
        }
        from = to;
    }
}

/// Empties a version slot, serial id first. Flushed, not fenced.
///
/// # Safety
/// The caller owns the row's slot in this phase.
pub unsafe fn clear_version<D: Device>(port: &mut Port<D>, row: u64, slot: usize) {
    let words = row + slot as u64 * 16;
    // SAFETY: owned by the caller.
    unsafe {
        port.store_u64(words, 0);
        port.store_u64(words + 8, 0);
    }
    port.flush(row, ROW_HEADER_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(serial_id: SerialId, pointer: u64) -> VersionWords {
        VersionWords { serial_id: serial_id.0, pointer }
    }

    /// O-26, O-27: whatever subset of the two words of the overwritten slot reached the medium, in
    /// whatever order, the checkpoint's version is found; so the header needs no repair at
    /// recovery.
    #[test]
    fn o_26_every_torn_header_leads_to_the_checkpoint() {
        let checkpoint = 9;
        let current = words(SerialId::new(8, 3), 0x11);
        let stales = [words(SerialId(0), 0), words(SerialId::new(5, 1), 0x22)];
        for stale in stales {
            let new = words(SerialId::new(10, 7), 0x33);
            for mask in 0..4 {
                let torn = VersionWords {
                    serial_id: if mask & 1 != 0 { new.serial_id } else { stale.serial_id },
                    pointer: if mask & 2 != 0 { new.pointer } else { stale.pointer },
                };
                assert_eq!(checkpoint_slot(&[current, torn], checkpoint), Some(0));
                assert_eq!(checkpoint_slot(&[torn, current], checkpoint), Some(1));
            }
        }
    }

    #[test]
    fn the_checksum_of_a_key_is_that_of_table_and_key() {
        for key in [&b"1234567"[..], b"12345678", b"123456789"] {
            let whole = [&0x1234_u16.to_le_bytes()[..], key].concat();
            assert_eq!(key_crc(0x1234, key), crc32fast::hash(&whole));
        }
    }

    #[test]
    fn o_28_rows_born_after_the_checkpoint_do_not_exist_in_it() {
        let born = words(SerialId::new(10, 0), 0x1);
        let updated = words(SerialId::new(11, 0), 0x1);
        assert_eq!(checkpoint_slot(&[born, updated], 9), None);
        assert_eq!(checkpoint_slot(&[born, updated], 10), Some(0));
        assert_eq!(checkpoint_slot(&[born, updated], 11), Some(1));
    }

    #[test]
    fn o_32_halves_never_overlap_and_hold_what_they_promise() {
        for key_bytes_max in [8, 24, 25, 60, 256] {
            for row_bytes in (64..1024).step_by(64) {
                let record = TableRecord {
                    name: [0; 48],
                    row_bytes,
                    key_bytes_max,
                    value_bytes_max: 100,
                    index_kind: 1,
                    crc: 0,
                    reserved: [0; 3],
                };
                let layout = RowLayout::new(0, &record);
                assert!(layout.half_offset(0, 1) >= layout.half_offset(0, 0) + layout.half_bytes);
                if layout.half_bytes > 0 {
                    assert!(layout.half_offset(0, 1) + layout.half_bytes <= u64::from(row_bytes));
                }
            }
            for value in [0, 8, 48, 64, 100, 1000] {
                let row_bytes = RowLayout::row_bytes_all_inline(key_bytes_max, value);
                let record = TableRecord {
                    name: [0; 48],
                    row_bytes,
                    key_bytes_max,
                    value_bytes_max: value,
                    index_kind: 1,
                    crc: 0,
                    reserved: [0; 3],
                };
                assert!(RowLayout::new(0, &record).is_inline(u64::from(value)));
            }
        }
    }
}
