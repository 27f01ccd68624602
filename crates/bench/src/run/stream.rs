//! The stream of a workload through the library: one thread submits the calls of an epoch together,
//! takes their answers, and goes on with the next epoch. One straight function ([`run_stream`])
//! names the steps.
//!
//! The library runs what is submitted together as one epoch, and what that defers as the next one,
//! so the state after each epoch depends on the parameters alone: runs can be compared with an
//! oracle, with one another, and with what they were before they were killed. A run that is asked
//! to stop (O-62) does so between two epochs.

use std::path::PathBuf;

use hdrhistogram::Histogram;
use nvcaracal::{Database, Stats, Tuning};
use pmem::DeviceSpec;
use serde::Serialize;
use workloads::{Answer, Observer};

use super::ack::AckLog;
use super::answers::Answers;
use super::calls::Calls;
use super::clients::SERIAL_CALLS_MAX;
use super::open::{Settings, open, settle};
use super::position;
use super::verify::Verifier;
use crate::clock::{now_ns, seconds};
use crate::library::{self, Callable, LibraryView};
use crate::report::{Latency, ratio};
use crate::{BenchError, Job, Parameters, Place, Result};

/// Longer latencies count as this: a day.
const LATENCY_NS_MAX: u64 = 86_400 * 1_000_000_000;
/// Arguments of an epoch never fill the queue.
const QUEUE_BYTES_MAX: usize = 1 << 40;

/// What of the stream to run, and how closely to look at it.
#[derive(Debug, Clone)]
pub struct StreamSettings {
    /// Epochs of the stream, in all: a resumed run does what is left of them.
    pub epochs: u64,
    /// Whether to compare everything with the serial oracle.
    pub verify: bool,
    /// Where to write one line for each epoch whose answers were given.
    pub ack_log: Option<PathBuf>,
    /// Whether to go on with the acknowledgements of earlier runs; otherwise they are overwritten.
    pub resume: bool,
}

/// What came of it. Names and units are a promise to scripts.
#[derive(Debug, Clone, Serialize)]
pub struct StreamReport {
    /// `ycsb`, `smallbank`, `tpcc`.
    pub workload: &'static str,
    /// The device, as named on the command line.
    pub device: String,
    /// Whether what was answered survives a power cut.
    pub durable: bool,
    /// Worker threads.
    pub workers: usize,
    /// Epochs of the stream that this run executed.
    pub epochs: u64,
    /// Calls of an epoch.
    pub epoch_size: u64,
    /// Name of data and stream.
    pub seed: u64,
    /// Preset.
    pub contention: String,
    /// Everything that data and stream depend on.
    pub parameters: Parameters,
    /// Whether it was asked to stop before it had executed all that were left.
    pub interrupted: bool,
    /// Epochs between checkpoints, at least.
    pub checkpoint_every: u64,
    /// Bytes of log between checkpoints, at least; 0 if epochs alone decide.
    pub checkpoint_log_bytes: u64,
    /// Most bytes of cached versions.
    pub cache_bytes: u64,
    /// K.
    pub cache_epochs: u64,
    /// Versions of a row in an epoch from which its pieces are split off; 0: never.
    pub split_threshold: u32,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that aborted on purpose.
    pub aborted: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Words of the first failed one.
    pub first_failure: Option<String>,
    /// How often a call was put off to the next epoch.
    pub deferred: u64,
    /// From the submission of epochs to their last answers.
    pub seconds: f64,
    /// Committed transactions per second of that time.
    pub throughput_txn_per_s: f64,
    /// From the submission of a call to when all answers of its epoch were read.
    pub latency_ns: Latency,
    /// Live rows at the end.
    pub rows: u64,
    /// The store's epoch at the end; loading epochs count, and those of deferred calls.
    pub epoch: u64,
    /// How many epochs load data.
    pub loading_epochs: u64,
    /// The last epoch of the run that is done; loading counts, deferred calls do not.
    #[serde(skip)]
    pub done: u64,
    /// The epoch that was recovered; 0 for a new store.
    pub resumed_at_epoch: u64,
    /// What opening the store said of the state hash: `verified`, `computed` or `unknown`.
    pub recovered_hash: &'static str,
    /// The store's state digest at the end, 32 hexadecimal digits.
    pub state_digest: String,
    /// Whether every answer and the whole state were compared with the serial oracle, and were
    /// equal.
    pub verified: bool,
    /// Whether the workload's consistency check ran.
    pub checked: bool,
    /// What it complained about.
    pub problems: Vec<String>,
    /// Time to generate the calls, outside the timed region.
    pub generate_seconds: f64,
    /// Time to open and load.
    pub loading_seconds: f64,
    /// Time to close: the last checkpoint, made durable.
    pub close_seconds: f64,
    /// Time of everything together.
    pub wall_seconds: f64,
}

/// Runs what is left of a job's stream.
///
/// # Errors
/// Whatever stops the run: the library, a difference from the oracle, a call for which there is no
/// space. What only the consistency check found is in the report.
pub fn run_stream(
    job: &Job,
    place: &Place,
    settings: &Settings,
    stream: &StreamSettings,
) -> Result<StreamReport> {
    let ack = open_ack_log(place, stream)?;
    let started = now_ns();
    let (database, callables) = open(job, place, settings, |options| {
        // What is submitted together is one epoch, however large, and what runs where in it does
        // not depend on what was run before.
        let tuning = Tuning {
            serial_calls_max: SERIAL_CALLS_MAX,
            queue_calls_max: storage::format::EPOCH_CALLS_MAX as usize,
            queue_bytes_max: QUEUE_BYTES_MAX,
            ..Tuning::default()
        };
        options.tuning(tuning).learns(false)
    })?;
    let mut run = Run::new(
        job,
        settings,
        stream,
        Library { database: &database, callables: &callables },
        ack,
    )?;
    run.load()?;
    let loaded = now_ns();
    if !run.interrupted {
        run.prepare()?;
        run.epochs()?;
    }
    if run.interrupted {
        let last = job.epoch_name(run.done);
        settings.progress.note(&format!("stopping after {last}: closing the store"));
    }
    let problems = if run.has_news() { run.check()? } else { Vec::new() };
    let mut report = run.report(place, problems);
    report.loading_seconds = seconds(loaded - started);
    let closing = now_ns();
    database.close()?;
    report.close_seconds = seconds(now_ns() - closing);
    report.wall_seconds = seconds(now_ns() - started);
    Ok(report)
}

fn open_ack_log(place: &Place, stream: &StreamSettings) -> Result<Option<AckLog>> {
    let mut ack = match &stream.ack_log {
        Some(path) if stream.resume => Some(AckLog::resume(path)?),
        Some(path) => Some(AckLog::create(path)?),
        None => None,
    };
    if let (Some(ack), None) = (&mut ack, &place.stored) {
        // A store that is not there has answered no call.
        ack.check_recovered(0, "")?;
    }
    Ok(ack)
}

/// The open database, and how its procedures are called.
struct Library<'a> {
    database: &'a Database,
    callables: &'a [Callable],
}

/// A run in progress.
struct Run<'a> {
    job: &'a Job,
    settings: &'a Settings,
    stream: &'a StreamSettings,
    database: &'a Database,
    callables: &'a [Callable],
    ack: Option<AckLog>,
    verifier: Option<Verifier<'a>>,
    observer: Option<Box<dyn Observer>>,
    calls: Calls,
    answers: Answers,
    /// Epochs of the run that are done, loading included, in all runs.
    done: u64,
    counts: RunCounts,
    /// Whether epochs were left out because a stop was asked for.
    interrupted: bool,
}

/// What the epochs of the stream add up to; loading is not in it.
struct RunCounts {
    epochs: u64,
    committed: u64,
    aborted: u64,
    failed: u64,
    first_failure: Option<String>,
    deferred: u64,
    run_ns: u64,
    generate_ns: u64,
    latency: Histogram<u64>,
}

impl RunCounts {
    fn new() -> Result<Self> {
        let latency = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
            .map_err(|e| BenchError::Store(format!("cannot make a histogram: {e}")))?;
        Ok(Self {
            epochs: 0,
            committed: 0,
            aborted: 0,
            failed: 0,
            first_failure: None,
            deferred: 0,
            run_ns: 0,
            generate_ns: 0,
            latency,
        })
    }

    fn count(&mut self, answer: Answer<'_>) {
        match answer {
            Answer::Committed(_) => self.committed += 1,
            Answer::Aborted(_) => self.aborted += 1,
            Answer::Failed | Answer::Deferred => self.failed += 1,
        }
    }
}

/// What an epoch took.
struct Epoch {
    ns: u64,
    deferred: u64,
    /// Words of the first call that failed.
    failure: Option<String>,
}

impl<'a> Run<'a> {
    /// Holds what was recovered against what was acknowledged.
    fn new(
        job: &'a Job,
        settings: &'a Settings,
        stream: &'a StreamSettings,
        library: Library<'a>,
        mut ack: Option<AckLog>,
    ) -> Result<Self> {
        let Library { database, callables } = library;
        settle(database)?;
        let done = position::last_done(database)?;
        let stats = database.stats();
        if let Some(ack) = &mut ack {
            ack.check_recovered(stats.epoch, &digest(&stats))?;
        }
        let mut verifier = stream.verify.then(|| Verifier::new(job));
        if let Some(verifier) = &mut verifier {
            verifier.catch_up(done)?;
            let view = LibraryView::new(&job.client_tables(), database)?;
            verifier.compare_state(&view, stats.rows)?;
        }
        Ok(Self {
            job,
            settings,
            stream,
            database,
            callables,
            ack,
            verifier,
            observer: None,
            calls: Calls::default(),
            answers: Answers::default(),
            done,
            counts: RunCounts::new()?,
            interrupted: false,
        })
    }

    /// Runs the loading epochs that are left, unless asked to stop.
    fn load(&mut self) -> Result<()> {
        let loading = self.job.loading_epochs();
        let left = loading.saturating_sub(self.done);
        let bar = self.settings.progress.bar("loading", left, "epochs");
        for epoch in self.done + 1..=loading {
            if self.stops() {
                break;
            }
            let ran = self.epoch(epoch)?;
            let stuck = self.answers.iter().position(|a| !matches!(a, Answer::Committed(_)));
            if let Some(position) = stuck {
                let why = ran.failure.unwrap_or_else(|| "an abort".to_string());
                let name = self.job.epoch_name(epoch);
                let what = format!("{name}: loading call {position} came to {why}");
                return Err(BenchError::Store(what));
            }
            bar.step("");
        }
        Ok(())
    }

    /// Makes room for the rows that the epochs will insert, and starts watching the answers. Where
    /// there is not enough room, the epochs will tell.
    fn prepare(&mut self) -> Result<()> {
        let tables = self.job.client_tables();
        let done = self.done - self.job.loading_epochs();
        let rows = self.job.inserts(self.stream.epochs.saturating_sub(done));
        match library::reserve(&tables, self.database, rows) {
            Err(BenchError::Library(error)) if error.is_limit() => {}
            result => result?,
        }
        if self.settings.check {
            let view = LibraryView::new(&tables, self.database)?;
            self.observer = Some(self.job.observer(&view));
        }
        Ok(())
    }

    /// Runs the epochs of the stream that are left, unless asked to stop.
    fn epochs(&mut self) -> Result<()> {
        let last = self.job.loading_epochs() + self.stream.epochs;
        let left = last.saturating_sub(self.done);
        let bar = self.settings.progress.bar("running", left, "epochs");
        for epoch in self.done + 1..=last {
            if self.stops() {
                break;
            }
            let before = self.counts.committed;
            let ran = self.epoch(epoch)?;
            self.add(&ran);
            let rate = (self.counts.committed - before) as f64 * 1e6 / ran.ns.max(1) as f64;
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
    fn epoch(&mut self, epoch: u64) -> Result<Epoch> {
        let generating = now_ns();
        self.calls.fill(self.job, epoch)?;
        let before = self.database.stats();
        let started = now_ns();
        self.counts.generate_ns += started - generating;
        let failure = self.submit(epoch)?;
        let ns = now_ns() - started;
        self.done = epoch;
        let after = self.database.stats();
        if let Some(ack) = &mut self.ack {
            ack.write(after.epoch, &digest(&after))?;
        }
        let deferred = after.deferred - before.deferred;
        if let Some(verifier) = &mut self.verifier {
            let ran = after.epoch - before.epoch;
            if ran > 1 + u64::from(deferred > 0) {
                let name = self.job.epoch_name(epoch);
                return Err(BenchError::Store(format!(
                    "{name} had no room and ran as {ran} epochs: --verify knows no order for that"
                )));
            }
            verifier.compare(&self.calls, &self.answers)?;
        }
        Ok(Epoch { ns, deferred, failure })
    }

    /// Submits the calls of an epoch and takes their answers; the words of the first failed one.
    ///
    /// # Errors
    /// If the database stopped, or has no room for a call.
    fn submit(&mut self, epoch: u64) -> Result<Option<String>> {
        let mut batch = self.database.batch();
        let mut added = Vec::with_capacity(self.calls.len());
        position::begin(&mut batch, epoch)?;
        for (procedure, arguments) in self.calls.iter() {
            added.push((self.callables[usize::from(procedure)].add)(&mut batch, arguments)?);
        }
        position::end(&mut batch, epoch)?;
        let submitted = batch.submit()?;
        self.answers.clear();
        let mut failure = None;
        for added in added {
            let answer = submitted.ticket(added).wait();
            self.answers.push(&answer);
            match answer {
                Err(error) if error.is_stopped() || error.is_limit() => return Err(error.into()),
                Err(error) if !error.is_user_abort() => {
                    failure.get_or_insert_with(|| error.to_string());
                }
                _ => {}
            }
        }
        // Its position, too.
        submitted.wait();
        Ok(failure)
    }

    fn add(&mut self, ran: &Epoch) {
        let counts = &mut self.counts;
        counts.epochs += 1;
        counts.run_ns += ran.ns;
        counts.deferred += ran.deferred;
        if counts.first_failure.is_none() {
            counts.first_failure.clone_from(&ran.failure);
        }
        counts.latency.saturating_record_n(ran.ns.max(1), self.calls.len() as u64);
        self.answers.iter().for_each(|answer| counts.count(answer));
        if let Some(observer) = &mut self.observer {
            for ((procedure, arguments), answer) in self.calls.iter().zip(self.answers.iter()) {
                observer.observe(procedure, arguments, answer);
            }
        }
    }

    /// The oracle's last word, then the workload's own check; returns what the latter complains
    /// about.
    fn check(&self) -> Result<Vec<String>> {
        let view = LibraryView::new(&self.job.client_tables(), self.database)?;
        if let Some(verifier) = &self.verifier {
            verifier.compare_state(&view, self.database.stats().rows)?;
        }
        Ok(self.observer.as_ref().map_or_else(Vec::new, |observer| observer.check(&view)))
    }

    fn report(&self, place: &Place, problems: Vec<String>) -> StreamReport {
        let (counts, stats, engine) = (&self.counts, self.database.stats(), &self.settings.engine);
        let (parameters, found) = (self.job.parameters().clone(), self.database.recovery());
        let at = |percentile| counts.latency.value_at_percentile(percentile);
        let run_seconds = seconds(counts.run_ns);
        StreamReport {
            workload: self.job.name(),
            device: place.spec.to_string(),
            durable: matches!(place.spec, DeviceSpec::File(_) | DeviceSpec::Dax(_)),
            workers: engine.workers,
            epochs: counts.epochs,
            epoch_size: parameters.epoch_size,
            seed: parameters.seed,
            contention: parameters.contention.to_string(),
            parameters,
            interrupted: self.interrupted,
            checkpoint_every: engine.checkpoint_every,
            checkpoint_log_bytes: engine.checkpoint_log_bytes,
            cache_bytes: engine.cache_bytes,
            cache_epochs: engine.lab.cache_epochs,
            split_threshold: engine.split_threshold,
            committed: counts.committed,
            aborted: counts.aborted,
            failed: counts.failed,
            first_failure: counts.first_failure.clone(),
            deferred: counts.deferred,
            seconds: run_seconds,
            throughput_txn_per_s: ratio(counts.committed as f64, run_seconds),
            latency_ns: Latency { p50: at(50.0), p99: at(99.0), p999: at(99.9) },
            rows: stats.rows,
            epoch: stats.epoch,
            loading_epochs: self.job.loading_epochs(),
            done: self.done,
            resumed_at_epoch: found.epoch.0,
            recovered_hash: found.hash.name(),
            state_digest: digest(&stats),
            verified: self.has_news() && self.verifier.is_some(),
            checked: self.has_news() && self.observer.is_some(),
            problems,
            generate_seconds: seconds(counts.generate_ns),
            loading_seconds: 0.0,
            close_seconds: 0.0,
            wall_seconds: 0.0,
        }
    }
}

/// The state digest as every command shows it.
fn digest(stats: &Stats) -> String {
    format!("{:032x}", stats.state_hash)
}
