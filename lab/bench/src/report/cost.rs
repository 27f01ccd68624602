//! Throughput and latency by cost: from the time that processors ran, in which is what an emulated
//! device takes, in place of a clock that also counts when others had them.

use bench::report::ratio;
use serde::Serialize;

/// What a run costs, as if its workers had a core each and nothing else ran there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ByCost {
    /// Transactions in a second.
    pub per_second: f64,
    /// Nanoseconds of the device in a transaction.
    pub device_ns: f64,
    /// Nanoseconds from a call to its durable answer, the mean.
    pub latency_ns: f64,
    /// Those of them in which it waits for others: of its epoch or group, and for that to begin.
    pub waiting_ns: f64,
}

impl ByCost {
    /// Each call is answered when it has run: on one worker, repeats included.
    pub(crate) fn one_by_one(cpu_ns: f64, device_ns: f64, workers: usize) -> Self {
        let per_second = ratio(workers as f64 * 1e9, cpu_ns);
        Self { per_second, device_ns, latency_ns: cpu_ns, waiting_ns: 0.0 }
    }

    /// A thread ends a group after so much time: on average half of that is left.
    pub(crate) fn in_groups(self, group_ns: f64) -> Self {
        let waiting_ns = group_ns / 2.0;
        Self { latency_ns: self.latency_ns + waiting_ns, waiting_ns, ..self }
    }

    /// Calls come at any time while the epoch before runs, so that they wait for half of it, on
    /// average, and are answered at the end of their own.
    pub(crate) fn in_epochs(self, calls: u64) -> Self {
        let epoch_ns = ratio(calls as f64 * 1e9, self.per_second);
        let waiting_ns = 1.5 * epoch_ns - self.latency_ns;
        Self { latency_ns: 1.5 * epoch_ns, waiting_ns: waiting_ns.max(0.0), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_others_waits_for_half_a_group_or_for_one_and_a_half_epochs() {
        let one = ByCost::one_by_one(2_000.0, 500.0, 4);
        assert_eq!((one.per_second, one.latency_ns, one.waiting_ns), (2e6, 2_000.0, 0.0));
        let group = one.in_groups(40e6);
        assert_eq!((group.per_second, group.latency_ns), (2e6, 20_002_000.0));
        // 100 calls take four workers 50 us.
        let epoch = one.in_epochs(100);
        assert_eq!((epoch.latency_ns, epoch.waiting_ns), (75_000.0, 73_000.0));
        assert_eq!(one.in_epochs(1).waiting_ns, 0.0);
    }
}
