//! What a call of the parallel part changes in secondary indexes: private until its body has ended.

use std::collections::BTreeMap;

use super::entry::EntryKey;

/// An entry that the running call has added or removed, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnChange {
    /// Bytes of the key in the index.
    pub(crate) prefix: u16,
    /// Whether the entry was there before the call.
    was_there: bool,
    /// Whether it is there now.
    pub(crate) is_there: bool,
}

/// What the running call has changed in each index, by entry.
#[derive(Debug, Default)]
pub(crate) struct CallIndexChanges {
    of_index: Vec<BTreeMap<Box<[u8]>, OwnChange>>,
    are_some: bool,
}

impl CallIndexChanges {
    /// The call has ended.
    pub(crate) fn forget(&mut self) {
        self.of_index.iter_mut().for_each(BTreeMap::clear);
        self.are_some = false;
    }

    /// Whether the call has changed any index.
    #[inline]
    pub(crate) fn are_some(&self) -> bool {
        self.are_some
    }

    /// Its changes of an index.
    pub(super) fn of(&self, index: u16) -> Option<&BTreeMap<Box<[u8]>, OwnChange>> {
        self.of_index.get(usize::from(index)).filter(|_| self.are_some)
    }

    /// What the call has changed in the end: index, key, and the change.
    pub(super) fn in_the_end(&self) -> impl Iterator<Item = (u16, &[u8], OwnChange)> {
        let changed = |change: &OwnChange| change.was_there != change.is_there;
        (0..).zip(&self.of_index).flat_map(move |(index, changes)| {
            let changes = changes.iter().filter(move |(_, change)| changed(change));
            changes.map(move |(key, change)| (index, &key[..], *change))
        })
    }

    /// Takes what the call has changed in the end, index by index.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (u16, Box<[u8]>, OwnChange)> {
        self.are_some = false;
        let of_index = (0..).zip(&mut self.of_index);
        let all = of_index.flat_map(|(index, changes)| {
            std::mem::take(changes).into_iter().map(move |(key, change)| (index, key, change))
        });
        all.filter(|(.., change)| change.was_there != change.is_there)
    }

    /// The call has added an entry, or removed it.
    pub(super) fn note(&mut self, index: u16, entry: EntryKey, is_there: bool) {
        let EntryKey { bytes, prefix } = entry;
        self.are_some = true;
        if self.of_index.len() <= usize::from(index) {
            self.of_index.resize_with(usize::from(index) + 1, BTreeMap::new);
        }
        let changes = &mut self.of_index[usize::from(index)];
        let change = changes.entry(bytes).or_insert(OwnChange {
            prefix,
            was_there: !is_there,
            is_there: !is_there,
        });
        assert!(change.is_there != is_there, "an entry comes and goes in turn");
        change.is_there = is_there;
    }
}
