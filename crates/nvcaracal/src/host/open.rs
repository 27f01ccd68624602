//! Opens the engine on the device that was chosen.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{
    Definitions, Earlier, Engine, EngineConfig, EngineError, EpochInfo, Known, LoggedSchema,
    ProcedureTable, RecoveryReport, TableSchema,
};
use pmem::{
    AnyDevice, Dax, Device, DeviceError, DeviceSpec, DiskHook, Dram, Emulated, File, FileOptions,
};
use storage::{ChangeLog, ChangeLogHook, StorageError, TableId};

use crate::call::procedure::Registration;
use crate::error::{Error, Result};
use crate::feed::logged::{DIRECTORY as CHANGES, failed};
use crate::host::archive_room::ArchiveRoom;
use crate::host::driver::Driver;
use crate::host::earlier::{Kept, OfNow};
use crate::table::handle::Shape;
use crate::table::index::IndexRegistration;
use crate::table::schema::{Context, MissingHandles, Schema};

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
    /// Most bytes of memory, if the data may be larger.
    pub(crate) memory_limit: Option<u64>,
    /// Most bytes of changes that are kept for consumers.
    pub(crate) consumer_bytes_max: u64,
    pub(crate) change_log_hook: Option<Arc<dyn ChangeLogHook>>,
    /// Where log goes that is not needed any more.
    pub(crate) archive: Option<PathBuf>,
    /// Files that may lie in the directory of a new store.
    pub(crate) beside: &'static [&'static str],
    pub(crate) config: EngineConfig,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) renamed: Vec<(String, String)>,
    pub(crate) dropped: Vec<String>,
    /// What the program knows of the store and does not have.
    pub(crate) known: Known,
    pub(crate) indexes: Vec<IndexRegistration>,
    pub(crate) procedures: Vec<Registration>,
    /// For logs of before.
    pub(crate) kept: Kept,
    /// Of epochs that bring a log of before to its end.
    pub(crate) info: EpochInfo,
    pub(crate) context: Context,
}

/// Opens the device, then the engine on it.
pub(crate) fn open(plan: Plan) -> Result<(Driver, RecoveryReport)> {
    let (image, log) = (plan.image_bytes_max, plan.log_bytes_max);
    if plan.read_only && !matches!(plan.device, DeviceSpec::File(_)) {
        return Err(Error::mistake(format!(
            "{} cannot be opened for reading only, file:DIRECTORY can",
            plan.device
        )));
    }
    if plan.archive.is_some() && !matches!(plan.device, DeviceSpec::File(_)) {
        return Err(Error::mistake(format!(
            "the log of {} is not archived, only that of file:DIRECTORY is",
            plan.device
        )));
    }
    if plan.memory_limit.is_some() && !matches!(plan.device, DeviceSpec::File(_)) {
        return Err(Error::mistake(format!(
            "{} keeps all data in memory; a limit of memory is for file:DIRECTORY",
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
            let archive = plan.archive.as_deref().filter(|_| !plan.read_only);
            let room = archive.map(ArchiveRoom::make).transpose()?;
            let directory = directory.clone();
            let opened = on_file(&directory, plan);
            if let (Err(_), Some(room)) = (&opened, room) {
                room.remove();
            }
            opened
        }
        DeviceSpec::Crash => Err(Error::mistake(
            "the crash device is for simulations, which drive the engine themselves",
        )),
    }
}

/// Opens the engine on the files in a directory.
fn on_file(directory: &Path, mut plan: Plan) -> Result<(Driver, RecoveryReport)> {
    let (create, read_only) = (plan.config.store.create, plan.read_only);
    let options = FileOptions {
        create,
        read_only,
        detached: read_only,
        archive: plan.archive.clone(),
        memory_limit_bytes: plan.memory_limit,
        background_load_bytes_min: Some(FileOptions::BACKGROUND_LOAD_BYTES),
        hook: plan.disk.clone(),
        beside: plan.beside,
        ..FileOptions::new(plan.image_bytes_max, plan.log_bytes_max)
    };
    let device = File::open(directory, &options)?;
    if !read_only {
        plan.config.change_log = Some(change_log(directory, &plan)?);
    }
    host(device, plan)
}

/// Opens the change log of a database in a directory.
fn change_log(directory: &Path, plan: &Plan) -> Result<Arc<ChangeLog>> {
    let path = directory.join(CHANGES);
    let log = ChangeLog::open(&path, plan.consumer_bytes_max, plan.change_log_hook.clone());
    match log {
        Ok(log) => Ok(Arc::new(log)),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(StorageError::Corrupt(error.to_string()).into())
        }
        Err(source) => Err(DeviceError::Io { what: "read".into(), path, source }.into()),
    }
}

/// What the tables of consumers are compared with.
struct Agreeing<'p> {
    shapes: &'p [Shape],
    /// Of each shape.
    numbers: Vec<TableId>,
    renamed: &'p [(String, String)],
    dropped: &'p [String],
}

impl Agreeing<'_> {
    /// Forgets consumers of tables that were dropped.
    fn agree(&self, log: &ChangeLog) -> Result<()> {
        let agreed = log.agree(|table, name| self.name_of(table, name));
        agreed.map_err(|error| failed(log, "write consumers to", error))
    }

    /// The name of a table now; `None` if it was dropped.
    fn name_of(&self, table: TableId, name: &str) -> Option<String> {
        if self.dropped.iter().any(|dropped| dropped == name) {
            return None;
        }
        let registered = self.numbers.iter().position(|&number| number == table);
        let Some(now) = registered.map(|at| self.shapes[at].name) else { return Some(name.into()) };
        let is_renamed = self.renamed.iter().any(|(from, to)| from == name && to == now);
        (now == name || is_renamed).then(|| now.into())
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
pub(crate) fn host(device: impl Device, plan: Plan) -> Result<(Driver, RecoveryReport)> {
    let device = AnyDevice::new(device);
    let Plan { config, info, shapes, renamed, dropped, indexes, .. } = plan;
    let Plan { procedures, kept, known, context, .. } = plan;
    let tables: Vec<TableSchema> = shapes.iter().map(Shape::schema).collect();
    let position = |index: &IndexRegistration| {
        let of = |shape: &Shape| shape.tag == index.shape.table.tag;
        shapes.iter().position(of).expect("checked with the options")
    };
    let of_engine: Vec<_> = indexes.iter().map(|index| index.definition(position(index))).collect();
    // Recovery runs procedures, which must know the numbers that the store has for their tables.
    let mut made: Option<Arc<Schema>> = None;
    let mut refused: Option<Error> = None;
    let mut register = |numbers: &[TableId]| {
        assert_eq!(numbers.len(), shapes.len(), "a table without a number");
        let tags = shapes.iter().map(|shape| shape.tag).zip(numbers.iter().map(|number| number.0));
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
            let object = procedure.object(Arc::clone(&schema));
            table.add_version(object, procedure.types(), procedure.version);
        }
        made = Some(schema);
        Ok(table)
    };
    let of_now = OfNow {
        shapes: &shapes,
        renamed: &renamed,
        indexes: &indexes,
        procedures: &procedures,
        context: &context,
    };
    let (kept_indexes, missing) = (kept.definitions(), MissingHandles::default());
    let mut bodies = |logged: &LoggedSchema| kept.bodies(logged, &of_now, &missing);
    let earlier =
        Earlier { indexes: &kept_indexes, bodies: &mut bodies, missing: missing.asked(), info };
    let definitions = Definitions {
        renamed: &renamed,
        dropped: &dropped,
        indexes: &of_engine,
        known: Some(&known),
        earlier: Some(earlier),
        ..Definitions::new(&tables, &mut register)
    };
    let opened = Engine::open_with(device, config, definitions);
    let (mut engine, mut report) =
        opened.map_err(|error| refused.take().unwrap_or(error.into()))?;
    let schema = made.expect("the engine has its procedures");
    assert_eq!(engine.procedure_ids().len(), procedures.len(), "procedures and their numbers");
    kept.add_unneeded(&mut report);
    assert!(engine.checkpoint_epoch() <= engine.epoch(), "the checkpoint is of a later epoch");
    if let Some(log) = engine.change_log() {
        let numbers = shapes.iter().map(|shape| schema.number(shape).expect("it is registered"));
        let numbers = numbers.collect();
        let agreeing = Agreeing { shapes: &shapes, numbers, renamed: &renamed, dropped: &dropped };
        agreeing.agree(&log)?;
        engine.watch();
    }
    Ok((Driver::new(engine, schema), report))
}
