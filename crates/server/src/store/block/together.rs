//! Statements that arrive together: one call, of which nothing was seen before.

use super::super::call::{Call, ZoneForm};
use super::super::calls::{Numbers, TRIES_MAX};
use super::super::pending::{Answer, Promise, Watch};
use super::super::pipeline::Pipeline;
use super::super::shared::Inside;
use super::super::statement::{Planned, Statement, Way};
use super::super::temporary::given;
use super::answers::decode_answers;
use super::form::{Block, RunStep, Step, WriteKeys};
use super::operation::{Run, Together};
use super::state::said;
use sql::ir::Value;
use sql::run::Writes;
use std::sync::Arc;
use values::{Error, Result, Timestamp};

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
                Way::Own { .. } => unreachable!("it is no part of a call"),
            }
        }
        if is_counted {
            // It says how many it takes: what a try takes that is repeated would be holes.
            numbers.clear();
        }
        let is_write = |run: &&Run| !planned(run).plan.is_query();
        let is_predicted = |run: &Run| {
            !run.statement.uses_temporary() && sql::run::is_predicted(&planned(run).plan)
        };
        // A deferred call would take its numbers twice: what takes any runs alone.
        let is_predicted =
            !is_counted && numbers.is_empty() && runs.iter().filter(is_write).all(is_predicted);
        let notifies = runs.iter().any(|run| planned(run).notifies);
        let statements: Vec<_> = runs.iter().map(|run| Arc::clone(&run.statement)).collect();
        let read = move |answer| read_all(&statements, answer);
        let bytes = |numbers| self.block_of(&runs, now, is_predicted, numbers);
        if is_counted {
            let tries_max = TRIES_MAX.saturating_add(runs.len() as u32);
            let answer = self.counted_call(bytes, numbers, notifies, tries_max).await;
            results.set(answer.map_or_else(|error| vec![Err(error)], read));
            return promise.answer(Ok(said("")));
        }
        let bytes = match bytes(numbers) {
            Ok(bytes) => bytes,
            Err(error) => {
                results.set(vec![Err(error)]);
                return promise.answer(Ok(said("")));
            }
        };
        let submitter = self.submitter(is_predicted);
        let submitted = submitter.submit_raw_async(self.shared.procedure, &bytes);
        let read = Box::new(move |answer| {
            results.set(read(answer));
            Ok(said(""))
        });
        self.called(submitted, notifies, promise, read).await;
    }

    /// Goes through the gate with plans for the catalog of now.
    async fn enter_with_all(&self, runs: &mut [Run], watch: &Watch) -> Result<Inside<'_>> {
        watch.interrupt().check_own()?;
        loop {
            let version = self.shared.catalog().version();
            self.plan_all(runs)?;
            // Rows that others have are passed by.
            let claims = runs.iter().flat_map(|run| &planned(run).claims);
            self.await_tables(claims, watch).await?;
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
        let (options, temporary) = (&self.shared.options, self.temporary());
        let step = |(at, run): (usize, &Run)| {
            let place = u32::try_from(at).expect("statements are limited");
            let parameters = run.parameters.iter().cloned().map(Value).collect();
            let passed = self.shared.claims.passed(&planned(run).claims)?;
            let step = RunStep { plan: place, zone: place, parameters, told: None };
            let given = given(&planned(run).places, &temporary, &Writes::new())?;
            Ok(Step::of_run(step, passed, given))
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

/// The answers to these statements, as far as they have come.
fn read_all(
    statements: &[Arc<Statement>],
    answer: nvcaracal::Result<Vec<u8>>,
) -> Vec<Result<Answer>> {
    let answers = decode_answers(answer).into_iter().enumerate();
    let said = |(at, answer): (usize, sql::run::Answer)| match statements.get(at) {
        Some(statement) => statement.said(answer.into()),
        None => answer.into(),
    };
    answers.map(|(at, result)| result.map(|answer| said((at, answer)))).collect()
}
