//! Which procedures' calls go to the serial part of their epochs at once: those that do not
//! predict what they write, and those that are often deferred. The first calls of a procedure go
//! there, too, until it is known whether it predicts anything: else a call that allocates from a
//! sequence would lose its number when it is deferred, and leave a hole (O-76). And those whose
//! answers may not read back and are made of pieces: only there such a call still fails alone.

use engine::{Calls, EpochOutcome};
use storage::EpochNumber;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A procedure goes to the serial part when so many of its calls in an epoch were deferred: one of
/// eight.
const SHARE: usize = 8;
/// For how many epochs, the first time. Each time that it is found out again it is twice as long
/// ...
const EPOCHS_FIRST: u64 = 64;
/// ... up to this.
const EPOCHS_MOST: u64 = 1 << 20;

/// What is known of a procedure.
#[derive(Debug, Default)]
struct Known {
    /// Its calls always go there: their answers may fail, which is known too late elsewhere.
    is_alone: bool,
    /// It predicts what it writes.
    predicts: AtomicBool,
    /// Up to which epoch its calls go to the serial part.
    until: AtomicU64,
    /// For how long it will be the next time, if it was before.
    epochs: AtomicU64,
}

/// What is known of all procedures, by number. Written by the sequencer only.
#[derive(Debug)]
pub(crate) struct Routing {
    known: Vec<Known>,
    /// The last epoch.
    epoch: AtomicU64,
    /// Nothing is learned.
    is_fixed: bool,
}

impl Routing {
    /// Of procedures by number, of which each says whether its calls always go to the serial part.
    pub(crate) fn new(procedures: impl Iterator<Item = bool>) -> Self {
        let known = procedures.map(|is_alone| Known { is_alone, ..Known::default() }).collect();
        Self { known, epoch: AtomicU64::new(0), is_fixed: false }
    }

    /// The same, of procedures that all predict what they write, and of which nothing is learned.
    pub(crate) fn fixed(procedures: impl Iterator<Item = bool>) -> Self {
        let routing = Self { is_fixed: true, ..Self::new(procedures) };
        routing.known.iter().for_each(|known| known.predicts.store(true, Ordering::Relaxed));
        routing
    }

    /// Whether a call goes to the serial part.
    pub(crate) fn is_serial(&self, procedure: u16) -> bool {
        let known = &self.known[usize::from(procedure)];
        let until = known.until.load(Ordering::Relaxed);
        known.is_alone
            || !known.predicts.load(Ordering::Relaxed)
            || until > self.epoch.load(Ordering::Relaxed)
    }

    /// Whether a call may run in the parallel part, whatever is known of its procedure.
    pub(crate) fn may_be_parallel(&self, procedure: u16) -> bool {
        !self.known[usize::from(procedure)].is_alone
    }

    /// An epoch of these calls has run.
    pub(crate) fn learn(&self, calls: &Calls, outcome: &EpochOutcome) {
        let known = |procedure: &u16| usize::from(*procedure) < self.known.len();
        assert!(outcome.predicted.iter().all(known), "an unknown procedure predicted");
        self.learn_predictions(calls, |procedure| outcome.predicted.contains(&procedure));
        let deferred = outcome.deferred.iter().map(|&at| at as usize - outcome.deferred_in);
        self.learn_deferred(outcome.epoch, calls, deferred);
    }

    /// Calls of procedures that are not known to predict anything have run in the serial part, and
    /// said whether they do.
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
