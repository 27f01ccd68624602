//! Writing rows: the first line, versions, and values by whole lines. The order of stores is that
//! of O-26; nothing is fenced here.

use std::sync::LazyLock;

use pmem::{Device, Port};

use super::RowLayout;
use crate::format::{KEY_BYTES_IN_HEADER, ROW_HEADER_BYTES, SerialId, ValuePointer};
use crate::lines::{LINE, for_each_run, padded_line};
use crate::new_value::NewValue;
use crate::{class_bytes, class_of};

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
    // SAFETY: owned by the caller; a half begins at a multiple of 16.
    unsafe { port.store_u64(at, value) };
    port.flush_line(at - at % LINE as u64);
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
    debug_assert!(layout.has_line_halves() && layout.is_inline(value.len() as u64));
    let at = layout.half_offset(row, slot);
    let pointer = ValuePointer::inline(value.len() as u64);
    // SAFETY: owned by the caller.
    unsafe {
        store_lines(port, at, value, lines);
        write_words(port, row, (slot, sid, pointer), layout, First::No);
    }
    at
}

/// As [`write_changed_lines`], of lines that follow each other: `part` is what a value of `len`
/// bytes holds from `at` on.
///
/// # Safety
/// As [`write_version`].
#[inline(always)]
pub unsafe fn write_part<D: Device>(
    port: &mut Port<D>,
    row: u64,
    layout: &RowLayout,
    (slot, sid): (usize, SerialId),
    (at, part): (usize, &[u8]),
    len: usize,
) -> u64 {
    debug_assert!(layout.has_line_halves() && layout.is_inline(len as u64));
    let value = layout.half_offset(row, slot);
    let to = value + at as u64;
    let (lines, rest) = part.split_at(part.len() - part.len() % LINE);
    port.count_store_nt(to, part.len().next_multiple_of(LINE) as u64);
    // SAFETY: owned by the caller; a half is whole lines.
    unsafe {
        port.store_nt_counted(to, lines);
        if !rest.is_empty() {
            port.store_nt_counted(to + lines.len() as u64, &padded_line(rest));
        }
        let pointer = ValuePointer::inline(len as u64);
        write_words(port, row, (slot, sid, pointer), layout, First::No);
    }
    value
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
    unsafe {
        port.store_u64(words, sid.0);
        port.store_u64(words + 8, pointer.0);
    }
    match first {
        First::Yes => port.flush(row, layout.heap_offset),
        First::No => port.flush_line(row),
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
    // SAFETY: owned by the caller.
    let (at, pointer) = unsafe { write_value(port, row, layout, &version) };
    let mut line = header_line(layout, key);
    let words = version.slot * 16;
    line[words..words + 8].copy_from_slice(&version.sid.0.to_le_bytes());
    line[words + 8..words + 16].copy_from_slice(&pointer.0.to_le_bytes());
    // SAFETY: as above.
    unsafe { port.store_nt(row, &line) };
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
    let NewVersion { slot, value, external, .. } = *version;
    let len = value.len() as u64;
    let (at, pointer, room) = match external {
        Some(at) => (at, ValuePointer::external(at, len), class_bytes(class_of(len))),
        None => {
            assert!(layout.is_inline(len), "a value of {len} bytes is not inline");
            (layout.half_offset(row, slot), ValuePointer::inline(len), layout.half_bytes)
        }
    };
    // SAFETY: owned by the caller.
    unsafe { store_value(port, at, value, room) };
    (at, pointer)
}

/// Stores a value where `room` bytes are its own, in whole lines where there are any: past the
/// cache, so that none of them has to be read to be written. What follows the value in its last
/// line is zeroed. Durable after the next fence.
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
            return port.flush(at, value.len() as u64);
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
            port.flush(at, rest.len() as u64);
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
    for_each_run(lines, value.len().div_ceil(LINE), |from, to| {
        let run = at + (from * LINE) as u64;
        let end = value.len().min(to * LINE);
        let (whole, rest) = (end - end % LINE, end % LINE);
        port.count_store_nt(run, ((to - from) * LINE) as u64);
        let mut at = run;
        let range = from * LINE..whole.max(from * LINE);
        if let Some(piece) = value.in_part(range.clone()) {
            // SAFETY: owned by the caller.
            unsafe { port.store_nt_counted(at, piece) };
            at += piece.len() as u64;
        } else {
            for piece in value.pieces(range) {
                // SAFETY: as above.
                unsafe { port.store_nt_counted(at, piece) };
                at += piece.len() as u64;
            }
        }
        if rest > 0 {
            // SAFETY: as above; a half is whole lines.
            unsafe { port.store_nt_counted(at, &padded_line(value.line(to - 1))) };
        }
    });
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
