//! A worker that runs calls on rows with one version, one after the other, each with its footprint
//! to itself.

use workloads::Workload;

use super::bodies::Bodies;
use super::engine::{Answers, Batch, BatchCounts, Worker};
use super::inplace::{Cover, InPlace};
use crate::error::Result;
use crate::procedure::Outcome;

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
        let outcome = match batch.gave_up(call) {
            Some(code) => Outcome::Aborted(code),
            None => {
                self.accesses.cover = Cover::Footprint(batch.footprint(call), batch.workload);
                let (declared, number) = batch.declared(call);
                let known = (batch.told(call), declared, number);
                let ended = self.bodies.run_whole(
                    batch.asked(call),
                    known,
                    &mut self.accesses,
                    self.output,
                );
                self.accesses.end(ended)?
            }
        };
        self.answer(call, outcome);
        Ok(())
    }

    fn answer(&mut self, call: usize, outcome: Outcome) {
        let output = match outcome {
            Outcome::Committed => self.output.as_slice(),
            Outcome::Aborted(_) => &[],
        };
        self.answers.push((call, call as u64), outcome, output);
    }
}
