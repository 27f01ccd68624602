//! Calvin and Orthrus: locks that are requested in the order of the batch (CA 2).
//!
//! *Calvin* (Thomson et al., SIGMOD 2012): one thread, the lock manager, does nothing but locking.
//! It goes through the calls in their order and requests each call's locks, readers' too. Each lock
//! has a queue, first come, first served. A call that has all its locks is ready; the other threads
//! run ready calls on rows with one version, in place, and tell the lock manager, which releases.
//! Since all locks of a call are requested at once and in the order of the batch, nothing deadlocks
//! and the result is that of the order.
//!
//! *Orthrus* (Ren, Faleiro, Abadi, SIGMOD 2016): half of the threads are lock managers, each with
//! the locks of a part of the keys. Each goes through the whole batch by itself; a call is ready
//! when all of them have granted what is theirs.
//!
//! Threads share no lock table: they talk through lists that one side appends to and the other
//! reads (`lists.rs`). With one worker, the thread does both by turns.

mod lists;
mod manager;
mod table;

use workloads::{TableSpec, View, Workload};

pub(super) use self::lists::Lists;
use self::manager::Manager;
pub(super) use self::table::LockTable;
use super::engine::{Base, Batch, BatchCounts, BatchEngine, EachAnswer, Order};
use super::footprint::Access;
use super::phases::{Halt, pause, phase};
use super::runner::Runner;
use crate::error::Result;
use crate::rival::Options;
use crate::run::calls::Calls;

/// One lock manager for all locks.
pub type Calvin = Locking<false>;
/// Lock managers for parts of the keys.
pub type Orthrus = Locking<true>;

/// See the module's documentation.
pub struct Locking<const PARTS: bool> {
    base: Base,
    /// One for each lock manager.
    tables: Vec<LockTable>,
}

/// How many of the workers are lock managers.
fn managers(parts: bool, workers: usize) -> usize {
    if parts { (workers / 2).max(1) } else { 1 }
}

impl<const PARTS: bool> BatchEngine for Locking<PARTS> {
    const NAME: &'static str = if PARTS { "orthrus" } else { "calvin" };
    const ORDER: Order = Order::Given;

    fn create(specs: &[TableSpec], options: &Options) -> Result<Self> {
        let tables = (0..options.workers).map(|_| LockTable::default()).collect();
        Ok(Self { base: Base::new(specs, options)?, tables })
    }

    fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        self.base.declare(workload, calls)?;
        self.base.footprints(workload)?;
        let Self { base, tables } = self;
        let (batch, workers) = base.split(workload, calls);
        let footprint = |call| batch.footprint(call);
        let lists = Lists::new(calls.len(), workers.len(), managers(PARTS, workers.len()));
        let locks = Locks::new(&batch, calls.len(), &footprint, lists);
        let mut items: Vec<_> = workers.iter_mut().zip(tables).collect();
        phase(batch.threads, &mut items, |number, (worker, table)| {
            let mut runner = Runner::new(&batch, workload, worker);
            let counts = work(&locks, number, table, &mut |call| {
                runner.prefetch(call);
                runner.run(call)
            })?;
            runner.counts.add(&counts);
            Ok(())
        })?;
        Ok(())
    }

    fn for_each_answer(&self, each: EachAnswer<'_>) {
        self.base.for_each_answer(each);
    }

    fn view(&self) -> &dyn View {
        &self.base.tables
    }

    fn take_counts(&mut self) -> BatchCounts {
        self.base.take_counts()
    }
}

/// The calls of a phase under locks.
pub(super) struct Locks<'a> {
    pub(super) calls: usize,
    /// The locks of a call.
    pub(super) footprint: &'a (dyn Fn(usize) -> &'a [Access] + Sync),
    pub(super) options: &'a Options,
    pub(super) lists: Lists,
    halt: &'a Halt,
}

impl<'a> Locks<'a> {
    /// The locks of so many calls of a batch.
    pub(super) fn new(
        batch: &Batch<'a>,
        calls: usize,
        footprint: &'a (dyn Fn(usize) -> &'a [Access] + Sync),
        lists: Lists,
    ) -> Self {
        Self { calls, footprint, options: batch.options, lists, halt: batch.halt }
    }
}

/// What a worker does in a phase under locks: manage locks, run calls, or both. What it counted.
///
/// # Errors
/// That of `run`, or another worker's.
pub(super) fn work(
    locks: &Locks<'_>,
    number: usize,
    table: &mut LockTable,
    run: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<BatchCounts> {
    let (lists, halt) = (&locks.lists, locks.halt);
    let mut counts = BatchCounts::default();
    if lists.managers > number {
        manage(locks, number, table, run, &mut counts)?;
        return Ok(counts);
    }
    while let Some(ticket) = lists.ticket() {
        let call = halt.wait(&mut counts.waits, || lists.ready(ticket))?;
        run(call)?;
        lists.ended.end(number, call);
    }
    Ok(counts)
}

/// Manages locks until all calls have ended; runs calls in between if no other thread does.
fn manage(
    locks: &Locks<'_>,
    number: usize,
    table: &mut LockTable,
    run: &mut dyn FnMut(usize) -> Result<()>,
    counts: &mut BatchCounts,
) -> Result<()> {
    let (lists, halt) = (&locks.lists, locks.halt);
    let (mut manager, mut idle) = (Manager::new(locks, number, table), 0);
    while !manager.has_ended() {
        let mut progress = manager.release() | manager.request();
        if lists.executors() == 0 {
            while let Some(call) = lists.try_next() {
                run(call)?;
                lists.ended.end(number, call);
                progress = true;
            }
        }
        if progress {
            idle = 0;
            continue;
        }
        halt.check()?;
        idle += 1;
        counts.waits.waits += u64::from(idle == 1);
        counts.waits.spins += 1;
        pause(idle);
    }
    counts.hand_overs += manager.hand_overs;
    counts.messages += manager.messages;
    Ok(())
}
