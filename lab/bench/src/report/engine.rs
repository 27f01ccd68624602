//! What came of a run, as one JSON object. Names and units are a promise to scripts;
//! [`crate::render`] shows the same to people.

use bench::clock::seconds;
use bench::report::{Latency, Named, add_counters, ratio};
use bench::{BenchError, Job, RecoverSummary};
use engine::{Engine, EpochStats, Phase, PhaseStats, RecoveryReport};
use serde::Serialize;

use super::head::{Head, Ran};
use crate::cost::{Answered, Cost, Took};
use crate::engine_run::RunCounts;
use crate::setup::Settings;
use crate::share::Share;

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What ran where.
    #[serde(flatten)]
    pub head: Head,
    /// Whether it was asked to stop before it had executed all that were left.
    pub interrupted: bool,
    /// Epochs between checkpoints, at least.
    pub checkpoint_every: u64,
    /// Bytes of log between checkpoints, at least; 0 if epochs alone decide.
    pub checkpoint_log_bytes: u64,
    /// How rows with several writers in an epoch got their versions.
    pub append: &'static str,
    /// How pieces of contended rows were packed onto workers.
    pub packing: &'static str,
    /// Most bytes of cached versions.
    pub cache_bytes: u64,
    /// K.
    pub cache_epochs: u64,
    /// Versions of a row in an epoch from which its pieces are split off; 0: never.
    pub split_threshold: u32,
    /// Whether the engine maintained the state hash.
    pub state_hash: bool,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that aborted on purpose.
    pub aborted: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Words of the first failed one.
    pub first_failure: Option<String>,
    /// How often a transaction was put off to the next epoch.
    pub deferred: u64,
    /// Transactions that wait for an epoch after the last one; not answered, not lost.
    pub waiting: u64,
    /// Time in epochs.
    pub seconds: f64,
    /// Committed transactions per second of that time.
    pub throughput_txn_per_s: f64,
    /// Nanoseconds that all threads ran in epochs, of a transaction. Time that an emulated device
    /// takes is in it.
    pub cpu_ns_per_txn: f64,
    /// What a transaction costs: that, with the device's part, as throughput and latency.
    pub cost: Cost,
    /// Latency of answered transactions.
    pub latency_ns: Latency,
    /// Time of each phase over all epochs, in nanoseconds.
    pub phase_ns: Named,
    /// How evenly the workers were loaded, and how far calls depend on one another.
    pub balance: Balance,
    /// What was counted in epochs: totals, then `..._per_txn` (of committed, aborted and failed
    /// ones).
    pub counters: Named,
    /// Bytes of each structure at the end.
    pub memory_bytes: Named,
    /// Lengths of the values at the end, but for sequences: how many are inline in their rows, and
    /// how many have at most so many bytes.
    pub values: Named,
    /// The same of the versions that epochs of the stream wrote to the device, a row as often as it
    /// was written; absent if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Named>,
    /// Live rows at the end.
    pub rows: u64,
    /// The store's epoch at the end; loading epochs count.
    pub epoch: u64,
    /// How many of its epochs loaded data.
    pub loading_epochs: u64,
    /// The epoch that was recovered; 0 for a new store.
    pub resumed_at_epoch: u64,
    /// What opening the store said of the state hash: `verified`, `computed` or `unknown`.
    pub recovered_hash: &'static str,
    /// Digest of all tables at the end, 32 hexadecimal digits.
    pub state_digest: String,
    /// Where that is from: `running_hash`, or, without the state hash, a `scan` of all rows after
    /// the last epoch.
    pub state_digest_from: &'static str,
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
    /// Time of everything together, but for the measurement of the limits.
    pub wall_seconds: f64,
    /// What the recovery after the run took and read; absent if that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoverSummary>,
    /// Which share of the machine's limit it reached; absent if that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Share>,
}

/// How evenly the workers were loaded, and how far calls depend on one another: what decides about
/// more cores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Balance {
    /// Calls that the worker of an epoch ran that ran most of them, by the mean; 1 is even.
    pub calls_most_to_mean: f64,
    /// The same of the versions that they appended.
    pub appends_most_to_mean: f64,
    /// The same of the pieces split off that they ran; 0 if there were none.
    pub pieces_most_to_mean: f64,
    /// Time that the workers waited for the slowest, per cent of all their time.
    pub waiting_percent: f64,
    /// The same in each phase.
    pub waiting_percent_of: Named,
    /// The busiest worker's time in each phase, by the mean; 1 is even.
    pub busiest_to_mean_of: Named,
    /// Calls of an epoch in the longest chain in which each needs what the one before left; absent
    /// without the oracle.
    pub chain_calls_per_epoch: Option<f64>,
    /// How many calls could run at a time, on average, if only the chain held them up; absent
    /// without the oracle.
    pub calls_by_chain: Option<f64>,
}

impl Balance {
    fn new(counts: &RunCounts, workers: usize) -> Self {
        let (stats, workers) = (&counts.stats, workers as f64);
        let work = &stats.work;
        let calls = (work.committed + work.aborted + work.failed + work.deferred) as f64;
        let by_phase = |of: fn(&PhaseStats) -> (f64, f64), factor| {
            let mut named = Named::default();
            for (phase, did) in Phase::ALL.iter().zip(&stats.phases) {
                let (part, whole) = of(did);
                named.number(phase.name(), factor * ratio(part, whole));
            }
            named
        };
        let waited =
            |did: &PhaseStats| (did.waited_ns as f64, (did.waited_ns + did.busy_ns) as f64);
        let busiest = |did: &PhaseStats| (did.busiest_ns as f64, did.busy_ns as f64);
        let (waited_all, all) = stats
            .phases
            .iter()
            .map(waited)
            .fold((0.0, 0.0), |sum, did| (sum.0 + did.0, sum.1 + did.1));
        let chain = (counts.chain_calls > 0).then_some(counts.chain_calls as f64);
        Self {
            calls_most_to_mean: ratio(stats.calls_most as f64 * workers, calls),
            appends_most_to_mean: ratio(stats.appends_most as f64 * workers, work.appends as f64),
            pieces_most_to_mean: ratio(
                stats.pieces_most as f64 * workers,
                work.pieces_split as f64,
            ),
            waiting_percent: 100.0 * ratio(waited_all, all),
            waiting_percent_of: by_phase(waited, 100.0),
            busiest_to_mean_of: by_phase(busiest, workers),
            chain_calls_per_epoch: chain.map(|chain| ratio(chain, counts.epochs as f64)),
            calls_by_chain: chain.map(|chain| ratio(calls, chain)),
        }
    }
}

impl Report {
    pub(crate) fn new(job: &Job, settings: &Settings, counts: &RunCounts) -> Self {
        let work = &counts.stats.work;
        Self {
            head: Head::new(
                job,
                settings.design.name(),
                Ran {
                    workers: settings.engine.workers,
                    epochs: counts.epochs,
                    epoch_size: job.parameters().epoch_size,
                },
            ),
            interrupted: false,
            checkpoint_every: settings.engine.checkpoint_every,
            checkpoint_log_bytes: settings.engine.checkpoint_log_bytes,
            append: settings.engine.lab.append.name(),
            packing: settings.engine.lab.packing.name(),
            cache_bytes: settings.engine.cache_bytes,
            cache_epochs: settings.engine.lab.cache_epochs,
            split_threshold: settings.engine.split_threshold,
            state_hash: settings.engine.lab.state_hash,
            committed: work.committed,
            aborted: work.aborted,
            failed: work.failed,
            first_failure: counts.first_failure.clone(),
            deferred: work.deferred,
            waiting: 0,
            seconds: seconds(counts.run_ns),
            throughput_txn_per_s: counts.throughput(),
            cpu_ns_per_txn: ratio(
                counts.cpu_ns as f64,
                (work.committed + work.aborted + work.failed) as f64,
            ),
            cost: cost(job, settings, counts),
            latency_ns: Latency {
                p50: counts.latency_ns(50.0),
                p99: counts.latency_ns(99.0),
                p999: counts.latency_ns(99.9),
            },
            phase_ns: phases(&counts.stats),
            balance: Balance::new(counts, settings.engine.workers),
            counters: counters(&counts.stats),
            memory_bytes: Named::default(),
            values: Named::default(),
            written: None,
            rows: 0,
            epoch: 0,
            loading_epochs: job.loading_epochs(),
            resumed_at_epoch: 0,
            recovered_hash: "",
            state_digest: String::new(),
            state_digest_from: "",
            verified: false,
            checked: false,
            problems: Vec::new(),
            generate_seconds: 0.0,
            loading_seconds: 0.0,
            close_seconds: 0.0,
            wall_seconds: 0.0,
            recovery: None,
            limits: None,
        }
    }

    /// Takes in what a recovery after the run came to, which must be the state that the run left.
    pub(crate) fn recovered(&mut self, recovery: RecoverSummary) -> bench::Result<()> {
        let (before, after) = (&self.state_digest, &recovery.state_digest);
        if (self.epoch, before) != (recovery.epoch, after) {
            return Err(BenchError::Store(format!(
                "the run left state digest {before} at epoch {}, recovered was {after} at epoch {}",
                self.epoch, recovery.epoch
            )));
        }
        self.recovery = Some(recovery);
        Ok(())
    }

    pub(crate) fn describe_state(&mut self, engine: &Engine, recovery: &RecoveryReport) {
        self.rows = engine.rows();
        self.epoch = engine.epoch().0;
        self.waiting = engine.deferred() as u64;
        self.resumed_at_epoch = recovery.epoch.0;
        self.recovered_hash = recovery.hash.name();
        self.state_digest = engine.state_hash().to_string();
        self.state_digest_from =
            if engine.running_hash().is_some() { "running_hash" } else { "scan" };
        let memory = engine.memory();
        for (name, bytes) in [
            ("index", memory.index),
            ("row_entries", memory.row_entries),
            ("transient_pool", memory.transient_pool),
            ("cache", memory.cache),
            ("persistent_rows", memory.persistent_rows),
            ("persistent_values", memory.persistent_values),
            ("input_log", memory.input_log),
        ] {
            self.memory_bytes.count(name, bytes);
        }
        if let Some(pages) = memory.pages {
            self.memory_bytes.count("pages_resident", pages.resident_bytes);
            self.memory_bytes.count("pages_limit", pages.pages_bytes_now);
            self.counters.count("pages_fetched", pages.fetched);
            self.counters.count("page_faults", pages.faults);
            self.counters.count("pages_guessed", pages.guessed);
            self.counters.count("pages_evicted", pages.evicted);
        }
    }
}

fn cost(job: &Job, settings: &Settings, counts: &RunCounts) -> Cost {
    let epoch_size = job.parameters().epoch_size;
    // One thread runs a serial epoch.
    let is_serial = epoch_size <= settings.serial_calls_max as u64;
    let workers = if is_serial { 1 } else { settings.engine.workers };
    let work = &counts.stats.work;
    let of_one = |ns: u64| ratio(ns as f64, (work.committed + work.aborted + work.failed) as f64);
    let (cpu_ns, added_ns) = (of_one(counts.cpu_ns), of_one(counts.stats.device.added_ns));
    Cost::of(Took { workers, cpu_ns, added_ns }, Answered::InEpochsOf(epoch_size))
}

fn phases(stats: &EpochStats) -> Named {
    let mut phases = Named::default();
    for (phase, ns) in Phase::ALL.iter().zip(stats.phase_ns) {
        phases.count(phase.name(), ns);
    }
    phases
}

fn counters(stats: &EpochStats) -> Named {
    let mut totals = stats.work.fields();
    add_counters(&mut totals, &stats.device);
    let work = &stats.work;
    Named::with_ratios(totals, work.committed + work.aborted + work.failed)
}
