//! Rounds: all calls that are left run on the same state.

use workloads::{IndexKind, TableId, TableSpec, Workload};

use super::super::bodies::Bodies;
use super::super::declare::share;
use super::super::engine::{Base, Batch, Worker};
use super::super::phases::phase;
use super::access::Snapshot;
use super::log::{Log, Ran};
use crate::error::{Error, Result};
use crate::rival::{Options, Stop};
use crate::run::calls::Calls;
use crate::run::procedure::Outcome;

/// What an engine that runs rounds is made of.
pub(super) struct Rounds {
    pub(super) base: Base,
    pub(super) logs: Vec<Log>,
    granules: TableId,
    /// Rounds of all batches; the first one is 1.
    pub(super) round: u32,
}

/// What is done with a call as soon as it has run.
pub(super) type Announce<'a> = &'a (dyn Fn(&Batch<'_>, &Log, &Ran) + Sync);

impl Rounds {
    pub(super) fn new(specs: &[TableSpec], options: &Options) -> Result<Self> {
        let mut tables = specs.to_vec();
        let (index, key_bytes_max, value_bytes_max) = (IndexKind::Hash, 8, 0);
        tables.push(TableSpec { name: "granules", index, key_bytes_max, value_bytes_max });
        Ok(Self {
            base: Base::new(&tables, options)?,
            logs: (0..options.workers).map(|_| Log::default()).collect(),
            granules: TableId(specs.len() as u16),
            round: 0,
        })
    }

    /// A batch begins: numbers are allocated, and rows of pieces declared.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn begin<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        self.base.declare_pieces(workload, calls)
    }

    /// Runs the calls that are left. What they did is in the logs.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn run<W: Workload>(
        &mut self,
        workload: &W,
        calls: &Calls,
        left: &[usize],
        announce: Announce<'_>,
    ) -> Result<()> {
        self.round += 1;
        self.logs.iter_mut().for_each(Log::clear);
        let workers = self.logs.len();
        let shares = (0..workers).map(|worker| left[share(left.len(), workers, worker)].to_vec());
        let mut shares: Vec<Vec<usize>> = shares.collect();
        loop {
            let Self { base, logs, granules, .. } = self;
            let (batch, workers) = base.split(workload, calls);
            let round = Round { batch: &batch, workload, granules: *granules, announce };
            let own = workers.iter_mut().zip(&mut *logs).zip(&shares);
            let own = own.map(|((worker, log), calls)| Share { worker, log, calls });
            let mut items: Vec<_> = own.collect();
            let full = phase(batch.threads, &mut items, |number, share| round.run(number, share))?;
            if full.iter().all(Vec::is_empty) {
                return Ok(());
            }
            // An index was too small for what these calls looked for: they run again.
            self.base.tables.grow_full()?;
            shares = full;
        }
    }
}

/// A round while it runs.
struct Round<'r, W> {
    batch: &'r Batch<'r>,
    workload: &'r W,
    granules: TableId,
    announce: Announce<'r>,
}

/// What one worker has of a round.
struct Share<'a> {
    worker: &'a mut Worker,
    log: &'a mut Log,
    calls: &'a [usize],
}

impl<W: Workload> Round<'_, W> {
    /// Runs a worker's share of the calls; those for which an index must grow first.
    fn run(&self, number: usize, share: &mut Share<'_>) -> Result<Vec<usize>> {
        let batch = self.batch;
        let Worker { pool, output, .. } = &mut *share.worker;
        let mut bodies = Bodies::default();
        self.workload.register(&mut bodies);
        let mut full = Vec::new();
        let mut snapshot = Snapshot::new(batch, self.granules, number, pool, share.log);
        for &call in share.calls {
            snapshot.begin();
            let ended = match batch.gave_up(call) {
                Some(code) => Err(Stop::Abort(code)),
                None => bodies.run_whole(batch.call(call), &mut snapshot, output),
            };
            match ended {
                Ok(()) => snapshot.end(call, Outcome::Committed, output),
                Err(Stop::Abort(code)) => snapshot.end(call, Outcome::Aborted(code), &[]),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Conflict) => {
                    snapshot.forget();
                    full.push(call);
                    continue;
                }
            }
            let ran = snapshot.log.ran.last();
            (self.announce)(
                batch,
                snapshot.log,
                ran.ok_or_else(|| Error::Broken("no call".into()))?,
            );
        }
        Ok(full)
    }
}
