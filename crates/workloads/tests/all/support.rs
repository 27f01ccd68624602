//! Runs a workload on the serial oracle, as an engine's driver would.

use std::collections::BTreeMap;

use workloads::oracle::{Oracle, OracleAnswer};
use workloads::{Observer, ProcedureId, StreamEpoch, TableId, View, Workload};

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
            let deferred = calls.len();
            for position in 0..transactions {
                let mut args = Vec::new();
                let procedure = workload.generate(StreamEpoch(self.epoch), position, &mut args);
                calls.push((procedure, args));
            }
            self.epoch += 1;
            self.calls(calls, deferred);
        }
    }

    fn calls(&mut self, calls: Vec<Call>, deferred: usize) {
        let borrowed: Vec<_> = calls.iter().map(|(id, args)| (*id, args.as_slice())).collect();
        let answers = self.oracle.run_epoch(&borrowed, deferred);
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
        (workload.generate(StreamEpoch(epoch), position, &mut args), args)
    };
    let places: Vec<_> = (0..3).flat_map(|e| (0..50).map(move |p| (e, p))).collect();
    let forward: Vec<_> = places.iter().map(|&(e, p)| call(one, e, p)).collect();
    let mut backward: Vec<_> = places.iter().rev().map(|&(e, p)| call(other, e, p)).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    assert_ne!(forward[..50], forward[50..100]);
}

/// All rows of all tables.
fn state<W: Workload>(workload: &W, oracle: &Oracle) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    for table in 0..workload.tables().len() {
        oracle.for_each(TableId(table as u16), &mut |key, value| {
            rows.push((table, key.to_vec(), value.to_vec()));
        });
    }
    rows
}

/// Runs a workload whole and cut into pieces, and asks how long the chains of calls and pieces of
/// their epochs are. Answers and state are the same.
pub(crate) fn check_pieces<W: Workload>(
    (whole, cut): (&W, &W),
    (epochs, transactions): (u64, u64),
) -> [u64; 2] {
    let (mut plain, mut pieces) = (Run::load(whole), Run::load(cut));
    plain.oracle.watch_chains();
    pieces.oracle.watch_chains();
    plain.epochs(whole, epochs, transactions);
    pieces.epochs(cut, epochs, transactions);
    assert!(plain.answered == pieces.answered, "an answer differs");
    assert!(state(whole, &plain.oracle) == state(cut, &pieces.oracle), "a row differs");
    assert_eq!(pieces.check(), Vec::<String>::new());
    [plain.oracle.longest_chain(), pieces.oracle.longest_chain()]
}

/// O-05: runs a workload without and with commit points. Answers and state are the same; the calls
/// of these procedures that commit pass one, and no others do. The oracle panics if a call that
/// passed one does not commit, or writes a row again.
pub(crate) fn check_commit_points<W: Workload>(
    (without, with): (&W, &W),
    (epochs, transactions): (u64, u64),
    writers: &[ProcedureId],
) {
    let (mut plain, mut early) = (Run::load(without), Run::load(with));
    plain.epochs(without, epochs, transactions);
    early.epochs(with, epochs, transactions);
    assert!(plain.answered == early.answered, "an answer differs");
    assert!(state(without, &plain.oracle) == state(with, &early.oracle), "a row differs");
    assert_eq!(early.check(), Vec::<String>::new());
    let counts = early.counts();
    let committed: u64 = writers.iter().map(|procedure| counts[procedure][0]).sum();
    assert!(writers.iter().all(|procedure| counts[procedure][0] > 0), "{counts:?}");
    assert_eq!((plain.oracle.commit_points(), early.oracle.commit_points()), (0, committed));
    assert_eq!((plain.deferred, early.deferred), (0, 0), "the serial part has no commit points");
}
