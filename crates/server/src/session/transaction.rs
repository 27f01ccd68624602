//! The transaction that runs: it has the default modes when its first statement begins, and SET
//! TRANSACTION or BEGIN change them.

use super::conversation::Conversation;
use super::modes::{Stage, TransactionModes};
use crate::store::BlockOperation;
use sql::parse::BlockModes;
use values::Result;

impl Conversation {
    /// Begins the transaction of a segment or text with the default modes, unless one runs.
    pub(super) fn begin_transaction(&mut self) {
        if !self.settings.has_modes() {
            let modes = self.settings.default_modes();
            self.settings.set_modes(modes);
            self.block.begun = Some(modes);
        }
    }

    /// Whether statements between two Syncs, or of one text, read one snapshot, as no block is open
    /// that says otherwise.
    pub(super) fn keeps_snapshot(&self) -> bool {
        !self.is_in_block() && self.settings.modes().keeps_snapshot()
    }

    /// Whether what runs next may only read.
    pub(super) fn is_read_only(&self) -> bool {
        self.settings.modes().is_read_only
    }

    /// Opens a block with these modes.
    pub(super) async fn open(&mut self, modes: TransactionModes) -> Result<()> {
        assert!(!self.is_in_block(), "a session has one block at a time");
        self.connection.block(BlockOperation::Begin(modes.of_store())).await?;
        // What its segment has done so far is a part of it.
        self.block.opened();
        self.block.begun.get_or_insert(modes);
        self.settings.set_modes(modes);
        Ok(())
    }

    /// Returns the modes of the transaction that runs, with those that are `asked` for.
    pub(super) fn changed_modes(&self, asked: &BlockModes) -> Result<TransactionModes> {
        let is_nested = !self.block.savepoints.is_empty();
        let stage = Stage { has_run: self.block.has_run, is_nested };
        self.settings.modes().changed(asked, stage)
    }

    /// Gives the transaction that runs other modes.
    pub(super) async fn set_modes(&mut self, asked: &BlockModes) -> Result<()> {
        let modes = self.changed_modes(asked)?;
        if self.is_in_block() {
            self.connection.block(BlockOperation::Set(modes.of_store())).await?;
        }
        self.settings.set_modes(modes);
        Ok(())
    }
}
