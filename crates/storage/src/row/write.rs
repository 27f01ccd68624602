//! Writing rows: the first line, versions, and values by whole lines. The order of stores is that
//! of O-26; nothing is fenced here.

use pmem::{BLOCK_BYTES, Device, Line, LineCount, Port};

use super::{KEY_OFFSET, RowLayout, Shape};
use crate::format::{
    KEY_BYTES_IN_HEADER, ROW_HEADER_BYTES, RowHeader, SerialId, ValuePointer, VersionWords,
};
use crate::lines::{LINE, for_each_run, padded_line, single_lines};
use crate::new_value::NewValue;
use crate::{class_bytes, class_of};

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
pub fn key_crc(table: u16, key: &[u8]) -> u32 {
    let Ok(key) = <[u8; 8]>::try_from(key) else { return long_key_crc(table, key) };
    let remainder = |zeros: usize, byte: u64| REMAINDERS[zeros][byte as usize & 0xff];
    // Two bytes, then eight: a call of the library takes three times as long.
    let table = u64::from(!table);
    let crc = remainder(1, table) ^ remainder(0, table >> 8) ^ 0xffff;
    let word = u64::from_le_bytes(key) ^ u64::from(crc);
    !(0..8).fold(0, |crc, byte| crc ^ remainder(7 - byte, word >> (8 * byte)))
}

#[inline(never)]
fn long_key_crc(table: u16, key: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&table.to_le_bytes());
    hasher.update(key);
    hasher.finalize()
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
    /// Value.
    pub value: &'v [u8],
    /// Pool slot for a value that is not inline.
    pub external: Option<u64>,
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
    // SAFETY: owned by the caller.
    let (at, pointer) = unsafe { write_value(port, row, layout, &version) };
    // SAFETY: as above.
    unsafe { write_words(port, row, (version.slot, version.sid, pointer), layout, first) };
    at
}

/// As [`write_version`], of a row with short halves whose value is one word.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
pub unsafe fn write_word<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    (slot, sid): (usize, SerialId),
    value: u64,
) -> u64 {
    debug_assert!(layout.has_short_halves());
    let at = layout.half_offset(row, slot);
    let pointer = ValuePointer::inline(size_of::<u64>() as u64);
    // SAFETY: owned by the caller; a half begins at a multiple of 8.
    unsafe { port.store_u64(at, value) };
    if !layout.is_one_line() {
        port.flush_line_by_fence(at - at % LINE as u64);
    }
    // SAFETY: as above.
    unsafe { write_words(port, row, (slot, sid, pointer), layout, First::No) };
    at
}

/// As [`write_version`], of a row whose halves are whole lines: the value is inline, and only the
/// lines of a mask are stored, because the slot holds the others. Returns the offset of the value.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
pub unsafe fn write_changed_lines<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    (slot, sid): (usize, SerialId),
    value: &NewValue<'_>,
    lines: u64,
) -> u64 {
    debug_assert!(layout.has_line_halves() && layout.fits_half(value.len() as u64));
    let at = layout.half_offset(row, slot);
    let pointer = ValuePointer::inline(value.len() as u64);
    // SAFETY: owned by the caller.
    unsafe {
        store_lines(port, at, value, lines);
        write_words(port, row, (slot, sid, pointer), layout, First::No);
    }
    at
}

/// As [`write_changed_lines`], of a value that is a line, or `len` bytes with zeros behind them.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
pub unsafe fn write_line<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    (slot, sid): (usize, SerialId),
    (line, len): (&Line, usize),
) -> u64 {
    debug_assert!(layout.shape() == Shape::Line);
    let at = layout.half_offset(row, slot);
    // SAFETY: owned by the caller.
    unsafe {
        port.store_line(at, line);
        let pointer = ValuePointer::inline(len as u64);
        write_words(port, row, (slot, sid, pointer), layout, First::No);
    }
    at
}

/// As [`write_with_key`], of a value as that of [`write_line`].
///
/// # Safety
/// As [`write_with_key`].
#[inline(always)]
pub unsafe fn write_first_line<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    (key, sid): (&[u8; 8], SerialId),
    (line, len): (&Line, usize),
) -> u64 {
    debug_assert!(layout.shape() == Shape::Line);
    let at = layout.half_offset(row, 0);
    // SAFETY: owned by the caller.
    unsafe {
        port.store_line(at, line);
        store_header(port, row, layout, (key, &[]), (0, sid, ValuePointer::inline(len as u64)));
    }
    at
}

/// Writes serial id and pointer of a version, in this order, and flushes the header line; with the
/// key of the row if it is the first version.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
unsafe fn write_words<D: Device>(
    port: &mut Port<D>,
    row: u64,
    (slot, sid, pointer): (usize, SerialId, ValuePointer),
    layout: &RowLayout,
    first: First,
) {
    let words = row + slot as u64 * 16;
    // SAFETY: owned by the caller.
    unsafe { port.store_two(words, [sid.0, pointer.0]) };
    match first {
        First::Yes => port.flush_by_fence(row, layout.heap_offset),
        First::No => port.flush_line_by_fence(row),
    }
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
    let NewVersion { slot, sid, value, .. } = version;
    if let Room::Header(at) = Room::of(row, layout, &version) {
        let version = (slot, sid, ValuePointer::inline(value.len() as u64));
        // SAFETY: owned by the caller.
        unsafe { store_header(port, row, layout, (key, value), version) };
        return at;
    }
    // SAFETY: owned by the caller.
    let (at, pointer) = unsafe { write_value(port, row, layout, &version) };
    // SAFETY: as above.
    unsafe { store_header(port, row, layout, (key, &[]), (slot, sid, pointer)) };
    at
}

/// Writes the header line of a row with its only version, and the value if it lies there.
///
/// # Safety
/// As [`write_with_key`].
#[inline(always)]
unsafe fn store_header<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    (key, value): (&[u8; 8], &[u8]),
    (slot, sid, pointer): (usize, SerialId, ValuePointer),
) {
    let mut header = RowHeader {
        versions: [VersionWords::default(); 2],
        table: layout.table,
        key_bytes: key.len() as u16,
        crc: key_crc(layout.table, key),
        key: [0; KEY_BYTES_IN_HEADER as usize],
    };
    header.versions[slot] = VersionWords { serial_id: sid.0, pointer: pointer.0 };
    header.key[..key.len()].copy_from_slice(key);
    if !value.is_empty() {
        let at = (layout.half_offset(0, slot) - KEY_OFFSET) as usize;
        header.key[at..at + value.len()].copy_from_slice(value);
    }
    // SAFETY: as above.
    unsafe { port.store_line(row, &zerocopy::transmute!(header)) };
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
    let (value, len) = (version.value, version.value.len() as u64);
    // SAFETY: owned by the caller.
    unsafe {
        match Room::of(row, layout, version) {
            Room::Header(at) => {
                // It is flushed with the header.
                port.store_bytes(at, value);
                (at, ValuePointer::inline(len))
            }
            Room::Heap(at) => {
                store_value(port, at, value, layout.inline_room(len));
                (at, ValuePointer::inline(len))
            }
            Room::Pool(at) => {
                store_value(port, at, value, class_bytes(class_of(len)));
                (at, ValuePointer::external(at, len))
            }
        }
    }
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
    fn of(row: u64, layout: &RowLayout, version: &NewVersion<'_>) -> Self {
        let len = version.value.len() as u64;
        if let Some(at) = version.external {
            return Self::Pool(at);
        }
        assert!(layout.fits_alone(len), "a value of {len} bytes is not inline");
        let at = layout.inline_offset(row, version.slot, len);
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
unsafe fn store_value<D: Device>(port: &mut Port<D>, at: u64, value: &[u8], room: u64) {
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
unsafe fn store_lines<D: Device>(port: &mut Port<D>, at: u64, value: &NewValue<'_>, lines: u64) {
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
unsafe fn store_long<D: Device>(port: &mut Port<D>, at: u64, value: &NewValue<'_>, lines: u64) {
    for_each_run(lines, value.len().div_ceil(LINE), |from, to| {
        port.count_run(at + (from * LINE) as u64, (to - from) as u64);
        // SAFETY: owned by the caller.
        (from..to).for_each(|line| unsafe { store_line(port, at, value, line) });
    });
}

/// Stores a line of a value that was counted.
///
/// # Safety
/// As [`store_lines`].
#[inline(always)]
unsafe fn store_line<D: Device>(port: &mut Port<D>, at: u64, value: &NewValue<'_>, line: usize) {
    let (at, bytes) = (at + (line * LINE) as u64, value.line(line));
    // SAFETY: owned by the caller; a half is whole lines.
    unsafe {
        match bytes.try_into() {
            Ok(line) => port.store_line_counted(at, line),
            Err(_) => port.store_line_counted(at, &padded_line(bytes)),
        }
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
