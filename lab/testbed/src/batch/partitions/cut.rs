//! How the calls of a batch are cut into pieces, and what pieces of one call have in common.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::super::declare::{Kind, share};
use super::super::division::{Division, Parts};
use super::super::engine::Batch;
use super::super::inplace::Cover;
use super::super::runner::Runner;
use crate::error::Result;

/// What a piece is of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// All of it.
    Whole,
    /// One of its partitions has come to it (a rendezvous point of CA 5.2).
    Rendezvous,
    /// An update, by its number.
    Update(u16),
}

/// A piece in a partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) call: usize,
    pub(super) of: Of,
}

/// The pieces of one worker's share of the calls.
#[derive(Debug)]
pub(super) struct Cut {
    /// By partition, in the order of the batch.
    parts: Vec<Vec<Piece>>,
    calls: Vec<CutCall>,
    /// What updates came to.
    results: Vec<[AtomicU64; 2]>,
    /// The number of the share's first call.
    first: usize,
}

/// What the pieces of a call share.
#[derive(Debug)]
pub(super) struct CutCall {
    /// The partitions that it touches.
    pub(super) parts: Parts,
    /// Pieces that are still to come.
    missing: AtomicU32,
    /// Results of its updates.
    first: u32,
    end: u32,
}

/// Every piece has come, and the call has run.
const ENDED: u32 = u32::MAX;

impl CutCall {
    /// A piece of the call has come; whether it is the last.
    pub(super) fn come(&self) -> bool {
        self.missing.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The call has run.
    pub(super) fn end(&self) {
        self.missing.store(ENDED, Ordering::Release);
    }

    /// Whether the call has run.
    pub(super) fn has_ended(&self) -> bool {
        self.missing.load(Ordering::Acquire) == ENDED
    }
}

impl Cut {
    pub(super) fn new(parts: usize) -> Self {
        let parts = (0..parts).map(|_| Vec::new()).collect();
        Self { parts, calls: Vec::new(), results: Vec::new(), first: 0 }
    }

    /// Cuts a worker's share of the calls.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn cut(
        &mut self,
        batch: &Batch<'_>,
        division: &Division<'_>,
        number: usize,
        runner: &mut Runner<'_>,
    ) -> Result<()> {
        let calls = share(batch.calls.len(), division.workers, number);
        self.parts.iter_mut().for_each(Vec::clear);
        self.calls.clear();
        self.results.clear();
        self.first = calls.start;
        for call in calls {
            self.cut_call(batch, division, call, runner)?;
        }
        runner.counts.messages += self.len();
        Ok(())
    }

    fn cut_call(
        &mut self,
        batch: &Batch<'_>,
        division: &Division<'_>,
        call: usize,
        runner: &mut Runner<'_>,
    ) -> Result<()> {
        let (declared, number) = batch.declared(call);
        let items = match batch.gave_up(call) {
            Some(_) => &[],
            None => declared.items(number),
        };
        let parts = items.iter().fold(0, |parts, item| parts | division.touched(declared, item));
        let first = self.results.len() as u32;
        let mut made = CutCall { parts, missing: AtomicU32::new(1), first, end: first };
        let are_updates = || items.iter().all(|item| item.kind == Kind::Piece);
        if parts.count_ones() <= 1 {
            let part = if parts == 0 { call % division.workers } else { parts.ilog2() as usize };
            self.push(part, call, Of::Whole);
        } else if are_updates() && runner.commits_for_certain(call)? {
            for (update, item) in items.iter().enumerate() {
                let part = division.part(item.table, declared.key(item));
                self.push(part, call, Of::Update(update as u16));
            }
            self.results.resize_with(first as usize + items.len(), Default::default);
            made.end = self.results.len() as u32;
            made.missing = AtomicU32::new(items.len() as u32);
        } else {
            let touched = (0..division.workers).filter(|part| parts >> part & 1 == 1);
            touched.for_each(|part| self.push(part, call, Of::Rendezvous));
            made.missing = AtomicU32::new(parts.count_ones());
        }
        self.calls.push(made);
        Ok(())
    }

    fn push(&mut self, part: usize, call: usize, of: Of) {
        self.parts[part].push(Piece { call, of });
    }

    /// The pieces of a partition.
    pub(super) fn pieces(&self, part: usize) -> &[Piece] {
        &self.parts[part]
    }

    /// How many pieces there are.
    pub(super) fn len(&self) -> u64 {
        self.parts.iter().map(|pieces| pieces.len() as u64).sum()
    }

    fn call(&self, call: usize) -> &CutCall {
        &self.calls[call - self.first]
    }

    fn results(&self, call: usize) -> &[[AtomicU64; 2]] {
        let CutCall { first, end, .. } = *self.call(call);
        &self.results[first as usize..end as usize]
    }
}

/// The pieces of a batch, while they run.
pub(super) struct Cuts<'a> {
    pub(super) batch: &'a Batch<'a>,
    pub(super) division: &'a Division<'a>,
    pub(super) cuts: &'a [Cut],
}

impl<'a> Cuts<'a> {
    fn cut(&self, call: usize) -> &'a Cut {
        let size = share(self.batch.calls.len(), self.cuts.len(), 0).len();
        &self.cuts[call / size]
    }

    /// What the pieces of a call share.
    pub(super) fn call(&self, call: usize) -> &'a CutCall {
        self.cut(call).call(call)
    }

    /// The pieces of a partition, in the order of the batch.
    pub(super) fn pieces(&self, part: usize) -> impl Iterator<Item = Piece> + use<'a> {
        self.cuts.iter().flat_map(move |cut| cut.pieces(part)).copied()
    }

    /// What a call may access when it runs in all its partitions.
    pub(super) fn cover(&self, call: usize) -> Cover<'a> {
        Cover::Parts(self.division, self.call(call).parts)
    }

    /// Runs a call in all its partitions.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn run(&self, runner: &mut Runner<'a>, call: usize) -> Result<()> {
        runner.run_covered(call, self.cover(call))
    }

    /// Runs an update; the last one of a call makes the answer.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn update(&self, runner: &mut Runner<'a>, call: usize, update: u16) -> Result<()> {
        let update = usize::from(update);
        let result = runner.run_update(call, update, self.cover(call))?;
        let results = self.cut(call).results(call);
        for (word, value) in results[update].iter().zip(result) {
            word.store(value, Ordering::Relaxed);
        }
        if self.call(call).come() {
            let load =
                |result: &[AtomicU64; 2]| [0, 1].map(|word| result[word].load(Ordering::Relaxed));
            runner.finish_updates(call, &mut results.iter().map(load))?;
        }
        Ok(())
    }

    /// Asks for the rows of a piece.
    pub(super) fn prefetch(&self, piece: Piece) {
        let (tables, (declared, number)) = (self.batch.tables, self.batch.declared(piece.call));
        let items = declared.items(number);
        let items = match piece.of {
            Of::Update(update) => &items[usize::from(update)..=usize::from(update)],
            Of::Whole | Of::Rendezvous => items,
        };
        let rows = items.iter().filter_map(|item| tables.find(item.table, declared.key(item)));
        rows.for_each(|row| tables.row(row).prefetch());
    }
}
