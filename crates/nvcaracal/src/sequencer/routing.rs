//! Routing of calls to the serial part of their epochs, by procedure. Calls run there if
//!
//! - their procedure does not predict its writes;
//! - it is unknown whether it does. A call that allocates from a sequence would otherwise lose its
//!   number when it is deferred, and leave a hole (O-76);
//! - calls of the procedure are often deferred;
//! - their answers may not read back and are made of pieces. Only in the serial part such a call
//!   fails without others.

use engine::{Calls, EpochOutcome};
use storage::EpochNumber;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A procedure becomes serial when at least one in `SHARE` of its calls in an epoch was deferred.
const SHARE: usize = 8;
/// Epochs for which a procedure is serial the first time. Each further time doubles them.
const EPOCHS_FIRST: u64 = 64;
/// Limit of that doubling.
const EPOCHS_MOST: u64 = 1 << 20;

/// What the sequencer has learned of a procedure.
#[derive(Debug, Default)]
struct Known {
    /// Whether its calls are always serial, because the parallel part would notice too late that
    /// their answers fail.
    is_alone: bool,
    /// Whether it predicts its writes.
    predicts: AtomicBool,
    /// The epoch up to which its calls are serial.
    until: AtomicU64,
    /// Epochs for which they will be serial the next time; 0 before the first.
    epochs: AtomicU64,
}

/// Chooses the part of an epoch in which calls run. Only the sequencer writes to it.
#[derive(Debug)]
pub(crate) struct Routing {
    /// By the numbers of the procedures.
    known: Vec<Known>,
    /// The last epoch.
    epoch: AtomicU64,
    /// Whether it learns nothing from outcomes.
    is_fixed: bool,
}

impl Routing {
    /// Creates the routing of `procedures`, which say by number whether their calls are always
    /// serial.
    pub(crate) fn new(procedures: impl Iterator<Item = bool>) -> Self {
        let known = procedures.map(|is_alone| Known { is_alone, ..Known::default() }).collect();
        Self { known, epoch: AtomicU64::new(0), is_fixed: false }
    }

    /// Creates a routing that never changes, of procedures that all predict their writes.
    /// `procedures` are as for [`Routing::new`].
    pub(crate) fn fixed(procedures: impl Iterator<Item = bool>) -> Self {
        let routing = Self { is_fixed: true, ..Self::new(procedures) };
        routing.known.iter().for_each(|known| known.predicts.store(true, Ordering::Relaxed));
        routing
    }

    /// Returns whether calls of a procedure run in the serial part.
    pub(crate) fn is_serial(&self, procedure: u16) -> bool {
        let known = &self.known[usize::from(procedure)];
        let until = known.until.load(Ordering::Relaxed);
        known.is_alone
            || !known.predicts.load(Ordering::Relaxed)
            || until > self.epoch.load(Ordering::Relaxed)
    }

    /// Returns whether calls of a procedure may run in the parallel part at all.
    pub(crate) fn may_be_parallel(&self, procedure: u16) -> bool {
        !self.known[usize::from(procedure)].is_alone
    }

    /// Learns from the outcome of an epoch of `calls`.
    pub(crate) fn learn(&self, calls: &Calls, outcome: &EpochOutcome) {
        let known = |procedure: &u16| usize::from(*procedure) < self.known.len();
        assert!(outcome.predicted.iter().all(known), "an unknown procedure predicted");
        self.learn_predictions(calls, |procedure| outcome.predicted.contains(&procedure));
        let deferred = outcome.deferred.iter().map(|&at| at as usize - outcome.deferred_in);
        self.learn_deferred(outcome.epoch, calls, deferred);
    }

    /// Learns which procedures predict their writes, from calls that ran in the serial part because
    /// that was unknown.
    fn learn_predictions(&self, calls: &Calls, predicts: impl Fn(u16) -> bool) {
        if self.known.iter().all(|known| known.predicts.load(Ordering::Relaxed)) {
            return;
        }
        for procedure in (0..calls.len()).map(|at| calls.get(at).0) {
            let known = &self.known[usize::from(procedure)].predicts;
            if !known.load(Ordering::Relaxed) {
                known.store(predicts(procedure), Ordering::Relaxed);
            }
        }
    }

    fn learn_deferred(
        &self,
        epoch: EpochNumber,
        calls: &Calls,
        deferred: impl Iterator<Item = usize>,
    ) {
        assert!(epoch.0 >= self.epoch.load(Ordering::Relaxed), "epoch {epoch} came too late");
        self.epoch.store(epoch.0, Ordering::Relaxed);
        if self.is_fixed {
            return;
        }
        let mut counts = vec![(0, 0); self.known.len()];
        for at in deferred {
            counts[usize::from(calls.get(at).0)].0 += 1;
        }
        if counts.iter().all(|&(deferred, _)| deferred == 0) {
            return;
        }
        (0..calls.len()).for_each(|at| counts[usize::from(calls.get(at).0)].1 += 1);
        for (known, (deferred, all)) in self.known.iter().zip(counts) {
            assert!(deferred <= all, "{deferred} of {all} calls were deferred");
            if deferred > 0 && deferred * SHARE >= all {
                let epochs = known.epochs.load(Ordering::Relaxed).max(EPOCHS_FIRST);
                known.until.store(epoch.0 + epochs, Ordering::Relaxed);
                assert!(epochs <= EPOCHS_MOST, "serial for {epochs} epochs");
                known.epochs.store((2 * epochs).min(EPOCHS_MOST), Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(procedures: &[u16]) -> Calls {
        let mut calls = Calls::new();
        procedures.iter().for_each(|&procedure| calls.push(procedure, &[]).unwrap());
        calls
    }

    /// All procedures are known to predict what they write.
    fn predicting(procedures: u16) -> Routing {
        let routing = Routing::new((0..procedures).map(|_| false));
        let all: Vec<u16> = (0..procedures).collect();
        routing.learn_predictions(&calls(&all), |_| true);
        routing
    }

    #[test]
    fn o_76_a_procedure_is_serial_until_it_has_predicted_something() {
        let routing = Routing::new([false, false].into_iter());
        assert!(routing.is_serial(0) && routing.is_serial(1));
        routing.learn_predictions(&calls(&[0, 1, 0]), |procedure| procedure == 0);
        assert!(!routing.is_serial(0) && routing.is_serial(1));
    }

    #[test]
    fn a_procedure_that_is_often_deferred_goes_to_the_serial_part_for_ever_longer() {
        let routing = predicting(3);
        let batch = calls(&[0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        routing.learn_deferred(EpochNumber(10), &batch, [1].into_iter());
        assert!(!routing.is_serial(1), "one of nine");
        routing.learn_deferred(EpochNumber(11), &batch, [1, 2].into_iter());
        assert!(routing.is_serial(1) && !routing.is_serial(0));
        routing.learn_deferred(EpochNumber(11 + EPOCHS_FIRST - 1), &calls(&[0]), [].into_iter());
        assert!(routing.is_serial(1));
        routing.learn_deferred(EpochNumber(11 + EPOCHS_FIRST), &batch, [3, 4].into_iter());
        assert!(routing.is_serial(1), "found out again");
        routing.learn_deferred(EpochNumber(11 + 2 * EPOCHS_FIRST), &calls(&[0]), [].into_iter());
        assert!(routing.is_serial(1), "twice as long");
        routing.learn_deferred(EpochNumber(11 + 3 * EPOCHS_FIRST), &calls(&[0]), [].into_iter());
        assert!(!routing.is_serial(1));
    }

    #[test]
    fn fixed_routing_learns_nothing() {
        let routing = Routing::fixed([false, true].into_iter());
        assert!(!routing.is_serial(0) && routing.is_serial(1), "answers of the other may fail");
        routing.learn_deferred(EpochNumber(1), &calls(&[0]), [0].into_iter());
        assert!(!routing.is_serial(0));
    }
}
