//! What a run adds up, epoch by epoch. Knows nothing of how it is shown.

use bench::clock::seconds;
use bench::{BenchError, Result};
use engine::{Answer, EpochOutcome, EpochStats};
use hdrhistogram::Histogram;

/// Longer latencies count as this: a day.
const LATENCY_NS_MAX: u64 = 86_400 * 1_000_000_000;

/// How long an epoch took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    /// By the clock.
    pub(crate) ns: u64,
    /// Time that all threads ran.
    pub(crate) cpu_ns: u64,
}

/// Sums over the epochs of the stream; loading is not in them.
pub(crate) struct RunCounts {
    /// Epochs run.
    pub(crate) epochs: u64,
    /// What the engine counted.
    pub(crate) stats: EpochStats,
    /// Calls in the longest chain of each epoch, added up; only beside the oracle.
    pub(crate) chain_calls: u64,
    /// Time in `run_epoch`.
    pub(crate) run_ns: u64,
    /// Time that all threads ran in it.
    pub(crate) cpu_ns: u64,
    /// Latency of each answered call: from the start of the epoch that it was first in, to the end
    /// of the one that answered it, without the time between epochs.
    pub(crate) latency: Histogram<u64>,
    /// Words of the first failed call.
    pub(crate) first_failure: Option<String>,
    /// Time that the calls that are deferred have waited already, in order.
    waited_ns: Vec<u64>,
}

impl RunCounts {
    pub(crate) fn new() -> Result<Self> {
        let latency = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
            .map_err(|e| BenchError::Store(format!("cannot make a histogram: {e}")))?;
        Ok(Self {
            epochs: 0,
            stats: EpochStats::default(),
            chain_calls: 0,
            run_ns: 0,
            cpu_ns: 0,
            latency,
            first_failure: None,
            waited_ns: Vec::new(),
        })
    }

    /// Adds an epoch that took so long.
    pub(crate) fn add(&mut self, outcome: &EpochOutcome, took: Took) {
        let ns = took.ns;
        self.epochs += 1;
        self.run_ns += ns;
        self.cpu_ns += took.cpu_ns;
        self.stats.add(&outcome.stats);
        let mut waited = Vec::new();
        let mut fresh = 0;
        for position in 0..outcome.len() {
            let before = match position < outcome.deferred_in {
                true => self.waited_ns.get(position).copied().unwrap_or(0),
                false => 0,
            };
            match outcome.answer(position) {
                Answer::Deferred => waited.push(before + ns),
                answer => {
                    if let Answer::Failed(why) = answer {
                        self.first_failure.get_or_insert_with(|| why.to_string());
                    }
                    match before {
                        0 => fresh += 1,
                        before => self.latency.saturating_record(before + ns),
                    }
                }
            }
        }
        self.latency.saturating_record_n(ns.max(1), fresh);
        self.waited_ns = waited;
    }

    /// A percentile of the latency in nanoseconds, 0 if nothing was answered.
    pub(crate) fn latency_ns(&self, percentile: f64) -> u64 {
        if self.latency.is_empty() { 0 } else { self.latency.value_at_percentile(percentile) }
    }

    /// Committed transactions per second of epochs.
    pub(crate) fn throughput(&self) -> f64 {
        let seconds = seconds(self.run_ns);
        if seconds > 0.0 { self.stats.work.committed as f64 / seconds } else { 0.0 }
    }
}
