//! A row before and after a statement.

use values::Datum;

/// A row before and after a statement.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) old: Option<Vec<Datum>>,
    pub(super) new: Option<Vec<Datum>>,
}
