//! A workload as engines need it: its procedures, and the calls of each epoch in the engine's
//! words.
//!
//! What does not depend on an engine is the product's ([`bench::Job`]). Epochs of the engine are
//! those of the job.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;

use bench::{Parameters, Result, WorkloadVisitor};
use engine::{Calls, EpochInfo};
use workloads::Workload;

use crate::engine_run::adapter::Procedures;
use crate::model::{Recorder, Shape};
use crate::rival_run::{self, Deterministic, Rival, RivalDevice};

/// Timestamp of epoch 0 in nanoseconds since 1970. Epochs are a millisecond apart, and no clock is
/// read: a resumed run must give each epoch the timestamp that it would have had.
const FIRST_TIMESTAMP_NS: u64 = 1_700_000_000_000_000_000;

/// A workload with its type erased, on engines.
trait OnEngines: Send + Sync {
    fn procedures(&self) -> Procedures;
    fn shape(&self, job: &bench::Job, epoch: u64) -> Shape;
    fn run_rival(
        &self,
        rival: Rival,
        device: &RivalDevice,
        settings: &testbed::Settings,
    ) -> Result<testbed::Report>;
    fn run_deterministic(
        &self,
        engine: Deterministic,
        settings: &testbed::Settings,
    ) -> Result<testbed::BatchReport>;
}

impl<W: Workload> OnEngines for W {
    fn procedures(&self) -> Procedures {
        let mut procedures = Procedures::default();
        self.register(&mut procedures);
        procedures
    }

    fn shape(&self, job: &bench::Job, epoch: u64) -> Shape {
        let mut recorder = Recorder::new(self);
        let recorded = job.each_call(epoch, |procedure, args| {
            recorder.call(procedure, args);
            Ok::<_, Infallible>(())
        });
        recorded.unwrap_or_else(|never| match never {});
        recorder.shape()
    }

    fn run_rival(
        &self,
        rival: Rival,
        device: &RivalDevice,
        settings: &testbed::Settings,
    ) -> Result<testbed::Report> {
        rival_run::run_typed(self, rival, device, settings)
    }

    fn run_deterministic(
        &self,
        engine: Deterministic,
        settings: &testbed::Settings,
    ) -> Result<testbed::BatchReport> {
        rival_run::run_typed_batches(self, engine, settings)
    }
}

/// A job that engines can run.
#[derive(Clone)]
pub struct Job {
    job: bench::Job,
    on_engines: Arc<dyn OnEngines>,
}

impl Deref for Job {
    type Target = bench::Job;

    fn deref(&self) -> &bench::Job {
        &self.job
    }
}

impl Job {
    /// The job that parameters describe.
    ///
    /// # Errors
    /// `Usage` if they contradict each other or a limit of the store.
    pub fn of(parameters: &Parameters) -> Result<Self> {
        let job = parameters.visit(ToJob(parameters))?;
        job.check()?;
        Ok(job)
    }

    pub(crate) fn new<W: Workload + 'static>(workload: Arc<W>, parameters: Parameters) -> Self {
        Self { job: bench::Job::new(Arc::clone(&workload), parameters), on_engines: workload }
    }

    /// The procedures, as the engine registers them.
    #[must_use]
    pub fn procedures(&self) -> Procedures {
        self.on_engines.procedures()
    }

    /// What the calls of an epoch access.
    pub(crate) fn shape(&self, epoch: u64) -> Shape {
        self.on_engines.shape(&self.job, epoch)
    }

    /// Runs it on a rival engine.
    pub(crate) fn run_rival(
        &self,
        rival: Rival,
        device: &RivalDevice,
        settings: &testbed::Settings,
    ) -> Result<testbed::Report> {
        self.on_engines.run_rival(rival, device, settings)
    }

    /// Runs it on a deterministic rival.
    pub(crate) fn run_deterministic(
        &self,
        engine: Deterministic,
        settings: &testbed::Settings,
    ) -> Result<testbed::BatchReport> {
        self.on_engines.run_deterministic(engine, settings)
    }

    /// Puts the calls of an engine epoch into `calls`.
    ///
    /// # Errors
    /// The engine's limits.
    pub fn fill(&self, epoch: u64, calls: &mut Calls) -> Result<()> {
        calls.clear();
        self.each_call(epoch, |procedure, args| Ok(calls.push(procedure, args)?))
    }

    /// Timestamp and seed of an engine epoch.
    #[must_use]
    pub fn info(&self, epoch: u64) -> EpochInfo {
        let mixed = (self.parameters().seed ^ epoch).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        EpochInfo {
            timestamp_ns: FIRST_TIMESTAMP_NS + epoch * 1_000_000,
            seed: mixed ^ mixed >> 32,
        }
    }
}

/// Makes a job of a workload.
struct ToJob<'p>(&'p Parameters);

impl WorkloadVisitor for ToJob<'_> {
    type Output = Job;

    fn visit<W: Workload + 'static>(self, workload: Arc<W>) -> Job {
        Job::new(workload, self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use bench::{Contention, WorkloadParameters};

    use super::*;

    fn job(customers: u64) -> Job {
        let workload = WorkloadParameters::smallbank(customers, Contention::Low);
        let parameters = Parameters::new(workload, Contention::Low);
        let parameters = Parameters { epoch_size: 50, loads_per_epoch: 3, ..parameters };
        Job::of(&parameters).expect("good ones")
    }

    #[test]
    fn an_epoch_does_not_depend_on_what_was_generated_before() {
        let (mut once, mut again) = (Calls::new(), Calls::new());
        job(500).fill(9, &mut once).expect("within limits");
        let other = job(500);
        other.fill(3, &mut again).expect("within limits");
        other.fill(9, &mut again).expect("within limits");
        assert_eq!(once.len(), again.len());
        assert!((0..once.len()).all(|i| once.get(i) == again.get(i)));
        assert_eq!(job(500).info(9), other.info(9));
    }
}
