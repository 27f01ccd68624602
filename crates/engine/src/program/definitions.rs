//! What an engine is opened for, as its caller says it.

use storage::{TableDefinition, TableId};

use crate::error::Result;
use crate::program::procedure::ProcedureTable;
use crate::secondary::IndexDefinition;

/// A table that an engine is opened with.
#[derive(Debug, Clone)]
pub struct TableSchema {
    /// The table. One that is stored has to be the same, but for a longer longest value.
    pub definition: TableDefinition,
    /// Bytes of a row if the table is new and its definition leaves them open; 0: as the definition
    /// chooses them.
    pub row_bytes_if_new: u32,
    /// The types of keys and values in words, one text for each version of them, the oldest first.
    /// Empty: not known, and not compared.
    pub types: Vec<String>,
}

impl From<TableDefinition> for TableSchema {
    fn from(definition: TableDefinition) -> Self {
        Self { definition, row_bytes_if_new: 0, types: Vec::new() }
    }
}

/// What an engine is opened for.
pub struct Definitions<'a> {
    /// The tables. Those that the store does not have yet are added; those that it has besides stay
    /// as they are.
    pub tables: &'a [TableSchema],
    /// Names of tables, and those that they get if they do not have them yet.
    pub renamed: &'a [(String, String)],
    /// Tables that go with all their rows, if they are there.
    pub dropped: &'a [String],
    /// Secondary indexes of these tables.
    pub indexes: &'a [IndexDefinition],
    /// Makes the procedures, given the number that the store has for each table.
    pub procedures: &'a mut dyn FnMut(&[TableId]) -> Result<ProcedureTable>,
    /// Whether calls name procedures by the order of their registration: then it has to be that of
    /// calls in the log.
    pub in_order: bool,
}

impl<'a> Definitions<'a> {
    /// Tables and procedures, without anything else.
    pub fn new(
        tables: &'a [TableSchema],
        procedures: &'a mut dyn FnMut(&[TableId]) -> Result<ProcedureTable>,
    ) -> Self {
        Self { tables, renamed: &[], dropped: &[], indexes: &[], procedures, in_order: false }
    }

    /// The name that a table has in the store, as long as it is not renamed yet.
    pub(crate) fn name_before<'n>(&'n self, name: &'n str) -> &'n str {
        self.renamed.iter().find(|(_, to)| to == name).map_or(name, |(from, _)| from)
    }
}
