//! Changes of settings, which belong to a transaction: that of the open block, or else that of the
//! segment or text. It commits them or undoes them with everything else that it does.

use super::conversation::Conversation;
use super::settings::{Notice, Settings};
use crate::codec::Severity;
use values::{Error, Result, SqlState};

impl Conversation {
    /// Whether the session is another one after the transaction commits than after it fails: it has
    /// changed a setting, listens to a channel, or has
    /// declared a cursor.
    pub(super) fn depends_on_end(&self) -> bool {
        let changes = self.block.before.is_some() || !self.block.channels.is_empty();
        changes || self.cursors.all().any(|cursor| cursor.is_of_transaction)
    }

    /// Does what SET or RESET says: `change` is made now, and counts after COMMIT, too.
    pub(super) fn change(
        &mut self,
        change: impl Fn(&mut Settings) -> Result<Notice>,
    ) -> Result<()> {
        let mut next = self.settings.clone();
        let notice = change(&mut next)?;
        if let Some(lasting) = &mut self.block.lasting {
            change(lasting)?;
        }
        self.changed_to(next, notice);
        Ok(())
    }

    /// Does what SET LOCAL says: `change` is made until the end of the transaction.
    pub(super) fn change_locally(
        &mut self,
        change: impl Fn(&mut Settings) -> Result<Notice>,
    ) -> Result<()> {
        let mut next = self.settings.clone();
        let notice = change(&mut next)?;
        self.block.lasting.get_or_insert_with(|| self.settings.clone());
        self.changed_to(next, notice);
        Ok(())
    }

    fn changed_to(&mut self, next: Settings, notice: Notice) {
        self.block.before.get_or_insert_with(|| self.settings.clone());
        self.use_settings(next);
        if let Some(notice) = notice.filter(|_| self.settings.wants_notices()) {
            let notice = Error::new(SqlState::SUCCESSFUL_COMPLETION, notice);
            self.out.report(Severity::Notice, &notice);
        }
    }

    /// Undoes the changes since the last savepoint, or all without one.
    pub(super) fn undo_changes(&mut self) {
        let channels = self.block.savepoints.last().map_or(0, |savepoint| savepoint.channels);
        self.block.channels.truncate(channels);
        if self.block.savepoints.is_empty() {
            let early = std::mem::take(&mut self.block.early);
            self.never_listened(&early);
        }
        let (settings, lasting) = match (self.block.savepoints.last(), &self.block.before) {
            (Some(savepoint), _) => (savepoint.settings.clone(), savepoint.lasting.clone()),
            (None, Some(before)) => (before.clone(), None),
            (None, None) => return,
        };
        self.block.lasting = lasting;
        self.use_settings(settings);
    }

    /// Ends the transaction for settings: its changes stay, or are all undone.
    pub(super) fn end_changes(&mut self, has_committed: bool) {
        let mut block = std::mem::take(&mut self.block);
        match has_committed {
            true => self.change_channels(std::mem::take(&mut block.channels)),
            false => self.never_listened(&block.early),
        }
        let after = if has_committed { block.lasting } else { block.before };
        if let Some(after) = after {
            self.use_settings(after);
        }
        self.settings.unset_modes();
    }

    /// Takes other values; the modes of the transaction stay.
    fn use_settings(&mut self, next: Settings) {
        let mut next = next.with_modes_of(&self.settings);
        next.know_own_of(&self.settings);
        if !next.has_environment_of(&self.settings) {
            self.connection.set_environment(next.environment());
        }
        self.settings = next;
    }
}
