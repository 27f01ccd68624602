//! Recovery of a store that the engine alone made: by the command `recover`, and after a run
//! (`bench --recover`), which has forgotten all but its device.

use std::sync::Arc;

use bench::clock::now_ns;
use bench::{Limits, Maker, RecoverSummary, Recovered, Result, open_device};
use engine::{Engine, EngineConfig};
use pmem::{AnyDevice, DeviceSpec};

use crate::Job;

/// Recovers a store and closes it again.
///
/// # Errors
/// `Store` if it is not one that the engine made for `bench`; the device's and the engine's.
pub fn recover(spec: &DeviceSpec, workers: usize) -> Result<RecoverSummary> {
    let job = Job::of(&bench::stored_parameters(spec, Maker::Engine)?)?;
    let config = EngineConfig { workers, clock: now_ns, ..EngineConfig::default() };
    again(spec, Limits::existing(spec), &job, config)
}

/// Opens a device that keeps its bytes, and recovers the store on it.
pub(crate) fn again(
    spec: &DeviceSpec,
    limits: Limits,
    job: &Job,
    config: EngineConfig,
) -> Result<RecoverSummary> {
    let started = now_ns();
    Recover { job, config, started }.run(open_device(spec, limits)?)
}

pub(crate) struct Recover<'a> {
    pub(crate) job: &'a Job,
    pub(crate) config: EngineConfig,
    /// When opening the device began.
    pub(crate) started: u64,
}

impl Recover<'_> {
    pub(crate) fn run(self, device: Arc<AnyDevice>) -> Result<RecoverSummary> {
        let Self { job, mut config, started } = self;
        let opened = now_ns();
        let workers = config.workers;
        config.store.create = false;
        let tables = job.table_definitions();
        let (engine, found) = Engine::open(device, config, &tables, job.procedures().table)?;
        let finished = now_ns();
        let (state_digest, deferred) = (engine.state_hash().to_string(), engine.deferred() as u64);
        let rows = if found.epochs_replayed > 0 { engine.rows() } else { found.rows };
        engine.close()?;
        let recovered = Recovered {
            state_digest,
            rows,
            deferred,
            workers,
            open_device_ns: opened - started,
            total_ns: finished - started,
            close_ns: now_ns() - finished,
        };
        Ok(RecoverSummary::new(job, &found, recovered))
    }
}
