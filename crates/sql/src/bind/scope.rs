//! The columns that names in a statement mean.

use crate::ir::{ColumnNumber, Kind, Relation};
use values::{Error, Result, SqlState};

/// The tables of a statement, one after the other in the row.
#[derive(Default)]
pub(super) struct Scope {
    tables: Vec<ScopeTable>,
}

struct ScopeTable {
    name: String,
    columns: Vec<(String, Kind, bool)>,
    begin: usize,
}

/// A column that a name means.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resolved {
    pub(super) column: ColumnNumber,
    pub(super) kind: Kind,
    pub(super) table: String,
    pub(super) name: String,
}

impl Scope {
    /// Adds a table after the others.
    pub(super) fn add(&mut self, name: &str, relation: &Relation) {
        let begin = self.tables.iter().map(|table| table.columns.len()).sum();
        let columns = relation
            .columns
            .iter()
            .map(|column| (column.name.clone(), column.kind, column.hidden))
            .collect();
        self.tables.push(ScopeTable { name: name.to_owned(), columns, begin });
    }

    /// The column of a name, perhaps after a table's.
    pub(super) fn resolve(&self, table: Option<&str>, name: &str) -> Result<Resolved> {
        if let Some(table) = table
            && !self.tables.iter().any(|own| own.name == table)
        {
            let message = format!("missing FROM-clause entry for table \"{table}\"");
            return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
        }
        let mut found = self.all().filter(|column| {
            column.name == name && table.is_none_or(|table| column.table == table)
        });
        let Some(first) = found.next() else {
            let shown = match table {
                Some(table) => format!("column {table}.{name} does not exist"),
                None => format!("column \"{name}\" does not exist"),
            };
            return Err(Error::new(SqlState::UNDEFINED_COLUMN, shown));
        };
        // `excluded` comes second and must be named.
        if table.is_none() && found.any(|column| column.table != "excluded") {
            let message = format!("column reference \"{name}\" is ambiguous");
            return Err(Error::new(SqlState::AMBIGUOUS_COLUMN, message));
        }
        Ok(first)
    }

    /// The columns that `*` means.
    pub(super) fn all(&self) -> impl Iterator<Item = Resolved> {
        self.tables.iter().flat_map(|table| {
            table.columns.iter().enumerate().filter(|(_, (_, _, hidden))| !hidden).map(
                |(at, (name, kind, _))| Resolved {
                    column: ColumnNumber::at(table.begin + at),
                    kind: *kind,
                    table: table.name.clone(),
                    name: name.clone(),
                },
            )
        })
    }
}
