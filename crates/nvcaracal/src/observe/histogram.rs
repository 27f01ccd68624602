//! Durations, counted.

use std::time::Duration;

/// Steps of an eighth of a power of two of microseconds.
const STEPS_BITS: u32 = 3;
const STEPS: usize = 1 << STEPS_BITS;
/// Longer durations, of 2^42 microseconds and more, are in the last one.
const BUCKETS: usize = STEPS * 40;

/// Durations, counted in buckets that grow with them.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    /// Counts a duration so many times.
    pub(crate) fn record(&mut self, duration: Duration, times: u64) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(micros).min(BUCKETS - 1)] += times;
        self.total += times;
    }

    /// The smallest bound that this many of 1,000 durations keep.
    pub(crate) fn at_most(&self, permille: u64) -> Duration {
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
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms), 1));
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms), 2));
        let p50 = histogram.at_most(500).as_micros();
        let p99 = histogram.at_most(990).as_micros();
        assert!((50_000..57_000).contains(&p50), "{p50}");
        assert!((99_000..112_000).contains(&p99), "{p99}");
    }
}
