//! Columns of answers, as clients are told of them.

use super::coerce::Bound;
use crate::ir::Kind;
use values::Type;

/// A column of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

impl OutputColumn {
    pub(super) fn of(name: &str, bound: &Bound) -> OutputColumn {
        OutputColumn { name: name.to_owned(), kind: bound.kind.unwrap_or(Kind::plain(Type::Text)) }
    }
}
