//! How a run opens its database, and with what.

use std::thread;
use std::time::Duration;

use engine::EngineConfig;
use nvcaracal::{Database, Options};

use super::position;
use crate::clock::now_ns;
use crate::library::{self, Callable};
use crate::setup::{BESIDE, Maker};
use crate::{BenchError, FailPoint, Job, Place, Progress, Result, Stop};

/// How to run; what may differ from run to run over the same store.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the engine is told; geometry and clock are those of the run.
    pub engine: EngineConfig,
    /// Most bytes of the image.
    pub image_limit_bytes: u64,
    /// Most bytes of memory, if the store may be larger.
    pub memory_limit_bytes: Option<u64>,
    /// Most bytes of the input log.
    pub log_limit_bytes: u64,
    /// Whether to run the workload's own consistency check at the end.
    pub check: bool,
    /// What to show on standard error.
    pub progress: Progress,
    /// Whether to stop before everything has run.
    pub stop: Stop,
    /// Where the process ends, for the harness that kills it.
    pub die_at: Option<FailPoint>,
}

impl Settings {
    /// What the engine gets of it.
    fn engine_config(&self, job: &Job) -> EngineConfig {
        let mut config = EngineConfig { clock: now_ns, ..self.engine.clone() };
        config.store.segment_bytes = job.parameters().segment_bytes;
        config
    }
}

/// The tables and procedures of a job, with those that keep its position.
pub(super) fn options(job: &Job) -> Result<(Options, Vec<Callable>)> {
    let (options, callables) = library::options(&job.client_tables(), job.client_procedures())?;
    Ok((position::register(options).beside(BESIDE), callables))
}

/// Opens the database of a job at a place, which is remembered there.
///
/// # Errors
/// The library's; `Usage` for a fail point where there are none.
pub(super) fn open(
    job: &Job,
    place: &Place,
    settings: &Settings,
    more: impl FnOnce(Options) -> Options,
) -> Result<(Database, Vec<Callable>)> {
    let (options, callables) = options(job)?;
    let mut options = options
        .engine(settings.engine_config(job))
        .data_bytes_max(settings.image_limit_bytes)
        .log_bytes_max(settings.log_limit_bytes);
    if let Some(bytes) = settings.memory_limit_bytes {
        options = options.memory_limit(bytes);
    }
    if let Some(point) = settings.die_at.clone() {
        options = options.disk_hook(point.hook(&place.spec)?);
    }
    place.remember(job.parameters(), Maker::Library)?;
    match more(options).open_device(place.spec.clone()) {
        Ok(database) => {
            place.remember_locked(job.parameters(), Maker::Library)?;
            Ok((database, callables))
        }
        Err(error) => {
            // What is there now may belong to the process that has it open.
            if !error.is_locked() {
                place.forget();
            }
            Err(error.into())
        }
    }
}

/// Between two looks whether the deferred calls of before a recovery have run.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until the calls that the last process left to the next epoch have run in one.
///
/// # Errors
/// Why the database stopped.
pub(super) fn settle(database: &Database) -> Result<()> {
    while database.stats().deferred_calls > 0 {
        // Fails where it has stopped.
        database.memory().map_err(BenchError::from)?;
        thread::sleep(PAUSE);
    }
    Ok(())
}
