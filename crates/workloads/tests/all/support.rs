//! Runs a workload on the serial oracle, as an engine's driver would.

use std::collections::BTreeMap;

use workloads::oracle::{Oracle, OracleAnswer};
use workloads::{Observer, ProcedureId, Workload};

type Call = (ProcedureId, Vec<u8>);

/// A loaded oracle with an observer that has seen everything it answered.
pub(crate) struct Run {
    pub(crate) oracle: Oracle,
    pub(crate) observer: Box<dyn Observer>,
    /// Every final answer with its call, in serial order.
    pub(crate) answered: Vec<(Call, OracleAnswer)>,
    pub(crate) deferred: u64,
    waiting: Vec<Call>,
    epoch: u64,
}

impl Run {
    pub(crate) fn load<W: Workload>(workload: &W) -> Self {
        let oracle = Oracle::loaded(workload);
        let observer = workload.observer(&oracle);
        let (answered, waiting) = (Vec::new(), Vec::new());
        Self { oracle, observer, answered, deferred: 0, waiting, epoch: 0 }
    }

    pub(crate) fn epochs<W: Workload>(&mut self, workload: &W, epochs: u64, transactions: u64) {
        for _ in 0..epochs {
            let mut calls = std::mem::take(&mut self.waiting);
            let carried = calls.len();
            for position in 0..transactions {
                let mut args = Vec::new();
                let procedure = workload.generate(self.epoch, position, &mut args);
                calls.push((procedure, args));
            }
            self.epoch += 1;
            self.calls(calls, carried);
        }
    }

    fn calls(&mut self, calls: Vec<Call>, carried: usize) {
        let borrowed: Vec<_> = calls.iter().map(|(id, args)| (*id, args.as_slice())).collect();
        let answers = self.oracle.run_epoch(&borrowed, carried);
        for (call, answer) in calls.into_iter().zip(answers) {
            self.observer.observe(call.0, &call.1, answer.as_answer());
            if answer == OracleAnswer::Deferred {
                self.deferred += 1;
                self.waiting.push(call);
            } else {
                self.answered.push((call, answer));
            }
        }
    }

    pub(crate) fn check(&self) -> Vec<String> {
        self.observer.check(&self.oracle)
    }

    /// How often each procedure (committed, aborted, failed).
    pub(crate) fn counts(&self) -> BTreeMap<ProcedureId, [u64; 3]> {
        let mut counts = BTreeMap::<_, [u64; 3]>::new();
        for ((procedure, _), answer) in &self.answered {
            let column = match answer {
                OracleAnswer::Committed(_) => 0,
                OracleAnswer::Aborted(_) => 1,
                _ => 2,
            };
            counts.entry(*procedure).or_default()[column] += 1;
        }
        counts
    }
}

/// Same settings, same calls, in any order of asking.
pub(crate) fn check_generate_is_deterministic<W: Workload>(one: &W, other: &W) {
    let call = |workload: &W, epoch, position| {
        let mut args = Vec::new();
        (workload.generate(epoch, position, &mut args), args)
    };
    let places: Vec<_> = (0..3).flat_map(|e| (0..50).map(move |p| (e, p))).collect();
    let forward: Vec<_> = places.iter().map(|&(e, p)| call(one, e, p)).collect();
    let mut backward: Vec<_> = places.iter().rev().map(|&(e, p)| call(other, e, p)).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    assert_ne!(forward[..50], forward[50..100]);
}
