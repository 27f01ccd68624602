//! What a connection does with its block.

use super::super::pending::Answer;
use super::super::pool::lock;
use super::super::services::QueryServices;
use super::super::statement::Statement;
use sql::ir::{ObjectId, Wait};
use sql::parse::{LockMode, SetConstraints};
use sql::system::Session;
use std::sync::{Arc, Mutex};
use values::{Datum, Error, Result, SqlState, Timestamp, Zone};

/// How a block runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Whether all its statements read the same snapshot: REPEATABLE READ and SERIALIZABLE.
    pub keeps_snapshot: bool,
    /// Whether it may not write.
    pub is_read_only: bool,
}

impl Modes {
    /// Checks whether a transaction with these modes may change to `wanted` behind a query.
    ///
    /// # Errors
    /// That it would read something else, or write after all.
    pub(crate) fn check_late(self, wanted: Modes) -> Result<()> {
        let reads_the_same = self.keeps_snapshot == wanted.keeps_snapshot;
        if reads_the_same && (wanted.is_read_only || !self.is_read_only) {
            return Ok(());
        }
        let message = "the modes of a transaction must be set before any query";
        Err(Error::new(SqlState::ACTIVE_TRANSACTION, message))
    }
}

/// A statement with its values.
pub(in super::super) struct Run {
    pub(super) statement: Arc<Statement>,
    pub(super) parameters: Vec<Datum>,
    pub(super) zone: Zone,
    pub(super) session: Arc<Session>,
    /// What the server does for it; `None` of one that asks for nothing.
    pub(super) services: Option<Arc<QueryServices>>,
}

/// What a connection does with its block.
pub enum BlockOperation {
    /// BEGIN: there must be no block.
    Begin(Modes),
    /// SET TRANSACTION: READ ONLY at any time, other modes before the first statement.
    Set(Modes),
    /// SAVEPOINT
    Savepoint(String),
    /// ROLLBACK TO
    RollBackTo(String),
    /// RELEASE
    Release(String),
    /// LOCK TABLE of these tables
    Lock(Vec<ObjectId>, LockMode, Wait),
    /// SET CONSTRAINTS
    Constraints(SetConstraints),
    /// DISCARD TEMP, also outside of a block
    DiscardTemporary,
    /// COMMIT: afterwards there is no block, whatever the answer is.
    Commit,
    /// ROLLBACK
    RollBack,
}

/// One thing to do with a block.
pub(in super::super) enum Operation {
    Of(BlockOperation, Timestamp),
    Run(Run),
    Together(Together),
}

/// Statements that are all there or none, of which no client has seen anything.
pub(in super::super) struct Together {
    pub(super) runs: Vec<Run>,
    pub(super) now: Timestamp,
    pub(super) results: Results,
}

/// The results of several statements: the last may be an error, which undid the others.
#[derive(Clone, Default)]
pub struct Results(Arc<Mutex<Vec<Result<Answer>>>>);

impl Results {
    /// Those that have come.
    pub fn take(&self) -> Vec<Result<Answer>> {
        std::mem::take(&mut *lock(&self.0))
    }

    pub(super) fn set(&self, results: Vec<Result<Answer>>) {
        *lock(&self.0) = results;
    }
}

impl Together {
    pub(in super::super) fn new(runs: Vec<Run>, now: Timestamp, results: Results) -> Together {
        Together { runs, now, results }
    }
}

impl Run {
    pub(in super::super) fn new(
        statement: Arc<Statement>,
        parameters: Vec<Datum>,
        zone: Zone,
        session: Arc<Session>,
        services: Option<Arc<QueryServices>>,
    ) -> Run {
        Run { statement, parameters, zone, session, services }
    }
}
