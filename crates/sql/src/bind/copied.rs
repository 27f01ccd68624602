//! How the rows of a COPY come or go.

use super::output::OutputColumn;
use crate::copy::Form;
use crate::ir::{ColumnNumber, Relation};

/// Which way rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    From,
    /// To the client.
    To,
}

/// How the rows of a COPY come or go.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// Which way.
    pub direction: Direction,
    /// How they are written.
    pub form: Form,
    /// The columns that are written.
    pub columns: Vec<OutputColumn>,
    /// The table that is copied; `None` of a query.
    pub table: Option<CopiedTable>,
}

/// The table of a COPY.
#[derive(Clone, Debug, PartialEq)]
pub struct CopiedTable {
    /// The table.
    pub relation: Relation,
    /// The columns that are copied.
    pub targets: Vec<ColumnNumber>,
}

impl CopiedTable {
    pub(super) fn columns(&self) -> impl Iterator<Item = OutputColumn> {
        self.targets.iter().map(|target| {
            let column = &self.relation.columns[usize::from(*target)];
            OutputColumn { name: column.name.clone(), kind: column.kind }
        })
    }
}
