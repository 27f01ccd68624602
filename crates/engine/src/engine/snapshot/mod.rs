//! Snapshots: the state at the end of one epoch, for as long as it is needed (O-84).
//!
//! A snapshot is the number of a finished epoch. While one lives, a worker that replaces a value
//! that it sees keeps a before-image of it (`before_images.rs`, O-85). It is read from any thread,
//! while calls run, in parts that are short and go on by key (`view.rs`, O-87). What it sees of a
//! key is an image, or else the row, unless that was written later (O-86).

mod secondary;
mod view;

use storage::{EpochNumber, TableId};

use crate::engine::Engine;
use crate::index::HashIndex;

/// Rows that are freed with each epoch of snapshots that ended by the limit.
const SWEPT_ROWS: usize = 1024;

/// A part of an ordered table: `low <= key < high`, in one direction, until enough was visited.
#[derive(Debug, Clone, Copy)]
pub struct ScanPart<'k> {
    /// Number of the table.
    pub table: TableId,
    /// First key.
    pub low: &'k [u8],
    /// The first key behind it.
    pub high: &'k [u8],
    /// From the end on.
    pub is_descending: bool,
    /// Rows after which it stops, whether the snapshot sees them or not.
    pub rows_max: usize,
}

/// Parts in which a hash table is visited.
pub const HASH_PARTS: usize = HashIndex::SHARDS;

impl Engine {
    /// Takes a snapshot of the state at the end of the last epoch, and returns that epoch. It lives
    /// until it is released as often as it was asked for, or until it needs too much memory
    /// ([`crate::EngineConfig::snapshot_bytes_max`]). It is read by a [`crate::Reader`].
    pub fn snapshot(&mut self) -> EpochNumber {
        let epoch = self.epoch();
        assert!(self.newest_snapshot() <= epoch, "no snapshot is of an epoch to come");
        for worker in &mut self.workers {
            worker.row_store.before_images.know(&self.core.tables);
        }
        let mut live = self.core.snapshots.live.write().expect("no panic while locked");
        *live.entry(epoch).or_default() += 1;
        epoch
    }

    /// A snapshot is not read any more. Its memory is freed by
    /// [`Engine::sweep_snapshots`].
    pub fn release_snapshot(&mut self, epoch: EpochNumber) {
        let mut live = self.core.snapshots.live.write().expect("no panic while locked");
        if let Some(takers) = live.get_mut(&epoch) {
            assert!(*takers > 0, "a snapshot lives as long as it is held");
            *takers -= 1;
            if *takers == 0 {
                live.remove(&epoch);
            }
        }
    }

    /// Frees memory of snapshots that have ended: of at most `rows_max` rows, so that no call waits
    /// long. Returns whether there is more.
    pub fn sweep_snapshots(&mut self, rows_max: usize) -> bool {
        let snapshots = &self.core.snapshots;
        let live = snapshots.live.read().expect("no panic while locked");
        let mut are_left = self.core.secondary.sweep(&live, rows_max);
        for layers in &snapshots.of_workers {
            let mut layers = layers.write().expect("no panic while locked");
            are_left |= layers.sweep(&live, rows_max);
        }
        are_left
    }

    /// Rows whose before-images were kept while the snapshot of `epoch` was the newest.
    pub fn snapshot_rows(&self, epoch: EpochNumber) -> usize {
        let of_workers = self.core.snapshots.of_workers.iter();
        let rows =
            of_workers.map(|layers| layers.read().expect("no panic while locked").rows_of(epoch));
        rows.sum()
    }

    /// Bytes that are kept for the snapshots that live.
    pub fn snapshot_bytes(&self) -> u64 {
        let live = self.core.snapshots.live.read().expect("no panic while locked");
        let oldest = live.keys().next().copied();
        drop(live);
        oldest.map_or(0, |oldest| self.kept_bytes(oldest))
    }

    /// Bytes that are kept for snapshots from an epoch on, whether they live or not.
    pub(crate) fn kept_bytes(&self, oldest: EpochNumber) -> u64 {
        let of_workers = self.core.snapshots.of_workers.iter();
        let bytes = of_workers
            .map(|layers| layers.read().expect("no panic while locked").bytes_from(oldest));
        bytes.sum::<u64>() + self.core.secondary.removed_bytes()
    }

    /// The newest snapshot that lives; 0 if there is none.
    fn newest_snapshot(&self) -> EpochNumber {
        let live = self.core.snapshots.live.read().expect("no panic while locked");
        live.keys().next_back().copied().unwrap_or(EpochNumber(0))
    }

    /// Tells the workers of the next epoch what to keep.
    pub(crate) fn begin_before_images(&mut self, workers: usize) {
        if self.snapshots_have_ended {
            self.snapshots_have_ended = self.sweep_snapshots(SWEPT_ROWS);
        }
        let newest = self.newest_snapshot();
        assert!(newest < self.epoch().next(), "a snapshot is of an epoch that has ended");
        assert!((1..=self.workers.len()).contains(&workers), "workers share the room for images");
        let room = self.core.config.snapshot_bytes_max.saturating_sub(self.snapshot_bytes());
        for worker in &mut self.workers {
            let row_store = &mut worker.row_store;
            row_store.before_images.begin(newest, room / workers as u64);
            row_store.changes.begin(&self.watched_tables, workers);
            row_store.changes.are_observed =
                row_store.before_images.are_wanted() || !self.watched_tables.tables.is_empty();
        }
        let mut overlay = self.shared.overlay.write().expect("no panic while locked");
        overlay.index_undo.begin(newest);
    }

    /// An epoch has ended: where its before-images take too much, the oldest snapshots end, and
    /// where they are not complete, all do; never a writer (O-89).
    pub(crate) fn end_before_images(&mut self) {
        if self.newest_snapshot() == EpochNumber(0) {
            return;
        }
        let snapshots = &self.core.snapshots;
        let mut live = snapshots.live.write().expect("no panic while locked");
        let mut are_incomplete = false;
        for layers in &snapshots.of_workers {
            let mut layers = layers.write().expect("no panic while locked");
            are_incomplete |= std::mem::take(&mut layers.are_incomplete);
        }
        let count = live.len();
        if are_incomplete {
            live.clear();
        }
        let enough = self.core.config.snapshot_bytes_max / 2;
        while live.len() > 1
            && live.keys().next().is_some_and(|&oldest| self.kept_bytes(oldest) > enough)
        {
            live.pop_first();
        }
        self.snapshots_have_ended |= live.len() < count;
    }
}
