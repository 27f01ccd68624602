//! A block in its call: all statements once more, at its place in the serial order.

use super::super::call::MORE_NUMBERS;
use super::super::notices::form::Noticed;
use super::super::procedure::{Statements, refused};
use super::super::rows::{CallRows, DeclaredRows, Numbers, Steps, is_among};
use super::form::{
    Block, DIFFERS, ONE_REFUSED, Step, Told, WriteKeys, damaged, digest_with, encode_answers,
    encode_failed,
};
use nvcaracal::{Abort, Stop, Transaction, WriteSet};
use sql::ir::{Claim, ObjectId, Space};
use sql::run::{
    Buffer, Effect, Entry, Overlay, Rows, Scan, TemporaryRows, check_constraints, is_temporary_key,
};
use std::collections::BTreeMap;
use values::{Error, Result, SqlState};

/// The most bytes of the answers to one call.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The rows of a call, with the numbers that one statement of it took before.
pub(super) struct BlockRows<'c> {
    call: &'c mut dyn Rows,
    told: Option<&'c Told>,
    /// The keys of rows that it passes by, in order.
    passed: &'c [Vec<u8>],
    /// The rows of temporary tables.
    given: Option<&'c TemporaryRows>,
    used: BTreeMap<ObjectId, usize>,
    /// Whether it takes more than it took.
    pub(super) is_short: bool,
}

impl<'c> BlockRows<'c> {
    /// Those of a step, which is a statement.
    pub(super) fn of(call: &'c mut dyn Rows, step: &'c Step) -> BlockRows<'c> {
        let (run, passed) = step.run().expect("it is a statement");
        let (told, given) = (run.told.as_ref(), step.given());
        BlockRows { call, told, passed, given, used: BTreeMap::new(), is_short: false }
    }
}

impl Rows for BlockRows<'_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if is_temporary_key(space, key) {
            return Ok(self.given.and_then(|given| given.get(space, key)));
        }
        self.call.get(space, key)
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        if is_temporary_key(scan.space, scan.from) {
            self.given.into_iter().for_each(|given| given.scan(&scan, found));
            return Ok(());
        }
        self.call.scan(scan, found)
    }

    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.call.put(space, key, row)
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.call.delete(space, key)
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        let Some(told) = self.told else { return self.call.next(sequence) };
        let used = self.used.entry(sequence).or_default();
        let number = told.numbers.get(&sequence).and_then(|numbers| numbers.get(*used));
        *used += 1;
        self.is_short |= number.is_none();
        Ok(number.copied().unwrap_or_default())
    }

    fn passes_by(&mut self, key: &[u8], _claim: &Claim) -> Result<bool> {
        Ok(is_among(self.passed, key))
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.call.steps(count)
    }
}

/// How far a block has come.
struct Progress {
    /// The step that runs.
    at: usize,
    buffer: Buffer,
    savepoints: Vec<usize>,
    answers: Vec<Vec<u8>>,
    answers_bytes: usize,
}

impl Progress {
    fn new() -> Progress {
        Progress {
            at: 0,
            buffer: Buffer::of_block(),
            savepoints: Vec::new(),
            answers: Vec::new(),
            answers_bytes: 0,
        }
    }

    /// The error of a block of which the client was told nothing, behind its answers.
    fn refused(&mut self, error: &Error) -> Stop {
        let message = error.to_string().into();
        let payload = encode_failed(std::mem::take(&mut self.answers), error);
        Abort { message, payload, ..Abort::code(ONE_REFUSED) }.into()
    }

    /// The end of a block in which the step that runs has another result than its client was told.
    fn differs(&self) -> Stop {
        let at = u32::try_from(self.at).expect("steps are limited");
        Abort { payload: at.to_le_bytes().to_vec(), ..Abort::code(DIFFERS) }.into()
    }
}

impl Statements {
    /// Declares what a block writes. An error comes again when it runs, and ends it there.
    pub(in super::super) fn declare_block(
        &self,
        block: &Block<'_>,
        set: &mut WriteSet<'_, '_>,
    ) -> Result<()> {
        let (steps, numbers) = (Steps::new(block.steps_max), Numbers::new(&block.numbers));
        let mut rows = DeclaredRows { spaces: &self.spaces, set, steps, numbers };
        match &block.writes {
            WriteKeys::Unknown => rows.set.unknown(),
            WriteKeys::These(keys) => {
                for (space, key, deletes) in keys {
                    let effect = if *deletes { Effect::Delete } else { Effect::Insert };
                    rows.declare(*space, key, effect);
                }
            }
            WriteKeys::Predicted => {
                for step in &block.steps {
                    let Some((run, _)) = step.run() else { continue };
                    let (plan, context) = (self.plan(block.plan(run)?)?, block.context(run)?);
                    if plan.is_query() {
                        continue;
                    }
                    if !sql::run::is_predicted(&plan) {
                        rows.set.unknown();
                        return Ok(());
                    }
                    for written in sql::run::predict(&plan, &context, &mut rows)? {
                        rows.declare(written.space, &written.key, written.effect);
                    }
                }
            }
        }
        Ok(())
    }

    pub(in super::super) fn run_block(
        &self,
        block: &Block<'_>,
        tx: &mut Transaction<'_, '_>,
    ) -> Result<Vec<u8>, Stop> {
        let (steps, numbers) = (Steps::new(block.steps_max), Numbers::new(&block.numbers));
        let mut rows = self.rows(tx, steps, numbers, &[]);
        let mut progress = Progress::new();
        let ended = self.run_all(block, &mut rows, &mut progress);
        if let Some(stop) = rows.stopped {
            return Err(stop);
        }
        // What came of numbers that there were not is nothing: neither an answer nor an error.
        if let Some(wanted) = rows.numbers.missing() {
            let payload = postcard::to_allocvec(&wanted).expect("a vector takes all");
            return Err(Abort { payload, ..Abort::code(MORE_NUMBERS) }.into());
        }
        ended?;
        let applied = Overlay::over(&mut rows, progress.buffer).apply();
        let (serial, notices) = (rows.tx.serial_id(), rows.notices.take());
        match (rows.stopped, applied) {
            (Some(stop), _) => return Err(stop),
            (None, Err(error)) => return Err(refused(&error)),
            (None, Ok(())) => {}
        }
        let answers = encode_answers(&progress.answers);
        Ok(match self.notifies(block).map_err(|error| refused(&error))? {
            true => Noticed::encode(serial, notices, answers),
            false => answers,
        })
    }

    /// Whether a statement of a block notifies listeners, so that its answer says so.
    fn notifies(&self, block: &Block<'_>) -> Result<bool> {
        for plan in &block.plans {
            if self.plan(plan)?.notifies() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs all steps, and checks the constraints that were deferred.
    fn run_all(
        &self,
        block: &Block<'_>,
        rows: &mut CallRows<'_, '_, '_>,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        self.run_steps(block, rows, progress)?;
        if rows.stopped.is_some() {
            return Ok(());
        }
        let context = block.plain_context();
        let checked = context
            .and_then(|context| check_constraints(&mut progress.buffer, rows, &context, true));
        checked.map_err(|error| match progress.answers.is_empty() {
            true => refused(&error),
            false => progress.refused(&error),
        })
    }

    fn run_steps(
        &self,
        block: &Block<'_>,
        rows: &mut CallRows<'_, '_, '_>,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        for (at, step) in block.steps.iter().enumerate() {
            progress.at = at;
            match step {
                Step::Savepoint => progress.savepoints.push(progress.buffer.savepoint()),
                Step::RollBack(savepoint) => {
                    let mark = progress.savepoints.get(*savepoint as usize).copied();
                    match mark.filter(|mark| *mark <= progress.buffer.savepoint()) {
                        Some(mark) => progress.buffer.roll_back(mark),
                        None => return Err(refused(&damaged())),
                    }
                }
                Step::Run(_) | Step::Passing(..) | Step::Given(..) => {
                    self.run_step(block, step, rows, progress)?
                }
                Step::Constraints(set) => {
                    let context = block.plain_context().map_err(|error| refused(&error))?;
                    let result = set.run(&mut progress.buffer, rows, &context);
                    if rows.stopped.is_none() && result.is_ok() != set.holds {
                        return Err(progress.differs());
                    }
                }
            }
            if rows.stopped.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn run_step(
        &self,
        block: &Block<'_>,
        step: &Step,
        call: &mut CallRows<'_, '_, '_>,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        let (run, _) = step.run().expect("it is a statement");
        let told = run.told.as_ref();
        let mut rows = BlockRows::of(call, step);
        let mark = progress.buffer.savepoint();
        let mut overlay = Overlay::over(&mut rows, std::mem::take(&mut progress.buffer));
        let result = block
            .plan(run)
            .and_then(|plan| self.plan(plan))
            .and_then(|plan| sql::run::run(&plan, &block.context(run)?, &mut overlay));
        progress.buffer = overlay.into_buffer();
        let own = progress.buffer.temporary_since(mark);
        if result.is_err() || !own.is_empty() {
            // What has failed has written nothing, but may have notified listeners; temporary
            // tables are no call's.
            progress.buffer.roll_back(mark);
        }
        let is_short = rows.is_short;
        if call.stopped.is_some() {
            return Ok(());
        }
        if let Some(told) = told {
            if is_short || digest_with(result, &own) != told.digest {
                return Err(progress.differs());
            }
            return Ok(());
        }
        let answer = result.map(super::super::call::encode_answer).and_then(|answer| {
            progress.answers_bytes += answer.len();
            if progress.answers_bytes > ANSWER_BYTES_MAX {
                let message = format!("answers have more than {ANSWER_BYTES_MAX} bytes");
                let hint = "Send fewer statements at a time, or return fewer rows.";
                return Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint));
            }
            Ok(answer)
        });
        match answer {
            Ok(answer) => progress.answers.push(answer),
            Err(error) => return Err(progress.refused(&error)),
        }
        Ok(())
    }
}
