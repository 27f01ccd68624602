//! Plans of queries, and how any statement finds its rows.

use super::access::Access;
use super::expression::Expression;
use super::functions::Statistic;
use super::relation::Relation;
use serde::{Deserialize, Serialize};

/// Rows of one table, or one row without columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The table.
    pub relation: Option<Relation>,
    /// How its rows are found: more than the filter wants, never fewer.
    pub access: Access,
    /// Which rows count.
    pub filter: Option<Expression>,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Select {
    /// The rows.
    pub source: Source,
    /// Groups of rows; what follows then sees the groups' keys and aggregates as columns.
    pub group: Option<Group>,
    /// Which groups count.
    pub having: Option<Expression>,
    /// The columns of the answer.
    pub output: Vec<Expression>,
    /// Whether equal rows of the answer are one.
    pub distinct: bool,
    /// The order; without it the canonical one.
    pub sort: Vec<SortKey>,
    /// The most rows.
    pub limit: Option<Expression>,
    /// Rows left out at the beginning.
    pub offset: Option<Expression>,
}

/// GROUP BY and the aggregates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What rows of a group have in common. Without any there is one group, also of no rows.
    pub keys: Vec<Expression>,
    /// What is computed of each group.
    pub aggregates: Vec<Aggregate>,
}

/// An aggregate of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// What is computed.
    pub kind: AggregateKind,
    /// Of what; none for `count(*)`.
    pub arguments: Vec<Expression>,
    /// Whether equal values count once.
    pub distinct: bool,
    /// Which rows count.
    pub filter: Option<Expression>,
}

/// The aggregates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after SQL's aggregates")]
pub enum AggregateKind {
    CountRows,
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
    BoolAnd,
    BoolOr,
    StringAggregate,
    ArrayAggregate,
    /// The value of the first row: that of all rows, where the group's keys decide it.
    First,
    JsonAggregate,
    JsonObjectAggregate,
    /// One that takes its rows in an order. The last arguments are what is compared.
    Ordered(OrderedKind, Vec<Direction>),
    /// These answer `json`, those above `jsonb`.
    JsonText,
    JsonObjectText,
    BitAnd,
    BitOr,
    BitXor,
    Statistic(Statistic),
    /// `percentile_cont` of values and fractions.
    Interpolated,
    /// `percentile_disc`
    Percentile,
    /// `mode`
    Mode,
}

/// The aggregates in whose results the order of rows shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after SQL's aggregates")]
pub enum OrderedKind {
    Sum,
    Average,
    StringAggregate,
    ArrayAggregate,
    JsonAggregate,
    JsonObjectAggregate,
    JsonText,
    JsonObjectText,
    Statistic(Statistic),
    Interpolated,
    Percentile,
    Mode,
}

/// How values are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direction {
    /// From large to small.
    pub descending: bool,
    /// NULLs before values.
    pub nulls_first: bool,
}

/// ORDER BY.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortKey {
    /// What is compared.
    pub value: Expression,
    /// From large to small.
    pub descending: bool,
    /// NULLs before values.
    pub nulls_first: bool,
}

impl OrderedKind {
    /// The aggregate itself.
    pub(crate) fn kind(self) -> AggregateKind {
        match self {
            OrderedKind::Sum => AggregateKind::Sum,
            OrderedKind::Average => AggregateKind::Average,
            OrderedKind::StringAggregate => AggregateKind::StringAggregate,
            OrderedKind::ArrayAggregate => AggregateKind::ArrayAggregate,
            OrderedKind::JsonAggregate => AggregateKind::JsonAggregate,
            OrderedKind::JsonObjectAggregate => AggregateKind::JsonObjectAggregate,
            OrderedKind::JsonText => AggregateKind::JsonText,
            OrderedKind::JsonObjectText => AggregateKind::JsonObjectText,
            OrderedKind::Statistic(statistic) => AggregateKind::Statistic(statistic),
            OrderedKind::Interpolated => AggregateKind::Interpolated,
            OrderedKind::Percentile => AggregateKind::Percentile,
            OrderedKind::Mode => AggregateKind::Mode,
        }
    }
}

impl SortKey {
    /// How its values are put in order.
    pub(crate) fn direction(&self) -> Direction {
        Direction { descending: self.descending, nulls_first: self.nulls_first }
    }
}

impl Aggregate {
    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        self.arguments.iter().chain(&self.filter).for_each(each);
    }
}

impl Source {
    pub(crate) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        self.access.each_expression(each);
        self.filter.iter().for_each(each);
    }
}

impl Select {
    pub(crate) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        self.source.each_expression(each);
        if let Some(group) = &self.group {
            group.keys.iter().for_each(&mut *each);
            for aggregate in &group.aggregates {
                aggregate.each_expression(each);
            }
        }
        let rest = self.having.iter().chain(&self.output).chain(&self.limit).chain(&self.offset);
        rest.for_each(&mut *each);
        self.sort.iter().for_each(|key| each(&key.value));
    }
}
