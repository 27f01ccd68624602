//! The engine of a database, and what the library asks of it.

use std::sync::Arc;

use engine::{Calls, Engine, EpochInfo, EpochOutcome, MemoryUse, Reader};
use pmem::{Device, Dram, FileUse};
use storage::input_log::ArchiveWatch;
use storage::{ChangeLog, EpochNumber, StateHash, TableId};

use crate::table::schema::Schema;

/// Where an engine is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) epoch: EpochNumber,
    pub(crate) checkpoint_epoch: EpochNumber,
    pub(crate) rows: u64,
    pub(crate) state_hash: StateHash,
    pub(crate) deferred: usize,
}

/// The engine of a database.
pub(crate) struct Driver {
    /// Dropped first: the files are another process's once the engine is gone.
    consumers: Option<ClosesConsumers>,
    pub(super) engine: Engine,
    pub(super) schema: Arc<Schema>,
}

/// Ends what consumers may do with the files of a database.
struct ClosesConsumers(Arc<ChangeLog>);

impl Drop for ClosesConsumers {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Driver {
    pub(super) fn new(engine: Engine, schema: Arc<Schema>) -> Self {
        Self { consumers: engine.change_log().map(ClosesConsumers), engine, schema }
    }

    pub(crate) fn run_epoch(
        &mut self,
        calls: &Calls,
        info: EpochInfo,
    ) -> engine::Result<EpochOutcome> {
        self.engine.run_epoch(calls, info)
    }

    pub(crate) fn run_deferred(&mut self, info: EpochInfo) -> engine::Result<EpochOutcome> {
        self.engine.run_deferred(info)
    }

    pub(crate) fn workers(&self) -> usize {
        self.engine.workers()
    }

    pub(crate) fn limit_workers(&mut self, workers: usize) {
        self.engine.limit_workers(workers);
    }

    /// Reads from any thread.
    pub(crate) fn reader(&self) -> Reader {
        self.engine.reader()
    }

    pub(crate) fn get(&self, table: TableId, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.engine.get(table, key)
    }

    pub(crate) fn snapshot(&mut self) -> EpochNumber {
        self.engine.snapshot()
    }

    pub(crate) fn release_snapshot(&mut self, epoch: EpochNumber) {
        self.engine.release_snapshot(epoch);
    }

    pub(crate) fn sweep_snapshots(&mut self, rows_max: usize) -> bool {
        self.engine.sweep_snapshots(rows_max)
    }

    /// Rows that were kept while the snapshot of an epoch was the newest.
    pub(crate) fn snapshot_rows(&self, epoch: EpochNumber) -> usize {
        self.engine.snapshot_rows(epoch)
    }

    pub(crate) fn watch_changes(
        &mut self,
        tables: &[TableId],
        bytes_max: u64,
    ) -> engine::Result<()> {
        self.engine.watch_changes(tables, bytes_max)
    }

    /// The change log has other tables now.
    pub(crate) fn watch_again(&mut self) {
        self.engine.watch();
    }

    pub(crate) fn change_log(&self) -> Option<Arc<ChangeLog>> {
        self.engine.change_log()
    }

    /// Makes the database one that has consumers, durably.
    pub(crate) fn require_consumers(&mut self) -> engine::Result<()> {
        self.engine.require_consumers()
    }

    pub(crate) fn reserve(&mut self, table: TableId, rows: u64) -> engine::Result<()> {
        self.engine.prepare_rows(&[(table, rows)]).map(drop)
    }

    pub(crate) fn check_indexes(&self) -> engine::Result<()> {
        self.engine.check_indexes()
    }

    pub(crate) fn waits_for_checkpoint(&self) -> bool {
        self.engine.waits_for_checkpoint()
    }

    pub(crate) fn checkpoint(&mut self) -> engine::Result<()> {
        self.engine.checkpoint()
    }

    pub(crate) fn for_each(
        &self,
        table: TableId,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> engine::Result<()> {
        self.engine.for_each(table, each)
    }

    /// The procedure of a deferred call.
    pub(crate) fn deferred_procedure(&self, index: usize) -> u16 {
        self.engine.deferred_call(index).0
    }

    /// Image and log as of now, with all that an open of them needs.
    pub(crate) fn copy(
        &mut self,
        image_bytes_max: u64,
        log_bytes_max: u64,
    ) -> engine::Result<Dram> {
        self.engine.checkpoint()?;
        let device = self.engine.store().device();
        Ok(Dram::copy_of(device.as_ref(), image_bytes_max, log_bytes_max)?)
    }

    pub(crate) fn close(self) -> engine::Result<()> {
        let Self { consumers, engine, .. } = self;
        drop(consumers);
        engine.close()
    }

    pub(crate) fn memory(&self) -> MemoryUse {
        self.engine.memory()
    }

    /// Begins to archive the log of all epochs that have ended.
    pub(crate) fn archive_log(&mut self) {
        self.engine.archive_log();
    }

    /// Why the archive of the log failed, if it did.
    pub(crate) fn archive_error(&self) -> Option<String> {
        self.engine.store().log().archive_status().and_then(|status| status.error)
    }

    /// What waits for epochs to be archived, if they are.
    pub(crate) fn archive_watch(&self) -> Option<ArchiveWatch> {
        self.engine.store().log().archive_watch()
    }

    pub(crate) fn files(&self) -> Option<FileUse> {
        self.engine.store().device().use_of_files()
    }

    pub(crate) fn status(&self) -> Status {
        let engine = &self.engine;
        Status {
            epoch: engine.epoch(),
            checkpoint_epoch: engine.checkpoint_epoch(),
            rows: engine.rows(),
            state_hash: engine.state_hash(),
            deferred: engine.deferred(),
        }
    }

    pub(crate) fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    pub(crate) fn procedure_ids(&self) -> &[u16] {
        self.engine.procedure_ids()
    }
}
