//! Tables, views and sequences as the catalog keeps them.

use crate::ir::{ColumnNumber, Expression, Kind, ObjectId, Referential, Relation};
use serde::{Deserialize, Serialize};

/// A table: what its plans need, and what only statements about it need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Columns, keys, indexes and checks.
    pub relation: Relation,
    /// The rest about each column.
    pub columns: Vec<ColumnInfo>,
}

/// What a plan of reads does not need of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnInfo {
    /// What a row gets that states no value; NULL without it.
    pub default: Option<Expression>,
    /// The default as it was written.
    pub default_text: Option<String>,
    /// Whether values come from a sequence by the standard's rules.
    pub identity: Option<Identity>,
    /// The sequence that belongs to the column and goes with it.
    pub sequence: Option<ObjectId>,
}

/// GENERATED ... AS IDENTITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// ALWAYS: statements may not state a value.
    Always,
    /// BY DEFAULT: statements may.
    ByDefault,
}

/// A sequence of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Its object id, by which the store counts.
    pub id: ObjectId,
    /// Its name.
    pub name: String,
    /// The first number.
    pub start: i64,
    /// From each number to the next; not 0.
    pub increment: i64,
    /// The smallest number.
    pub minimum: i64,
    /// The largest number.
    pub maximum: i64,
    /// Whether it begins again after its end.
    pub cycle: bool,
}

/// A foreign key. It names its tables, whose ids change with TRUNCATE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Its object id.
    pub id: ObjectId,
    /// The constraint's name.
    pub name: String,
    /// The table whose rows refer.
    pub child: String,
    /// The columns that refer.
    pub columns: Vec<ColumnNumber>,
    /// The table that they refer to.
    pub parent: String,
    /// The columns that they refer to, which are unique together.
    pub referred: Vec<ColumnNumber>,
    /// What becomes of children when their parent goes.
    pub on_delete: Referential,
    /// What becomes of them when its key changes.
    pub on_update: Referential,
    /// Whether it was stated DEFERRABLE; it is checked at the end of each call in any case.
    pub is_deferrable: bool,
}

/// A view: its query is bound again by each statement that selects from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Its object id.
    pub id: ObjectId,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ViewColumn>,
    /// The text of its query, in which no `*` stands for columns.
    pub text: String,
    /// The zone of the session that made it, which literals without one are in.
    pub zone: String,
    /// The distance from UTC of a zone that is nothing else.
    pub zone_seconds: Option<i32>,
    /// The tables and views that it selects from.
    pub uses: Vec<Used>,
}

/// A column of a view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

/// A table or view that a view selects from. It is named, as ids change with TRUNCATE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Its name.
    pub relation: String,
    /// The columns that the view's query names.
    pub columns: Vec<String>,
}

impl Table {
    /// The number of a column that statements can name.
    pub fn column(&self, name: &str) -> Option<ColumnNumber> {
        let named = |column: &crate::ir::Column| !column.hidden && column.name == name;
        self.relation.columns.iter().position(named).map(ColumnNumber::at)
    }
}
