//! The kinds of relations that DROP statements name.

use super::definition::Definition;
use crate::catalog::Catalog;
use crate::ir::Name;
use values::{Error, Result, SqlState};

/// A kind of relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelationKind {
    Table,
    View,
    Sequence,
    Index,
}

impl RelationKind {
    /// The kind of the relation with this name.
    fn of(catalog: &Catalog, name: &Name) -> Option<RelationKind> {
        if catalog.table(name).is_some() {
            Some(RelationKind::Table)
        } else if catalog.view(name).is_some() {
            Some(RelationKind::View)
        } else if catalog.sequence(name).is_some() {
            Some(RelationKind::Sequence)
        } else if catalog.index(name).is_some() || catalog.table_of_primary(name).is_some() {
            Some(RelationKind::Index)
        } else {
            None
        }
    }

    fn word(self) -> &'static str {
        match self {
            RelationKind::Table => "table",
            RelationKind::View => "view",
            RelationKind::Sequence => "sequence",
            RelationKind::Index => "index",
        }
    }

    fn with_article(self) -> String {
        let article = if self == RelationKind::Index { "an" } else { "a" };
        format!("{article} {}", self.word())
    }
}

impl Definition {
    /// Handles a name that DROP finds no relation of its kind for: one that does not exist becomes
    /// a notice with `skipped` (IF EXISTS).
    ///
    /// # Errors
    /// `WRONG_OBJECT` if the relation is of another kind, also with `skipped`; otherwise
    /// `UNDEFINED_TABLE` or `UNDEFINED_OBJECT`.
    pub(super) fn not_of_kind(
        &mut self,
        catalog: &Catalog,
        name: &Name,
        kind: RelationKind,
        skipped: bool,
    ) -> Result<()> {
        if let Some(other) = RelationKind::of(catalog, name) {
            let message = format!("\"{}\" is not {}", name.own, kind.with_article());
            let (command, what) = (other.word().to_uppercase(), other.with_article());
            let hint = format!("Use DROP {command} to remove {what}.");
            return Err(Error::new(SqlState::WRONG_OBJECT, message).with_hint(hint));
        }
        let message = format!("{} \"{}\" does not exist", kind.word(), name.own);
        let state = match kind {
            RelationKind::Index => SqlState::UNDEFINED_OBJECT,
            _ => SqlState::UNDEFINED_TABLE,
        };
        self.skip_missing(Error::new(state, message), skipped)
    }
}
