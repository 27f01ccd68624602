//! What is in the image: a superblock, then pages of slots, each page of one table.
//!
//! A slot holds one version of one row: a header word, a word with the lengths, the key, the value.
//! Slots of up to a line lie within one; larger ones begin at a line. So the header, the lengths
//! and the key are in one line, and the processor writes them back in the order in which they were
//! stored.

use workloads::{IndexKind, TableSpec};
use xxhash_rust::xxh3::xxh3_64;

use crate::index::KEY_BYTES_MAX;
use crate::memory::WORD_BYTES;
use crate::{Error, Result};

/// Words of the superblock.
pub(crate) const SUPERBLOCK_WORDS: usize = 8;
/// Where the superblock has the number below which every timestamp counts as committed.
pub(crate) const BASE_AT: u64 = 4 * WORD_BYTES;
/// Words of a page's header.
pub(crate) const PAGE_HEADER_WORDS: usize = 2;
/// Where the slots of a page begin.
pub(crate) const SLOTS_AT: u64 = 256;
/// Numbers of workers fit into a header.
pub(crate) const WORKERS_MAX: usize = 256;

const MAGIC: u64 = u64::from_le_bytes(*b"NVtestb1");
const PAGE_MAGIC: u64 = u64::from_le_bytes(*b"NVtpage1");
const LINE_BYTES: u64 = pmem::LINE_BYTES;

/// Bytes of a page unless options say something else.
pub(crate) const PAGE_BYTES: u64 = 256 << 10;

/// The header word of a slot. Zero: nothing was ever committed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Header(pub(crate) u64);

impl Header {
    const LAST: u64 = 1;
    const DELETED: u64 = 2;

    /// The header of a version that a worker's transaction with this timestamp made.
    pub(crate) fn new(timestamp: u64, worker: usize, deleted: bool) -> Self {
        debug_assert!(timestamp < 1 << 54 && worker < WORKERS_MAX);
        let deleted = if deleted { Self::DELETED } else { 0 };
        Self(timestamp << 10 | (worker as u64) << 2 | deleted)
    }

    /// The same, with the mark of the last version of a transaction.
    pub(crate) fn with_last(self) -> Self {
        Self(self.0 | Self::LAST)
    }

    pub(crate) fn is_last(self) -> bool {
        self.0 & Self::LAST != 0
    }

    pub(crate) fn is_deleted(self) -> bool {
        self.0 & Self::DELETED != 0
    }

    pub(crate) fn timestamp(self) -> u64 {
        self.0 >> 10
    }

    pub(crate) fn worker(self) -> usize {
        (self.0 >> 2) as usize % WORKERS_MAX
    }
}

/// The sizes of a table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) key_bytes_max: usize,
    pub(crate) value_bytes_max: usize,
    key_words: usize,
    /// Words of lengths, key and value.
    pub(crate) payload_words: usize,
    /// Bytes from one slot to the next.
    pub(crate) slot_bytes: u64,
}

impl Layout {
    fn new(spec: &TableSpec) -> Result<Self> {
        let (key_bytes_max, value_bytes_max) =
            (spec.key_bytes_max as usize, spec.value_bytes_max as usize);
        if key_bytes_max > KEY_BYTES_MAX {
            let name = spec.name;
            return Err(Error::Limit(format!(
                "keys of table {name:?} have up to {key_bytes_max} bytes, {KEY_BYTES_MAX} fit"
            )));
        }
        let value_bytes_max = if spec.index == IndexKind::Sequence { 8 } else { value_bytes_max };
        let key_words = key_bytes_max.div_ceil(8);
        let payload_words = 1 + key_words + value_bytes_max.div_ceil(8);
        let bytes = (1 + payload_words as u64) * WORD_BYTES;
        let slot_bytes = if bytes <= LINE_BYTES {
            bytes.next_power_of_two()
        } else {
            bytes.next_multiple_of(LINE_BYTES)
        };
        Ok(Self { key_bytes_max, value_bytes_max, key_words, payload_words, slot_bytes })
    }

    /// Bytes of a slot that are used.
    pub(crate) fn used_bytes(&self) -> u64 {
        (1 + self.payload_words as u64) * WORD_BYTES
    }

    /// Words of a payload up to the end of the key.
    pub(crate) fn key_part_words(&self) -> usize {
        1 + self.key_words
    }

    /// Words of a payload up to the end of its value.
    pub(crate) fn used_words(&self, payload: &[u64]) -> usize {
        let (_, value_bytes) = self.lengths(payload).unwrap_or_default();
        self.key_part_words() + value_bytes.div_ceil(8)
    }

    /// Whether a whole slot lies within one line.
    pub(crate) fn is_one_line(&self) -> bool {
        self.slot_bytes <= LINE_BYTES
    }

    /// Appends the payload of a row without its value, which is all zeros.
    pub(crate) fn begin_payload(&self, key: &[u8], value_bytes: usize, into: &mut Vec<u64>) {
        debug_assert!(key.len() <= self.key_bytes_max && value_bytes <= self.value_bytes_max);
        let start = into.len();
        into.push((key.len() as u64) << 32 | value_bytes as u64);
        into.resize(start + self.payload_words, 0);
        for (word, bytes) in into[start + 1..].iter_mut().zip(key.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(padded);
        }
    }

    /// The lengths of key and value that a payload tells; `None` where there cannot be such.
    fn lengths(&self, payload: &[u64]) -> Option<(usize, usize)> {
        let (key, value) = ((payload[0] >> 32) as usize, payload[0] as u32 as usize);
        // Where the longest key has 8 bytes, every key has.
        let is_key =
            key == self.key_bytes_max || key < self.key_bytes_max && self.key_bytes_max != 8;
        (is_key && value <= self.value_bytes_max).then_some((key, value))
    }

    /// Whether the lengths in a payload are possible.
    pub(crate) fn is_possible(&self, payload: &[u64]) -> bool {
        self.lengths(payload).is_some()
    }

    /// The key in a payload.
    pub(crate) fn key<'a>(&self, payload: &'a [u64]) -> &'a [u8] {
        let (key_bytes, _) = self.lengths(payload).unwrap_or_default();
        &zerocopy::IntoBytes::as_bytes(&payload[1..])[..key_bytes]
    }

    /// The value in a payload.
    pub(crate) fn value<'a>(&self, payload: &'a [u64]) -> &'a [u8] {
        let (_, value_bytes) = self.lengths(payload).unwrap_or_default();
        &zerocopy::IntoBytes::as_bytes(&payload[1 + self.key_words..])[..value_bytes]
    }

    /// The value in a payload, to be changed.
    pub(crate) fn value_mut<'a>(&self, payload: &'a mut [u64]) -> &'a mut [u8] {
        let (_, value_bytes) = self.lengths(payload).unwrap_or_default();
        &mut zerocopy::IntoBytes::as_mut_bytes(&mut payload[1 + self.key_words..])[..value_bytes]
    }
}

/// The sizes of all tables.
pub(crate) fn layouts(specs: &[TableSpec], page_bytes: u64) -> Result<Vec<Layout>> {
    let layouts: Vec<Layout> = specs.iter().map(Layout::new).collect::<Result<_>>()?;
    let largest = layouts.iter().map(|layout| layout.slot_bytes).max().unwrap_or(0);
    let fits = page_bytes.is_multiple_of(pmem::PAGE_BYTES) && SLOTS_AT + largest <= page_bytes;
    if !fits {
        return Err(Error::Limit(format!(
            "pages of {page_bytes} bytes do not fit slots of {largest} bytes"
        )));
    }
    Ok(layouts)
}

/// The superblock of an engine of this kind.
pub(crate) fn superblock(
    kind: u64,
    page_bytes: u64,
    specs: &[TableSpec],
) -> [u64; SUPERBLOCK_WORDS] {
    let mut words = Vec::new();
    for spec in specs {
        words.extend_from_slice(spec.name.as_bytes());
        words.push(match spec.index {
            IndexKind::Hash => 0,
            IndexKind::Ordered => 1,
            IndexKind::Sequence => 2,
        });
        words.extend_from_slice(&spec.key_bytes_max.to_le_bytes());
        words.extend_from_slice(&spec.value_bytes_max.to_le_bytes());
    }
    [MAGIC, kind, page_bytes, xxh3_64(&words), 0, 0, 0, 0]
}

/// The header of a page of a table.
pub(crate) fn page_header(table: usize) -> [u64; PAGE_HEADER_WORDS] {
    [PAGE_MAGIC, table as u64]
}

/// The table of a page, if it is in use.
pub(crate) fn table_of_page(header: &[u64], tables: usize) -> Result<Option<usize>> {
    match *header {
        [0, _] => Ok(None),
        [PAGE_MAGIC, table] if (table as usize) < tables => Ok(Some(table as usize)),
        _ => Err(Error::Corrupt(format!("the page header {header:x?} is none"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(key_bytes_max: u32, value_bytes_max: u32) -> Layout {
        let spec = TableSpec { name: "t", index: IndexKind::Hash, key_bytes_max, value_bytes_max };
        Layout::new(&spec).unwrap()
    }

    #[test]
    fn slots_have_the_sizes_of_the_paper() {
        assert_eq!(layout(8, 1000).slot_bytes, 1024);
        assert_eq!(layout(8, 8).slot_bytes, 32);
        assert_eq!(layout(8, 45).slot_bytes, 128);
        assert!(
            Layout::new(&TableSpec {
                name: "t",
                index: IndexKind::Hash,
                key_bytes_max: 48,
                value_bytes_max: 1
            })
            .is_err()
        );
    }

    #[test]
    fn a_payload_gives_back_what_was_put_in() {
        let layout = layout(40, 20);
        let mut payload = Vec::new();
        layout.begin_payload(b"a key of 19 bytes..", 11, &mut payload);
        layout.value_mut(&mut payload).copy_from_slice(b"eleven byte");
        assert_eq!(payload.len(), layout.payload_words);
        assert_eq!(layout.key(&payload), b"a key of 19 bytes..");
        assert_eq!(layout.value(&payload), b"eleven byte");
        payload[0] = 21;
        assert!(!layout.is_possible(&payload));
    }

    #[test]
    fn headers_keep_their_parts() {
        let header = Header::new(12_345, 255, true);
        assert_eq!((header.timestamp(), header.worker()), (12_345, 255));
        assert!(header.is_deleted() && !header.is_last() && header.with_last().is_last());
        assert_eq!(header.with_last().timestamp(), 12_345);
    }
}
