//! A table in memory: its limits and its indexes.

use std::ops::Bound;

use storage::{IndexKind, RowLayout, StoredTable};
use xxhash_rust::xxh3::xxh3_64;

use crate::core::Core;
use crate::index::{EntryId, ExactWords, HashIndex, KeyOrder, OrderedIndex, Range, SearchKey};
use crate::reads::Reads;
use crate::version::ReadPhase;

/// A table with its indexes. Ordered tables have both: points are looked up by hash.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) kind: IndexKind,
    pub(crate) layout: RowLayout,
    /// All keys have exactly 8 bytes, so that the key is the index word.
    pub(crate) exact: bool,
    /// The same, and the table holds rows.
    pub(crate) has_word_keys: bool,
    pub(crate) hash: HashIndex,
    pub(crate) ordered: Option<OrderedIndex>,
}

/// A key as the indexes want it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyWord<'k> {
    /// Word of the hash index.
    pub(crate) hash: u64,
    pub(crate) key: &'k [u8],
}

/// The word of a key of eight bytes, where keys are words.
#[inline(always)]
pub(crate) fn word_of(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

/// First eight bytes, zero-padded, big-endian: the word of the ordered index.
#[inline]
pub(crate) fn order_word(key: &[u8]) -> u64 {
    let first = key.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded[..key.len()].copy_from_slice(key);
        padded
    });
    u64::from_be_bytes(first)
}

impl Table {
    pub(crate) fn new(stored: &StoredTable) -> Self {
        let definition = &stored.definition;
        Self {
            name: definition.name.clone(),
            kind: definition.index,
            layout: stored.layout,
            exact: definition.key_bytes_max == 8,
            has_word_keys: definition.key_bytes_max == 8 && definition.index != IndexKind::Sequence,
            hash: HashIndex::new(0),
            ordered: (definition.index == IndexKind::Ordered).then(OrderedIndex::new),
        }
    }

    /// Checks a key and makes its word.
    #[inline(always)]
    pub(crate) fn word<'k>(&self, key: &'k [u8]) -> Result<KeyWord<'k>, String> {
        let hash = match word_of(key) {
            Some(word) if self.exact => Some(word),
            _ => self.hash_of_any(key),
        };
        hash.map(|hash| KeyWord { hash, key }).ok_or_else(|| self.bad_key(key))
    }

    #[inline(never)]
    fn hash_of_any(&self, key: &[u8]) -> Option<u64> {
        let fits = !key.is_empty() && key.len() as u64 <= self.layout.key_bytes_max;
        (fits && !self.exact).then(|| xxh3_64(key))
    }

    #[cold]
    fn bad_key(&self, key: &[u8]) -> String {
        let lengths = match (self.exact, self.layout.key_bytes_max) {
            (true, _) => "all keys have 8".to_string(),
            (false, max) => format!("must be 1 to {max}"),
        };
        format!("table {:?}: a key of {} bytes, {lengths}", self.name, key.len())
    }

    /// Finds a key's entry. Not in the insert step.
    #[inline]
    pub(crate) fn find(&self, core: &Core, word: KeyWord<'_>, reads: &Reads) -> Option<EntryId> {
        if self.exact {
            self.hash.find_exact(word.hash)
        } else {
            self.hash.find(word.hash, |id| core.key_of(id, reads) == word.key)
        }
    }

    /// Entries with `low <= key < high`, ascending. Not in the insert step.
    pub(crate) fn range<'t>(
        &'t self,
        core: &Core,
        low: &[u8],
        high: &[u8],
        reads: &Reads,
    ) -> Result<Range<'t>, String> {
        let Some(ordered) = &self.ordered else {
            return Err(format!("table {:?} is not ordered: it cannot be scanned", self.name));
        };
        let bounds = (
            Bound::Included(SearchKey { word: order_word(low), key: low }),
            Bound::Excluded(SearchKey { word: order_word(high), key: high }),
        );
        if self.exact {
            if low.len() != 8 || high.len() != 8 {
                return Err(format!(
                    "table {:?}: range bounds of {} and {} bytes, all keys have 8",
                    self.name,
                    low.len(),
                    high.len()
                ));
            }
            return Ok(ordered.range(bounds.0, bounds.1, &ExactWords));
        }
        Ok(ordered.range(bounds.0, bounds.1, &RowKeys { core, reads }))
    }
}

/// Compares entries by the keys in their persistent rows.
pub(crate) struct RowKeys<'c> {
    pub(crate) core: &'c Core,
    /// Where these reads are noted.
    pub(crate) reads: &'c Reads,
}

impl KeyOrder for RowKeys<'_> {
    const EXACT: bool = false;

    fn compare(&self, a: EntryId, b: EntryId) -> std::cmp::Ordering {
        self.core.key_of(a, self.reads).cmp(self.core.key_of(b, self.reads))
    }

    fn compare_key(&self, a: EntryId, key: &[u8]) -> std::cmp::Ordering {
        self.core.key_of(a, self.reads).cmp(key)
    }
}

impl Core {
    /// The key of a row that the index has under a word: an exact key is the word, and is put into
    /// `room`; any other is with the row.
    #[inline]
    pub(crate) fn key<'k>(
        &'k self,
        table: &Table,
        (word, id): (u64, EntryId),
        room: &'k mut [u8; 8],
        reads: &Reads,
    ) -> &'k [u8] {
        if table.exact {
            *room = word.to_be_bytes();
            room
        } else {
            self.key_of(id, reads)
        }
    }

    /// The key of an entry's row, in a table whose keys are not exact.
    #[inline]
    pub(crate) fn key_of(&self, id: EntryId, reads: &Reads) -> &[u8] {
        let entry = self.entries.get(id);
        let key = ReadPhase::begin().key(self.image_base, entry);
        reads.charge_key(self.image_base, entry.row(), key);
        key
    }
}
