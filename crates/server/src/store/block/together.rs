//! Statements that arrive together: one call, of which nothing was seen before.

use super::super::call::{Call, MORE_NUMBERS, ZoneForm};
use super::super::failure;
use super::super::pending::{Answer, Promise, Watch};
use super::super::pipeline::{Pipeline, TRIES_MAX};
use super::super::shared::Inside;
use super::super::statement::{Planned, Statement, Way};
use super::answers::decode_answers;
use super::form::{Block, RunStep, Step, WriteKeys};
use super::operation::{Run, Together};
use super::state::said;
use nvcaracal::Ticket;
use sql::ir::{ObjectId, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use values::{Error, Result, SqlState, Timestamp};

type Numbers = BTreeMap<ObjectId, u32>;

fn planned(run: &Run) -> &Planned {
    run.statement.planned.as_ref().expect("definitions were refused")
}

impl Pipeline {
    pub(super) async fn together(&self, together: Together, promise: Promise) {
        let Together { mut runs, now, results } = together;
        let _inside = match self.enter_with_all(&mut runs, &promise.watch(false)).await {
            Ok(inside) => inside,
            Err(error) => {
                results.set(vec![Err(error)]);
                return promise.answer(Ok(said("")));
            }
        };
        let mut numbers = Numbers::new();
        let mut is_counted = false;
        for run in &runs {
            match &planned(run).way {
                Way::Call { numbers: own, .. } => {
                    own.iter().for_each(|(id, count)| *numbers.entry(*id).or_default() += count);
                }
                Way::Counted => is_counted = true,
                Way::Query | Way::Lookup => {}
            }
        }
        if is_counted {
            // It says how many it takes: what a try takes that is repeated would be holes.
            numbers.clear();
        }
        let is_write = |run: &&Run| !planned(run).plan.is_query();
        let is_predicted = |run: &Run| sql::run::is_predicted(&planned(run).plan);
        // A deferred call would take its numbers twice: what takes any runs alone.
        let is_predicted =
            !is_counted && numbers.is_empty() && runs.iter().filter(is_write).all(is_predicted);
        let tries_max = TRIES_MAX.saturating_add(runs.len() as u32);
        for tried in 0..tries_max {
            let ticket = match self.call_of(&runs, now, is_predicted, numbers.clone()).await {
                Ok(ticket) => ticket,
                Err(error) => {
                    results.set(vec![Err(error)]);
                    return promise.answer(Ok(said("")));
                }
            };
            if !is_counted {
                let read = move |answer| {
                    results.set(read(answer));
                    Ok(said(""))
                };
                return self.last.set(promise.call_with(ticket, Box::new(read)));
            }
            let answer = ticket.await;
            let wanted = match &answer {
                Err(error) => error.abort().filter(|abort| abort.code == MORE_NUMBERS),
                Ok(_) => None,
            };
            let Some(Ok(wanted)) =
                wanted.map(|abort| postcard::from_bytes::<Numbers>(&abort.payload))
            else {
                results.set(read(answer));
                return promise.answer(Ok(said("")));
            };
            // Rows that come meanwhile want more: later tries have some to spare.
            let with_more =
                |(id, count): (ObjectId, u32)| (id, count + (count >> 3) * tried.min(8));
            numbers = wanted.into_iter().map(with_more).collect();
        }
        let message = "could not count the numbers that the statements take, as their rows change";
        results.set(vec![Err(Error::new(SqlState::SERIALIZATION_FAILURE, message))]);
        promise.answer(Ok(said("")));
    }

    /// Submits the statements as one call.
    async fn call_of(
        &self,
        runs: &[Run],
        now: Timestamp,
        is_predicted: bool,
        numbers: Numbers,
    ) -> Result<Ticket<Vec<u8>>> {
        let bytes = self.block_of(runs, now, is_predicted, numbers)?;
        let submitter = self.submitter(is_predicted);
        let called = submitter.submit_raw_async(self.shared.procedure, &bytes).await;
        called.map_err(|error| failure::of_call(&error))
    }

    /// Goes through the gate with plans for the catalog of now.
    async fn enter_with_all(&self, runs: &mut [Run], watch: &Watch) -> Result<Inside<'_>> {
        watch.interrupt().check_own()?;
        loop {
            let version = self.shared.catalog().version();
            self.plan_all(runs)?;
            let writes = runs.iter().flat_map(|run| planned(run).writes.iter().copied());
            let inside = self.shared.enter(watch, &writes.collect()).await?;
            if self.shared.catalog().version() == version {
                return Ok(inside);
            }
        }
    }

    /// Plans for the catalog of now, if others are.
    fn plan_all(&self, runs: &mut [Run]) -> Result<()> {
        let catalog = self.shared.catalog();
        for run in runs {
            let statement: &Arc<Statement> = &run.statement;
            if statement.planned.is_none() {
                let message = "a definition is no part of one call";
                return Err(Error::unsupported(message, "Run it in a block."));
            }
            if statement.version != catalog.version() {
                let again = self.shared.again(statement, &catalog)?;
                statement.check_same(&again)?;
                run.statement = again;
            }
        }
        Ok(())
    }

    fn block_of(
        &self,
        runs: &[Run],
        now: Timestamp,
        is_predicted: bool,
        numbers: Numbers,
    ) -> Result<Vec<u8>> {
        let options = &self.shared.options;
        let step = |(at, run): (usize, &Run)| {
            let place = u32::try_from(at).expect("statements are limited");
            let parameters = run.parameters.iter().cloned().map(Value).collect();
            let passed = self.shared.claims.passed(&planned(run).claims)?;
            let step = RunStep { plan: place, zone: place, parameters, told: None };
            Ok(Step::of_run(step, passed))
        };
        let steps = runs.iter().enumerate().map(step).collect::<Result<Vec<_>>>()?;
        let call = Call::Block(Block {
            writes: if is_predicted { WriteKeys::Predicted } else { WriteKeys::Unknown },
            numbers,
            now: now.bits(),
            steps_max: options.steps_max,
            memory_bytes_max: options.memory_bytes_max as u64,
            plans: runs.iter().map(|run| &planned(run).bytes[..]).collect(),
            zones: runs.iter().map(|run| ZoneForm::of(&run.zone)).collect(),
            steps,
        });
        Ok(call.encode())
    }
}

fn read(answer: nvcaracal::Result<Vec<u8>>) -> Vec<Result<Answer>> {
    decode_answers(answer).into_iter().map(|result| result.map(Answer::from)).collect()
}
