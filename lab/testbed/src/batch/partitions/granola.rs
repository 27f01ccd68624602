//! Granola as in CA 5.2 (Cowling, Liskov, USENIX ATC 2012): each worker runs the pieces of its
//! partition one after the other in the order of the batch.
//!
//! There is no concurrency control within a partition, no lock and no version; a value before is
//! kept only until its call has come to its end. Workers cut their shares of the calls into pieces
//! and deal them. Pieces of different partitions run side by side; at a dependent call the
//! partitions that come first wait, and the last one runs it for all.
//!
//! The original orders calls of several repositories by timestamps that these vote on. The order of
//! a batch is known, which makes that unnecessary.

use workloads::{TableSpec, View, Workload};

use super::super::division::{self, Division};
use super::super::engine::{Base, BatchCounts, BatchEngine, EachAnswer, Order, Worker};
use super::super::phases::phase;
use super::super::runner::Runner;
use super::cut::{Cut, Cuts, Of};
use crate::error::Result;
use crate::rival::{Fault, Options};
use crate::run::calls::Calls;

/// How many pieces ahead of the running one rows are asked for.
const AHEAD: usize = 2;

/// See the module's documentation.
pub struct Granola {
    base: Base,
    cuts: Vec<Cut>,
}

impl BatchEngine for Granola {
    const NAME: &'static str = "granola";
    const ORDER: Order = Order::Given;

    fn create(specs: &[TableSpec], options: &Options) -> Result<Self> {
        let workers = options.workers;
        division::check(specs, workers)?;
        let cuts = (0..workers).map(|_| Cut::new(workers)).collect();
        Ok(Self { base: Base::new(specs, options)?, cuts })
    }

    fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        self.base.declare(workload, calls)?;
        let Self { base, cuts } = self;
        let (batch, workers) = base.split(workload, calls);
        let declared = batch.shares.iter().map(|share| &share.declared);
        let division = Division::new(workload, workers.len(), declared, batch.new_keys);
        let mut items: Vec<_> = workers.iter_mut().zip(&mut *cuts).collect();
        phase(batch.threads, &mut items, |number, (worker, cut)| {
            cut.cut(&batch, &division, number, &mut Runner::new(&batch, workload, worker))?;
            worker.counts.messages += cut.len();
            Ok(())
        })?;
        let cuts = Cuts { batch: &batch, division: &division, cuts };
        phase(batch.threads, workers, |part, worker| run_part(workload, &cuts, part, worker))?;
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

/// Runs the pieces of a partition.
fn run_part<W: Workload>(
    workload: &W,
    cuts: &Cuts<'_>,
    part: usize,
    worker: &mut Worker,
) -> Result<()> {
    let batch = cuts.batch;
    let mut waits = worker.counts.waits;
    let mut runner = Runner::new(batch, workload, worker);
    let meets = !batch.options.has(Fault::NoRendezvous);
    let mut ahead = cuts.pieces(part).skip(AHEAD);
    for piece in cuts.pieces(part) {
        ahead.next().into_iter().for_each(|piece| cuts.prefetch(piece));
        match piece.of {
            Of::Whole => cuts.run(&mut runner, piece.call)?,
            Of::Update(update) => cuts.update(&mut runner, piece.call, update)?,
            Of::Rendezvous => {
                let call = cuts.call(piece.call);
                if call.come() {
                    runner.counts.hand_overs += 1;
                    cuts.run(&mut runner, piece.call)?;
                    call.end();
                } else if meets {
                    batch.halt.wait(&mut waits, || call.has_ended().then_some(()))?;
                }
            }
        }
    }
    runner.counts.waits = waits;
    Ok(())
}
