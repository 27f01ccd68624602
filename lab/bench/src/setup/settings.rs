//! How to run a job: what may differ from run to run over the same store.

use std::path::PathBuf;

use bench::clock::now_ns;
use bench::{FailPoint, Job, Progress, Stop};
use engine::EngineConfig;

use super::design::Design;
use crate::share::Measuring;

/// How to run; what may differ from run to run over the same store.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Epochs of the stream, in all: a resumed run does what is left of them.
    pub epochs: u64,
    /// What keeps the rows.
    pub design: Design,
    /// What the engine is told; geometry, clock and design are those of the run.
    pub engine: EngineConfig,
    /// Epochs of at most so many calls run in the serial part; 0: none.
    pub serial_calls_max: usize,
    /// Microseconds of a group of a rival whose groups end by time.
    pub group_us: u64,
    /// Most bytes of the image.
    pub image_limit_bytes: u64,
    /// Most bytes of memory, if the store may be larger.
    pub memory_limit_bytes: Option<u64>,
    /// Most bytes of the input log.
    pub log_limit_bytes: u64,
    /// Where to write one line for each acknowledged epoch.
    pub ack_log: Option<PathBuf>,
    /// Whether to go on with the acknowledgements of earlier runs; otherwise they are overwritten.
    pub resume: bool,
    /// Whether to compare everything with the serial oracle.
    pub verify: bool,
    /// Whether to run the workload's own consistency check at the end.
    pub check: bool,
    /// Whether to forget all but the device at the end, and to recover from that.
    pub recover: bool,
    /// Whether to count the versions that epochs write, by place and length: every row is looked at
    /// between two epochs.
    pub count_written: bool,
    /// When to measure the machine and hold the run against it.
    pub limits: Measuring,
    /// What to show on standard error.
    pub progress: Progress,
    /// Whether to stop before all epochs have run.
    pub stop: Stop,
    /// Where the process ends, for the harness that kills it.
    pub die_at: Option<FailPoint>,
}

impl Settings {
    /// What the library gets of it.
    #[must_use]
    pub fn client_settings(&self) -> bench::Settings {
        let mut engine = self.engine.clone();
        engine.lab.design = self.design.of_engine();
        bench::Settings {
            engine,
            image_limit_bytes: self.image_limit_bytes,
            memory_limit_bytes: self.memory_limit_bytes,
            log_limit_bytes: self.log_limit_bytes,
            check: self.check,
            progress: self.progress,
            stop: self.stop.clone(),
            die_at: self.die_at.clone(),
        }
    }

    /// What the engine gets of it.
    #[must_use]
    pub fn engine_config(&self, job: &Job, instance: u64) -> EngineConfig {
        let mut config = EngineConfig { clock: now_ns, ..self.engine.clone() };
        config.lab.design = self.design.of_engine();
        config.store.segment_bytes = job.parameters().segment_bytes;
        config.store.instance = instance;
        config
    }
}
