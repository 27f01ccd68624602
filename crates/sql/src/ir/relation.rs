//! What a plan knows of a table: enough to find, check and write its rows without the catalog.

use super::expression::Expression;
use super::index::Index;
use super::number::{ColumnNumber, ObjectId};
use super::value::{Kind, Value};
use serde::{Deserialize, Serialize};
use values::row::COLUMNS_MAX;
use values::{Error, Result, Type};

/// Which of the engine's tables holds a relation's rows or an index's entries, by the size of their
/// keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Space {
    /// Keys of up to 24 bytes, values of up to 16: index entries.
    Short,
    /// Keys of up to 64 bytes.
    Key64,
    /// Keys of up to 256 bytes, rows of about 256.
    Row256,
    /// Keys of up to 256 bytes, rows of about 1,024.
    Row1k,
    /// The catalog's own rows.
    Catalog,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// The beginning of its keys, and its object id.
    pub id: ObjectId,
    /// Its name, for messages.
    pub name: String,
    /// Where its rows are.
    pub space: Space,
    /// Its columns, by number.
    pub columns: Vec<Column>,
    /// The name of the primary key's constraint, for messages.
    pub primary_name: String,
    /// The columns of the primary key.
    pub primary: Vec<KeyColumn>,
    /// Its other indexes.
    pub indexes: Vec<Index>,
    /// What its rows must fulfil, beside NOT NULL.
    pub checks: Vec<Check>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// What it holds in rows that are older than the column.
    pub missing: Value,
    /// Whether statements cannot name it: the key of a table that was made without one.
    pub hidden: bool,
}

/// A column of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyColumn {
    /// Its number in the table.
    pub column: ColumnNumber,
    /// From large to small.
    pub descending: bool,
    /// NULLs before values.
    pub nulls_first: bool,
}

/// A CHECK: rows for which it is false are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The constraint's name.
    pub name: String,
    /// The condition over the row.
    pub condition: Expression,
}

impl Relation {
    /// Refuses what no definition makes: the interpreter looks up columns by these numbers, and
    /// makes rows and keys of these types, without asking again.
    pub(crate) fn check(&self) -> Result<()> {
        let is_key = |index: Option<&Index>, key: &[KeyColumn]| {
            let may_be_key =
                |each: &KeyColumn| self.key_type(index, each).is_some_and(Type::may_be_key);
            !key.is_empty() && key.iter().all(may_be_key)
        };
        let sound = self.columns.len() <= COLUMNS_MAX
            && is_key(None, &self.primary)
            && self.indexes.iter().all(|index| is_key(Some(index), &index.columns))
            && self.columns.iter().all(|column| column.missing.0.fits(column.kind.ty));
        if sound { Ok(()) } else { Err(Error::corrupted("columns or keys of a table are damaged")) }
    }
}
