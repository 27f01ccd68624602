//! A row that will be written, and what is kept of its versions.

use super::tables::Seen;
use crate::transaction;

/// The versions of a row that will be written. It is among the rows that were read, too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Versions {
    /// The version that the record must have at the end.
    pub(super) noted: u64,
    /// The content before and after; 0 if there is none.
    pub(super) old: u64,
    pub(super) new: u64,
}

impl Versions {
    pub(super) fn of(seen: Seen) -> Self {
        let Seen { version, content } = seen;
        Self { noted: version, old: content, new: 0 }
    }
}

/// A row that will be written.
pub(super) type Write = transaction::Write<Versions>;
