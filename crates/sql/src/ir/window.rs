//! Window functions: each is computed for a row from the rows of its partition.

use super::expression::Expression;
use super::number::QueryNumber;
use super::query::{Aggregate, SortKey};
use serde::{Deserialize, Serialize};

/// The rows of a query, each with the results of these functions as further columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    /// The query.
    pub rows: QueryNumber,
    /// How the functions see its rows.
    pub windows: Vec<Window>,
    /// The functions, each a column.
    pub calls: Vec<WindowCall>,
}

/// How rows are divided, and their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// What the rows of a partition have in common.
    pub partition: Vec<Expression>,
    /// The order of its rows; those that are equal in it are peers.
    pub order: Vec<SortKey>,
}

/// A function over a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowCall {
    /// The place of its window.
    pub window: u16,
    /// The function.
    pub function: WindowFunction,
    /// Its arguments; an aggregate has its own.
    pub arguments: Vec<Expression>,
    /// Which rows of the partition it sees, of those that ask for it.
    pub frame: Frame,
}

/// The window functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after SQL's functions")]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumulativeDistribution,
    Tile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(Aggregate),
}

/// The rows from one to another around the current one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// What offsets count.
    pub unit: FrameUnit,
    /// Its first rows.
    pub begin: FrameBound,
    /// Its last rows.
    pub end: FrameBound,
}

/// What offsets count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FrameUnit {
    /// Rows.
    Rows,
    /// Sets of peers.
    Groups,
    /// The distance to the value by which rows are ordered; none if there are no offsets.
    Range(Option<Expression>),
}

/// Where a frame begins or ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FrameBound {
    /// With the partition's first row.
    UnboundedPreceding,
    /// So far before the current row.
    Preceding(Expression),
    /// With the current row, or its peers.
    CurrentRow,
    /// So far behind the current row.
    Following(Expression),
    /// With the partition's last row.
    UnboundedFollowing,
}

impl Windows {
    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        for window in &self.windows {
            window.partition.iter().for_each(&mut *each);
            window.order.iter().for_each(|key| each(&key.value));
        }
        for call in &self.calls {
            call.arguments.iter().for_each(&mut *each);
            if let WindowFunction::Aggregate(aggregate) = &call.function {
                aggregate.each_expression(each);
            }
            if let FrameUnit::Range(Some(value)) = &call.frame.unit {
                each(value);
            }
            for bound in [&call.frame.begin, &call.frame.end] {
                if let FrameBound::Preceding(offset) | FrameBound::Following(offset) = bound {
                    each(offset);
                }
            }
        }
    }
}
