//! FROM: several tables and queries, joined from left to right.

use super::expression::Expression;
use super::number::{ColumnNumber, QueryNumber};
use super::query::Source;
use serde::{Deserialize, Serialize};

/// Rows that are joined: the first item's with those of the second, and so on. A joined row has
/// the columns of all items, each item's from its own place on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Joins {
    /// The items in the order in which they are read.
    pub items: Vec<Item>,
    /// The places of the items in the order in which the statement names them, if that is another
    /// one: then the rows are sorted into it.
    pub stated: Vec<u16>,
}

/// A table or a query of a FROM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// What it is to the rows of the items before it.
    pub kind: JoinKind,
    /// Its first column in a joined row.
    pub begin: ColumnNumber,
    /// How many columns it has.
    pub width: u16,
    /// Its rows.
    pub rows: ItemRows,
    /// How those are found that belong to a row of the items before it.
    pub method: Method,
    /// ON, over a joined row: whether the two belong together.
    pub condition: Option<Expression>,
    /// Which joined rows count.
    pub filter: Option<Expression>,
}

/// What happens with rows that have no partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinKind {
    /// They go.
    Inner,
    /// Those before stay.
    Left,
    /// Those of the item stay.
    Right,
    /// All stay.
    Full,
}

/// Where the rows of an item come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ItemRows {
    /// A table; the filter sees its row alone.
    Table(Box<Source>),
    /// Another query of the statement.
    Query(QueryNumber),
}

/// How the partners of a row are found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Method {
    /// All rows of the item are collected once and tried.
    Loop,
    /// They are collected once, and found by values.
    Map {
        /// The values of the item's rows, over a joined row.
        own: Vec<Expression>,
        /// The same values of the row before it.
        other: Vec<Expression>,
    },
    /// They are looked up for each row: the access, or the query, sees it.
    Lookup,
}

impl JoinKind {
    /// Whether rows of the item stay that have no partner.
    pub(crate) fn keeps_own(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full)
    }

    /// Whether rows stay for which the item has no partner.
    pub(crate) fn keeps_other(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full)
    }
}

impl Joins {
    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        for item in &self.items {
            if let ItemRows::Table(source) = &item.rows {
                source.each_expression(each);
            }
            if let Method::Map { own, other } = &item.method {
                own.iter().chain(other).for_each(&mut *each);
            }
            item.condition.iter().chain(&item.filter).for_each(&mut *each);
        }
    }
}
