//! What an engine is opened for, as its caller says it.

use std::fmt;
use std::sync::Arc;

use storage::{TableDefinition, TableId};

use crate::call::batch::EpochInfo;
use crate::error::Result;
use crate::program::procedure::{Procedure, ProcedureTable};
use crate::secondary::IndexDefinition;
use crate::state::core::Missing;

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
    /// The tables. Those that the store does not have yet are added.
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
    /// What the program knows of the store beside all this. What it does not know refuses the open
    /// (O-111). `None` for tools, which leave alone what they are not opened for.
    pub known: Option<&'a Known>,
    /// What is kept of the programs before, so that their logs can be replayed; without it a log of
    /// another program is refused.
    pub earlier: Option<Earlier<'a>>,
}

impl<'a> Definitions<'a> {
    /// Tables and procedures, without anything else.
    pub fn new(
        tables: &'a [TableSchema],
        procedures: &'a mut dyn FnMut(&[TableId]) -> Result<ProcedureTable>,
    ) -> Self {
        Self {
            tables,
            renamed: &[],
            dropped: &[],
            indexes: &[],
            procedures,
            in_order: false,
            known: None,
            earlier: None,
        }
    }

    /// The name that a table has in the store, as long as it is not renamed yet.
    pub(crate) fn name_before<'n>(&'n self, name: &'n str) -> &'n str {
        self.renamed.iter().find(|(_, to)| to == name).map_or(name, |(from, _)| from)
    }
}

/// What a program knows of a store, and does not have.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Tables that stay as they are, with their indexes.
    pub ignored: Vec<String>,
    /// Names of indexes that go.
    pub dropped_indexes: Vec<String>,
    /// Names of tables that were renamed or dropped, and that other tables may have.
    pub reused_names: Vec<String>,
    /// Procedures of other names that its own ones were, each with the least version that it may
    /// have from now on.
    pub superseded: Vec<(String, u32)>,
}

/// What a program keeps of those before it.
pub struct Earlier<'a> {
    /// Indexes that the log may have, each with the name of its table; those of now count, too.
    pub indexes: &'a [(IndexDefinition, String)],
    /// Makes all bodies that the log may need, those of now included, for the tables and indexes
    /// of the log.
    pub bodies: &'a mut dyn FnMut(&LoggedSchema) -> Result<Vec<Body>>,
    /// What a body has asked for that the program of the log did not have.
    pub missing: Missing,
    /// Of the epochs that run the calls that the program of before has deferred.
    pub info: EpochInfo,
}

/// A body of a procedure.
pub struct Body {
    /// What runs.
    pub procedure: Arc<dyn Procedure>,
    /// The types of arguments and answer in words.
    pub types: String,
    /// Which of the bodies that the procedure has had.
    pub version: u32,
    /// Whether it is kept for logs only. Then the names of its structs do not count: they had to
    /// make room for those of now.
    pub is_kept: bool,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} of {:?} ({})", self.version, self.procedure.name(), self.types)
    }
}

/// The tables and indexes that a log was written for.
#[derive(Debug, Clone)]
pub struct LoggedSchema {
    /// Those of the catalog.
    pub tables: Vec<LoggedTable>,
    /// In the order of their numbers.
    pub indexes: Vec<LoggedIndex>,
}

/// A table that a log was written for.
#[derive(Debug, Clone)]
pub struct LoggedTable {
    /// Its number.
    pub number: TableId,
    /// What it is.
    pub definition: TableDefinition,
    /// Versions of the type of its values.
    pub versions: u32,
}

/// An index that a log was written for.
#[derive(Debug, Clone)]
pub struct LoggedIndex {
    /// Its name.
    pub name: String,
    /// The number of its table.
    pub table: TableId,
    /// Whether two rows may not have the same key in it.
    pub is_unique: bool,
}
