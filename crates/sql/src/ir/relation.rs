//! What a plan knows of a table: enough to find, check and write its rows without the catalog.

use super::expression::{Expression, Op};
use super::index::Index;
use super::name::Name;
use super::number::{ColumnNumber, ObjectId};
use super::value::{Kind, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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
    pub name: Name,
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
    /// Where its values come from, and whether statements can name it.
    pub form: ColumnForm,
}

/// Where the values of a column come from. The first two forms have the bytes of the truth value
/// that says in older plans and catalogs whether a column is hidden.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ColumnForm {
    /// Statements.
    Plain,
    /// A sequence; statements cannot name it: the key of a table that was made without one.
    Hidden,
    /// This expression over the row.
    Generated(Box<Expression>),
}

impl Column {
    /// Whether statements cannot name it.
    pub fn is_hidden(&self) -> bool {
        self.form == ColumnForm::Hidden
    }

    /// The expression that its values are computed by, if they are.
    pub fn generated(&self) -> Option<&Expression> {
        match &self.form {
            ColumnForm::Generated(value) => Some(value),
            ColumnForm::Plain | ColumnForm::Hidden => None,
        }
    }

    /// Whether its values are computed from this column.
    pub(crate) fn is_computed_from(&self, column: ColumnNumber) -> bool {
        self.generated().is_some_and(|value| value.code.contains(&Op::Column(column)))
    }
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
    /// Whether the rows have a key that statements cannot name, or none yet.
    pub fn has_hidden_key(&self) -> bool {
        let column = |key: &KeyColumn| &self.columns[usize::from(key.column)];
        self.primary.first().is_none_or(|key| column(key).is_hidden())
    }

    /// The columns that change where these are assigned to: they, and those computed from them.
    pub(crate) fn changed_by(&self, assigned: &BTreeSet<ColumnNumber>) -> BTreeSet<ColumnNumber> {
        let follows = |(_, column): &(usize, &Column)| {
            assigned.iter().any(|own| column.is_computed_from(*own))
        };
        let computed = self.columns.iter().enumerate().filter(follows);
        assigned.iter().copied().chain(computed.map(|(at, _)| ColumnNumber::at(at))).collect()
    }

    /// Refuses what no definition makes: the interpreter looks up columns by these numbers, and
    /// makes rows and keys of these types, without asking again.
    pub(crate) fn check(&self) -> Result<()> {
        let is_key = |index: Option<&Index>, key: &[KeyColumn]| {
            let may_be_key =
                |each: &KeyColumn| self.key_type(index, each).is_some_and(Type::may_be_key);
            !key.is_empty() && key.iter().all(may_be_key)
        };
        let is_column = |column: &ColumnNumber| usize::from(*column) < self.columns.len();
        let sound = self.columns.len() <= COLUMNS_MAX
            && is_key(None, &self.primary)
            && self.indexes.iter().all(|index| is_key(Some(index), &index.columns))
            && self.indexes.iter().flat_map(Index::included).all(is_column)
            && self.columns.iter().all(|column| column.missing.0.fits(column.kind.ty));
        if sound { Ok(()) } else { Err(Error::corrupted("columns or keys of a table are damaged")) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{from_bytes, to_bytes};
    use super::*;
    use values::Datum;

    /// The bytes that columns have in logs and catalogs of before there were generated ones.
    #[test]
    fn columns_have_the_bytes_of_a_truth_value() {
        #[derive(Serialize)]
        struct Before {
            name: String,
            kind: Kind,
            nullable: bool,
            missing: Value,
            hidden: bool,
        }
        for hidden in [false, true] {
            let form = if hidden { ColumnForm::Hidden } else { ColumnForm::Plain };
            let (name, kind, missing) = ("c", Kind::plain(Type::Int4), Value(Datum::Null));
            let (name, nullable) = (name.to_owned(), true);
            let before =
                Before { name: name.clone(), kind, nullable, missing: missing.clone(), hidden };
            let column = Column { name, kind, nullable, missing, form };
            assert_eq!(to_bytes(&column), to_bytes(&before));
            let read: Column = from_bytes(&to_bytes(&before), "column").unwrap();
            assert_eq!((read.is_hidden(), read), (hidden, column));
        }
    }
}
