//! Checkpoints between two epochs, and the last one, at the close.

use pmem::Device;
use storage::{SubPool, TableId};

use crate::engine::Engine;
use crate::epoch;
use crate::epoch::workers;
use crate::error::{EngineError, Result};
use crate::kept::{Demand, Indexes};

impl Engine {
    /// Makes the end of the last epoch the checkpoint, durably.
    ///
    /// # Errors
    /// The device's.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.checkpoint_anew(false)
    }

    /// As [`Engine::checkpoint`]; with `anew`, on devices that take snapshots, it takes one even if
    /// there is one of the last epoch.
    pub(super) fn checkpoint_anew(&mut self, anew: bool) -> Result<()> {
        if let Some(reason) = self.core.stop_reason() {
            return Err(EngineError::Poisoned(reason));
        }
        let takes_snapshots = self.store.device().takes_snapshots();
        // A snapshot of this epoch that is still being written has its deferred calls already.
        self.store.device().settle()?;
        if self.checkpoint_epoch() < self.epoch && !self.deferred_calls.is_empty() {
            let bytes = epoch::encode_deferred_calls(&self.deferred_calls);
            let port = &mut self.workers[0].row_store.port;
            self.store.log().write_deferred_calls(port, self.epoch.next(), &bytes)?;
            self.store.log().make_durable()?;
        }
        if self.store.checkpoint_epoch() < self.epoch {
            self.commit_now();
        }
        let is_saved = self.last_image_snapshot == self.epoch;
        if takes_snapshots && (anew || !is_saved || self.can_save_indexes()) {
            self.save_indexes();
            self.settle_changes()?;
            self.store.device().snapshot_part(0, 1)?;
            self.store.device().snapshot_commit(self.epoch)?;
            self.last_image_snapshot = self.epoch;
        }
        self.store.device().settle()?;
        let is_last = self.checkpoint_epoch() == self.epoch;
        assert!(is_last, "recovery starts from the last epoch (O-62)");
        let indexed: usize = self.core.tables.iter().map(|table| table.hash.len()).sum();
        assert!(indexed as i64 == self.totals.rows, "the rows that it counts are in the indexes");
        if self.core.config.lab.design.logs() {
            self.store.log().release_archived(self.checkpoint_epoch());
        }
        Ok(())
    }

    /// Begins to archive the log of all epochs that have ended, where it is archived.
    pub fn archive_log(&self) {
        if self.core.config.lab.design.logs() {
            self.store.log().archive_ended(self.epoch);
        }
    }

    /// Whether the indexes were made by the open, and the next one could take them over.
    fn can_save_indexes(&self) -> bool {
        let kept = self.core.kept.as_ref();
        kept.is_some_and(|kept| kept.can_save(&self.core.tables, self.epoch))
    }

    /// Writes the root of the kept indexes for a snapshot of the last epoch.
    pub(crate) fn save_indexes(&mut self) {
        let (core, store) = (&self.core, &self.store);
        let Some(kept) = &core.kept else { return };
        let stale: Vec<_> = self.workers.iter().flat_map(|w| w.stale_rows(core)).collect();
        let inserts = vec![0; core.tables.len()];
        let demand =
            Demand { inserts: &inserts, others: 0, stale: stale.len() as u64, saves: true };
        let port = &mut self.workers[0].row_store.port;
        kept.stock(&core.tables, store, port, &demand);
        let indexes = Indexes { tables: &core.tables, entries: &core.entries, stale: &stale };
        kept.save(&indexes, store, port, self.epoch);
    }

    /// Sets segments aside for so many new rows of tables, where indexes are kept.
    pub(super) fn stock_indexes(&mut self, rows: &[(TableId, u64)]) {
        let (core, store) = (&self.core, &self.store);
        let Some(kept) = &core.kept else { return };
        let (mut inserts, mut others) = (vec![0; core.tables.len()], 0);
        for &(table, count) in rows {
            let row_bytes = core.tables[table.index()].layout.row_bytes;
            inserts[table.index()] += count;
            others += count.div_ceil(store.segments().segment_bytes() / row_bytes);
        }
        let demand = Demand { inserts: &inserts, others, stale: 0, saves: false };
        kept.stock(&core.tables, store, &mut self.workers[0].row_store.port, &demand);
    }

    /// Whether space that was freed can be used after the next checkpoint only.
    pub fn waits_for_checkpoint(&self) -> bool {
        let mut sub_pools =
            self.workers.iter().flat_map(|w| w.row_store.sub_pools.iter().flatten());
        self.checkpoint_epoch() < self.epoch && sub_pools.any(SubPool::waits_for_checkpoint)
    }

    pub(crate) fn commit_now(&mut self) {
        let sequence = self.store.next_sequence();
        assert!(
            self.store.checkpoint_epoch() <= self.epoch,
            "no checkpoint is of an epoch to come"
        );
        for worker in &mut self.workers {
            assert!(worker.row_store.hidden.is_empty(), "nothing is hidden between epochs");
            assert!(worker.row_store.handed_pools.is_empty(), "all slots are in lists");
            for sub_pool in worker.row_store.sub_pools.iter_mut().flatten() {
                sub_pool.save(&mut worker.row_store.port, sequence);
            }
            worker.row_store.port.fence();
        }
        let (hash, rows) = (self.running_hash(), self.totals.rows);
        assert!(rows >= 0, "no more rows are deleted than there are");
        let deferred = self.deferred_calls.len() as u32;
        let port = &mut self.workers[0].row_store.port;
        self.store.commit(port, self.epoch, hash, rows as u64, deferred);
        for worker in &mut self.workers {
            worker.row_store.sub_pools.iter_mut().flatten().for_each(SubPool::checkpointed);
            worker.row_store.search_all_sub_pools();
            worker.collect.append(&mut worker.row_store.stale);
        }
        workers::give_back(&mut self.workers, self.store.segments());
    }

    /// Checkpoints and closes: the next open replays nothing (O-62).
    ///
    /// # Errors
    /// As [`Engine::checkpoint`]; what was answered is durable all the same.
    pub fn close(mut self) -> Result<()> {
        self.checkpoint()?;
        // Whatever the epochs have used, the next ones may need less.
        Ok(self.store.log().shrink()?)
    }
}
