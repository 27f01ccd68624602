//! A run: open, load, run epochs, check, report. One straight function names the steps.
//!
//! A run that is asked to stop (O-62) does so between two epochs. What is left of loading or of the
//! stream is skipped; everything after it is done as at any other end, so the store is closed with
//! a checkpoint and can be resumed.
//!
//! The calls of an epoch are generated before its clock starts, as the papers generate theirs
//! before a run (CA 5.2); the clock runs from the start of `run_epoch` to its end, when all answers
//! are known and the epoch is durable as far as the device can make it.

use std::sync::Arc;

use bench::clock::{cpu_ns, now_ns, seconds};
use bench::{AckLog, BenchError, Limits, Maker, Place, Result, forgets, open_device};
use engine::{Answer, Calls, Engine, EpochOutcome, RecoveryReport};
use pmem::{AnyDevice, Device};
use storage::{EpochNumber, TableId};
use workloads::{Observer, ProcedureId};

use super::adapter::{EngineView, answer};
use super::counts::{RunCounts, Took};
use super::recover::{self, Recover};
use super::verify::Verifier;
use crate::report::{Report, Versions};
use crate::{Job, Settings, share};

/// Runs a job at a place. If it is asked to stop, the report is about what ran until then.
///
/// # Errors
/// Whatever stops the run: the device, the engine, a difference from the oracle. What only the
/// consistency check found is in the report.
pub fn run(job: &Job, place: &Place, settings: &Settings) -> Result<Report> {
    let config = settings.engine_config(job, 0);
    config.validate().map_err(|error| BenchError::Usage(error.to_string()))?;
    if settings.ack_log.is_some() && !settings.engine.lab.state_hash {
        let what = "an acknowledgement log has the state digest of every epoch: it cannot be \
                    written without the state hash";
        return Err(BenchError::Usage(what.into()));
    }
    let mut ack = match &settings.ack_log {
        Some(path) if settings.resume => Some(AckLog::resume(path)?),
        Some(path) => Some(AckLog::create(path)?),
        None => None,
    };
    if let (Some(ack), None) = (&mut ack, &place.stored) {
        // A store that is not there has answered no call.
        ack.check_recovered(0, "")?;
    }
    place.remember(job.parameters(), Maker::Engine)?;
    let die_at = settings.die_at.clone();
    let existing = Limits {
        memory_limit_bytes: settings.memory_limit_bytes,
        ..Limits::new(settings.image_limit_bytes, settings.log_limit_bytes)
    };
    let limits = Limits { die_at, ..existing.clone() };
    let device = open_device(&place.spec, limits);
    let is_open = device.is_ok();
    let result = device.and_then(|device| Open { job, settings, place, ack }.run(device));
    // What is there now may belong to the process that has it open.
    let is_locked = result.as_ref().is_err_and(BenchError::is_locked);
    if result.is_err() && !is_open && !is_locked {
        place.forget();
    }
    let mut report = result?;
    if settings.recover && !report.interrupted && report.recovery.is_none() {
        // The device is closed, so it is opened once more.
        let existing = Limits { create: false, ..existing };
        let config = settings.engine_config(job, 0);
        report.recovered(recover::again(&place.spec, existing, job, config)?)?;
    }
    Ok(report)
}

struct Open<'a> {
    job: &'a Job,
    settings: &'a Settings,
    place: &'a Place,
    ack: Option<AckLog>,
}

impl Open<'_> {
    fn run(self, device: Arc<AnyDevice>) -> Result<Report> {
        let Self { job, settings, place, ack } = self;
        place.remember_locked(job.parameters(), Maker::Engine)?;
        let started = now_ns();
        let mut run = Run::open(device, job, settings, ack)?;
        run.load()?;
        if !run.interrupted {
            run.prepare()?;
        }
        if !run.interrupted && settings.recover {
            // What is replayed begins with the stream.
            run.engine.checkpoint()?;
        }
        let loaded = now_ns();
        if !run.interrupted {
            run.observe();
            run.epochs()?;
        }
        if run.interrupted {
            let last = job.epoch_name(run.engine.epoch().0);
            settings.progress.note(&format!("stopping after {last}: closing the store"));
        }
        let problems = if run.has_news() { run.check()? } else { Vec::new() };
        let mut report = run.report(problems);
        report.loading_seconds = seconds(loaded - started);
        let closing = now_ns();
        let device = Arc::clone(&run.device);
        if settings.recover && !run.interrupted {
            // As the end of a killed process: nothing is written any more.
            drop(run.engine);
        } else {
            run.engine.close()?;
        }
        report.close_seconds = seconds(now_ns() - closing);
        report.wall_seconds = seconds(now_ns() - started);
        if settings.recover && !run.interrupted && forgets(&place.spec) {
            let (config, started) = (settings.engine_config(job, 0), now_ns());
            report.recovered(Recover { job, config, started }.run(device)?)?;
        }
        if run.counts.epochs > 0 && settings.limits.is_due(report.seconds) {
            let (stats, epochs) = (&run.counts.stats, run.counts.epochs);
            match share::measure(stats, epochs, settings, &place.spec) {
                Ok(share) => report.limits = Some(share),
                // The run is as good without.
                Err(error) => settings.progress.note(&format!("limits not measured: {error}")),
            }
        }
        Ok(report)
    }
}

/// A run in progress.
struct Run<'a> {
    job: &'a Job,
    settings: &'a Settings,
    device: Arc<AnyDevice>,
    engine: Engine,
    recovery: RecoveryReport,
    ack: Option<AckLog>,
    verifier: Option<Verifier<'a>>,
    observer: Option<Box<dyn Observer>>,
    /// Calls that the last epoch deferred, in order.
    deferred: Vec<(ProcedureId, Vec<u8>)>,
    calls: Calls,
    counts: RunCounts,
    /// What epochs of the stream wrote, if it is counted.
    written: Option<Versions>,
    generate_ns: u64,
    /// Whether epochs were left out because a stop was asked for.
    interrupted: bool,
}

impl<'a> Run<'a> {
    /// Opens or creates the store, and holds what was recovered against what was acknowledged.
    fn open(
        device: Arc<AnyDevice>,
        job: &'a Job,
        settings: &'a Settings,
        mut ack: Option<AckLog>,
    ) -> Result<Self> {
        let config = settings.engine_config(job, instance());
        let (engine, recovery) = Engine::open(
            Arc::clone(&device),
            config,
            &job.table_definitions(),
            job.procedures().table,
        )?;
        let epoch = engine.epoch().0;
        if let Some(ack) = &mut ack {
            ack.check_recovered(epoch, &engine.state_hash().to_string())?;
        }
        let mut verifier = settings.verify.then(|| Verifier::new(job));
        if let Some(verifier) = &mut verifier {
            verifier.catch_up(epoch, engine.state_hash().0)?;
        }
        let deferred = (0..engine.deferred()).map(|i| engine.deferred_call(i));
        let deferred = deferred.map(|(procedure, args)| (procedure, args.to_vec())).collect();
        Ok(Self {
            job,
            settings,
            device,
            engine,
            recovery,
            ack,
            verifier,
            observer: None,
            deferred,
            calls: Calls::new(),
            counts: RunCounts::new()?,
            written: settings.count_written.then(Versions::default),
            generate_ns: 0,
            interrupted: false,
        })
    }

    /// Runs the loading epochs that are left, unless asked to stop.
    fn load(&mut self) -> Result<()> {
        let loading = self.job.loading_epochs();
        let first = self.engine.epoch().0 + 1;
        let bar =
            self.settings.progress.bar("loading", (loading + 1).saturating_sub(first), "epochs");
        for epoch in first..=loading {
            if self.stops() {
                break;
            }
            let (outcome, _) = self.epoch(epoch)?;
            let stuck =
                (0..outcome.len()).find(|&i| !matches!(outcome.answer(i), Answer::Committed(_)));
            if let Some(position) = stuck {
                return Err(BenchError::Store(format!(
                    "{}: loading call {position} came to {:?}",
                    self.job.epoch_name(epoch),
                    outcome.answer(position)
                )));
            }
            bar.step("");
        }
        Ok(())
    }

    /// Makes room for the rows that the epochs will insert: the papers' systems take their memory
    /// before they measure, too. Where there is not enough, the epochs will tell. Then waits for a
    /// image snapshot that loading began: the epochs pay for their own.
    fn prepare(&mut self) -> Result<()> {
        let done = self.engine.epoch().0.saturating_sub(self.job.loading_epochs());
        let rows = self.job.inserts(self.settings.epochs.saturating_sub(done));
        let rows: Vec<_> = rows.into_iter().map(|(table, n)| (TableId(table), n)).collect();
        match self.engine.prepare_rows(&rows) {
            Err(error) if error.is_limit() => {}
            result => result.map(drop)?,
        }
        let bar = self.settings.progress.bar("settling", 1, "image snapshots");
        self.device.settle()?;
        bar.step("");
        Ok(())
    }

    /// Starts watching the answers, from the state as it is.
    fn observe(&mut self) {
        if self.settings.check {
            self.observer = Some(self.job.observer(&self.view()));
        }
    }

    /// Runs the epochs of the stream that are left, unless asked to stop.
    fn epochs(&mut self) -> Result<()> {
        let loading = self.job.loading_epochs();
        let (first, last) = (self.engine.epoch().0 + 1, loading + self.settings.epochs);
        let bar = self.settings.progress.bar("running", (last + 1).saturating_sub(first), "epochs");
        for epoch in first..=last {
            if self.stops() {
                break;
            }
            let (outcome, took) = self.epoch(epoch)?;
            self.counts.add(&outcome, took);
            if let Some(written) = &mut self.written {
                written.add_since(&self.engine, outcome.epoch);
            }
            self.counts.chain_calls += self.verifier.as_ref().map_or(0, Verifier::longest_chain);
            self.tell_observer(&outcome);
            let rate = outcome.stats.work.committed as f64 * 1e6 / took.ns.max(1) as f64;
            bar.step(format!("{rate:.0} k txn/s"));
        }
        Ok(())
    }

    /// Whether to leave out the epochs that are left, of which there is at least one.
    fn stops(&mut self) -> bool {
        self.interrupted = self.settings.stop.asked();
        self.interrupted
    }

    /// Whether there is something to check: a run that was interrupted before any epoch of the
    /// stream has changed nothing that a check could judge, or is not even loaded.
    fn has_news(&self) -> bool {
        !self.interrupted || self.counts.epochs > 0
    }

    /// One epoch: generate, run (the only timed part), acknowledge, verify.
    fn epoch(&mut self, epoch: u64) -> Result<(EpochOutcome, Took)> {
        let generating = now_ns();
        self.job.fill(epoch, &mut self.calls)?;
        if self.calls.len() <= self.settings.serial_calls_max {
            self.calls = self.calls.first_serial(self.calls.len());
        }
        let (started, started_cpu) = (now_ns(), cpu_ns());
        self.generate_ns += started - generating;
        let outcome = self.engine.run_epoch(&self.calls, self.job.info(epoch))?;
        let took = Took { ns: now_ns() - started, cpu_ns: cpu_ns() - started_cpu };
        assert_eq!(outcome.epoch.0, epoch, "the engine counts epochs as the run does");
        if let Some(ack) = &mut self.ack {
            let hash = outcome.state_hash.expect("it was asked for before the run began");
            ack.write(epoch, &hash.to_string())?;
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.compare(&self.calls, &outcome)?;
        }
        Ok((outcome, took))
    }

    /// Hands all answers of an epoch to the observer, and keeps what was deferred.
    fn tell_observer(&mut self, outcome: &EpochOutcome) {
        let before = std::mem::take(&mut self.deferred);
        for position in 0..outcome.len() {
            let (procedure, args) = match before.get(position) {
                Some((procedure, args)) => (*procedure, args.as_slice()),
                None => self.calls.get(position - before.len()),
            };
            let answer = answer(&outcome.answer(position));
            if answer == workloads::Answer::Deferred {
                self.deferred.push((procedure, args.to_vec()));
            }
            if let Some(observer) = &mut self.observer {
                observer.observe(procedure, args, answer);
            }
        }
    }

    fn view(&self) -> EngineView<'_> {
        EngineView::new(&self.engine, &self.job.tables())
    }

    /// The oracle's last word, then the workload's own check; returns what the latter complains
    /// about.
    fn check(&self) -> Result<Vec<String>> {
        let view = self.view();
        if let Some(verifier) = &self.verifier {
            verifier.compare_state(&view, self.engine.state_hash().0)?;
        }
        Ok(self.observer.as_ref().map_or_else(Vec::new, |observer| observer.check(&view)))
    }

    fn report(&self, problems: Vec<String>) -> Report {
        let mut report = Report::new(self.job, self.settings, &self.counts);
        report.head.describe_device(&self.device.description());
        report.describe_state(&self.engine, &self.recovery);
        let mut at_end = Versions::default();
        at_end.add_since(&self.engine, EpochNumber::ZERO);
        report.values = at_end.named();
        report.written = self.written.as_ref().map(Versions::named);
        report.generate_seconds = seconds(self.generate_ns);
        report.interrupted = self.interrupted;
        report.verified = self.has_news() && self.verifier.is_some();
        report.checked = self.has_news() && self.observer.is_some();
        report.problems = problems;
        report
    }
}

/// A number that differs from store to store; nothing is computed from it.
fn instance() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
