//! What a database did so far.

use std::time::Duration;

use engine::{Answer, EpochStats};

use crate::driver::Status;

/// Counts since the database was opened, and where it is now. See
/// [`Database::stats`](crate::Database::stats).
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// Number of the last epoch, which goes on over reopening.
    pub epoch: u64,
    /// Epoch from which a recovery would start now.
    pub checkpoint_epoch: u64,
    /// Rows in all tables, sequences included.
    pub rows: u64,
    /// A hash of all rows: databases with the same content have the same.
    pub state_hash: u128,
    /// Epochs that ran.
    pub epochs: u64,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that gave up on purpose.
    pub aborted: u64,
    /// Calls that failed.
    pub failed: u64,
    /// How often a call was deferred, because it would have written what it did not predict or
    /// changed an index, or what its declaration read had changed.
    pub deferred: u64,
    /// Calls that were refused for lack of space.
    pub refused: u64,
    /// Calls that wait in the queue now, and the bytes of their arguments.
    pub queued_calls: usize,
    /// See `queued_calls`.
    pub queued_bytes: usize,
    /// Threads that wait now until the queue has room for what they submit.
    pub blocked_submitters: usize,
    /// From the first submission for an epoch to its answers: half of the epochs took at most this,
    /// within an eighth.
    pub latency_p50: Duration,
    /// 99 of 100 epochs took at most this.
    pub latency_p99: Duration,
    /// What the last epoch did and how long each phase took.
    pub last_epoch: EpochStats,
    /// The same for each procedure, in the order of registration.
    pub procedures: Vec<ProcedureStats>,
}

/// Counts of the calls of one procedure since the database was opened.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcedureStats {
    /// Its name.
    pub name: &'static str,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that gave up on purpose.
    pub aborted: u64,
    /// Calls that failed.
    pub failed: u64,
    /// How often a call was deferred.
    pub deferred: u64,
    /// From the first submission for an epoch to its answers: half of the calls were answered by
    /// epochs that took at most this, within an eighth.
    pub latency_p50: Duration,
    /// 99 of 100 calls.
    pub latency_p99: Duration,
    /// All but one in a thousand.
    pub latency_p999: Duration,
}

/// Counts while the sequencer runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    stats: Stats,
    latencies: Histogram,
    /// Of each procedure, by its number.
    procedures: Vec<Histogram>,
    /// The numbers, in the order of registration.
    registered: Vec<u16>,
}

impl Recorder {
    /// For procedures with these names and numbers.
    pub(crate) fn new(registered: &[(&'static str, u16)]) -> Self {
        let last = registered.iter().map(|(_, number)| usize::from(*number) + 1).max();
        let mut procedures = vec![ProcedureStats::default(); last.unwrap_or(0)];
        for (name, number) in registered {
            procedures[usize::from(*number)].name = name;
        }
        Self {
            latencies: Histogram::default(),
            procedures: procedures.iter().map(|_| Histogram::default()).collect(),
            registered: registered.iter().map(|(_, number)| *number).collect(),
            stats: Stats { procedures, ..Stats::default() },
        }
    }

    /// Counts what calls of an epoch came to, each of which is of a procedure.
    pub(crate) fn answers<'a>(
        &mut self,
        answers: impl Iterator<Item = (u16, Answer<'a>)>,
        latency: Option<Duration>,
    ) {
        let latency = latency.map(bucket_of);
        for (procedure, answer) in answers {
            let stats = &mut self.stats.procedures[usize::from(procedure)];
            match answer {
                Answer::Committed(_) => stats.committed += 1,
                Answer::Aborted(_) => stats.aborted += 1,
                Answer::Failed(_) => stats.failed += 1,
                Answer::Deferred => {
                    stats.deferred += 1;
                    continue;
                }
            }
            if let Some(bucket) = latency {
                self.procedures[usize::from(procedure)].count(bucket);
            }
        }
    }

    pub(crate) fn epoch(&mut self, epoch: EpochStats, status: Status, latency: Option<Duration>) {
        let stats = &mut self.stats;
        stats.epochs += 1;
        stats.committed += epoch.work.committed;
        stats.aborted += epoch.work.aborted;
        stats.failed += epoch.work.failed;
        stats.deferred += epoch.work.deferred;
        stats.last_epoch = epoch;
        if let Some(latency) = latency {
            self.latencies.record(latency);
        }
        self.place(status);
    }

    pub(crate) fn refused(&mut self, calls: usize) {
        self.stats.refused += calls as u64;
    }

    pub(crate) fn place(&mut self, status: Status) {
        self.stats.epoch = status.epoch;
        self.stats.checkpoint_epoch = status.checkpoint_epoch;
        self.stats.rows = status.rows;
        self.stats.state_hash = status.state_hash.0;
    }

    pub(crate) fn snapshot(&self) -> Stats {
        Stats {
            latency_p50: self.latencies.at_most(500),
            latency_p99: self.latencies.at_most(990),
            procedures: self.registered.iter().map(|&number| self.procedure(number)).collect(),
            ..self.stats.clone()
        }
    }

    fn procedure(&self, number: u16) -> ProcedureStats {
        let latencies = &self.procedures[usize::from(number)];
        ProcedureStats {
            latency_p50: latencies.at_most(500),
            latency_p99: latencies.at_most(990),
            latency_p999: latencies.at_most(999),
            ..self.stats.procedures[usize::from(number)].clone()
        }
    }
}

/// Steps of an eighth of a power of two of microseconds.
const STEPS_BITS: u32 = 3;
const STEPS: usize = 1 << STEPS_BITS;
/// Longer durations, of 2^42 microseconds and more, are in the last one.
const BUCKETS: usize = STEPS * 40;

/// Durations, counted in buckets that grow with them.
#[derive(Debug)]
struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    fn record(&mut self, duration: Duration) {
        self.count(bucket_of(duration));
    }

    fn count(&mut self, bucket: usize) {
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// The smallest bound that this many of 1,000 durations keep.
    fn at_most(&self, permille: u64) -> Duration {
        let mut left = (self.total * permille).div_ceil(1000);
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count >= left && left > 0 {
                return Duration::from_micros(greatest(bucket));
            }
            left -= count.min(left);
        }
        Duration::ZERO
    }
}

fn bucket_of(duration: Duration) -> usize {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    bucket(micros).min(BUCKETS - 1)
}

/// The bucket of a number: below 8 its own, then 8 for each power of two.
fn bucket(number: u64) -> usize {
    match number.checked_ilog2() {
        Some(bits) if bits >= STEPS_BITS => {
            let step = (number >> (bits - STEPS_BITS)) as usize - STEPS;
            (bits - STEPS_BITS + 1) as usize * STEPS + step
        }
        _ => number as usize,
    }
}

/// The greatest number of a bucket.
fn greatest(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let shift = (bucket / STEPS - 1) as u32;
    (((STEPS + bucket % STEPS + 1) as u64) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_they_say() {
        for number in (0..10_000).chain([1 << 20, (1 << 30) + 12345]) {
            let bucket = bucket(number);
            assert!(greatest(bucket) >= number, "{number}");
            assert!(bucket == 0 || greatest(bucket - 1) < number, "{number}");
            assert!(greatest(bucket) <= number + number / 8, "{number}");
        }
    }

    #[test]
    fn percentiles_are_bounds() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.at_most(500), Duration::ZERO);
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        let p50 = histogram.at_most(500).as_micros();
        let p99 = histogram.at_most(990).as_micros();
        assert!((50_000..57_000).contains(&p50), "{p50}");
        assert!((99_000..112_000).contains(&p99), "{p99}");
    }
}
