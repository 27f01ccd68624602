//! What a table is, as its user asks for it and as the catalog has it.

use crate::error::{Result, StorageError};
use crate::format::{
    HEAP_IN_HALVES, HEAP_IN_HEADER, KEY_BYTES_MAX, NAME_BYTES, ROW_HEADER_BYTES, TableRecord,
    VALUE_BYTES_MAX,
};
use crate::ids::TableId;
use crate::row::RowLayout;
use crate::value::lines::LINE;

/// How the rows of a table are found. Stored in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// Point reads only.
    Hash,
    /// Point reads and scans.
    Ordered,
    /// A family of sequences: 8-byte keys, 8-byte values.
    Sequence,
}

/// A table as its user asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// Unique name, 1 to 48 bytes.
    pub name: String,
    /// How rows are found.
    pub index: IndexKind,
    /// Longest key, 1 to 256 bytes. Exactly 8 means that every key has 8 bytes.
    pub key_bytes_max: u32,
    /// Longest value, 0 to 262,128 bytes.
    pub value_bytes_max: u32,
    /// Bytes of a persistent row; 0 chooses one that keeps values of up to 2,048 bytes inline, and
    /// 256 (NV 5.3) where they are longer, or the smallest one with room for a shared heap. Where
    /// rows need one inline value only, on devices that take snapshots, they are so much shorter.
    pub row_bytes: u32,
    /// Bytes of an inline heap that both versions of a row share (NV 5.3: 168), a multiple of 8; 0:
    /// each version has a half of its own. A value that does not fit beside the version before it
    /// is in the value pool. Not for sequences.
    pub shared_heap_bytes: u32,
}

/// Longest value that the default row size keeps inline.
pub(super) const INLINE_BYTES_DEFAULT: u32 = 2048;
/// Row size where values are longer (NV 5.3).
pub(super) const ROW_BYTES_EXTERNAL: u32 = 256;

impl TableDefinition {
    /// Checks the limits and fixes the row size.
    ///
    /// # Errors
    /// `Limit` naming the table, the value and the limit.
    pub fn to_record(&self, segment_bytes: u64) -> Result<TableRecord> {
        let limit = |what, is, range| Err(self.limit(what, is, range));
        if self.name.is_empty() || self.name.len() > NAME_BYTES || self.name.contains('\0') {
            return limit(
                "length of the name",
                self.name.len() as u64,
                format!("1 to {NAME_BYTES}"),
            );
        }
        if !(1..=KEY_BYTES_MAX).contains(&self.key_bytes_max) {
            return limit(
                "longest key",
                self.key_bytes_max.into(),
                format!("1 to {KEY_BYTES_MAX}"),
            );
        }
        let value_limit = u64::from(VALUE_BYTES_MAX).min(segment_bytes);
        if u64::from(self.value_bytes_max) > value_limit {
            let range = format!("0 to {value_limit} (segments have {segment_bytes} bytes)");
            return limit("longest value", self.value_bytes_max.into(), range);
        }
        if self.index == IndexKind::Sequence && (self.key_bytes_max, self.value_bytes_max) != (8, 8)
        {
            return limit(
                "key of a sequence",
                self.key_bytes_max.into(),
                "8, and its value 8".into(),
            );
        }
        let row_bytes = self.row_bytes_of_record(segment_bytes)?;
        let is_one_line = RowLayout::can_be_one_line(self.key_bytes_max, self.value_bytes_max)
            && row_bytes == ROW_HEADER_BYTES as u32;
        let mut record = TableRecord {
            name: [0; NAME_BYTES],
            row_bytes,
            key_bytes_max: self.key_bytes_max,
            value_bytes_max: self.value_bytes_max,
            index_kind: match self.index {
                IndexKind::Hash => 1,
                IndexKind::Ordered => 2,
                IndexKind::Sequence => 3,
            },
            types: 0,
            type_versions: 0,
            inline_heap: match self.shared_heap_bytes {
                0 if is_one_line => HEAP_IN_HEADER,
                0 => HEAP_IN_HALVES,
                shared => shared,
            },
        };
        let heap = record.shared_heap_bytes();
        assert!(heap == self.shared_heap_bytes, "a shared heap of {heap} bytes fits its field");
        record.name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        Ok(record)
    }

    /// The row size, fixed and checked with the heap that rows share.
    fn row_bytes_of_record(&self, segment_bytes: u64) -> Result<u32> {
        let row_bytes = match self.row_bytes {
            0 if self.shared_heap_bytes > 0 => {
                RowLayout::row_bytes_with_shared(self.key_bytes_max, self.shared_heap_bytes)
            }
            0 if self.value_bytes_max <= INLINE_BYTES_DEFAULT => {
                RowLayout::row_bytes_all_inline(self.key_bytes_max, self.value_bytes_max)
            }
            0 => ROW_BYTES_EXTERNAL.max(RowLayout::row_bytes_all_inline(self.key_bytes_max, 0)),
            given => given,
        };
        let least =
            RowLayout::row_bytes_all_inline(self.key_bytes_max, 0).max(ROW_HEADER_BYTES as u32);
        if !row_bytes.is_multiple_of(64)
            || row_bytes < least
            || u64::from(row_bytes) > segment_bytes
        {
            let range = format!("a multiple of 64 from {least} to {segment_bytes}");
            return Err(self.limit("row size", row_bytes.into(), range));
        }
        let heap = self.shared_heap_bytes;
        let room = RowLayout::shared_heap_bytes_max(self.key_bytes_max, row_bytes);
        if !heap.is_multiple_of(8) || heap > room {
            let range = format!("a multiple of 8 up to {room} in rows of {row_bytes} bytes");
            return Err(self.limit("shared heap", heap.into(), range));
        }
        // An epoch reserves no space in pools for what its calls allocate (O-43).
        if self.index == IndexKind::Sequence && heap > 0 {
            return Err(self.limit("shared heap of a sequence", heap.into(), "0".into()));
        }
        Ok(row_bytes)
    }

    fn limit(&self, what: &str, is: u64, range: String) -> StorageError {
        StorageError::Limit(format!("table {:?}: {what} is {is}, must be {range}", self.name))
    }
}

/// The record of a table on a device that takes image snapshots: a crash leads back to the newest
/// of them, so the value that its checkpoint has may be written over (decision 70). Its rows have
/// one inline value, as long as each of two would be, if they are shorter for it.
pub(super) fn with_single_heap(record: TableRecord) -> TableRecord {
    let layout = RowLayout::new(TableId(0), &record);
    let row_bytes = (layout.heap_offset + layout.half_bytes).next_multiple_of(LINE as u64) as u32;
    let has_halves = record.inline_heap == HEAP_IN_HALVES && layout.half_bytes > 0;
    if !has_halves || row_bytes >= record.row_bytes {
        return record;
    }
    let inline_heap = TableRecord::single_heap(record.row_bytes);
    TableRecord { row_bytes, inline_heap, ..record }
}

/// What a catalog record says.
pub(crate) fn definition(record: &TableRecord) -> TableDefinition {
    let len = record.name.iter().position(|&b| b == 0).unwrap_or(NAME_BYTES);
    TableDefinition {
        name: String::from_utf8_lossy(&record.name[..len]).into_owned(),
        index: match record.index_kind {
            1 => IndexKind::Hash,
            2 => IndexKind::Ordered,
            _ => IndexKind::Sequence,
        },
        key_bytes_max: record.key_bytes_max,
        value_bytes_max: record.value_bytes_max,
        row_bytes: record.row_bytes_of_two().unwrap_or(record.row_bytes),
        shared_heap_bytes: record.shared_heap_bytes(),
    }
}

/// The record of a number that no table has.
pub(crate) const UNUSED: TableRecord = TableRecord {
    name: [0; NAME_BYTES],
    row_bytes: 0,
    key_bytes_max: 0,
    value_bytes_max: 0,
    index_kind: 0,
    types: 0,
    type_versions: 0,
    inline_heap: HEAP_IN_HALVES,
};
