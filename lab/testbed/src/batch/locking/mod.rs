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

use self::lists::Lists;
use self::manager::Manager;
use self::table::LockTable;
use super::engine::{Base, Batch, BatchCounts, BatchEngine, Order, Worker};
use super::phases::{pause, phase};
use super::runner::Runner;
use crate::calls::Calls;
use crate::error::Result;
use crate::procedure::Outcome;
use crate::rival::Options;

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
        let managers = managers(PARTS, workers.len());
        let lists = Lists::new(calls.len(), workers.len(), managers);
        let mut items: Vec<_> = workers.iter_mut().zip(tables).collect();
        phase(batch.halt, &mut items, |number, (worker, table)| {
            work(workload, (&batch, &lists), number, (worker, table))
        })?;
        Ok(())
    }

    fn for_each_answer(&self, each: &mut dyn FnMut(usize, u64, Outcome, &[u8])) {
        self.base.for_each_answer(each);
    }

    fn view(&self) -> &dyn View {
        &self.base.tables
    }

    fn take_counts(&mut self) -> BatchCounts {
        self.base.take_counts()
    }
}

/// What a worker does in the execution of a batch: manage locks, run calls, or both.
fn work<W: Workload>(
    workload: &W,
    (batch, lists): (&Batch<'_>, &Lists),
    number: usize,
    (worker, table): (&mut Worker, &mut LockTable),
) -> Result<()> {
    let mut waits = worker.counts.waits;
    if lists.managers > number {
        let mut runner = Runner::new(batch, workload, worker);
        let (mut manager, mut idle) = (Manager::new(batch, lists, (table, number)), 0);
        while !manager.has_ended() {
            let mut progress = manager.release() | manager.request();
            if lists.executors() == 0 {
                while let Some(call) = lists.try_next() {
                    runner.run(call)?;
                    lists.end(number, call);
                    progress = true;
                }
            }
            if progress {
                idle = 0;
                continue;
            }
            batch.halt.check()?;
            idle += 1;
            waits.waits += u64::from(idle == 1);
            waits.spins += 1;
            pause(idle);
        }
        runner.counts.hand_overs += manager.hand_overs;
        runner.counts.messages += manager.messages;
        runner.counts.waits = waits;
        return Ok(());
    }
    let mut runner = Runner::new(batch, workload, worker);
    while let Some(ticket) = lists.ticket() {
        let call = batch.halt.wait(&mut waits, || lists.ready(ticket))?;
        runner.prefetch(call);
        runner.run(call)?;
        lists.end(number, call);
    }
    runner.counts.waits = waits;
    Ok(())
}
