//! Writing rows: the first line, and versions, for which there is one way, [`write_version`]. The
//! order of stores is that of O-26; nothing is fenced here.

use pmem::{BLOCK_BYTES, Device, Line, LineCount, Port};

use super::layout::{KEY_OFFSET, RowLayout, Shape};
use crate::format::{
    KEY_BYTES_IN_HEADER, ROW_HEADER_BYTES, RowHeader, SerialId, ValuePointer, VersionWords,
};
use crate::ids::TableId;
use crate::pool::{class_bytes, class_of};
use crate::value::NewValue;
use crate::value::lines::{LINE, for_each_run, padded_line, single_lines};

/// Remainders of a byte with so many bytes of zeros behind it, for CRC-32 of eight bytes at once.
static REMAINDERS: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut number = 0;
    while number < 8 * 256 {
        let (table, byte) = (number / 256, number % 256);
        let mut crc = if table == 0 { byte as u32 } else { tables[table - 1][byte] };
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 0 { 0 } else { 0xedb8_8320 };
            bit += 1;
        }
        tables[table][byte] = crc;
        number += 1;
    }
    tables
};

/// Checksum of what never changes in a row: CRC-32 of table and key.
#[inline(always)]
pub fn key_crc(table: TableId, key: &[u8]) -> u32 {
    let Ok(key) = <[u8; 8]>::try_from(key) else { return long_key_crc(table, key) };
    let remainder = |zeros: usize, byte: u64| REMAINDERS[zeros][byte as usize & 0xff];
    // Two bytes, then eight: a call of the library takes three times as long.
    let table = u64::from(!table.0);
    let crc = remainder(1, table) ^ remainder(0, table >> 8) ^ 0xffff;
    let word = u64::from_le_bytes(key) ^ u64::from(crc);
    !(0..8).fold(0, |crc, byte| crc ^ remainder(7 - byte, word >> (8 * byte)))
}

#[inline(never)]
fn long_key_crc(table: TableId, key: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&table.0.to_le_bytes());
    hasher.update(key);
    hasher.finalize()
}

/// The header line of a row without versions, with as much of the key as it holds.
fn header_line(layout: &RowLayout, key: &[u8]) -> [u8; LINE] {
    assert!(key.len() as u64 <= layout.key_bytes_max, "key length was checked at admission");
    let mut line = [0u8; LINE];
    line[32..34].copy_from_slice(&layout.table.0.to_le_bytes());
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
pub unsafe fn initialise(port: &mut Port, row: u64, layout: &RowLayout, key: &[u8]) {
    debug_assert!(row.is_multiple_of(LINE as u64), "a row begins with a line");
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
#[derive(Clone, Copy)]
pub struct NewVersion<'v> {
    /// Version slot.
    pub slot: usize,
    /// Writer.
    pub sid: SerialId,
    /// Value.
    pub content: Content<'v>,
    /// Whether it is the row's first.
    pub first: First<'v>,
}

/// The value of a version, in the form in which it is stored.
#[derive(Clone, Copy)]
pub enum Content<'v> {
    /// A word, in a row of [`Shape::Short`].
    Word(u64),
    /// A line with so many bytes, zeros behind them, in a row of [`Shape::Line`].
    Line(&'v Line, usize),
    /// Lines of a mask; the slot holds the others. The halves are whole lines, and one of them is
    /// long enough.
    Lines(&'v NewValue<'v>, u64),
    /// Bytes, inline or in the slot of a pool at an offset.
    Bytes(&'v [u8], Option<u64>),
}

/// Whether a version is its row's first.
#[derive(Debug, Clone, Copy)]
pub enum First<'k> {
    /// It is not: the key is durable.
    No,
    /// It is, and the key, which [`initialise`] stored, must become durable with it.
    KeyIsThere,
    /// It is, of a table with exact keys, and nothing is stored yet: the header line is written as
    /// a whole, with this key.
    WithKey(&'k [u8; 8]),
}

/// Where a version's value is, and the pointer that says so.
#[derive(Clone, Copy)]
struct Stored {
    at: u64,
    pointer: ValuePointer,
}

impl Stored {
    #[inline(always)]
    fn inline(at: u64, len: usize) -> Self {
        Self { at, pointer: ValuePointer::inline(len as u64) }
    }
}

/// Writes a version: the value, then serial id, then pointer (O-26). Durable after the port's next
/// fence, which is that before the checkpoint; until then the epoch of the serial id says that it
/// does not count. Returns the offset of the value.
///
/// # Safety
/// The caller owns the row's slot in this phase, the whole row if the version is its first, and the
/// slot of the pool if there is one.
#[inline(always)]
// SAFETY: the caller owns what is written, see above.
pub unsafe fn write_version(
    port: &mut Port,
    row: u64,
    layout: &RowLayout,
    version: &NewVersion<'_>,
) -> u64 {
    debug_assert!(version.sid.0 != 0, "a version has a writer");
    debug_assert!(version.slot < 2, "a row has no version {}", version.slot);
    debug_assert!(
        !matches!(version.first, First::No)
            || port.device().image().load_u64(row + (1 - version.slot as u64) * 16)
                != version.sid.0,
        "no two versions of a row have one serial id (O-28)"
    );
    // SAFETY: forwarded to the caller.
    unsafe {
        let stored = match version.content {
            Content::Word(word) => store_word(port, row, layout, version.slot, word),
            Content::Line(line, len) => {
                debug_assert!(layout.shape() == Shape::Line);
                let at = layout.half_offset(row, version.slot);
                port.store_line(at, line);
                Stored::inline(at, len)
            }
            Content::Lines(value, lines) => {
                debug_assert!(layout.has_line_halves() && layout.fits_half(value.len() as u64));
                let at = layout.half_offset(row, version.slot);
                store_lines(port, at, value, lines);
                Stored::inline(at, value.len())
            }
            Content::Bytes(value, external) => {
                let room = Room::of(row, layout, version.slot, value.len(), external);
                store_bytes(port, layout, value, room, version.first)
            }
        };
        store_words(port, row, layout, version, stored);
        stored.at
    }
}

/// Stores a value that is one word, inline.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
unsafe fn store_word(
    port: &mut Port,
    row: u64,
    layout: &RowLayout,
    slot: usize,
    word: u64,
) -> Stored {
    debug_assert!(layout.shape() == Shape::Short);
    let at = layout.half_offset(row, slot);
    // SAFETY: owned by the caller; a half begins at a multiple of 8.
    unsafe { port.store_u64(at, word) };
    if !layout.is_one_line() {
        port.flush_line_by_fence(at - at % LINE as u64);
    }
    Stored::inline(at, size_of::<u64>())
}

/// Stores a value wherever it belongs; but not with a header that is written as a whole, which has
/// it.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
unsafe fn store_bytes(
    port: &mut Port,
    layout: &RowLayout,
    value: &[u8],
    room: Room,
    first: First<'_>,
) -> Stored {
    let len = value.len() as u64;
    // SAFETY: owned by the caller.
    unsafe {
        match room {
            Room::Header(at) => {
                // It is flushed with the header.
                if !matches!(first, First::WithKey(_)) {
                    port.store_bytes(at, value);
                }
                Stored::inline(at, value.len())
            }
            Room::Heap(at) => {
                store_value(port, at, value, layout.inline_room(len));
                Stored::inline(at, value.len())
            }
            Room::Pool(at) => {
                store_value(port, at, value, class_bytes(class_of(len)));
                Stored { at, pointer: ValuePointer::external(at, len) }
            }
        }
    }
}

/// Stores serial id and pointer of a version, in this order; with the key of the row if it is the
/// first version.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
unsafe fn store_words(
    port: &mut Port,
    row: u64,
    layout: &RowLayout,
    version: &NewVersion<'_>,
    stored: Stored,
) {
    let words = row + version.slot as u64 * 16;
    // SAFETY: owned by the caller.
    unsafe {
        match version.first {
            First::No => {
                port.store_two(words, [version.sid.0, stored.pointer.0]);
                port.flush_line_by_fence(row);
            }
            First::KeyIsThere => {
                port.store_two(words, [version.sid.0, stored.pointer.0]);
                port.flush_by_fence(row, layout.heap_offset);
            }
            First::WithKey(key) => {
                let head = Head { key, pointer: stored.pointer };
                store_header(port, row, layout, version, head);
            }
        }
    }
}

/// What a header line has beside the serial id of its only version.
struct Head<'k> {
    key: &'k [u8; 8],
    pointer: ValuePointer,
}

/// Writes the header line of a row with its only version, and the value if it lies there.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
unsafe fn store_header(
    port: &mut Port,
    row: u64,
    layout: &RowLayout,
    version: &NewVersion<'_>,
    head: Head<'_>,
) {
    let &NewVersion { slot, sid, content, .. } = version;
    let Head { key, pointer } = head;
    let mut header = RowHeader {
        versions: [VersionWords::default(); 2],
        table: layout.table.0,
        key_bytes: key.len() as u16,
        crc: key_crc(layout.table, key),
        key: [0; KEY_BYTES_IN_HEADER as usize],
    };
    header.versions[slot] = VersionWords { serial_id: sid.0, pointer: pointer.0 };
    header.key[..key.len()].copy_from_slice(key);
    debug_assert!(!matches!(content, Content::Word(_)), "a first value comes as bytes");
    if let Content::Bytes(value, None) = content
        && layout.is_one_line()
    {
        let at = (layout.half_offset(0, slot) - KEY_OFFSET) as usize;
        header.key[at..at + value.len()].copy_from_slice(value);
    }
    // SAFETY: as above.
    unsafe { port.store_line(row, &zerocopy::transmute!(header)) };
}

/// Where the value of a version goes, and so its pointer and what has to be flushed. A table's
/// layout alone does not say it: rows that are one line have longer values in pools.
enum Room {
    /// In the header line.
    Header(u64),
    /// In the inline heap behind it.
    Heap(u64),
    /// In a slot of a pool.
    Pool(u64),
}

impl Room {
    #[inline(always)]
    fn of(row: u64, layout: &RowLayout, slot: usize, len: usize, external: Option<u64>) -> Self {
        if let Some(at) = external {
            return Self::Pool(at);
        }
        let len = len as u64;
        assert!(layout.fits_alone(len), "a value of {len} bytes is not inline");
        let at = layout.inline_offset(row, slot, len);
        if layout.is_one_line() { Self::Header(at) } else { Self::Heap(at) }
    }
}

/// Stores a value where `room` bytes are its own: whole lines, where there are any, non-temporally,
/// so that none of them has to be read to be written. What follows the value in its last line is
/// zeroed if that is its own, too: in a shared heap it may be the other version's. Durable after
/// the next fence.
///
/// # Safety
/// The caller owns the room.
unsafe fn store_value(port: &mut Port, at: u64, value: &[u8], room: u64) {
    debug_assert!(value.len() as u64 <= room, "a value has room where it is stored");
    let whole = value.len() - value.len() % LINE;
    let (lines, rest) = value.split_at(whole);
    // SAFETY: owned by the caller, and what is stored fits the room.
    unsafe {
        if !at.is_multiple_of(LINE as u64) {
            port.store_bytes(at, value);
            return port.flush_by_fence(at, value.len() as u64);
        }
        if !lines.is_empty() {
            port.store_nt(at, lines);
        }
        if rest.is_empty() {
            return;
        }
        let at = at + whole as u64;
        if room >= (whole + LINE) as u64 {
            port.store_nt(at, &padded_line(rest));
        } else {
            port.store_bytes(at, rest);
            port.flush_by_fence(at, rest.len() as u64);
        }
    }
}

/// Stores the lines of a mask of a value, in whole lines, non-temporally. Durable after the next
/// fence.
///
/// # Safety
/// The caller owns the lines of the value.
#[inline(always)]
unsafe fn store_lines(port: &mut Port, at: u64, value: &NewValue<'_>, lines: u64) {
    let count = value.len().div_ceil(LINE);
    let Some(bits) = single_lines(lines, count) else {
        // SAFETY: owned by the caller.
        return unsafe { store_long(port, at, value, lines) };
    };
    let (mut count, mut block, mut left) = (LineCount::default(), u64::MAX, bits);
    while left != 0 {
        let line = left.trailing_zeros() as usize;
        left &= left - 1;
        let before = std::mem::replace(&mut block, (at + (line * LINE) as u64) / BLOCK_BYTES);
        count.lines += 1;
        count.blocks += u64::from(block != before);
        // SAFETY: owned by the caller.
        unsafe { store_line(port, at, value, line) };
    }
    port.count_lines(count, at, bits);
}

/// [`store_lines`] of a value of which not every line has a bit of its own.
///
/// # Safety
/// As [`store_lines`].
#[inline(never)]
unsafe fn store_long(port: &mut Port, at: u64, value: &NewValue<'_>, lines: u64) {
    for_each_run(lines, value.len().div_ceil(LINE), |from, to| {
        port.count_run(at + (from * LINE) as u64, (to - from) as u64);
        for line in from..to {
            // SAFETY: owned by the caller.
            unsafe { store_line(port, at, value, line) };
        }
    });
}

/// Stores a line of a value that begins at `at`, without counting it; zeros follow the bytes of the
/// last line.
///
/// # Safety
/// The caller owns the line.
#[inline(always)]
unsafe fn store_line(port: &mut Port, at: u64, value: &NewValue<'_>, line: usize) {
    let (offset, bytes) = (at + (line * LINE) as u64, value.line(line));
    // SAFETY: owned by the caller.
    unsafe {
        match bytes.try_into() {
            Ok(line) => port.store_line_counted(offset, line),
            Err(_) => port.store_line_counted(offset, &padded_line(bytes)),
        }
    }
}

/// Empties a version slot, serial id first. Flushed, not fenced.
///
/// # Safety
/// The caller owns the row's slot in this phase.
pub unsafe fn clear_version(port: &mut Port, row: u64, slot: usize) {
    assert!(slot < 2, "a row has no version {slot}");
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

    #[test]
    fn the_checksum_of_a_key_is_that_of_table_and_key() {
        for key in [&b"1234567"[..], b"12345678", b"123456789"] {
            let whole = [&0x1234_u16.to_le_bytes()[..], key].concat();
            assert_eq!(key_crc(TableId(0x1234), key), crc32fast::hash(&whole));
        }
    }
}
