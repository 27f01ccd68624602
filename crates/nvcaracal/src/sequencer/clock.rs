//! Times and seeds of epochs: the only place that reads the clock for transactions.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use engine::EpochInfo;

/// Time and seeds of epochs.
pub(super) struct Clock {
    /// Nanoseconds since 1970.
    pub(super) now_ns: fn() -> u64,
    /// The last timestamp, which no later one is below: also not where the clock was set back, with
    /// or without a restart in between.
    pub(super) last_ns: u64,
    pub(super) seed: u64,
}

/// A number that differs from run to run.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(SystemTime::now())
}

/// Nanoseconds since 1970, by the clock of the system.
pub(crate) fn wall_clock_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

impl Clock {
    pub(super) fn next(&mut self) -> EpochInfo {
        let before = self.last_ns;
        self.last_ns = self.last_ns.max((self.now_ns)());
        assert!(self.last_ns >= before, "timestamp_ns goes back");
        // Weyl sequence and mixer of splitmix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut seed = self.seed;
        seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        EpochInfo { timestamp_ns: self.last_ns, seed: seed ^ (seed >> 31) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine's clock is set back while a database is open, or between two opens.
    #[test]
    fn timestamps_never_go_back() {
        let mut clock = Clock { now_ns: || 5, last_ns: 7, seed: 1 };
        let mut next = |now_ns| {
            clock.now_ns = now_ns;
            clock.next().timestamp_ns
        };
        assert_eq!([next(|| 5), next(|| 8)], [7, 8]);
        assert_eq!([next(|| 6), next(|| 9)], [8, 9]);
    }
}
