//! What a block has loaded: rows under ids of its own, which its COMMIT gives to a table.

use super::super::load::Unlinked;
use super::super::rows::ReadRows;
use sql::ir::ObjectId;
use values::{Error, SqlState};

/// Rows that a block has written under its own ids.
pub(super) struct Loaded {
    /// How many statements of the block were before it.
    position: usize,
    unlinked: Unlinked,
    /// The block's own sequences that have counted for the rows.
    sequences: Vec<ObjectId>,
}

/// The error of a block in which a COPY in parts has not come to its end.
pub(super) fn half_loaded() -> Error {
    let message = "a COPY of the block has failed behind its first part";
    Error::new(SqlState::FAILED_TRANSACTION, message).with_hint("Roll the block back.")
}

impl Loaded {
    pub(super) fn new(position: usize, unlinked: Unlinked, sequences: Vec<ObjectId>) -> Loaded {
        Loaded { position, unlinked, sequences }
    }

    /// The id of the table.
    pub(super) fn relation_id(&self) -> ObjectId {
        self.unlinked.relation.id
    }

    /// Hides what was not there yet when so many statements of the block had run.
    pub(super) fn hide(all: &[Loaded], done: usize, rows: &mut ReadRows<'_>) {
        rows.hidden.clear();
        for loaded in all.iter().filter(|loaded| loaded.position > done) {
            rows.hidden.extend(loaded.unlinked.places().map(|(_, id)| id));
            rows.hidden.extend(&loaded.sequences);
        }
    }

    /// A table has the rows now.
    pub(super) fn keep(&mut self) {
        self.unlinked.keep();
    }
}
