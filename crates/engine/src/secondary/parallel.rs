//! Secondary indexes while calls run in parallel.
//!
//! No index itself changes then. What a body changes is private until it has ended
//! ([`super::of_call`]). Then it is pending, with the position of its call ([`super::pending`]),
//! before the rows of the call are published and before it counts as ended
//! (`declaration/index_writers.rs`). Readers wait for the calls before them, and see changes of
//! smaller positions only ([`super::at_position`], O-96). When all calls have ended, the last
//! change of each entry goes into its index.

use std::collections::btree_map::IntoIter;
use std::iter::Peekable;

use storage::{EpochNumber, Position, TableId};

use super::pending::{EntryChanges, PendingChange, later};
use super::{
    CallIndexChanges, IndexEntry, Removed, RowWrite, SecondaryIndex, SecondaryIndexes, keeps,
};
use crate::call::answers::Abort;
use crate::worker_id::WorkerId;

impl SecondaryIndexes {
    /// Notes what a write of a row by the running call changes in the indexes of its table.
    ///
    /// # Errors
    /// Why a key could not be made; nothing is noted then.
    pub(crate) fn note(
        &self,
        table: TableId,
        key: &[u8],
        write: RowWrite<'_>,
        own: &mut CallIndexChanges,
    ) -> Result<(), String> {
        for (index, change) in self.changes_of(table, key, write)? {
            change.removed.into_iter().for_each(|entry| own.note(index, entry, false));
            change.added.into_iter().for_each(|entry| own.note(index, entry, true));
        }
        Ok(())
    }

    /// Whether the call at a position has left two rows under one key of a unique index (O-98). All
    /// calls before it that may change an index have ended.
    ///
    /// # Errors
    /// The abort that it ends with.
    pub(crate) fn check_unique_at(
        &self,
        position: Position,
        own: &CallIndexChanges,
    ) -> Result<(), Abort> {
        for (number, key, change) in own.in_the_end().filter(|(.., change)| change.is_there) {
            let index = self.indexes[usize::from(number)].read().expect("no panic while locked");
            if !index.definition.is_unique {
                continue;
            }
            let prefix = &key[..usize::from(change.prefix)];
            let pending = self.pending.of_index(number);
            let rows = index.rows_like_at(prefix, &pending, position, own.of(number));
            assert!(rows > 0, "the call sees what it has added");
            if rows > 1 {
                return Err(index.not_unique(prefix));
            }
        }
        Ok(())
    }

    /// Whether a call has added entries to a unique index, so that others may be in the way.
    pub(crate) fn adds_to_unique(&self, own: &CallIndexChanges) -> bool {
        own.in_the_end().any(|(number, _, change)| {
            let index = self.indexes[usize::from(number)].read().expect("no panic while locked");
            change.is_there && index.definition.is_unique
        })
    }

    /// A call has committed, as a worker ran it: what it changed is there for those behind it.
    pub(crate) fn publish(&self, worker: WorkerId, position: Position, own: &mut CallIndexChanges) {
        for (index, key, change) in own.take_all() {
            let (prefix, is_added) = (change.prefix, change.is_there);
            self.pending.note(worker, index, key, PendingChange { position, prefix, is_added });
        }
    }

    /// All calls of an epoch have ended: what is pending goes into the indexes, of which this
    /// worker changes its share. No reader is inside.
    pub(crate) fn apply_pending(
        &self,
        worker: WorkerId,
        workers: usize,
        epoch: EpochNumber,
        newest_snapshot: EpochNumber,
    ) {
        for number in (worker.index()..self.indexes.len()).step_by(workers) {
            let changes = self.pending.take(number);
            if changes.is_empty() {
                continue;
            }
            let mut heads: Vec<_> =
                changes.into_iter().map(|changes| changes.into_iter().peekable()).collect();
            let mut index = self.indexes[number].write().expect("no panic while locked");
            while let Some((key, last)) = take_first(&mut heads) {
                index.apply(key, last, epoch, newest_snapshot);
            }
        }
    }

    /// Whether nothing is pending: between epochs.
    pub(crate) fn is_nothing_pending(&self) -> bool {
        (0..self.indexes.len()).all(|index| self.pending.of_index(index as u16).is_empty())
    }
}

/// What is left of the changes of a worker, by entry.
type Head = Peekable<IntoIter<Box<[u8]>, EntryChanges>>;

/// Takes the entry with the smallest key from the lists of all workers, with its last change.
fn take_first(heads: &mut [Head]) -> Option<(Box<[u8]>, PendingChange)> {
    let (first, _) = (0..)
        .zip(&mut *heads)
        .filter_map(|(number, head)| Some((number, &head.peek()?.0)))
        .min_by(|(_, a), (_, b)| a.cmp(b))?;
    let first: usize = first;
    let (key, changes) = heads[first].next().expect("just looked at");
    let mut last = Some(changes.last);
    for head in heads.iter_mut() {
        if let Some((_, changes)) = head.next_if(|(other, _)| *other == key) {
            last = later(last, Some(changes.last));
        }
    }
    Some((key, last.expect("it was changed")))
}

impl SecondaryIndex {
    /// The last change of an entry in an epoch takes place.
    fn apply(
        &mut self,
        key: Box<[u8]>,
        last: PendingChange,
        epoch: EpochNumber,
        newest_snapshot: EpochNumber,
    ) {
        if last.is_added {
            let entry = IndexEntry { prefix: last.prefix, since: epoch };
            // It may have been removed and added again: then it is there since it was there before.
            self.entries.entry(key).or_insert(entry);
            return;
        }
        // It may have been added by a call of this epoch.
        if let Some(entry) = self.entries.remove(&key)
            && keeps(entry, newest_snapshot)
        {
            self.keep(key, Removed { entry, until: epoch });
        }
    }
}
