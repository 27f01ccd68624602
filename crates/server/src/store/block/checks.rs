//! What a statement of a block may not do, as its COMMIT could not do it again.

use super::super::statement::{Planned, Statement};
use super::operation::Run;
use super::state::BlockState;
use values::{Error, Result, SqlState};

impl BlockState {
    /// Refuses what writes where nothing may be written, and what takes locks or sleeps for rows of
    /// tables, as COMMIT reads them again.
    pub(super) fn check_kind(&self, statement: &Statement, planned: &Planned) -> Result<()> {
        let is_own = statement.is_own();
        let (is_query, notifies) = (planned.plan.is_query() || is_own, planned.notifies);
        let takes = planned.plan.numbers().keys().any(|id| !id.is_temporary());
        let has_effect = !is_query || notifies || takes;
        if self.modes.is_read_only && has_effect {
            let what = match (is_query, notifies) {
                (true, false) => "nextval()",
                (true, true) => "pg_notify()",
                (false, _) => planned.plan.command(),
            };
            let message = format!("cannot execute {what} in a read-only transaction");
            return Err(Error::new(SqlState::READ_ONLY_TRANSACTION, message));
        }
        if !statement.has_effects() || !self.reads_beside_tables(statement) {
            return Ok(());
        }
        Err(Error::unsupported(
            "advisory locks and pg_sleep in a query of tables, in a block that may write",
            "Begin the block with READ ONLY, or call them in a query without tables.",
        ))
    }

    /// Whether the answer of its call says what it tells listeners.
    pub(super) fn notifies(&self) -> bool {
        let planned = self.plans.iter().filter_map(|statement| statement.planned.as_ref());
        planned.into_iter().any(|planned| planned.notifies)
    }
}

impl Run {
    /// Whether it has ended only to wait for a lock.
    pub(super) fn waits(&self) -> bool {
        self.services.as_ref().is_some_and(|services| services.wants())
    }
}
