//! Secondary indexes as snapshots see them: an entry says since when it is there, and what was
//! removed is kept while a snapshot may see it.

use storage::EpochNumber;

use super::{Removed, SecondaryIndex, SecondaryIndexes};
use crate::version::before_images::Live;

/// What an entry takes besides its key, about.
const ENTRY_BYTES: u64 = 160;

impl SecondaryIndexes {
    /// Bytes that are kept for snapshots.
    pub(crate) fn removed_bytes(&self) -> u64 {
        let bytes = |index: &pmem::sync::RwLock<SecondaryIndex>| {
            index.read().expect("no panic while locked").removed_bytes
        };
        self.indexes.iter().map(bytes).sum()
    }

    /// Frees at most so many entries that no snapshot sees: those that were removed before the
    /// oldest. Whether any are left.
    pub(crate) fn sweep(&self, live: &Live, most: usize) -> bool {
        let oldest = live.keys().next().copied().unwrap_or(EpochNumber(u64::MAX));
        let mut are_left = false;
        for index in &self.indexes {
            are_left |= index.write().expect("no panic while locked").sweep(oldest, most);
        }
        are_left
    }
}

impl SecondaryIndex {
    /// Keeps an entry that is removed.
    pub(super) fn keep(&mut self, key: Box<[u8]>, removed: Removed) {
        assert!(removed.entry.since < removed.until, "a snapshot may see what is kept");
        let is_next = self.removed_order.back().is_none_or(|last| last.0 <= removed.until);
        assert!(is_next, "entries are kept in the order of the epochs that removed them");
        self.removed_bytes += key.len() as u64 + ENTRY_BYTES;
        self.removed_order.push_back((removed.until, key.clone()));
        self.removed.entry(key).or_default().push(removed);
    }

    /// The entry that was kept last was not removed after all.
    pub(super) fn forget_last(&mut self, key: &[u8]) {
        let last = self.removed_order.pop_back();
        assert!(last.is_some_and(|(_, last)| *last == *key), "changes are undone from the last on");
        self.removed_bytes -= key.len() as u64 + ENTRY_BYTES;
        let of_key = self.removed.get_mut(key).expect("it was kept");
        of_key.pop();
        if of_key.is_empty() {
            self.removed.remove(key);
        }
    }

    fn sweep(&mut self, oldest: EpochNumber, most: usize) -> bool {
        let is_free = |order: &(EpochNumber, Box<[u8]>)| order.0 <= oldest;
        for _ in 0..most {
            if !self.removed_order.front().is_some_and(is_free) {
                break;
            }
            let (until, key) = self.removed_order.pop_front().expect("just looked at");
            let bytes = key.len() as u64 + ENTRY_BYTES;
            assert!(self.removed_bytes >= bytes, "what is freed was kept");
            self.removed_bytes -= bytes;
            let is_empty = self.removed.get_mut(&key).is_some_and(|of_key| {
                of_key.retain(|removed| removed.until != until);
                of_key.is_empty()
            });
            if is_empty {
                self.removed.remove(&key);
            }
        }
        let is_whole = !self.removed_order.is_empty() || self.removed.is_empty();
        assert!(is_whole, "every entry that is kept will be freed");
        self.removed_order.front().is_some_and(is_free)
    }

    /// Whether a snapshot sees an entry of those that were removed.
    pub(crate) fn is_seen(removed: &[Removed], epoch: EpochNumber) -> bool {
        removed.iter().any(|r| r.entry.since <= epoch && epoch < r.until)
    }
}
