//! Modes of transactions: the isolation level, READ ONLY and DEFERRABLE.

use crate::store::Modes;
use sql::parse::BlockModes;
use values::{Error, Result, SqlState};

/// The isolation levels; the first one is the default.
pub(super) const LEVELS: &[&str] =
    &["read committed", "read uncommitted", "repeatable read", "serializable"];

/// The modes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransactionModes {
    /// One of [`LEVELS`].
    pub(super) level: &'static str,
    pub(super) is_read_only: bool,
    /// What PostgreSQL waits for with it, a snapshot that needs no checks, is every snapshot here.
    pub(super) is_deferrable: bool,
}

/// Where a transaction is.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    /// Whether a statement of it has read a state.
    pub(super) has_run: bool,
    /// Whether it is behind a savepoint.
    pub(super) is_nested: bool,
}

/// Returns the level of this name in lower case.
pub(super) fn level_of(name: &str) -> Option<&'static str> {
    LEVELS.iter().find(|level| **level == name).copied()
}

impl TransactionModes {
    /// Whether all statements read one snapshot.
    pub(super) fn keeps_snapshot(self) -> bool {
        matches!(self.level, "repeatable read" | "serializable")
    }

    /// Returns what these modes are for the store.
    pub(super) fn of_store(self) -> Modes {
        Modes { keeps_snapshot: self.keeps_snapshot(), is_read_only: self.is_read_only }
    }

    /// Returns these modes with those that are `asked` for.
    ///
    /// # Errors
    /// That it is too late for them at this `stage`.
    pub(super) fn changed(self, asked: &BlockModes, stage: Stage) -> Result<TransactionModes> {
        let level = asked.level.as_deref().map_or(self.level, |name| {
            level_of(name).expect("the parser and the settings know no other level")
        });
        let is_read_only = asked.is_read_only.unwrap_or(self.is_read_only);
        let is_deferrable = asked.is_deferrable.unwrap_or(self.is_deferrable);
        let Stage { has_run, is_nested } = stage;
        let late = "must be called before any query";
        let message = if level != self.level && has_run {
            format!("SET TRANSACTION ISOLATION LEVEL {late}")
        } else if level != self.level && is_nested {
            "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction".to_owned()
        } else if self.is_read_only && !is_read_only && is_nested {
            "cannot set transaction read-write mode inside a read-only transaction".to_owned()
        } else if self.is_read_only && !is_read_only && has_run {
            "transaction read-write mode must be set before any query".to_owned()
        } else if asked.is_deferrable.is_some() && is_nested {
            "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction".to_owned()
        } else if asked.is_deferrable.is_some() && has_run {
            format!("SET TRANSACTION [NOT] DEFERRABLE {late}")
        } else {
            return Ok(TransactionModes { level, is_read_only, is_deferrable });
        };
        Err(Error::new(SqlState::ACTIVE_TRANSACTION, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_change_only_before_they_matter() {
        let begun = TransactionModes { level: LEVELS[0], is_read_only: true, is_deferrable: false };
        let asked = |level: Option<&str>, is_read_only, is_deferrable| BlockModes {
            level: level.map(str::to_owned),
            is_read_only,
            is_deferrable,
        };
        for (asked, late, nested) in [
            (asked(None, None, None), true, true),
            (asked(Some("read committed"), Some(true), None), true, true),
            (asked(Some("read uncommitted"), None, None), false, false),
            (asked(Some("serializable"), None, None), false, false),
            (asked(None, Some(false), None), false, false),
            (asked(None, None, Some(false)), false, false),
        ] {
            let is_taken = |has_run, is_nested| {
                let changed = begun.changed(&asked, Stage { has_run, is_nested });
                changed.map_err(|error| error.state().code().to_owned()) != Err("25001".to_owned())
            };
            assert!(is_taken(false, false), "{asked:?}");
            assert_eq!(is_taken(true, false), late, "{asked:?}");
            assert_eq!(is_taken(false, true), nested, "{asked:?}");
        }
    }
}
