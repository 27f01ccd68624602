//! Blocks of a session: BEGIN to COMMIT or ROLLBACK.

use super::conversation::Conversation;
use super::queue::Outcome;
use super::sending::outcome;
use super::settings::{Settings, joined};
use super::standing::{Savepoint, Standing};
use crate::codec::Severity;
use crate::store::{BlockOperation, Control};
use sql::parse::BlockModes;
use std::time::Duration;
use values::{Error, Result, SqlState};

impl Conversation {
    pub(super) fn is_in_block(&self) -> bool {
        self.block.standing != Standing::Idle
    }

    /// Sends ReadyForQuery, after the settings that have changed.
    pub(super) fn ready(&mut self) {
        if !self.settings.is_as(&self.reported) {
            self.settings.report(Some(&self.reported), &mut self.out);
            self.registered.requests.activity.is_called(self.settings.application());
            self.reported = self.settings.clone();
        }
        let standing = match self.block.standing {
            Standing::Idle => b'I',
            Standing::Open => b'T',
            Standing::Failed => b'E',
        };
        if standing != b'I' {
            // Outside of a block statements may run still: `Sending` says when they have.
            self.registered.requests.activity.waits(standing, self.connection.now());
        }
        self.out.ready(standing);
    }

    /// Fails the transaction after an error: an open block runs no further statement, and changes
    /// of settings are undone. Its answers may depend on the catalog.
    pub(super) fn fail_block(&mut self) {
        if self.block.standing == Standing::Open {
            self.connection.saw_catalog(self.catalog_version);
            self.block.standing = Standing::Failed;
            self.connection.release_failed();
            self.connection.transaction_ends(true);
        }
        if self.block.standing == Standing::Idle {
            // The rest of the segment does not run.
            self.end_cursors(false);
        }
        self.undo_changes();
    }

    /// Whether a statement is within a transaction that continues after it, so that an effect which
    /// ends with the transaction makes sense.
    pub(super) fn is_within_more(&self) -> bool {
        self.is_one_of_several || self.is_in_block() && !self.block.is_implicit
    }

    /// Warns that the effect of the command `name` ends at once, outside of a longer transaction.
    pub(super) fn warn_alone(&mut self, name: &str) {
        if !self.is_within_more() {
            let message = format!("{name} can only be used in transaction blocks");
            self.warn(SqlState::NO_ACTIVE_TRANSACTION, &message);
        }
    }

    /// Refuses a statement that must be a transaction of its own.
    pub(super) fn check_alone(&self, name: &str) -> Result<()> {
        let is_first = !self.block.has_run && !self.depends_on_end();
        if is_first && !self.is_in_block() && !self.is_one_of_several {
            return Ok(());
        }
        let message = format!("{name} cannot run inside a transaction block");
        Err(Error::new(SqlState::ACTIVE_TRANSACTION, message))
    }

    /// Refuses all but the end of a failed block.
    pub(super) fn check_block(&self, control: Option<&Control>) -> Result<()> {
        let ends = matches!(
            control,
            Some(Control::Commit(_) | Control::Rollback(_) | Control::RollbackTo(_))
        );
        if self.block.standing != Standing::Failed || ends {
            return Ok(());
        }
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        Err(Error::new(SqlState::FAILED_TRANSACTION, message))
    }

    /// The current idle timeout of the client; `None` for no limit.
    pub(super) fn patience(&self) -> Option<Duration> {
        let limit = self.settings.idle_in_transaction();
        limit.filter(|_| self.is_in_block())
    }

    /// Executes a statement about blocks; `None` for any other statement.
    pub(super) async fn block_control(
        &mut self,
        control: &Control,
    ) -> Result<Option<&'static str>> {
        self.check_block(Some(control))?;
        Ok(Some(match control {
            Control::Begin(modes) => self.begin(modes, "BEGIN").await?,
            Control::Start(modes) => self.begin(modes, "START TRANSACTION").await?,
            Control::SetTransaction(modes) => {
                self.warn_alone("SET TRANSACTION");
                self.set_modes(modes).await?;
                "SET"
            }
            Control::Set(name, values) | Control::SetLocal(name, values) => {
                let value = joined(name, values)?;
                let modes = Settings::modes_of(name, Some(&value))?;
                if matches!(control, Control::SetLocal(..)) {
                    self.warn_alone("SET LOCAL");
                }
                let Some(modes) = modes else { return Ok(None) };
                self.set_modes(&modes).await?;
                "SET"
            }
            Control::SetDefault { name, is_local } => {
                if *is_local {
                    self.warn_alone("SET LOCAL");
                }
                if !self.reset_mode(name).await? {
                    return Ok(None);
                }
                "SET"
            }
            Control::Reset(Some(name)) => {
                if !self.reset_mode(name).await? {
                    return Ok(None);
                }
                "RESET"
            }
            Control::Commit(chain) => {
                self.check_end(*chain)?;
                self.commit(*chain).await?
            }
            Control::Rollback(chain) => {
                self.check_end(*chain)?;
                self.roll_back(*chain).await?
            }
            Control::Lock(lock) => self.lock_tables(lock).await?,
            Control::Savepoint(name) => {
                self.within("SAVEPOINT", BlockOperation::Savepoint(name.clone())).await?;
                let (settings, lasting) = (self.settings.clone(), self.block.lasting.clone());
                let (name, channels) = (name.clone(), self.block.channels.len());
                self.block.savepoints.push(Savepoint { name, settings, lasting, channels });
                "SAVEPOINT"
            }
            Control::Release(name) => {
                self.within("RELEASE SAVEPOINT", BlockOperation::Release(name.clone())).await?;
                self.keep_cursors_since(name);
                "RELEASE"
            }
            Control::RollbackTo(name) => {
                let back = BlockOperation::RollBackTo(name.clone());
                self.within("ROLLBACK TO SAVEPOINT", back).await?;
                self.close_cursors_since(name);
                self.undo_changes();
                self.block.standing = Standing::Open;
                "ROLLBACK"
            }
            _ => return Ok(None),
        }))
    }

    /// Gives the transaction that runs the mode that it has on PostgreSQL behind RESET. False of
    /// settings that are no modes.
    async fn reset_mode(&mut self, name: &str) -> Result<bool> {
        let Some(modes) = Settings::modes_of(name, None)? else { return Ok(false) };
        if modes.level.is_some() {
            self.warn_alone("RESET TRANSACTION");
        }
        self.set_modes(&modes).await?;
        Ok(true)
    }

    async fn within(
        &mut self,
        what: &'static str,
        operation: BlockOperation,
    ) -> Result<&'static str> {
        if !self.is_in_block() || self.block.is_implicit {
            let message = format!("{what} can only be used in transaction blocks");
            return Err(Error::new(SqlState::NO_ACTIVE_TRANSACTION, message));
        }
        self.connection.block(operation).await?;
        Ok(what)
    }

    pub(super) async fn begin(
        &mut self,
        asked: &BlockModes,
        tag: &'static str,
    ) -> Result<&'static str> {
        if self.is_in_block() {
            if !self.block.is_implicit {
                let message = "there is already a transaction in progress";
                self.warn(SqlState::ACTIVE_TRANSACTION, message);
            }
            if *asked != BlockModes::default() {
                self.set_modes(asked).await?;
            }
            // If the modes are refused, the block ends with its segment.
            self.block.is_implicit = false;
            return Ok(tag);
        }
        self.begin_transaction();
        let modes = self.changed_modes(asked)?;
        self.open(modes).await?;
        Ok(tag)
    }

    /// Begins a block that ends with its segment.
    pub(super) async fn open_implicit(&mut self) -> Result<()> {
        self.open(self.settings.modes()).await?;
        self.block.is_implicit = true;
        Ok(())
    }

    pub(super) async fn commit(&mut self, chain: bool) -> Result<&'static str> {
        match self.block.standing {
            Standing::Idle => {
                self.end_block(true);
                return Ok("COMMIT");
            }
            Standing::Failed => return self.roll_back(chain).await,
            Standing::Open => {}
        }
        let modes = self.settings.modes();
        let begun = match self.listen_early() {
            Ok(begun) => begun,
            Err(error) => {
                self.roll_back(false).await?;
                return Err(error);
            }
        };
        let pending = self.connection.block(BlockOperation::Commit);
        let committed = outcome(Outcome::Pending(pending), self.ends_by(self.deadline())).await;
        if committed.is_err() {
            self.never_listened(&begun);
        }
        self.end_block(committed.is_ok());
        committed?;
        if chain {
            self.open(modes).await?;
        }
        Ok("COMMIT")
    }

    pub(super) async fn roll_back(&mut self, chain: bool) -> Result<&'static str> {
        if !self.is_in_block() {
            self.end_block(false);
            return Ok("ROLLBACK");
        }
        // As on PostgreSQL: what is behind a savepoint goes, and a block that has failed hands on
        // only the modes that it began with.
        let own = match (self.block.savepoints.first(), self.block.standing) {
            (Some(savepoint), _) => Some(savepoint.settings.modes()),
            (None, Standing::Failed) => self.block.begun,
            (None, _) => None,
        };
        let modes = own.unwrap_or_else(|| self.settings.modes());
        let ended = self.connection.block(BlockOperation::RollBack).await;
        self.end_block(false);
        ended?;
        if chain {
            self.open(modes).await?;
        }
        Ok("ROLLBACK")
    }

    /// Checks a COMMIT or ROLLBACK that its client sends. A block that no BEGIN has begun is none
    /// for its client.
    fn check_end(&mut self, chain: bool) -> Result<()> {
        if self.is_in_block() && !self.block.is_implicit {
            return Ok(());
        }
        if chain {
            let message = "AND CHAIN can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_TRANSACTION, message));
        }
        self.warn(SqlState::NO_ACTIVE_TRANSACTION, "there is no transaction in progress");
        Ok(())
    }

    /// Ends the transaction of the session, with or without an open block.
    pub(super) fn end_block(&mut self, has_committed: bool) {
        self.portals.clear();
        self.connection.transaction_ends(false);
        self.end_cursors(has_committed);
        self.end_changes(has_committed);
    }

    /// Sends a warning, if the client wants to see any.
    pub(super) fn warn(&mut self, state: SqlState, message: &str) {
        if self.settings.wants_warnings() {
            self.out.report(Severity::Warning, &Error::new(state, message));
        }
    }
}
