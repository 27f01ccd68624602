//! Piece-wise visibility (Faleiro, Abadi, Hellerstein, VLDB 2017; CA 2, 5.2): within a partition,
//! pieces that do not conflict need not wait for each other.
//!
//! Calls are cut and dealt as for Granola. Then each worker makes the dependency graph of its
//! partition from declared reads and writes (`graph.rs`), by rows, and by granules where calls
//! scan; and runs pieces as they become ready, on rows with one version. A piece of a call of
//! several partitions that comes before the others waits beside its partition: other pieces go on.
//! What a piece writes is visible as soon as it is certain that its call commits: at the end of an
//! update, or of the body of any other call. No barrier is between graph and execution.

use std::collections::VecDeque;

use workloads::{TableSpec, View, Workload};

use super::super::division::{self, Division};
use super::super::ended::Ended;
use super::super::engine::{Base, Batch, BatchCounts, BatchEngine, EachAnswer, Order, Worker};
use super::super::footprint::{Access, Granules, Mode, Resolver, close};
use super::super::phases::{pause, phase};
use super::super::runner::Runner;
use super::cut::{Cut, Cuts, Of, Piece};
use super::graph::Graph;
use crate::error::Result;
use crate::index::Found;
use crate::rival::{Fault, Options};
use crate::run::calls::Calls;

/// See the module's documentation.
pub struct Pwv {
    base: Base,
    cuts: Vec<Cut>,
    graphs: Vec<Graph>,
}

impl BatchEngine for Pwv {
    const NAME: &'static str = "pwv";
    const ORDER: Order = Order::Given;

    fn create(specs: &[TableSpec], options: &Options) -> Result<Self> {
        let workers = options.workers;
        division::check(specs, workers)?;
        Ok(Self {
            base: Base::new(specs, options)?,
            cuts: (0..workers).map(|_| Cut::new(workers)).collect(),
            graphs: (0..workers).map(|_| Graph::default()).collect(),
        })
    }

    fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        self.base.declare(workload, calls)?;
        let granules = self.base.granules(workload)?;
        let Self { base, cuts, graphs } = self;
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
        let ended = Ended::new(calls.len(), workers.len());
        let mut items: Vec<_> = workers.iter_mut().zip(graphs).collect();
        phase(batch.threads, &mut items, |part, (worker, graph)| {
            make(&cuts, part, &granules, graph)?;
            Partition { cuts: &cuts, ended: &ended, part }.run(workload, worker, graph)
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

/// Makes the graph of a partition.
fn make(cuts: &Cuts<'_>, part: usize, granules: &Granules, graph: &mut Graph) -> Result<()> {
    let Batch { workload, tables, .. } = *cuts.batch;
    let (mut accesses, mut found) = (Vec::new(), Found::default());
    let mut resolver = Resolver { workload, tables, granules, found: &mut found };
    graph.clear();
    for piece in cuts.pieces(part) {
        accesses.clear();
        add_accesses(cuts, part, piece, &mut resolver, &mut accesses)?;
        close(&mut accesses, 0);
        if cuts.batch.options.has(Fault::NoReadEdges) {
            accesses.retain(|access| access.mode != Mode::Read);
        }
        graph.add(piece, &accesses);
    }
    Ok(())
}

/// Adds what a piece accesses in its partition.
fn add_accesses(
    cuts: &Cuts<'_>,
    part: usize,
    piece: Piece,
    resolver: &mut Resolver<'_>,
    accesses: &mut Vec<Access>,
) -> Result<()> {
    let batch = cuts.batch;
    if batch.gave_up(piece.call).is_some() {
        return Ok(());
    }
    let (declared, number) = batch.declared(piece.call);
    let items = declared.items(number);
    let items = match piece.of {
        Of::Update(update) => &items[usize::from(update)..=usize::from(update)],
        Of::Whole | Of::Rendezvous => items,
    };
    for item in items {
        if cuts.division.touched(declared, item) >> part & 1 == 1 {
            resolver.add(declared, item, accesses)?;
        }
    }
    Ok(())
}

/// A partition while its pieces run.
struct Partition<'r, 'a> {
    cuts: &'r Cuts<'a>,
    ended: &'r Ended,
    part: usize,
}

impl<'a> Partition<'_, 'a> {
    /// Runs the pieces of a partition as they become ready.
    fn run<W: Workload>(&self, workload: &W, worker: &mut Worker, graph: &mut Graph) -> Result<()> {
        let Self { cuts, ended, part } = *self;
        let (batch, mut waits) = (cuts.batch, worker.counts.waits);
        let mut runner = Runner::new(batch, workload, worker);
        let mut ready: VecDeque<u32> = graph.ready().collect();
        runner.counts.hand_overs += (graph.len() - ready.len()) as u64;
        let (mut seen, mut left, mut idle) = (vec![0; ended.workers()], graph.len(), 0);
        while left > 0 {
            let before = left;
            for (other, seen) in seen.iter_mut().enumerate().filter(|(other, _)| *other != part) {
                ended.since(other, seen, |call| {
                    if cuts.call(call).parts >> part & 1 == 1 {
                        graph.end(graph.node_of(call), |node| ready.push_back(node));
                        left -= 1;
                    }
                });
            }
            if let Some(node) = ready.pop_front() {
                ready.front().into_iter().for_each(|node| cuts.prefetch(graph.piece(*node)));
                if self.run_piece(graph.piece(node), &mut runner)? {
                    graph.end(node, |node| ready.push_back(node));
                    left -= 1;
                }
                idle = 0;
            } else if left == before {
                batch.halt.check()?;
                idle += 1;
                waits.waits += u64::from(idle == 1);
                waits.spins += 1;
                pause(idle);
            }
        }
        runner.counts.waits = waits;
        Ok(())
    }

    /// Runs a piece; false if other partitions must come to its call first.
    fn run_piece(&self, piece: Piece, runner: &mut Runner<'a>) -> Result<bool> {
        let Self { cuts, ended, part } = *self;
        match piece.of {
            Of::Whole => cuts.run(runner, piece.call)?,
            Of::Update(update) => cuts.update(runner, piece.call, update)?,
            Of::Rendezvous => {
                if !cuts.call(piece.call).come() {
                    return Ok(false);
                }
                cuts.run(runner, piece.call)?;
                ended.end(part, piece.call);
            }
        }
        Ok(true)
    }
}
