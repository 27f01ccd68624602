//! Small rows that readers from outside have read, where the image may be larger than memory. A
//! page has many small rows, of which one may be read often: here it takes its own bytes only, and
//! needs no page, neither of rows nor of an index.
//!
//! 1. A row is kept by a reader inside the gate, and only if no call of the running epoch writes
//!    it: so it is what readers see until an epoch writes it.
//! 2. While the gate is closed, an epoch forgets the rows that its calls may write. So what a
//!    reader inside finds here is what it would read.
//!
//! Rows of sequences are not kept: no call declares that it writes one.
//!
//! Calls do not look here: what they declare is fetched while the log is written, and what they
//! write needs its page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{AnyDevice, Device};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use storage::{EpochNumber, IndexKind, TableId};

use crate::index::EntryId;
use crate::reads::Reads;
use crate::state::core::Core;
use crate::table::{KeyWord, Table};
use crate::version::{ValueWord, version_epoch};

/// Longer values are not kept, with their keys: of them a page has few.
const BYTES_MAX: usize = 512;

/// What a row takes beside its bytes, about: its entry, half of one that remembers another row, and
/// a block of memory.
const ROW_BYTES: u64 = 176;

/// After so many new rows the cache tells its size.
const TOLD_AFTER: u64 = 64;

/// The cache has this part of a limit of memory, at most.
const LIMIT_PART: u64 = 4;

/// Keys that are not exact may have the same word: the row says which one it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    table: TableId,
    word: u64,
}

/// A row that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// The epoch that wrote it.
    pub(crate) written: EpochNumber,
    key_bytes: u32,
    /// Its key, empty where the word is the key, and its value.
    bytes: Arc<[u8]>,
}

impl Kept {
    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes as usize]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[self.key_bytes as usize..]
    }
}

#[derive(Debug, Clone)]
struct Weights;

impl Weighter<Place, Kept> for Weights {
    fn weight(&self, _: &Place, row: &Kept) -> u64 {
        ROW_BYTES + row.bytes.len() as u64
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct RowCache {
    rows: Cache<Place, Kept, Weights>,
    added: AtomicU64,
    /// Its bytes, for those who share out memory.
    told: Arc<AtomicU64>,
}

impl RowCache {
    /// That of a device with a limit of memory.
    pub(crate) fn of(device: &AnyDevice) -> Option<Self> {
        let limit = device.page_use()?.limit_bytes;
        Some(Self::new(limit / LIMIT_PART, device.kept_bytes()?))
    }

    /// A cache of so many bytes, which tells how many it has.
    fn new(bytes: u64, told: Arc<AtomicU64>) -> Self {
        // Memory for so many rows is there from the beginning, whether any is kept or not.
        let rows = Cache::with_weighter((bytes / ROW_BYTES / 32) as usize, bytes, Weights);
        Self { rows, added: AtomicU64::new(0), told }
    }

    fn get(&self, table: TableId, word: KeyWord<'_>) -> Option<Kept> {
        let kept = self.rows.get(&Place { table, word: word.hash })?;
        (kept.key() == word.key).then_some(kept)
    }

    fn keep(&self, table: TableId, word: KeyWord<'_>, written: EpochNumber, value: &[u8]) {
        if word.key.len() + value.len() > BYTES_MAX {
            return;
        }
        let (key_bytes, bytes) = (word.key.len() as u32, [word.key, value].concat().into());
        self.rows.insert(Place { table, word: word.hash }, Kept { written, key_bytes, bytes });
        if self.added.fetch_add(1, Ordering::Relaxed).is_multiple_of(TOLD_AFTER) {
            self.told.store(self.bytes(), Ordering::Relaxed);
        }
    }

    fn forget(&self, table: TableId, word: u64) {
        self.rows.remove(&Place { table, word });
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.rows.weight()
    }
}

impl Core {
    /// A row that is kept, for a reader inside the gate.
    pub(crate) fn kept_row(&self, table: &Table, word: KeyWord<'_>) -> Option<Kept> {
        self.row_cache.as_ref()?.get(table.layout.table, as_kept(table, word))
    }

    /// Keeps a row that a reader inside the gate has found, if it is small; no call of the running
    /// epoch writes it.
    pub(crate) fn keep_row(
        &self,
        table: &Table,
        word: KeyWord<'_>,
        written: EpochNumber,
        value: &[u8],
    ) {
        let is_kept = |_: &&RowCache| table.kind != IndexKind::Sequence;
        let Some(cache) = self.row_cache.as_ref().filter(is_kept) else { return };
        cache.keep(table.layout.table, as_kept(table, word), written, value);
    }

    /// The epoch that wrote a version on the device.
    pub(crate) fn written(&self, id: EntryId, version: ValueWord) -> EpochNumber {
        version_epoch(self.image_base, self.entries.row_of(id), version.slot())
    }

    /// A call of the epoch that begins may write a row, by its word in the hash index; the gate is
    /// closed.
    #[inline]
    pub(crate) fn forget_row(&self, table: TableId, word: u64) {
        if let Some(cache) = &self.row_cache {
            cache.forget(table, word);
        }
    }

    /// The same of a row of a range, by its word in the ordered index.
    #[inline]
    pub(crate) fn forget_member(&self, table: TableId, word: u64, id: EntryId, reads: &Reads) {
        let Some(cache) = &self.row_cache else { return };
        let of = &self.tables[table.index()];
        let of_key = || of.word(self.key_of(id, reads)).map(|word| word.hash);
        let word = if of.exact { Ok(word) } else { of_key() };
        cache.forget(table, word.expect("a key that is in an index can be one"));
    }
}

/// A key without what its word says.
fn as_kept<'k>(table: &Table, word: KeyWord<'k>) -> KeyWord<'k> {
    if table.exact { KeyWord { key: &[], ..word } } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_of_its_table_and_its_key_and_is_forgotten() {
        let cache = RowCache::new(1 << 20, Arc::default());
        let (table, other) = (TableId(3), TableId(4));
        let word = |key| KeyWord { hash: 7, key };
        cache.keep(table, word(b"a"), EpochNumber(5), b"value");
        let found = cache.get(table, word(b"a")).unwrap();
        assert_eq!((found.written, found.value()), (EpochNumber(5), &b"value"[..]));
        assert!(cache.get(table, word(b"b")).is_none(), "another key of the same word");
        assert!(cache.get(other, word(b"a")).is_none());
        cache.forget(other, 7);
        assert!(cache.get(table, word(b"a")).is_some());
        cache.forget(table, 7);
        assert!(cache.get(table, word(b"a")).is_none());
    }

    #[test]
    fn it_has_no_long_rows_and_no_more_bytes_than_it_may() {
        let told = Arc::<AtomicU64>::default();
        let cache = RowCache::new(1 << 16, Arc::clone(&told));
        for hash in 0..10_000 {
            cache.keep(TableId(0), KeyWord { hash, key: &[] }, EpochNumber(1), &[1; 40]);
        }
        assert!((1 << 15..=1 << 16).contains(&cache.bytes()), "{}", cache.bytes());
        assert!(told.load(Ordering::Relaxed).abs_diff(cache.bytes()) < 64 * 256, "it is told");
        let long = KeyWord { hash: 1, key: &[] };
        cache.forget(TableId(0), 1);
        cache.keep(TableId(0), long, EpochNumber(1), &[1; BYTES_MAX + 1]);
        assert!(cache.get(TableId(0), long).is_none());
    }
}
