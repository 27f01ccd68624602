//! Where things are in the rows of a table.

use super::shared_heap::fit_together;
use crate::format::{
    HEAP_IN_HEADER, KEY_BYTES_IN_HEADER, ROW_HEADER_BYTES, TableRecord, ValuePointer,
};
use crate::ids::TableId;
use crate::value::lines::LINE;

/// Offset of the key in a row; it goes on past the header line.
pub(super) const KEY_OFFSET: u64 = ROW_HEADER_BYTES - KEY_BYTES_IN_HEADER;
/// Longest key, and longest inline value, of rows that are a header line only.
const WORD_BYTES: u64 = 8;
/// Offset of the halves of such rows, behind the key.
const WORDS_OFFSET: u64 = KEY_OFFSET + WORD_BYTES;

/// Where things are in the rows of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLayout {
    /// Catalog position of the table.
    pub table: TableId,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Offset of the inline heap.
    pub heap_offset: u64,
    /// Bytes of each half of the inline heap, or of all of it where it has one value; 0 where both
    /// versions share it.
    pub half_bytes: u64,
    /// Bytes of an inline heap that both versions share; 0 where each has its half.
    pub shared_heap_bytes: u64,
    /// Longest key.
    pub key_bytes_max: u64,
    /// Longest value.
    pub value_bytes_max: u64,
    has_line_halves: bool,
    /// Bytes from one inline value to the other; 0 where there is room for one.
    half_stride: u64,
    is_one_line: bool,
    may_be_external: bool,
    shape: Shape,
}

/// What final writes of a table's rows can count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Halves that share lines with each other or the header: most values are one word, and are
    /// stored as one.
    Short,
    /// Halves of whole lines, a key of 8 bytes, and values of one line at most.
    Line,
    /// As `Line`, with longer values.
    Lines,
    /// Nothing.
    Any,
}

impl RowLayout {
    /// The layout that a catalog record gives.
    pub fn new(table: TableId, record: &TableRecord) -> Self {
        let key_bytes_max = u64::from(record.key_bytes_max);
        let value_bytes_max = u64::from(record.value_bytes_max);
        let is_one_line = record.inline_heap == HEAP_IN_HEADER;
        let shared_heap_bytes = u64::from(record.shared_heap_bytes());
        let is_shared = shared_heap_bytes > 0;
        let heap_offset = match is_one_line {
            true => WORDS_OFFSET,
            false => behind_key(key_bytes_max),
        };
        let row_bytes = u64::from(record.row_bytes);
        assert!(row_bytes > 0, "rows of table {table} have bytes");
        assert!(row_bytes.is_multiple_of(LINE as u64), "rows of {row_bytes} bytes share lines");
        let is_single = record.row_bytes_of_two().is_some();
        let half = row_bytes.saturating_sub(heap_offset) / if is_single { 1 } else { 2 };
        let half_bytes = match half {
            _ if is_shared => 0,
            _ if is_one_line => WORD_BYTES,
            // Whole lines where there are any: a half that shares no line with the other is written
            // by itself.
            64.. => half & !63,
            _ => half & !15,
        };
        let has_line_halves = half_bytes > 0
            && half_bytes.is_multiple_of(LINE as u64)
            && heap_offset.is_multiple_of(LINE as u64);
        let may_be_external = match is_shared {
            true => !fit_together(shared_heap_bytes, [value_bytes_max; 2]),
            false => value_bytes_max > half_bytes,
        };
        Self {
            table,
            row_bytes,
            heap_offset,
            half_bytes,
            shared_heap_bytes,
            key_bytes_max,
            value_bytes_max,
            has_line_halves,
            half_stride: if is_single { 0 } else { half_bytes },
            is_one_line,
            may_be_external,
            shape: match has_line_halves {
                _ if may_be_external || is_shared => Shape::Any,
                false => Shape::Short,
                true if key_bytes_max != 8 => Shape::Any,
                true if value_bytes_max <= LINE as u64 => Shape::Line,
                true => Shape::Lines,
            },
        }
    }

    /// Whether both versions of such rows, with their values, fit into the header line.
    pub fn can_be_one_line(key_bytes_max: u32, value_bytes_max: u32) -> bool {
        key_bytes_max.max(value_bytes_max) <= WORD_BYTES as u32
    }

    /// Smallest row size, a multiple of 64, in which both versions of every value are inline.
    pub fn row_bytes_all_inline(key_bytes_max: u32, value_bytes_max: u32) -> u32 {
        if Self::can_be_one_line(key_bytes_max, value_bytes_max) {
            return ROW_HEADER_BYTES as u32;
        }
        let half = value_bytes_max.next_multiple_of(if value_bytes_max > 48 { 64 } else { 16 });
        (behind_key(key_bytes_max.into()) as u32 + 2 * half).next_multiple_of(64)
    }

    /// Smallest row size, a multiple of 64, that has room for a shared heap.
    pub fn row_bytes_with_shared(key_bytes_max: u32, shared_heap_bytes: u32) -> u32 {
        let bytes = behind_key(key_bytes_max.into()) + u64::from(shared_heap_bytes);
        bytes.next_multiple_of(64).try_into().unwrap_or(u32::MAX)
    }

    /// Bytes of a row behind its key: the most that a shared heap can have.
    pub fn shared_heap_bytes_max(key_bytes_max: u32, row_bytes: u32) -> u32 {
        row_bytes.saturating_sub(behind_key(key_bytes_max.into()) as u32)
    }

    /// Offset of the inline half of a version slot.
    #[inline]
    pub fn half_offset(&self, row: u64, slot: usize) -> u64 {
        debug_assert!(slot < 2, "a row has no version {slot}");
        row + self.heap_offset + slot as u64 * self.half_stride
    }

    /// What final writes can count on.
    #[inline]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether the inline halves are whole lines, so that no line is shared and a value is followed
    /// by zeros up to the end of its last line.
    #[inline]
    pub fn has_line_halves(&self) -> bool {
        self.has_line_halves
    }

    /// Whether the inline heap has one value: an inline version is written over the one before it.
    #[inline]
    pub fn has_single_heap(&self) -> bool {
        self.half_stride < self.half_bytes
    }

    /// Whether both versions and their values lie in the header line.
    #[inline]
    pub fn is_one_line(&self) -> bool {
        self.is_one_line
    }

    /// Whether values of this length are inline, where there are halves.
    #[inline]
    pub fn fits_half(&self, len: u64) -> bool {
        len <= self.half_bytes
    }

    /// Whether there may be values that are not inline.
    #[inline]
    pub fn may_be_external(&self) -> bool {
        self.may_be_external
    }

    /// Whether all keys have exactly 8 bytes. The rows of such a table get their key with their
    /// first version, because the index knows the key.
    #[inline]
    pub fn has_exact_keys(&self) -> bool {
        self.key_bytes_max == 8
    }

    /// Offset of a version's value.
    #[inline]
    pub fn value_offset(&self, row: u64, slot: usize, pointer: ValuePointer) -> u64 {
        let inline = || self.inline_offset(row, slot, pointer.value_bytes());
        pointer.external_offset().unwrap_or_else(inline)
    }
}

/// Offset of the end of the header line and of a key that goes on behind it.
fn behind_key(key_bytes_max: u64) -> u64 {
    ROW_HEADER_BYTES + key_bytes_max.saturating_sub(KEY_BYTES_IN_HEADER).next_multiple_of(16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{IndexKind, TableDefinition};

    /// The record of a table with rows of so many bytes; 0: as many as both values need.
    fn record(key_bytes_max: u32, value_bytes_max: u32, row_bytes: u32) -> TableRecord {
        let (name, index) = ("t".into(), IndexKind::Hash);
        let definition = TableDefinition {
            name,
            index,
            key_bytes_max,
            value_bytes_max,
            row_bytes,
            shared_heap_bytes: 0,
        };
        definition.to_record(4096).unwrap()
    }

    /// Rows of stores that exist have these sizes: values beyond 48 bytes get whole lines.
    #[test]
    fn the_smallest_row_is_that_of_the_format() {
        for (key, value, bytes) in [
            (8, 0, 64),
            (8, 8, 64),
            (9, 8, 128),
            (8, 9, 128),
            (24, 32, 128),
            (25, 32, 192),
            (40, 48, 192),
            (40, 49, 256),
            (41, 48, 192),
            (57, 48, 256),
            (8, 64, 192),
            (8, 65, 320),
        ] {
            assert_eq!(RowLayout::row_bytes_all_inline(key, value), bytes, "{key} {value}");
        }
    }

    /// O-26, O-32: both words of a row that is one line lie behind its key, each by itself.
    #[test]
    fn o_32_short_keys_and_values_share_the_header_line() {
        for (key, value, is_one_line) in
            [(8, 8, true), (1, 0, true), (4, 8, true), (9, 8, false), (8, 9, false)]
        {
            let record = record(key, value, 0);
            let layout = RowLayout::new(TableId(0), &record);
            assert_eq!(layout.is_one_line(), is_one_line, "{key} {value}");
            if is_one_line {
                assert_eq!(layout.row_bytes, ROW_HEADER_BYTES);
                assert_eq!([0, 1].map(|slot| layout.half_offset(640, slot)), [688, 696]);
                assert!(layout.fits_half(8) && !layout.may_be_external());
                // Values that grow are elsewhere, and rows are what they were.
                let grown =
                    RowLayout::new(TableId(0), &TableRecord { value_bytes_max: 9, ..record });
                assert!(grown.is_one_line() && grown.may_be_external() && !grown.fits_half(9));
                assert_eq!(grown.shape(), Shape::Any);
            }
        }
    }

    #[test]
    fn halves_hold_what_they_promise() {
        for key_bytes_max in [8, 24, 25, 60, 256] {
            for value in [0, 8, 48, 64, 100, 1000] {
                let record = record(key_bytes_max, value, 0);
                assert!(RowLayout::new(TableId(0), &record).fits_half(u64::from(value)));
            }
        }
    }
}
