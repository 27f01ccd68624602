//! A worker that runs calls on rows with one version, one after the other, each with its footprint
//! to itself.

use workloads::{PieceResult, Workload};

use super::bodies::Bodies;
use super::engine::{Answers, Batch, BatchCounts, Worker};
use super::inplace::{Cover, InPlace};
use crate::error::{Error, Result};
use crate::rival::Stop;
use crate::run::procedure::{Outcome, Part, ToldOfPiece};

/// See the module's documentation.
pub(super) struct Runner<'a> {
    batch: &'a Batch<'a>,
    bodies: Bodies<InPlace<'a>>,
    accesses: InPlace<'a>,
    answers: &'a mut Answers,
    output: &'a mut Vec<u8>,
    pub(super) counts: &'a mut BatchCounts,
}

impl<'a> Runner<'a> {
    pub(super) fn new<W: Workload>(
        batch: &'a Batch<'a>,
        workload: &W,
        worker: &'a mut Worker,
    ) -> Self {
        let Worker { pool, answers, scratch, counts, output } = worker;
        let mut bodies = Bodies::default();
        workload.register(&mut bodies);
        let accesses = InPlace { tables: batch.tables, cover: Cover::All, pool, scratch };
        Self { batch, bodies, accesses, answers, output, counts }
    }

    /// Asks for the rows of a call.
    pub(super) fn prefetch(&self, call: usize) {
        let rows = self.batch.footprint(call).iter().filter_map(|access| access.target.row());
        rows.for_each(|row| self.batch.tables.row(row).prefetch());
    }

    /// Runs a call and answers it.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn run(&mut self, call: usize) -> Result<()> {
        let batch = self.batch;
        self.run_covered(call, Cover::Footprint(batch.footprint(call), batch.workload))
    }

    /// Runs a call that may access this, and answers it.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn run_covered(&mut self, call: usize, cover: Cover<'a>) -> Result<()> {
        let batch = self.batch;
        let outcome = match batch.gave_up(call) {
            Some(code) => Outcome::Aborted(code),
            None => {
                self.accesses.cover = cover;
                let known = batch.call(call);
                let ended = self.bodies.run_whole(known, &mut self.accesses, self.output);
                self.accesses.end(ended)?
            }
        };
        self.answer(call, outcome);
        Ok(())
    }

    /// Whether a call whose body accesses no rows will commit, which nothing else decides.
    ///
    /// # Errors
    /// The engine's failure; a body that does access rows.
    pub(super) fn commits_for_certain(&mut self, call: usize) -> Result<bool> {
        self.accesses.cover = Cover::Footprint(&[], self.batch.workload);
        let (asked, told) = (self.batch.asked(call), self.batch.told(call));
        let ended = self.bodies.run(asked, told, &mut self.accesses, self.output);
        Ok(self.accesses.end(ended)? == Outcome::Committed)
    }

    /// Runs an update that a call left to a piece; what it came to.
    ///
    /// # Errors
    /// The engine's failure. An update that gives up is a mistake.
    pub(super) fn run_update(
        &mut self,
        call: usize,
        update: usize,
        cover: Cover<'a>,
    ) -> Result<PieceResult> {
        let (declared, number) = self.batch.declared(call);
        let item = &declared.items(number)[update];
        self.accesses.cover = cover;
        let (table, key) = (item.table, declared.key(item));
        let told = self.batch.told(call);
        let of_piece = ToldOfPiece { results: &[], sequences: &told };
        let mut part = Part::new(&mut self.accesses, table, key, of_piece);
        let result = self.bodies.run_piece(self.batch.asked(call), update, &mut part);
        let (ended, result) = match part.end(result) {
            Ok(result) => (Ok(()), result),
            Err(stop) => (Err(stop), [0; 2]),
        };
        match self.accesses.end(ended)? {
            Outcome::Committed => Ok(result),
            Outcome::Aborted(code) => {
                Err(Error::Broken(format!("an update of call {call} gave up: {code}")))
            }
        }
    }

    /// Answers a call whose updates have all run.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn finish_updates(
        &mut self,
        call: usize,
        results: &mut dyn Iterator<Item = PieceResult>,
    ) -> Result<()> {
        let committed = self.commits_for_certain(call)?;
        assert!(committed, "a body without accesses comes to the same each time");
        self.bodies.finish(self.batch.asked(call), results, self.output);
        self.answer(call, Outcome::Committed);
        Ok(())
    }

    /// Runs a call that may access this, and answers it with a place in the serial order; false,
    /// and it is as if it had not run, if it wants to access something else.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn try_run(&mut self, call: usize, serial: u64, cover: Cover<'a>) -> Result<bool> {
        let batch = self.batch;
        self.accesses.cover = cover;
        let known = batch.call(call);
        let ended = self.bodies.run_whole(known, &mut self.accesses, self.output);
        if let Err(Stop::Conflict) = ended {
            self.accesses.roll_back();
            return Ok(false);
        }
        let outcome = self.accesses.end(ended)?;
        self.answer_at(call, serial, outcome);
        Ok(true)
    }

    fn answer(&mut self, call: usize, outcome: Outcome) {
        self.answer_at(call, call as u64, outcome);
    }

    fn answer_at(&mut self, call: usize, serial: u64, outcome: Outcome) {
        let output = match outcome {
            Outcome::Committed => self.output.as_slice(),
            Outcome::Aborted(_) => &[],
        };
        self.answers.push(call, serial, outcome, output);
    }
}
