//! Indexes in DRAM: keys to places of rows. Rebuilt by recovery, never persistent.
//!
//! An index consists of nodes (shards of a hash table, leaves of an ordered one). Every node counts
//! how often keys came or went, so that a transaction can tell at its end whether what it did not
//! find is still not there. A place may change without that: it is swapped where it lies.
//!
//! This module must never know what a place means.

mod found;
mod hash;
mod key;
mod ordered;

use std::sync::atomic::{AtomicU64, Ordering};

use workloads::{IndexKind, TableSpec};

pub(crate) use found::{Found, Inserted, KeyBytes, Range, Seen};
use hash::Hash;
use key::LongKey;
pub(crate) use key::{KEY_BYTES_MAX, Key, Mixer};
use ordered::Ordered;

/// The index of a table. Keys of exactly 8 bytes are kept as numbers.
pub(crate) enum Index {
    Hash(Hash<u64>),
    LongHash(Hash<LongKey>),
    Ordered(Ordered<u64>),
    LongOrdered(Ordered<LongKey>),
}

/// Calls a method of whichever index it is, with the key in its form.
macro_rules! on_index {
    ($self:ident, $index:ident => $body:expr) => {
        match $self {
            Index::Hash($index) => $body,
            Index::LongHash($index) => $body,
            Index::Ordered($index) => $body,
            Index::LongOrdered($index) => $body,
        }
    };
}

impl Index {
    /// An empty index for a table, with one copy of its directory for each worker.
    pub(crate) fn new(spec: &TableSpec, workers: usize) -> Self {
        match (spec.index, spec.key_bytes_max) {
            (IndexKind::Ordered, 8) => Self::Ordered(Ordered::new(workers)),
            (IndexKind::Ordered, _) => Self::LongOrdered(Ordered::new(workers)),
            (IndexKind::Hash | IndexKind::Sequence, 8) => Self::Hash(Hash::new()),
            (IndexKind::Hash | IndexKind::Sequence, _) => Self::LongHash(Hash::new()),
        }
    }

    /// The place of a key, or the node in which it is not.
    pub(crate) fn get(&self, worker: usize, key: &[u8]) -> Result<u64, Seen> {
        on_index!(self, index => index.get(worker, Key::of(key)))
    }

    /// Swaps the place of a key; false if it is not `old` any more.
    pub(crate) fn swap(&self, worker: usize, key: &[u8], old: u64, new: u64) -> bool {
        on_index!(self, index => index.swap(worker, Key::of(key), old, new))
    }

    /// Adds a key; the place that it has already, if it is there.
    pub(crate) fn insert(&self, worker: usize, key: &[u8], place: u64) -> Result<Inserted, u64> {
        on_index!(self, index => index.insert(worker, Key::of(key), place))
    }

    /// Takes a key out if it has this place: the node before and after.
    pub(crate) fn remove(&self, worker: usize, key: &[u8], place: u64) -> Option<Inserted> {
        on_index!(self, index => index.remove(worker, Key::of(key), place))
    }

    /// How often the set of keys of a node has changed.
    pub(crate) fn version(&self, node: u32) -> u64 {
        self.version_word(node).load(Ordering::Acquire)
    }

    /// The word in which a node counts that.
    pub(crate) fn version_word(&self, node: u32) -> &AtomicU64 {
        on_index!(self, index => index.version_word(node))
    }

    /// Reads the first node of a range; false if the index is not ordered.
    pub(crate) fn scan(&self, worker: usize, range: Range<'_>, found: &mut Found) -> bool {
        found.clear();
        match self {
            Self::Ordered(index) => index.scan(worker, range, found),
            Self::LongOrdered(index) => index.scan(worker, range, found),
            Self::Hash(_) | Self::LongHash(_) => return false,
        }
        true
    }

    /// Visits every key and its place; in order if the index is ordered.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&[u8], u64)) {
        on_index!(self, index => index.for_each(|key, place| {
            key.with_bytes(|bytes| each(bytes, place));
        }));
    }
}
