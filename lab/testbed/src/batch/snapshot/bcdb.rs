//! BCDB (Nathan et al., VLDB 2019; NV 7): serializable snapshot isolation within a block, with
//! victims that follow from the order of the block.
//!
//! The calls of a block, which is a round here, run on the state before it. Then one thread goes
//! through them in their order. A call must not commit if one that does wrote a row that it
//! writes. If a call read what another one writes, it seems to run before it; a call that commits
//! must not seem to run both before one and behind another (the pivot of a dangerous structure).
//! Whichever call would make it so, itself or one that commits already, is the victim that comes
//! later. So those that run before others come first in the order, and all else behind them.
//!
//! The original gives a victim back to its client. Here it runs again in the next round.

use std::sync::atomic::{AtomicU64, Ordering};

use workloads::{TableSpec, View, Workload};

use super::super::engine::{BatchCounts, BatchEngine, EachAnswer, Order};
use super::super::footprint::Mode;
use super::super::phases::phase;
use super::super::tables::Tables;
use super::aria::answer;
use super::log::{Log, Noted, Ran};
use super::round::Rounds;
use crate::error::Result;
use crate::rival::{Fault, Options};
use crate::run::calls::Calls;

/// No link.
const NONE: u32 = u32::MAX;

/// See the module's documentation.
pub struct Bcdb {
    rounds: Rounds,
}

impl BatchEngine for Bcdb {
    const NAME: &'static str = "bcdb";
    const ORDER: Order = Order::Told;

    fn create(specs: &[TableSpec], options: &Options) -> Result<Self> {
        Ok(Self { rounds: Rounds::new(specs, options)? })
    }

    fn run<W: Workload>(&mut self, workload: &W, calls: &Calls) -> Result<()> {
        self.rounds.begin(workload, calls)?;
        let mut left: Vec<usize> = (0..calls.len()).collect();
        for round in 0.. {
            if left.is_empty() {
                break;
            }
            self.rounds.run(workload, calls, &left, &|_, _, _| {})?;
            left = self.commit(workload, calls, round)?;
            self.rounds.base.workers[0].counts.reruns += left.len() as u64;
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

impl Bcdb {
    /// Commits what may commit; the others, in the order of the batch.
    fn commit<W: Workload>(
        &mut self,
        workload: &W,
        calls: &Calls,
        round: u64,
    ) -> Result<Vec<usize>> {
        let Rounds { base, logs, round: number, .. } = &mut self.rounds;
        let (batch, workers) = base.split(workload, calls);
        let pivots_count = !batch.options.has(Fault::NoPivots);
        let mut block = Block::new(*number, calls.len(), pivots_count);
        let mut ran: Vec<_> =
            logs.iter().flat_map(|log| log.ran.iter().map(move |r| (log, r))).collect();
        ran.sort_unstable_by_key(|(_, ran)| ran.call);
        let mut left = Vec::new();
        for (log, ran) in ran {
            if !block.add(batch.tables, log, ran) {
                left.push(ran.call);
            }
        }
        let (block, mut items) = (&block, workers.iter_mut().zip(&*logs).collect::<Vec<_>>());
        phase(batch.threads, &mut items, |_, (worker, log)| {
            for ran in log.ran.iter().filter(|ran| block.calls[ran.call].commits) {
                log.store(batch.tables, ran);
                let behind = u64::from(!block.calls[ran.call].before);
                let serial = (round * 2 + behind) << 32 | ran.call as u64;
                answer(&mut worker.answers, log, ran, serial);
            }
            Ok(())
        })?;
        Ok(left)
    }
}

/// What is known of a call of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    commits: bool,
    /// It read what one that commits writes.
    before: bool,
    /// One that commits read what it writes.
    behind: bool,
}

/// The decisions of a block.
struct Block {
    number: u32,
    calls: Vec<Known>,
    /// Lists of the calls that commit and read or wrote a row: the call, and the next link. The
    /// words of a row that belong to the engine have the first ones, with the number of the block.
    links: Vec<(u32, u32)>,
    pivots_count: bool,
}

impl Block {
    fn new(number: u32, calls: usize, pivots_count: bool) -> Self {
        Self { number, calls: vec![Known::default(); calls], links: Vec::new(), pivots_count }
    }

    fn first(&self, word: &AtomicU64) -> u32 {
        let word = word.load(Ordering::Relaxed);
        if word >> 32 == u64::from(self.number) { word as u32 } else { NONE }
    }

    fn link(&mut self, word: &AtomicU64, call: usize) {
        let next = self.first(word);
        word.store(u64::from(self.number) << 32 | self.links.len() as u64, Ordering::Relaxed);
        self.links.push((call as u32, next));
    }

    /// Visits the calls of a list.
    fn each(&self, mut link: u32, mut visit: impl FnMut(usize)) {
        while let Some((call, next)) = self.links.get(link as usize) {
            visit(*call as usize);
            link = *next;
        }
    }

    /// Decides the next call; whether it commits.
    fn add(&mut self, tables: &Tables, log: &Log, ran: &Ran) -> bool {
        let (mut targets, mut sources) = (Vec::new(), Vec::new());
        for Noted { access, row } in log.noted(ran) {
            let (written, read) = (tables.row(*row).engine(0), tables.row(*row).engine(1));
            match access.mode {
                Mode::Write if self.first(written) != NONE => return false,
                Mode::Write | Mode::Touch => self.each(self.first(read), |by| sources.push(by)),
                Mode::Read | Mode::Scan => self.each(self.first(written), |by| targets.push(by)),
            }
        }
        let is_pivot = !targets.is_empty() && !sources.is_empty()
            || targets.iter().any(|call| self.calls[*call].before)
            || sources.iter().any(|call| self.calls[*call].behind);
        if is_pivot && self.pivots_count {
            return false;
        }
        targets.iter().for_each(|call| self.calls[*call].behind = true);
        sources.iter().for_each(|call| self.calls[*call].before = true);
        let (before, behind) = (!targets.is_empty(), !sources.is_empty());
        self.calls[ran.call] = Known { commits: true, before, behind };
        for Noted { access, row } in log.noted(ran) {
            let word = match access.mode {
                Mode::Write | Mode::Touch => tables.row(*row).engine(0),
                Mode::Read | Mode::Scan => tables.row(*row).engine(1),
            };
            self.link(word, ran.call);
        }
        true
    }
}
