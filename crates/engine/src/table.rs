//! A table in memory: its limits and its indexes.

use std::sync::Arc;

use storage::{IndexKind, RowLayout, StoredTable};
use xxhash_rust::xxh3::xxh3_64;

use crate::index::{HashIndex, IndexSpace, OrderedIndex, Slots};

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
#[inline]
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

    /// Empty indexes with their memory in the image, if there is room.
    pub(crate) fn begin_in(&mut self, space: &Arc<IndexSpace>, slots: Slots) {
        assert!(self.hash.is_empty(), "a table whose indexes begin has no rows");
        self.hash = HashIndex::new_in(Arc::clone(space), slots);
        if self.ordered.is_some() {
            self.ordered = Some(OrderedIndex::new_in(Some(Arc::clone(space))));
        }
    }

    /// Whether the hash index has the keys, so that no search compares any.
    #[inline]
    pub(crate) fn finds_exactly(&self) -> bool {
        self.exact && self.hash.has_words()
    }

    /// The memory of its indexes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.hash.memory_bytes() + self.ordered.as_ref().map_or(0, OrderedIndex::memory_bytes)
    }

    /// What of it is a part of the image.
    pub(crate) fn image_bytes(&self) -> usize {
        self.hash.image_bytes() + self.ordered.as_ref().map_or(0, OrderedIndex::image_bytes)
    }

    /// Checks a key and makes its word.
    #[inline]
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
}
