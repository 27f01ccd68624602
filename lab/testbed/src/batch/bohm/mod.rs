//! Bohm (Faleiro, Abadi, VLDB 2015; CA 2, 5.2): versions whose places are made before they are
//! written.
//!
//! 1. Declared writes are dealt to the owners of their keys. The original lets each thread go
//!    through all calls and leave out what is not its own; CA 5.2 deals, which is faster.
//! 2. *Concurrency control*, partitioned: each owner goes through what it was dealt in the order of
//!    the batch and makes a pending version for each write: an array for each row, sorted because
//!    it was filled in that order, without locks (`versions.rs`).
//! 3. *Execution*, shared: a call reads the newest version that is older than it. Is that pending
//!    and its call not running yet, the thread runs that call first, and the reader again behind
//!    it. Writes are shown when the body has ended; what a call did not write is ignored.
//! 4. What each row is at the end of the batch becomes its value, and older versions are free.
//!
//! Reads need no declaration.
//!
//! [`Caracal`] shares all of it but the store of versions: its arrays stay (`kept.rs`), and its
//! readers wait for pending versions, where calls begin in the order of the batch.

mod access;
mod kept;
mod store;
mod versions;

use std::sync::atomic::{AtomicU8, Ordering};

use workloads::{TableSpec, View, Workload};

use self::access::MultiVersion;
use self::kept::Kept;
use self::store::{Batched, Store};
use self::versions::{Dealt, Versions};
use super::bodies::Bodies;
use super::engine::{Base, Batch, BatchCounts, BatchEngine, EachAnswer, Order, Worker};
use super::phases::{Dealer, phase};
use super::rows::Pool;
use crate::error::{Error, Result};
use crate::rival::{Options, Stop};
use crate::run::calls::Calls;
use crate::run::procedure::Outcome;

/// Calls that a worker takes at a time.
const TAKEN: u64 = 4;

/// Bohm. See the module's documentation.
pub struct Bohm(Versioned<Versions>);

/// Caracal with its own memory management (CA 3.5, 4.1). See the module's documentation.
pub struct Caracal(Versioned<Kept>);

/// An engine whose calls read and write versions.
struct Versioned<S> {
    base: Base,
    /// What each worker dealt.
    dealt: Vec<Dealt>,
    /// The versions of each owner.
    versions: Vec<S>,
    batches: u32,
}

/// Both engines are what they are made of.
macro_rules! batch_engine {
    ($engine:ident, $store:ident) => {
        impl BatchEngine for $engine {
            const NAME: &'static str = $store::NAME;
            const ORDER: Order = Order::Given;

            fn create(specs: &[TableSpec], options: &Options) -> Result<Self> {
                Versioned::create(specs, options).map(Self)
            }

            fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
                self.0.run(workload, calls)
            }

            fn for_each_answer(&self, each: EachAnswer<'_>) {
                self.0.base.for_each_answer(each);
            }

            fn view(&self) -> &dyn View {
                &self.0.base.tables
            }

            fn take_counts(&mut self) -> BatchCounts {
                self.0.base.take_counts()
            }
        }
    };
}

batch_engine!(Bohm, Versions);
batch_engine!(Caracal, Kept);

impl<S: Store> Versioned<S> {
    fn create(specs: &[TableSpec], options: &Options) -> Result<Self> {
        let workers = options.workers;
        Ok(Self {
            base: Base::new(specs, options)?,
            dealt: (0..workers).map(|_| Dealt::new(workers)).collect(),
            versions: (0..workers).map(|_| S::default()).collect(),
            batches: 0,
        })
    }

    fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        self.base.declare(workload, calls)?;
        self.batches += 1;
        self.control(calls)?;
        self.execute(workload, calls)?;
        self.collect()
    }

    /// Steps 1 and 2.
    fn control(&mut self, calls: &Calls) -> Result<()> {
        let Self { base, dealt, versions, batches } = self;
        let (tables, shares) = (&base.tables, &base.shares);
        phase(&base.threads, dealt, |number, dealt| {
            let first = super::declare::share(calls.len(), shares.len(), number).start;
            dealt.deal(tables, &shares[number].declared, first)
        })?;
        let (dealt, batched) = (&*dealt, Batched { tables, batch: *batches });
        let mut items: Vec<_> = base.workers.iter_mut().zip(versions).collect();
        phase(&base.threads, &mut items, |owner, (worker, versions)| {
            let of_owner = || dealt.iter().flat_map(|dealt| dealt.of(owner));
            versions.make(batched, &mut worker.pool, &mut worker.counts, of_owner);
            Ok(())
        })?;
        for (worker, dealt) in base.workers.iter_mut().zip(dealt) {
            worker.counts.messages += dealt.len();
        }
        Ok(())
    }

    /// Step 3.
    fn execute<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        let Self { base, dealt, versions, batches } = self;
        let (batch, workers) = base.split(workload, calls);
        let run = Run {
            batch: &batch,
            dealt,
            versions,
            number: *batches,
            states: (0..calls.len()).map(|_| AtomicU8::new(WAITING)).collect(),
        };
        let dealer = Dealer::new(calls.len(), TAKEN);
        phase(batch.threads, workers, |_, worker| {
            let mut executor = Executor::new(&run, workload, worker);
            loop {
                let dealt = dealer.take();
                if dealt.is_empty() {
                    executor.end();
                    return Ok(());
                }
                for call in dealt {
                    if run.claim(call) {
                        executor.run(call)?;
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Step 4.
    fn collect(&mut self) -> Result<()> {
        let Self { base, versions, batches, .. } = self;
        let batched = Batched { tables: &base.tables, batch: *batches };
        let mut items: Vec<_> = base.workers.iter_mut().zip(versions).collect();
        phase(&base.threads, &mut items, |_, (worker, versions)| {
            versions.end(batched, &mut worker.pool, &mut worker.counts);
            Ok(())
        })?;
        let mut pools: Vec<_> = base.workers.iter_mut().map(|worker| &mut worker.pool).collect();
        Pool::balance(&mut pools);
        Ok(())
    }
}

/// No thread runs the call yet.
const WAITING: u8 = 0;
const CLAIMED: u8 = 1;

/// The execution of a batch.
struct Run<'a, S> {
    batch: &'a Batch<'a>,
    dealt: &'a [Dealt],
    versions: &'a [S],
    /// Number of the batch.
    number: u32,
    states: Box<[AtomicU8]>,
}

impl<S> Run<'_, S> {
    /// Whether this thread is the one that runs a call.
    fn claim(&self, call: usize) -> bool {
        let state = &self.states[call];
        state.load(Ordering::Relaxed) == WAITING
            && state
                .compare_exchange(WAITING, CLAIMED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

/// A thread that runs calls.
struct Executor<'a, S> {
    run: &'a Run<'a, S>,
    bodies: Bodies<MultiVersion<'a, S>>,
    accesses: MultiVersion<'a, S>,
    worker: Answering<'a>,
}

/// The part of a worker that is not with its accesses.
struct Answering<'a> {
    answers: &'a mut super::engine::Answers,
    output: &'a mut Vec<u8>,
    counts: &'a mut BatchCounts,
}

impl<'a, S: Store> Executor<'a, S> {
    fn new<W: Workload>(run: &'a Run<'a, S>, workload: &W, worker: &'a mut Worker) -> Self {
        let Worker { pool, answers, output, counts, .. } = worker;
        let mut bodies = Bodies::default();
        workload.register(&mut bodies);
        let accesses = MultiVersion::new(run, pool);
        Self { run, bodies, accesses, worker: Answering { answers, output, counts } }
    }

    /// Runs a claimed call, and before it those whose writes it wants and that nothing runs yet.
    fn run(&mut self, call: usize) -> Result<()> {
        let mut wanted = vec![call];
        while let Some(&call) = wanted.last() {
            match self.attempt(call)? {
                Some(outcome) => {
                    self.answer(call, outcome);
                    wanted.pop();
                }
                None => {
                    let producer = self.accesses.take_producer();
                    let none = || Error::Broken("a call met a conflict".into());
                    wanted.push(producer.ok_or_else(none)?);
                    self.worker.counts.producer_runs += 1;
                    self.worker.counts.reruns += 1;
                }
            }
        }
        Ok(())
    }

    /// Runs a call unless it wants what another one must write first.
    fn attempt(&mut self, call: usize) -> Result<Option<Outcome>> {
        let batch = self.run.batch;
        self.accesses.begin(call);
        if let Some(code) = batch.gave_up(call) {
            self.accesses.give_up()?;
            return Ok(Some(Outcome::Aborted(code)));
        }
        let output = &mut *self.worker.output;
        match self.bodies.run_whole(batch.call(call), &mut self.accesses, output) {
            Ok(()) => {
                self.worker.counts.versions += self.accesses.show()?;
                Ok(Some(Outcome::Committed))
            }
            Err(Stop::Abort(code)) => {
                self.accesses.give_up()?;
                Ok(Some(Outcome::Aborted(code)))
            }
            Err(Stop::Conflict) => {
                self.accesses.forget();
                Ok(None)
            }
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn answer(&mut self, call: usize, outcome: Outcome) {
        let output = match outcome {
            Outcome::Committed => self.worker.output.as_slice(),
            Outcome::Aborted(_) => &[],
        };
        self.worker.answers.push(call, call as u64, outcome, output);
    }

    fn end(&mut self) {
        self.worker.counts.waits.add(self.accesses.waits);
    }
}
