//! The bytes of a call that runs several statements, and of its answer.

use super::super::call::{ZoneForm, encode_answer, encode_error};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sql::ir::{ObjectId, Space, Value};
use sql::run::{TemporaryRows, Writes};
use std::collections::BTreeMap;
use values::{Error, Result, Timestamp};

/// The code of an abort of a block in which a statement has another result than its client was
/// told: its payload is the place of the step.
pub(in super::super) const DIFFERS: u32 = 3;
/// The code of an abort by an error of one statement of several: its payload is a [`Failed`].
pub(in super::super) const ONE_REFUSED: u32 = 4;

/// Several statements, whose writes are all there or none.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Block<'a> {
    pub(in super::super) writes: WriteKeys,
    /// How many numbers of which sequences its statements get that no client was told.
    pub(in super::super) numbers: BTreeMap<ObjectId, u32>,
    /// `now()`, in microseconds since 2000.
    pub(in super::super) now: i64,
    /// Of all statements together.
    pub(in super::super) steps_max: u64,
    pub(in super::super) memory_bytes_max: u64,
    /// The plans, each once, in their own form.
    #[serde(borrow)]
    pub(in super::super) plans: Vec<&'a [u8]>,
    #[serde(borrow)]
    pub(in super::super) zones: Vec<ZoneForm<'a>>,
    pub(in super::super) steps: Vec<Step>,
}

/// What is declared of the rows that it writes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) enum WriteKeys {
    /// Nothing: it runs alone.
    Unknown,
    /// What its plans predict.
    Predicted,
    /// Rows that the run before wrote, and whether that deleted them.
    These(Vec<(Space, Vec<u8>, bool)>),
}

/// One thing that a block does.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) enum Step {
    Run(RunStep),
    /// A place to come back to: they are numbered from 0.
    Savepoint,
    /// Forgets what was written since that savepoint.
    RollBack(u32),
    /// A statement that passes by the rows with these keys, in order, as others had claimed them.
    Passing(RunStep, Vec<Vec<u8>>),
    /// SET CONSTRAINTS
    Constraints(Constraints),
    /// A statement that reads temporary tables, of which it is given the rows, and passes by others
    /// as another one does.
    Given(RunStep, Vec<Vec<u8>>, TemporaryRows),
}

/// When constraints are checked from here on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Constraints {
    /// Their names; none for all.
    pub(in super::super) names: Vec<String>,
    pub(in super::super) is_deferred: bool,
    /// Whether the client was told that those which waited hold.
    pub(in super::super) holds: bool,
}

/// A statement of a block, by the places of its plan and zone.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct RunStep {
    pub(in super::super) plan: u32,
    pub(in super::super) zone: u32,
    pub(in super::super) parameters: Vec<Value>,
    /// What the client was told; `None` if it was told nothing yet.
    pub(in super::super) told: Option<Told>,
}

impl Step {
    /// A statement, and the keys of the rows that it passes by.
    pub(in super::super) fn of_run(
        run: RunStep,
        passed: Vec<Vec<u8>>,
        given: TemporaryRows,
    ) -> Step {
        if !given.is_empty() {
            Step::Given(run, passed, given)
        } else if passed.is_empty() {
            Step::Run(run)
        } else {
            Step::Passing(run, passed)
        }
    }

    /// The rows of temporary tables that its statement is given, if any.
    pub(in super::super) fn given(&self) -> Option<&TemporaryRows> {
        match self {
            Step::Given(_, _, given) => Some(given),
            _ => None,
        }
    }

    /// The statement that it is, and the keys of the rows that this passes by.
    pub(in super::super) fn run(&self) -> Option<(&RunStep, &[Vec<u8>])> {
        match self {
            Step::Run(run) => Some((run, &[])),
            Step::Passing(run, passed) | Step::Given(run, passed, _) => Some((run, passed)),
            Step::Savepoint | Step::RollBack(_) | Step::Constraints(_) => None,
        }
    }
}

/// The result of a statement that its client knows.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Told {
    pub(in super::super) digest: Digest,
    /// The numbers of sequences that it took, in order.
    pub(in super::super) numbers: BTreeMap<ObjectId, Vec<u64>>,
}

/// The beginning of the SHA-256 of a result: of tag and rows, or of the code of an error.
pub(in super::super) type Digest = [u8; 16];

pub(in super::super) fn digest(result: Result<sql::run::Answer>) -> Digest {
    digest_with(result, &Writes::new())
}

/// That of a result together with what was written to temporary tables.
pub(in super::super) fn digest_with(result: Result<sql::run::Answer>, writes: &Writes) -> Digest {
    let mut hash = Sha256::new();
    if !writes.is_empty() {
        hash.update(b"temporary");
        hash.update(postcard::to_allocvec(writes).expect("a vector takes all"));
    }
    match result {
        Ok(answer) => {
            hash.update(b"answer");
            hash.update(encode_answer(answer));
        }
        Err(error) => {
            hash.update(b"error");
            hash.update(error.state().code());
        }
    }
    *hash.finalize().first_chunk().expect("it has 32 bytes")
}

/// That of a definition, with what it makes of the catalog.
pub(super) fn digest_of_definition(definition: &sql::Definition) -> Digest {
    let (tag, notice) = (definition.tag, &definition.notice);
    let values = definition.rows.iter().flatten().cloned().map(Value);
    let rows: Vec<Value> = values.collect();
    let made = postcard::to_allocvec(&(tag, notice, definition.delta.rows(), rows));
    let mut hash = Sha256::new();
    hash.update(b"definition");
    hash.update(made.expect("a vector takes all"));
    *hash.finalize().first_chunk().expect("it has 32 bytes")
}

/// The answers before an error, and the error.
#[derive(Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) answers: Vec<Vec<u8>>,
    pub(super) error: Vec<u8>,
}

impl Block<'_> {
    /// What the statement of a step runs in.
    pub(in super::super) fn context(&self, run: &RunStep) -> Result<sql::run::Context> {
        let zone = self.zones.get(run.zone as usize).ok_or_else(damaged)?;
        let parameters = run.parameters.iter().map(|value| value.0.clone()).collect();
        Ok(sql::run::Context { parameters, zone: zone.zone()?, ..self.plain_context()? })
    }

    /// What checks of constraints run in.
    pub(in super::super) fn plain_context(&self) -> Result<sql::run::Context> {
        Ok(sql::run::Context {
            limits: sql::run::Limits {
                memory_bytes_max: usize::try_from(self.memory_bytes_max).unwrap_or(usize::MAX),
                ..Default::default()
            },
            ..sql::run::Context::at(Timestamp::from_bits(self.now)?)
        })
    }

    /// The bytes of the plan of a step.
    pub(in super::super) fn plan(&self, run: &RunStep) -> Result<&[u8]> {
        self.plans.get(run.plan as usize).copied().ok_or_else(damaged)
    }
}

pub(in super::super) fn damaged() -> Error {
    Error::corrupted("call of a block is damaged")
}

pub(in super::super) fn encode_answers(answers: &[Vec<u8>]) -> Vec<u8> {
    postcard::to_allocvec(answers).expect("a vector takes all")
}

pub(in super::super) fn encode_failed(answers: Vec<Vec<u8>>, error: &Error) -> Vec<u8> {
    let failed = Failed { answers, error: encode_error(error) };
    postcard::to_allocvec(&failed).expect("a vector takes all")
}

/// The place of the step that has another result, if that is why a block did not commit.
pub(in super::super) fn differing(error: &nvcaracal::Error) -> Option<usize> {
    let abort = error.abort().filter(|abort| abort.code == DIFFERS)?;
    let bytes = abort.payload.first_chunk()?;
    Some(u32::from_le_bytes(*bytes) as usize)
}
