//! The engine without its device type.
//!
//! The engine is compiled for each device; here is the one dynamic call for each epoch that hides
//! which.

use std::sync::Arc;

use engine::{Calls, Engine, EpochInfo, EpochOutcome, MemoryUse, Reader};
use pmem::{Device, Dram, FileUse};
use storage::input_log::ArchiveWatch;
use storage::{ChangeLog, EpochNumber, StateHash, TableId};

use crate::table::schema::Schema;

/// An engine over some device.
pub(crate) trait Driver: Send {
    fn run_epoch(&mut self, calls: &Calls, info: EpochInfo) -> engine::Result<EpochOutcome>;
    fn run_deferred(&mut self, info: EpochInfo) -> engine::Result<EpochOutcome>;
    fn workers(&self) -> usize;
    fn limit_workers(&mut self, workers: usize);
    /// Reads from any thread.
    fn reader(&self) -> Reader;
    fn get(&self, table: TableId, key: &[u8]) -> engine::Result<Option<Vec<u8>>>;
    fn snapshot(&mut self) -> EpochNumber;
    fn release_snapshot(&mut self, epoch: EpochNumber);
    fn sweep_snapshots(&mut self, rows_max: usize) -> bool;
    /// Rows that were kept while the snapshot of an epoch was the newest.
    fn snapshot_rows(&self, epoch: EpochNumber) -> usize;
    fn watch_changes(&mut self, tables: &[TableId], bytes_max: u64) -> engine::Result<()>;
    /// The change log has other tables now.
    fn watch_again(&mut self);
    fn change_log(&self) -> Option<Arc<ChangeLog>>;
    /// Makes the database one that has consumers, durably.
    fn require_consumers(&mut self) -> engine::Result<()>;
    fn reserve(&mut self, table: TableId, rows: u64) -> engine::Result<()>;
    fn check_indexes(&self) -> engine::Result<()>;
    fn checkpoint(&mut self) -> engine::Result<()>;
    fn waits_for_checkpoint(&self) -> bool;
    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) -> engine::Result<()>;
    /// The procedure of a deferred call.
    fn deferred_procedure(&self, index: usize) -> u16;
    /// Image and log as of now, with all that an open of them needs.
    fn copy(&mut self, image_bytes_max: u64, log_bytes_max: u64) -> engine::Result<Dram>;
    fn close(self: Box<Self>) -> engine::Result<()>;
    fn memory(&self) -> MemoryUse;
    fn files(&self) -> Option<FileUse>;
    /// Begins to archive the log of all epochs that have ended.
    fn archive_log(&mut self);
    /// Why the archive of the log failed, if it did.
    fn archive_error(&self) -> Option<String>;
    /// What waits for epochs to be archived, if they are.
    fn archive_watch(&self) -> Option<ArchiveWatch>;
    fn status(&self) -> Status;
    fn schema(&self) -> Arc<Schema>;
    fn procedure_ids(&self) -> &[u16];
}

/// Where an engine is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) epoch: EpochNumber,
    pub(crate) checkpoint_epoch: EpochNumber,
    pub(crate) rows: u64,
    pub(crate) state_hash: StateHash,
    pub(crate) deferred: usize,
}

pub(super) struct Hosted<D: Device> {
    /// Dropped first: the files are another process's once the engine is gone.
    consumers: Option<ClosesConsumers>,
    pub(super) engine: Engine<D>,
    pub(super) schema: Arc<Schema>,
}

/// Ends what consumers may do with the files of a database.
struct ClosesConsumers(Arc<ChangeLog>);

impl Drop for ClosesConsumers {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<D: Device> Hosted<D> {
    pub(super) fn new(engine: Engine<D>, schema: Arc<Schema>) -> Self {
        Self { consumers: engine.change_log().map(ClosesConsumers), engine, schema }
    }
}

impl<D: Device> Driver for Hosted<D> {
    fn run_epoch(&mut self, calls: &Calls, info: EpochInfo) -> engine::Result<EpochOutcome> {
        self.engine.run_epoch(calls, info)
    }

    fn run_deferred(&mut self, info: EpochInfo) -> engine::Result<EpochOutcome> {
        self.engine.run_deferred(info)
    }

    fn workers(&self) -> usize {
        self.engine.workers()
    }

    fn limit_workers(&mut self, workers: usize) {
        self.engine.limit_workers(workers);
    }

    fn reader(&self) -> Reader {
        self.engine.reader()
    }

    fn get(&self, table: TableId, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.engine.get(table, key)
    }

    fn snapshot(&mut self) -> EpochNumber {
        self.engine.snapshot()
    }

    fn release_snapshot(&mut self, epoch: EpochNumber) {
        self.engine.release_snapshot(epoch);
    }

    fn sweep_snapshots(&mut self, rows_max: usize) -> bool {
        self.engine.sweep_snapshots(rows_max)
    }

    fn snapshot_rows(&self, epoch: EpochNumber) -> usize {
        self.engine.snapshot_rows(epoch)
    }

    fn watch_changes(&mut self, tables: &[TableId], bytes_max: u64) -> engine::Result<()> {
        self.engine.watch_changes(tables, bytes_max)
    }

    fn watch_again(&mut self) {
        self.engine.watch();
    }

    fn change_log(&self) -> Option<Arc<ChangeLog>> {
        self.engine.change_log()
    }

    fn require_consumers(&mut self) -> engine::Result<()> {
        self.engine.require_consumers()
    }

    fn reserve(&mut self, table: TableId, rows: u64) -> engine::Result<()> {
        self.engine.prepare_rows(&[(table, rows)]).map(drop)
    }

    fn check_indexes(&self) -> engine::Result<()> {
        self.engine.check_indexes()
    }

    fn waits_for_checkpoint(&self) -> bool {
        self.engine.waits_for_checkpoint()
    }

    fn checkpoint(&mut self) -> engine::Result<()> {
        self.engine.checkpoint()
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) -> engine::Result<()> {
        self.engine.for_each(table, each)
    }

    fn deferred_procedure(&self, index: usize) -> u16 {
        self.engine.deferred_call(index).0
    }

    fn copy(&mut self, image_bytes_max: u64, log_bytes_max: u64) -> engine::Result<Dram> {
        self.engine.checkpoint()?;
        let device = self.engine.store().device();
        Ok(Dram::copy_of(device.as_ref(), image_bytes_max, log_bytes_max)?)
    }

    fn close(self: Box<Self>) -> engine::Result<()> {
        let Self { consumers, engine, .. } = *self;
        drop(consumers);
        engine.close()
    }

    fn memory(&self) -> MemoryUse {
        self.engine.memory()
    }

    fn archive_log(&mut self) {
        self.engine.archive_log();
    }

    fn archive_error(&self) -> Option<String> {
        self.engine.store().log().archive_status().and_then(|status| status.error)
    }

    fn archive_watch(&self) -> Option<ArchiveWatch> {
        self.engine.store().log().archive_watch()
    }

    fn files(&self) -> Option<FileUse> {
        self.engine.store().device().use_of_files()
    }

    fn status(&self) -> Status {
        let engine = &self.engine;
        Status {
            epoch: engine.epoch(),
            checkpoint_epoch: engine.checkpoint_epoch(),
            rows: engine.rows(),
            state_hash: engine.state_hash(),
            deferred: engine.deferred(),
        }
    }

    fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    fn procedure_ids(&self) -> &[u16] {
        self.engine.procedure_ids()
    }
}
