//! What a database did so far.

use std::time::Duration;

use engine::EpochStats;

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
}

/// Counts while the sequencer runs.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    stats: Stats,
    latencies: Histogram,
}

impl Recorder {
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
            latency_p50: self.latencies.at_most(50),
            latency_p99: self.latencies.at_most(99),
            ..self.stats.clone()
        }
    }
}

/// Steps of an eighth of a power of two of microseconds.
const STEPS_BITS: u32 = 3;
const STEPS: usize = 1 << STEPS_BITS;

/// Durations, counted in buckets that grow with them.
#[derive(Debug)]
struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; STEPS * 40], total: 0 }
    }
}

impl Histogram {
    fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let last = self.counts.len() - 1;
        self.counts[bucket(micros).min(last)] += 1;
        self.total += 1;
    }

    /// The smallest bound that this many of 100 durations keep.
    fn at_most(&self, percent: u64) -> Duration {
        let mut left = (self.total * percent).div_ceil(100);
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count >= left && left > 0 {
                return Duration::from_micros(greatest(bucket));
            }
            left -= count.min(left);
        }
        Duration::ZERO
    }
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
        assert_eq!(histogram.at_most(50), Duration::ZERO);
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        let p50 = histogram.at_most(50).as_micros();
        let p99 = histogram.at_most(99).as_micros();
        assert!((50_000..57_000).contains(&p50), "{p50}");
        assert!((99_000..112_000).contains(&p99), "{p99}");
    }
}
