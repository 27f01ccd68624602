//! The engine without its device type, and the devices that there are to choose from.
//!
//! The engine is compiled for each device; here is the one dynamic call for each epoch that hides
//! which.

use std::path::Path;
use std::sync::Arc;

use engine::{
    Calls, Engine, EngineConfig, EpochInfo, EpochOutcome, MemoryUse, ProcedureTable,
    RecoveryReport, Visit,
};
use pmem::{Dax, Device, DeviceSpec, Dram, Emulated, File, FileOptions};
use storage::{StateHash, Store, TableDefinition};

use crate::procedure::Registration;
use crate::range::Bytes;
use crate::schema::{Lease, Schema};
use crate::table::Shape;
use crate::{Error, Result};

/// An engine over some device.
pub(crate) trait Driver: Send {
    fn run_epoch(&mut self, calls: &Calls, info: EpochInfo) -> engine::Result<EpochOutcome>;
    fn get(&self, table: u16, key: &[u8]) -> engine::Result<Option<Vec<u8>>>;
    fn for_each(&self, table: u16, each: &mut dyn FnMut(&[u8], &[u8])) -> engine::Result<()>;
    fn scan(&self, table: u16, range: &Bytes, each: Visit<'_>) -> engine::Result<()>;
    fn checkpoint(&mut self) -> engine::Result<()>;
    fn close(self: Box<Self>) -> engine::Result<()>;
    fn memory(&self) -> MemoryUse;
    fn status(&self) -> Status;
    fn schema(&self) -> &'static Schema;
}

/// Where an engine is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) epoch: u64,
    pub(crate) checkpoint_epoch: u64,
    pub(crate) rows: u64,
    pub(crate) state_hash: StateHash,
    pub(crate) carried: usize,
}

struct Hosted<D: Device> {
    engine: Engine<D>,
    /// Dropped after the engine, which runs procedures of this schema.
    lease: Lease,
}

impl<D: Device> Driver for Hosted<D> {
    fn run_epoch(&mut self, calls: &Calls, info: EpochInfo) -> engine::Result<EpochOutcome> {
        self.engine.run_epoch(calls, info)
    }

    fn get(&self, table: u16, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
        self.engine.get(table, key)
    }

    fn for_each(&self, table: u16, each: &mut dyn FnMut(&[u8], &[u8])) -> engine::Result<()> {
        self.engine.for_each(table, each)
    }

    fn scan(&self, table: u16, range: &Bytes, each: Visit<'_>) -> engine::Result<()> {
        self.engine.scan(table, &range.low, &range.high, each)
    }

    fn checkpoint(&mut self) -> engine::Result<()> {
        self.engine.checkpoint()
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
            carried: engine.carried(),
        }
    }

    fn schema(&self) -> &'static Schema {
        self.lease.schema()
    }
}

/// What a database is opened with.
pub(crate) struct Plan {
    pub(crate) device: DeviceSpec,
    pub(crate) image_bytes_max: u64,
    pub(crate) log_bytes_max: u64,
    pub(crate) config: EngineConfig,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) procedures: Vec<Registration>,
}

/// Opens the device, then the engine on it.
pub(crate) fn open(plan: Plan) -> Result<(Box<dyn Driver>, RecoveryReport)> {
    let (image, log) = (plan.image_bytes_max, plan.log_bytes_max);
    match &plan.device {
        DeviceSpec::Dram => host(Dram::new(image, log)?, plan),
        DeviceSpec::Emulated(profile) => host(Emulated::new(*profile, image, log)?, plan),
        DeviceSpec::Dax(path) => {
            check_parent(path)?;
            host(Dax::open(path, image, log)?, plan)
        }
        DeviceSpec::File(directory) => {
            check_parent(directory)?;
            let create = plan.config.store.create;
            let options = FileOptions { create, ..FileOptions::new(image, log) };
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

fn host<D: Device>(device: D, plan: Plan) -> Result<(Box<dyn Driver>, RecoveryReport)> {
    let device = Arc::new(device);
    let Plan { config, shapes, procedures, .. } = plan;
    let tables: Vec<TableDefinition> = shapes.iter().map(Shape::definition).collect();
    // Recovery runs procedures, so the numbers of their tables must be known before the engine
    // opens. The store knows them; it is opened for that alone and let go.
    let found = Store::open(Arc::clone(&device), &config.store, &tables)?;
    let (numbers, created) = (found.table_ids, found.created);
    drop(found.store);
    let lease = Lease::new(shapes.iter().map(|shape| shape.tag).zip(numbers).collect())?;
    let mut table = ProcedureTable::new();
    for procedure in procedures {
        table.add((procedure.define)(lease.number()));
    }
    let (engine, report) = Engine::open(device, config, &tables, table)?;
    Ok((Box::new(Hosted { engine, lease }), RecoveryReport { created, ..report }))
}
