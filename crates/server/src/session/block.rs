//! Blocks of a session: BEGIN to COMMIT or ROLLBACK.

use super::conversation::Conversation;
use super::queue::Outcome;
use super::sending::outcome;
use super::standing::{Savepoint, Standing};
use crate::codec::Severity;
use crate::store::{BlockOperation, Control, Modes};
use sql::parse::BlockModes;
use std::time::Duration;
use values::{Error, Result, SqlState};

impl Conversation {
    pub(super) fn is_in_block(&self) -> bool {
        self.block.standing != Standing::Idle
    }

    /// Says that the next statement may come, and before that which settings have changed.
    pub(super) fn ready(&mut self) {
        if !self.settings.is_as(&self.reported) {
            self.settings.report(Some(&self.reported), &mut self.out);
            self.reported = self.settings.clone();
        }
        self.out.ready(match self.block.standing {
            Standing::Idle => b'I',
            Standing::Open => b'T',
            Standing::Failed => b'E',
        });
    }

    /// Fails the transaction, as an error ends it: an open block goes no further, and changes of
    /// settings are undone. What its client is told may depend on the catalog.
    pub(super) fn fail_block(&mut self) {
        if self.block.standing == Standing::Open {
            self.connection.saw_catalog(self.catalog_version);
            self.block.standing = Standing::Failed;
        }
        self.undo_changes();
    }

    /// The modes of a transaction that states none, and its level.
    fn default_modes(&self) -> (Modes, String) {
        let level = self.settings.default_level();
        let is_read_only = self.settings.default_is_read_only();
        (Modes { keeps_snapshot: keeps_snapshot(level), is_read_only }, level.to_owned())
    }

    /// Whether statements between two Syncs, or of one text, read one snapshot, as no block is open
    /// that says otherwise.
    pub(super) fn keeps_snapshot(&self) -> bool {
        !self.is_in_block() && keeps_snapshot(self.settings.default_level())
    }

    /// Whether what runs next may only read.
    pub(super) fn is_read_only(&self) -> bool {
        match self.is_in_block() {
            true => self.block.modes.is_read_only,
            false => self.settings.default_is_read_only(),
        }
    }

    /// Refuses what does not end a block that has failed.
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

    /// How long the client may do nothing now; `None` for as long as it likes.
    pub(super) fn patience(&self) -> Option<Duration> {
        let limit = self.settings.idle_in_transaction();
        limit.filter(|_| self.is_in_block())
    }

    /// Does what a statement says about blocks; `None` of one that says nothing about them.
    pub(super) async fn block_control(
        &mut self,
        control: &Control,
    ) -> Result<Option<&'static str>> {
        self.check_block(Some(control))?;
        Ok(Some(match control {
            Control::Begin(modes) => self.begin(modes, "BEGIN").await?,
            Control::Start(modes) => self.begin(modes, "START TRANSACTION").await?,
            Control::SetTransaction(modes) => self.set_modes(modes).await?,
            Control::Set(name, value) | Control::SetLocal(name, value) => {
                match self.settings.modes_of(name, value)? {
                    Some(modes) => self.set_modes(&modes).await?,
                    None => return Ok(None),
                }
            }
            Control::Commit(chain) => {
                self.check_end(*chain)?;
                self.commit(*chain).await?
            }
            Control::Rollback(chain) => {
                self.check_end(*chain)?;
                self.roll_back(*chain).await?
            }
            Control::Savepoint(name) => {
                self.within("SAVEPOINT", BlockOperation::Savepoint(name.clone())).await?;
                let (settings, lasting) = (self.settings.clone(), self.block.lasting.clone());
                self.block.savepoints.push(Savepoint { name: name.clone(), settings, lasting });
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
        let (modes, level) = self.default_modes();
        let wanted = changed(modes, asked);
        if self.block.has_run {
            modes.check_late(wanted)?;
        }
        self.open(wanted, asked.level.clone().unwrap_or(level)).await?;
        Ok(tag)
    }

    /// Begins a block that ends with its segment.
    pub(super) async fn open_implicit(&mut self) -> Result<()> {
        let (modes, level) = self.default_modes();
        self.open(modes, level).await?;
        self.block.is_implicit = true;
        Ok(())
    }

    async fn open(&mut self, modes: Modes, level: String) -> Result<()> {
        assert!(!self.is_in_block(), "a session has one block at a time");
        self.connection.block(BlockOperation::Begin(modes)).await?;
        // What its segment has done so far is a part of it.
        (self.block.standing, self.block.modes) = (Standing::Open, modes);
        self.settings.set_modes(level, modes.is_read_only);
        Ok(())
    }

    async fn set_modes(&mut self, asked: &BlockModes) -> Result<&'static str> {
        if !self.is_in_block() {
            let message = "SET TRANSACTION can only be used in transaction blocks";
            self.warn(SqlState::NO_ACTIVE_TRANSACTION, message);
            return Ok("SET");
        }
        let modes = changed(self.block.modes, asked);
        if self.block.has_run {
            self.block.modes.check_late(modes)?;
        }
        let level = asked.level.as_deref().unwrap_or(self.settings.level()).to_owned();
        if level != self.settings.level() && !self.block.savepoints.is_empty() {
            let message = "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction";
            return Err(Error::new(SqlState::ACTIVE_TRANSACTION, message));
        }
        self.connection.block(BlockOperation::Set(modes)).await?;
        self.block.modes = modes;
        self.settings.set_modes(level, modes.is_read_only);
        Ok("SET")
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
        let (modes, level) = (self.block.modes, self.settings.level().to_owned());
        let pending = self.connection.block(BlockOperation::Commit);
        let committed = outcome(Outcome::Pending(pending), self.ends_by(self.deadline())).await;
        self.end_block(committed.is_ok());
        committed?;
        if chain {
            self.open(modes, level).await?;
        }
        Ok("COMMIT")
    }

    pub(super) async fn roll_back(&mut self, chain: bool) -> Result<&'static str> {
        if !self.is_in_block() {
            self.end_block(false);
            return Ok("ROLLBACK");
        }
        // As on PostgreSQL, a block that has failed hands its modes to no other one, unless only
        // what is behind a savepoint has failed.
        let is_alive = self.block.standing == Standing::Open || !self.block.savepoints.is_empty();
        let own = is_alive.then(|| (self.block.modes, self.settings.level().to_owned()));
        let ended = self.connection.block(BlockOperation::RollBack).await;
        self.end_block(false);
        ended?;
        if chain {
            let (modes, level) = own.unwrap_or_else(|| self.default_modes());
            self.open(modes, level).await?;
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
    fn end_block(&mut self, has_committed: bool) {
        self.portals.clear();
        self.end_cursors(has_committed);
        self.end_changes(has_committed);
    }

    pub(super) fn warn(&mut self, state: SqlState, message: &str) {
        self.out.report(Severity::Warning, &Error::new(state, message));
    }
}

fn keeps_snapshot(level: &str) -> bool {
    matches!(level, "repeatable read" | "serializable")
}

fn changed(modes: Modes, asked: &BlockModes) -> Modes {
    let level = asked.level.as_deref();
    Modes {
        keeps_snapshot: level.map_or(modes.keeps_snapshot, keeps_snapshot),
        is_read_only: asked.is_read_only.unwrap_or(modes.is_read_only),
    }
}
