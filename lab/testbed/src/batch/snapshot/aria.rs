//! Aria (Lu, Yu, Cao, Madden, VLDB 2020; NV 7): a batch runs on one state without any write sets,
//! and reservations decide which calls commit.
//!
//! 1. Each call reserves what it wrote and what it read: of each row the smallest call that did so
//!    is known.
//! 2. A call commits unless a smaller one writes a row that it writes; or a smaller one writes a
//!    row that it read *and* a smaller one read a row that it writes. With only the first of these
//!    two it commits before those that write what it read (deterministic reordering). So the order
//!    is: calls that read what smaller ones write, the last one first; then the others.
//! 3. If more than an eighth of the calls must not commit, they run in the fall-back: under locks
//!    in the order of the batch, as in Calvin, on what they accessed in the round. A call that
//!    wants something else there, and all calls otherwise, go to the next round.

use std::sync::atomic::{AtomicU64, Ordering};

use workloads::{TableSpec, View, Workload};

use super::super::engine::{Answers, BatchCounts, BatchEngine, EachAnswer, Order};
use super::super::footprint::{Access, Mode, close};
use super::super::inplace::Cover;
use super::super::locking::{Lists, LockTable, Locks, work};
use super::super::phases::phase;
use super::super::runner::Runner;
use super::super::tables::Tables;
use super::log::{Log, Noted, Ran};
use super::round::Rounds;
use crate::error::Result;
use crate::rival::{Fault, Options};
use crate::run::calls::Calls;

/// The share of a round's calls from which on the fall-back runs those that must not commit.
const FALLBACK_SHARE: usize = 8;

/// See the module's documentation.
pub struct Aria {
    rounds: Rounds,
    /// Of the fall-back's lock manager, and unused ones of the other workers.
    locks: Vec<LockTable>,
}

/// Where in the order of a batch a call comes: rounds one after the other, in each of them these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// It read what smaller calls write.
    Readers,
    Others,
    Fallback,
}

impl BatchEngine for Aria {
    const NAME: &'static str = "aria";
    const ORDER: Order = Order::Told;

    fn create(specs: &[TableSpec], options: &Options) -> Result<Self> {
        let locks = (0..options.workers).map(|_| LockTable::default()).collect();
        Ok(Self { rounds: Rounds::new(specs, options)?, locks })
    }

    fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        self.rounds.begin(workload, calls)?;
        let mut left: Vec<usize> = (0..calls.len()).collect();
        for round in 0.. {
            if left.is_empty() {
                break;
            }
            let number = self.rounds.round + 1;
            self.rounds.run(workload, calls, &left, &|batch, log, ran| {
                let mark = mark(number, ran.call);
                log.noted(ran).iter().for_each(|noted| reserve(batch.tables, noted, mark));
            })?;
            let ran = left.len();
            left = self.commit(workload, calls, round)?;
            self.rounds.base.workers[0].counts.reruns += left.len() as u64;
            if left.len() * FALLBACK_SHARE > ran {
                left = self.fall_back(workload, calls, &left, round)?;
            }
        }
        Ok(())
    }

    fn for_each_answer(&self, each: EachAnswer<'_>) {
        self.rounds.base.for_each_answer(each);
    }

    fn view(&self) -> &dyn View {
        &self.rounds.base.tables
    }

    fn take_counts(&mut self) -> BatchCounts {
        self.rounds.base.take_counts()
    }
}

/// What a call puts into reservations: later rounds have smaller marks, so no word need be cleared.
fn mark(round: u32, call: usize) -> u64 {
    u64::from(u32::MAX - round) << 32 | call as u64
}

/// Place in the serial order of a batch.
fn place(round: u64, group: Group, call: usize, calls: usize) -> u64 {
    let within = if group == Group::Readers { calls - call } else { call };
    (round * 3 + group as u64) << 32 | within as u64
}

/// Reserves what a call accessed.
fn reserve(tables: &Tables, noted: &Noted, mark: u64) {
    let words = tables.row(noted.row);
    let word = match noted.access.mode {
        Mode::Write | Mode::Touch => words.engine(0),
        Mode::Read | Mode::Scan => words.engine(1),
    };
    if word.load(Ordering::Relaxed) > mark {
        word.fetch_min(mark, Ordering::Relaxed);
    }
}

/// Whether a call commits, and in which group.
fn decide(tables: &Tables, log: &Log, ran: &Ran, round: u32, reads_count: bool) -> Option<Group> {
    let mark = mark(round, ran.call);
    let is_smaller = |word: &AtomicU64| word.load(Ordering::Relaxed) < mark;
    let (mut reads_old, mut is_read_before) = (false, false);
    for Noted { access, row } in log.noted(ran) {
        let row = tables.row(*row);
        match access.mode {
            Mode::Write if is_smaller(row.engine(0)) => return None,
            Mode::Write | Mode::Touch => is_read_before |= is_smaller(row.engine(1)),
            Mode::Read | Mode::Scan => reads_old |= reads_count && is_smaller(row.engine(0)),
        }
    }
    match (reads_old, is_read_before) {
        (true, true) => None,
        (true, false) => Some(Group::Readers),
        (false, _) => Some(Group::Others),
    }
}

impl Aria {
    /// Commits what may commit; the others, in the order of the batch.
    fn commit<W: Workload>(
        &mut self,
        workload: &W,
        calls: &Calls,
        round: u64,
    ) -> Result<Vec<usize>> {
        let Rounds { base, logs, round: number, .. } = &mut self.rounds;
        let (batch, workers) = base.split(workload, calls);
        let reads_count = !batch.options.has(Fault::NoReadEdges);
        let mut items: Vec<_> = workers.iter_mut().zip(logs).collect();
        let left = phase(batch.threads, &mut items, |_, (worker, log)| {
            let mut left = Vec::new();
            for ran in &log.ran {
                match decide(batch.tables, log, ran, *number, reads_count) {
                    None => left.push(ran.call),
                    Some(group) => {
                        log.store(batch.tables, ran);
                        let serial = place(round, group, ran.call, calls.len());
                        answer(&mut worker.answers, log, ran, serial);
                    }
                }
            }
            Ok(left)
        })?;
        let mut left = left.concat();
        left.sort_unstable();
        Ok(left)
    }

    /// Runs calls under locks in the order of the batch, on what they accessed in the round; those
    /// that wanted something else.
    fn fall_back<W: Workload>(
        &mut self,
        workload: &W,
        calls: &Calls,
        left: &[usize],
        round: u64,
    ) -> Result<Vec<usize>> {
        let Self { rounds, locks } = self;
        let footprints = footprints(&rounds.logs, left);
        let (batch, workers) = rounds.base.split(workload, calls);
        let footprint = |i: usize| footprints[i].as_slice();
        let lists = Lists::new(left.len(), workers.len(), 1);
        let locks_of = Locks::new(&batch, left.len(), &footprint, lists);
        let mut items: Vec<_> = workers.iter_mut().zip(locks).collect();
        let changed = phase(batch.threads, &mut items, |number, (worker, table)| {
            let (mut changed, mut runs) = (Vec::new(), 0);
            let mut runner = Runner::new(&batch, workload, worker);
            let counts = work(&locks_of, number, table, &mut |i| {
                let call = left[i];
                let serial = place(round, Group::Fallback, call, calls.len());
                let cover = Cover::Observed(&footprints[i], batch.workload);
                runs += 1;
                if !runner.try_run(call, serial, cover)? {
                    changed.push(call);
                }
                Ok(())
            })?;
            runner.counts.add(&counts);
            runner.counts.fallbacks += runs;
            Ok(changed)
        })?;
        let mut changed = changed.concat();
        changed.sort_unstable();
        Ok(changed)
    }
}

/// Answers a call.
pub(super) fn answer(answers: &mut Answers, log: &Log, ran: &Ran, serial: u64) {
    answers.push(ran.call, serial, ran.outcome, log.output(ran));
}

/// What each call accessed in the round, as locks.
fn footprints(logs: &[Log], left: &[usize]) -> Vec<Vec<Access>> {
    let mut footprints = vec![Vec::new(); left.len()];
    for log in logs {
        for ran in &log.ran {
            if let Ok(at) = left.binary_search(&ran.call) {
                footprints[at] = log.noted(ran).iter().map(|noted| noted.access).collect();
                close(&mut footprints[at], 0);
            }
        }
    }
    footprints
}
