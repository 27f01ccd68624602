//! What calls of the parallel part have changed in secondary indexes: by worker, index and entry,
//! with their positions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pmem::sync::{RwLock, RwLockReadGuard};
use storage::Position;

use crate::worker_id::WorkerId;

/// A change of an entry by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingChange {
    pub(super) position: Position,
    /// Bytes of the key in the index.
    pub(super) prefix: u16,
    pub(super) is_added: bool,
}

/// The changes of an entry by the calls that one worker ran, in serial order.
#[derive(Debug)]
pub(super) struct EntryChanges {
    pub(super) last: PendingChange,
    before: Vec<PendingChange>,
}

impl EntryChanges {
    /// The last change before a position.
    pub(super) fn before(&self, position: Position) -> Option<PendingChange> {
        if self.last.position < position {
            return Some(self.last);
        }
        self.before.iter().rev().find(|change| change.position < position).copied()
    }
}

/// The later of two changes of an entry.
pub(super) fn later(
    one: Option<PendingChange>,
    other: Option<PendingChange>,
) -> Option<PendingChange> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if a.position < b.position { b } else { a }),
        (one, other) => one.or(other),
    }
}

/// The changes of one index by the calls that one worker ran.
pub(super) type OfWorker = BTreeMap<Box<[u8]>, EntryChanges>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct PendingChanges {
    /// By worker and index.
    of_workers: Vec<Vec<RwLock<OfWorker>>>,
}

impl PendingChanges {
    pub(super) fn new(workers: usize, indexes: usize) -> Self {
        let of_worker = |_| (0..indexes).map(|_| RwLock::default()).collect();
        Self { of_workers: (0..workers).map(of_worker).collect() }
    }

    /// Notes a change of an entry by a call that a worker has run.
    pub(super) fn note(&self, worker: WorkerId, index: u16, key: Box<[u8]>, last: PendingChange) {
        let changes = &self.of_workers[worker.index()][usize::from(index)];
        let mut changes = changes.write().expect("no panic while locked");
        match changes.entry(key) {
            Entry::Occupied(mut of_entry) => {
                let of_entry = of_entry.get_mut();
                let before = std::mem::replace(&mut of_entry.last, last);
                assert!(before.position < last.position, "a worker runs calls in serial order");
                of_entry.before.push(before);
            }
            Entry::Vacant(free) => {
                free.insert(EntryChanges { last, before: Vec::new() });
            }
        }
    }

    /// Takes the changes of an index, by worker, where there are any.
    pub(super) fn take(&self, index: usize) -> Vec<OfWorker> {
        let take = |changes: &Vec<RwLock<OfWorker>>| {
            std::mem::take(&mut *changes[index].write().expect("no panic while locked"))
        };
        self.of_workers.iter().map(take).filter(|changes| !changes.is_empty()).collect()
    }

    /// The changes of an index, by worker, where there are any.
    pub(super) fn of_index(&self, index: u16) -> Vec<RwLockReadGuard<'_, OfWorker>> {
        let of_workers = self.of_workers.iter().map(|changes| &changes[usize::from(index)]);
        let of_workers = of_workers.map(|changes| changes.read().expect("no panic while locked"));
        of_workers.filter(|changes| !changes.is_empty()).collect()
    }
}
