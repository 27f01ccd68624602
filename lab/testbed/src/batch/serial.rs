//! Serial execution (CA 2): one thread runs the calls one after the other in their order, each as
//! if it were alone, for it is.
//!
//! No write set is declared, no lock held and no version made: it is the floor that concurrency
//! control must beat. Workers beyond the first have nothing to do.

use workloads::{TableSpec, View, Workload};

use super::bodies::{Bodies, KnownCall, Told};
use super::declare::{Asked, Call, Declarations, Declared};
use super::engine::{BatchCounts, BatchEngine, EachAnswer, Order, Worker};
use super::inplace::{Cover, InPlace};
use super::tables::Tables;
use crate::error::Result;
use crate::rival::{Fault, Options, Stop};
use crate::run::calls::Calls;
use crate::run::procedure::Outcome;

/// See the module's documentation.
pub struct Serial {
    tables: Tables,
    worker: Worker,
    /// What the calls of the batch got of sequences.
    numbers: Vec<Call>,
    /// Where a call with pieces says which rows they update.
    declared: Declared,
    options: Options,
}

impl BatchEngine for Serial {
    const NAME: &'static str = "serial";
    const ORDER: Order = Order::Given;

    fn create(specs: &[TableSpec], options: &Options) -> Result<Self> {
        Ok(Self {
            tables: Tables::new(specs, 1)?,
            worker: Worker::new(specs.len()),
            numbers: Vec::new(),
            declared: Declared::default(),
            options: options.clone(),
        })
    }

    fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        let mut declarations = Declarations::default();
        workload.register(&mut declarations);
        self.tables.sequences.begin();
        self.worker.answers.clear();
        self.numbers.clear();
        for call in 0..calls.len() {
            let mut call = declarations.want(&self.tables, Asked::of(calls, call))?;
            self.tables.allocate_one(&mut call);
            self.numbers.push(call);
        }
        let mut next = 0;
        loop {
            next = self.run_until_full(workload, &declarations, calls, next)?;
            if next == calls.len() {
                return Ok(());
            }
            // The call that found an index full runs again.
            self.worker.counts.reruns += 1;
            self.tables.grow_full()?;
        }
    }

    fn for_each_answer(&self, each: EachAnswer<'_>) {
        self.worker.answers.for_each(each);
    }

    fn view(&self) -> &dyn View {
        &self.tables
    }

    fn take_counts(&mut self) -> BatchCounts {
        std::mem::take(&mut self.worker.counts)
    }
}

impl Serial {
    /// Runs calls from `next` on until an index is full; the call that must run again then, or the
    /// number of calls.
    fn run_until_full<W: Workload>(
        &mut self,
        workload: &W,
        declarations: &Declarations,
        calls: &Calls,
        next: usize,
    ) -> Result<usize> {
        let Self { tables, worker, numbers, declared, options } = self;
        let Worker { pool, answers, scratch, output, .. } = worker;
        let tables = &*tables;
        let mut accesses = InPlace { tables, cover: Cover::All, pool, scratch };
        let mut bodies = Bodies::default();
        workload.register(&mut bodies);
        for (call, known) in numbers.iter().enumerate().skip(next) {
            let asked = Asked::of(calls, call);
            if let Some(code) = known.aborted {
                answers.push(call, call as u64, Outcome::Aborted(code), &[]);
                continue;
            }
            declared.clear();
            if bodies.has_pieces(asked.procedure) {
                declared.calls.push(known.clone());
                declarations.declare(tables, asked, declared, 0)?;
            }
            let told = Told { numbers: &known.numbers, sequences: &tables.sequences };
            let known = KnownCall { asked, told, declared, number: 0 };
            let ended = bodies.run_whole(known, &mut accesses, output);
            if let Err(Stop::Conflict) = ended {
                accesses.roll_back();
                return Ok(call);
            }
            if let (Err(Stop::Abort(_)), true) = (&ended, options.has(Fault::KeepAborted)) {
                accesses.commit();
            }
            let outcome = accesses.end(ended)?;
            let output = if outcome == Outcome::Committed { output.as_slice() } else { &[] };
            answers.push(call, call as u64, outcome, output);
        }
        Ok(calls.len())
    }
}
