//! What a definition comes to.

use crate::catalog::Delta;

/// A definition that was made of a statement: the catalog and the store have to take it together.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The command tag.
    pub tag: &'static str,
    /// What the catalog gets.
    pub delta: Delta,
    /// What the client is told although it is no error.
    pub notice: Option<String>,
}

impl Definition {
    pub(super) fn new(tag: &'static str, delta: Delta) -> Definition {
        Definition { tag, delta, notice: None }
    }

    /// A definition that changes nothing, with the reason.
    pub(super) fn skipped(tag: &'static str, notice: String) -> Definition {
        Definition { tag, delta: Delta::default(), notice: Some(notice) }
    }
}
