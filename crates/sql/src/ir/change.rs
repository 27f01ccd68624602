//! Plans of INSERT, UPDATE and DELETE.

use super::expression::Expression;
use super::number::{ColumnNumber, QueryNumber};
use super::query::{Select, Source};
use super::relation::Relation;
use serde::{Deserialize, Serialize};
use values::Result;

/// INSERT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Insert {
    /// The table.
    pub relation: Relation,
    /// The rows.
    pub rows: InsertRows,
    /// What happens with rows that exist.
    pub conflict: Option<Conflict>,
    /// The columns of the answer, over the new row.
    pub returning: Vec<Expression>,
}

/// The rows of an INSERT, a value for each column of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum InsertRows {
    /// `VALUES`
    Listed(Vec<Vec<Expression>>),
    /// A query, and each column over its rows.
    Queried(Box<Select>, Vec<Expression>),
    /// A query of several, and each column over its rows.
    Composed(QueryNumber, Vec<Expression>),
    /// COPY: the first parameter has the rows' values of these columns, line by line; and each
    /// column over them.
    Copied(Vec<ColumnNumber>, Vec<Expression>),
}

/// ON CONFLICT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conflict {
    /// Which keys count: the primary (`None`) or that of an index; all if the list is empty.
    pub arbiters: Vec<Option<u16>>,
    /// What happens then.
    pub action: Action,
}

/// What happens with a row that exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// It stays, and the new one is forgotten.
    Nothing,
    /// It is changed. Expressions see its columns, then those of the row that was to be inserted.
    Update {
        /// Columns and their new values.
        assignments: Vec<Assignment>,
        /// Whether it is changed at all.
        filter: Option<Expression>,
    },
}

/// A column and its new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The column.
    pub column: ColumnNumber,
    /// Its new value.
    pub value: Expression,
}

/// UPDATE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// The rows; there is a relation.
    pub source: Source,
    /// Columns and their new values, over the old row.
    pub assignments: Vec<Assignment>,
    /// The columns of the answer, over the new row.
    pub returning: Vec<Expression>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delete {
    /// The rows; there is a relation.
    pub source: Source,
    /// The columns of the answer, over the old row.
    pub returning: Vec<Expression>,
}

impl Insert {
    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        match &self.rows {
            InsertRows::Listed(rows) => rows.iter().flatten().for_each(&mut *each),
            InsertRows::Queried(query, columns) => {
                query.each_expression(each);
                columns.iter().for_each(&mut *each);
            }
            InsertRows::Composed(_, columns) | InsertRows::Copied(_, columns) => {
                columns.iter().for_each(&mut *each);
            }
        }
        if let Some(conflict) = &self.conflict
            && let Action::Update { assignments, filter } = &conflict.action
        {
            assignments.iter().for_each(|assignment| each(&assignment.value));
            filter.iter().for_each(&mut *each);
        }
        self.returning.iter().for_each(each);
    }

    pub(super) fn check(&self) -> Result<()> {
        if let InsertRows::Queried(query, _) = &self.rows {
            query.source.check()?;
        }
        self.relation.check()
    }
}

impl Update {
    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        self.source.each_expression(each);
        self.assignments.iter().for_each(|assignment| each(&assignment.value));
        self.returning.iter().for_each(each);
    }
}

impl Delete {
    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        self.source.each_expression(each);
        self.returning.iter().for_each(each);
    }
}
