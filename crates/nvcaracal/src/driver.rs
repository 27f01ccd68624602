//! The engine without its device type, and the devices that there are to choose from.
//!
//! The engine is compiled for each device; here is the one dynamic call for each epoch that hides
//! which.

use std::path::Path;
use std::sync::Arc;

use engine::{
    Calls, Definitions, Engine, EngineConfig, EngineError, EpochInfo, EpochOutcome, MemoryUse,
    ProcedureTable, RecoveryReport, ScanPart, TableSchema, Visit,
};
use pmem::{Dax, Device, DeviceSpec, DiskHook, Dram, Emulated, File, FileOptions};
use storage::StateHash;

use crate::index::IndexRegistration;
use crate::procedure::Registration;
use crate::schema::{Context, Schema};
use crate::table::Shape;
use crate::{Error, Result};

/// An engine over some device.
pub(crate) trait Driver: Send {
    fn run_epoch(&mut self, calls: &Calls, info: EpochInfo) -> engine::Result<EpochOutcome>;
    fn run_deferred(&mut self, info: EpochInfo) -> engine::Result<EpochOutcome>;
    fn workers(&self) -> usize;
    fn limit_workers(&mut self, workers: usize);
    fn get(&self, table: u16, key: &[u8]) -> engine::Result<Option<Vec<u8>>>;
    fn snapshot(&mut self) -> u64;
    fn release_snapshot(&mut self, epoch: u64);
    fn sweep_snapshots(&mut self, rows_max: usize) -> bool;
    fn get_at(&self, epoch: u64, table: u16, key: &[u8]) -> engine::Result<Option<Vec<u8>>>;
    fn scan_at(
        &self,
        epoch: u64,
        part: ScanPart<'_>,
        each: Visit<'_>,
    ) -> engine::Result<Option<Vec<u8>>>;
    fn visit_part_at(
        &self,
        epoch: u64,
        part: (u16, usize),
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> engine::Result<()>;
    fn scan_index_at(
        &self,
        epoch: u64,
        part: ScanPart<'_>,
        each: Visit<'_>,
    ) -> engine::Result<Option<Vec<u8>>>;
    fn reserve(&mut self, table: u16, rows: u64) -> engine::Result<()>;
    fn check_indexes(&self) -> engine::Result<()>;
    fn checkpoint(&mut self) -> engine::Result<()>;
    fn waits_for_checkpoint(&self) -> bool;
    fn for_each(&self, table: u16, each: &mut dyn FnMut(&[u8], &[u8])) -> engine::Result<()>;
    /// The procedure of a deferred call.
    fn deferred_procedure(&self, index: usize) -> u16;
    /// Image and log as of now, with all that an open of them needs.
    fn copy(&mut self, image_bytes_max: u64, log_bytes_max: u64) -> engine::Result<Dram>;
    fn close(self: Box<Self>) -> engine::Result<()>;
    fn memory(&self) -> MemoryUse;
    fn status(&self) -> Status;
    fn schema(&self) -> Arc<Schema>;
    fn procedure_ids(&self) -> &[u16];
}

/// Where an engine is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) epoch: u64,
    pub(crate) checkpoint_epoch: u64,
    pub(crate) rows: u64,
    pub(crate) state_hash: StateHash,
    pub(crate) deferred: usize,
}

struct Hosted<D: Device> {
    engine: Engine<D>,
    schema: Arc<Schema>,
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

    fn get(&self, table: u16, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.engine.get(table, key)
    }

    fn snapshot(&mut self) -> u64 {
        self.engine.snapshot()
    }

    fn release_snapshot(&mut self, epoch: u64) {
        self.engine.release_snapshot(epoch);
    }

    fn sweep_snapshots(&mut self, rows_max: usize) -> bool {
        self.engine.sweep_snapshots(rows_max)
    }

    fn get_at(&self, epoch: u64, table: u16, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.engine.get_at(epoch, table, key)
    }

    fn scan_at(
        &self,
        epoch: u64,
        part: ScanPart<'_>,
        each: Visit<'_>,
    ) -> engine::Result<Option<Vec<u8>>> {
        self.engine.scan_at(epoch, part, each)
    }

    fn visit_part_at(
        &self,
        epoch: u64,
        part: (u16, usize),
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> engine::Result<()> {
        self.engine.visit_part_at(epoch, part, each)
    }

    fn scan_index_at(
        &self,
        epoch: u64,
        part: ScanPart<'_>,
        each: Visit<'_>,
    ) -> engine::Result<Option<Vec<u8>>> {
        self.engine.scan_index_at(epoch, part, each)
    }

    fn reserve(&mut self, table: u16, rows: u64) -> engine::Result<()> {
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

    fn for_each(&self, table: u16, each: &mut dyn FnMut(&[u8], &[u8])) -> engine::Result<()> {
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
        self.engine.close()
    }

    fn memory(&self) -> MemoryUse {
        self.engine.memory()
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

/// What a database is opened with.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) device: DeviceSpec,
    /// Nothing is written to the device.
    pub(crate) read_only: bool,
    pub(crate) image_bytes_max: u64,
    pub(crate) log_bytes_max: u64,
    /// Sees every call that `file` makes to the file system.
    pub(crate) disk: Option<Arc<dyn DiskHook>>,
    /// Files that may lie in the directory of a new store.
    pub(crate) beside: &'static [&'static str],
    pub(crate) config: EngineConfig,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) renamed: Vec<(String, String)>,
    pub(crate) dropped: Vec<String>,
    pub(crate) indexes: Vec<IndexRegistration>,
    pub(crate) procedures: Vec<Registration>,
    pub(crate) context: Context,
}

/// Opens the device, then the engine on it.
pub(crate) fn open(plan: Plan) -> Result<(Box<dyn Driver>, RecoveryReport)> {
    let (image, log) = (plan.image_bytes_max, plan.log_bytes_max);
    if plan.read_only && !matches!(plan.device, DeviceSpec::File(_)) {
        return Err(Error::mistake(format!(
            "{} cannot be opened for reading only, file:DIRECTORY can",
            plan.device
        )));
    }
    match &plan.device {
        DeviceSpec::Dram => host(Dram::new(image, log)?, plan),
        DeviceSpec::Emulated(profile) => host(Emulated::new(*profile, image, log)?, plan),
        DeviceSpec::Dax(path) => {
            check_parent(path)?;
            host(Dax::open(path, image, log)?, plan)
        }
        DeviceSpec::File(directory) => {
            check_parent(directory)?;
            let (create, read_only) = (plan.config.store.create, plan.read_only);
            let options = FileOptions {
                create,
                read_only,
                detached: read_only,
                hook: plan.disk.clone(),
                beside: plan.beside,
                ..FileOptions::new(image, log)
            };
            host(File::open(directory, &options)?, plan)
        }
        DeviceSpec::Crash => Err(Error::mistake(
            "the crash device is for simulations, which drive the engine themselves",
        )),
    }
}

/// A database is created in a directory that is there: anything else is more likely a slip of the
/// pen.
fn check_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            Err(Error::mistake(format!(
                "there is no directory {} to create a database in: create it or check the path",
                parent.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Opens the engine on a device.
pub(crate) fn host<D: Device>(device: D, plan: Plan) -> Result<(Box<dyn Driver>, RecoveryReport)> {
    let device = Arc::new(device);
    let Plan { config, shapes, renamed, dropped, indexes, procedures, context, .. } = plan;
    let tables: Vec<TableSchema> = shapes.iter().map(Shape::schema).collect();
    let position = |index: &IndexRegistration| {
        let of = |shape: &Shape| shape.tag == index.shape.table.tag;
        shapes.iter().position(of).expect("checked with the options")
    };
    let of_engine: Vec<_> = indexes.iter().map(|index| index.definition(position(index))).collect();
    // Recovery runs procedures, which must know the numbers that the store has for their tables.
    let mut made: Option<Arc<Schema>> = None;
    let mut refused: Option<Error> = None;
    let mut register = |numbers: &[u16]| {
        let tags = shapes.iter().map(|shape| shape.tag).zip(numbers.iter().copied());
        let tags = tags.chain(indexes.iter().map(|index| index.shape.tag).zip(0..));
        let tags: Vec<_> = tags.collect();
        let schema = Schema::new(&tags, context.clone()).map_err(|error| {
            let what = error.to_string();
            refused = Some(error);
            EngineError::Limit(what)
        })?;
        let schema = Arc::new(schema);
        let mut table = ProcedureTable::new();
        for procedure in &procedures {
            table.add_typed((procedure.object)(Arc::clone(&schema)), (procedure.types)());
        }
        made = Some(schema);
        Ok(table)
    };
    let definitions = Definitions {
        renamed: &renamed,
        dropped: &dropped,
        indexes: &of_engine,
        ..Definitions::new(&tables, &mut register)
    };
    let opened = Engine::open_with(device, config, definitions);
    let (engine, report) = opened.map_err(|error| refused.take().unwrap_or(error.into()))?;
    let schema = made.expect("the engine has its procedures");
    Ok((Box::new(Hosted { engine, schema }), report))
}
