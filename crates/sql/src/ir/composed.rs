//! Statements of more than one table or query: a list of queries, each of which may need those
//! before it, and what is done with them. A list has no depth, so any bytes are decoded by a loop.

use super::change::{Assignment, Delete, Insert, InsertRows, Update};
use super::expression::{Expression, Op};
use super::join::{Item, ItemRows, Joins};
use super::number::{ColumnNumber, QueryNumber};
use super::query::{Select, Source};
use super::relation::Relation;
use super::system::RowsCall;
use super::window::Windows;
use serde::{Deserialize, Serialize};
use values::{Error, Result};

/// A statement with its queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Composed {
    /// The queries; each needs only those before it.
    pub queries: Vec<Query>,
    /// What is done.
    pub main: Main,
}

/// What a statement does with its queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Main {
    /// Answers with the rows of one.
    Query(QueryNumber),
    /// Adds rows.
    Insert(Insert),
    /// Changes rows.
    Update(Update),
    /// Removes rows.
    Delete(Delete),
    /// Changes or removes the rows that a query finds.
    Change(Change),
}

/// UPDATE ... FROM and DELETE ... USING.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The table.
    pub relation: Relation,
    /// Its rows, each with the columns of the other tables behind; of several with the same row
    /// the first counts.
    pub rows: QueryNumber,
    /// Columns and their new values, over the joined row; `None` removes the row.
    pub assignments: Option<Vec<Assignment>>,
    /// The columns of the answer, over the joined row with the new one in it.
    pub returning: Vec<Expression>,
}

/// A query of a statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// In how many rows of other queries it is computed: those see their columns as
    /// [`Op::Outer`].
    pub depth: u16,
    /// Whether it needs such rows. If not, it is computed once.
    pub is_correlated: bool,
    /// Its rows before the rest is done with them.
    pub input: Input,
    /// The rest; its source counts only as [`Input::Source`].
    pub select: Select,
}

/// Where the rows of a query come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// The select's own source.
    Source,
    /// VALUES
    Values(Vec<Vec<Expression>>),
    /// The rows of a query, with which those of others are combined one after the other.
    Set(QueryNumber, Vec<SetStep>),
    /// FROM
    Joins(Joins),
    /// The rows of a relation of the system catalog, by its name with its schema; only in queries.
    System(String),
    /// The rows of functions, side by side; `true` adds their numbers as a last column.
    Functions(Vec<RowsCall>, bool),
    /// The rows of a query with the results of window functions.
    Windows(Windows),
    /// The first of the rows of a query one after the other that have the same values in these
    /// columns.
    Distinct(QueryNumber, Vec<ColumnNumber>),
    /// WITH RECURSIVE
    Recursive(Recursive),
    /// The rows that the last step of a recursive query has added, by the number of its working
    /// table.
    Working(u16),
    /// The rows that a part of the statement has returned, by its number.
    Returned(u16),
}

/// The rows of a query, and those that another one comes to from the rows of the step before,
/// until there are no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recursive {
    /// The query that needs no rows of before.
    pub first: QueryNumber,
    /// The one that does, as those of [`Input::Working`].
    pub step: QueryNumber,
    /// The number of the working table.
    pub working: u16,
    /// Whether equal rows stay several.
    pub all: bool,
}

/// UNION, INTERSECT or EXCEPT of all rows so far with those of a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetStep {
    /// Which.
    pub operator: SetOperator,
    /// Whether equal rows stay several.
    pub all: bool,
    /// The other rows.
    pub query: QueryNumber,
}

/// The set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named after the operations of SQL")]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// How deep queries may be in queries: they are run by calls of calls.
pub const QUERY_DEPTH_MAX: usize = 64;

impl Composed {
    pub(super) fn output(&self) -> &[Expression] {
        self.main.output(&self.queries)
    }

    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        self.queries.iter().for_each(|query| query.each_expression(each));
        self.main.each_expression(each);
    }

    /// Refuses tables that no definition makes, and queries that need others than those before
    /// them or are too deep in others.
    pub(super) fn check(&self) -> Result<()> {
        self.queries.iter().try_for_each(Query::check)?;
        match self.depth() {
            Some(..=QUERY_DEPTH_MAX) => self.main.check(&self.queries),
            _ => Err(Error::corrupted("queries of a plan are damaged")),
        }
    }

    /// How deep queries are in queries; `None` if one needs others than those before it.
    pub(super) fn depth(&self) -> Option<usize> {
        depth(&self.queries)
    }
}

/// How deep queries are in queries; `None` if one needs others than those before it.
pub(super) fn depth(queries: &[Query]) -> Option<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(queries.len());
    for query in queries {
        let mut inner = Some(0);
        query.each_number(&mut |number| {
            let depth = depths.get(usize::from(number));
            inner = inner.zip(depth).map(|(most, depth)| most.max(*depth));
        });
        depths.push(inner? + 1);
    }
    Some(depths.into_iter().max().unwrap_or(0))
}

impl Main {
    pub(super) fn output<'p>(&'p self, queries: &'p [Query]) -> &'p [Expression] {
        match self {
            Main::Query(number) => match queries.get(usize::from(*number)) {
                Some(query) => &query.select.output,
                None => &[],
            },
            Main::Insert(plan) => &plan.returning,
            Main::Update(plan) => &plan.returning,
            Main::Delete(plan) => &plan.returning,
            Main::Change(plan) => &plan.returning,
        }
    }

    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        match self {
            Main::Query(_) => {}
            Main::Insert(plan) => plan.each_expression(each),
            Main::Update(plan) => plan.each_expression(each),
            Main::Delete(plan) => plan.each_expression(each),
            Main::Change(plan) => plan.each_expression(each),
        }
    }

    /// The table whose rows it writes.
    pub(crate) fn written(&self) -> Option<&Relation> {
        match self {
            Main::Query(_) => None,
            Main::Insert(plan) => Some(&plan.relation),
            Main::Update(plan) => plan.source.relation.as_ref(),
            Main::Delete(plan) => plan.source.relation.as_ref(),
            Main::Change(plan) => Some(&plan.relation),
        }
    }

    /// The statement's first word.
    pub(super) fn command(&self) -> &'static str {
        match self {
            Main::Query(_) => "SELECT",
            Main::Insert(_) => "INSERT",
            Main::Update(_) => "UPDATE",
            Main::Delete(_) => "DELETE",
            Main::Change(change) if change.assignments.is_some() => "UPDATE",
            Main::Change(_) => "DELETE",
        }
    }

    /// Refuses tables that no definition makes, and a query that there is not.
    pub(super) fn check(&self, queries: &[Query]) -> Result<()> {
        let number = match self {
            Main::Query(number) => Some(*number),
            Main::Insert(plan) => {
                plan.check()?;
                match plan.rows {
                    InsertRows::Composed(number, _) => Some(number),
                    _ => None,
                }
            }
            Main::Update(plan) => {
                plan.source.check()?;
                None
            }
            Main::Delete(plan) => {
                plan.source.check()?;
                None
            }
            Main::Change(plan) => {
                plan.relation.check()?;
                Some(plan.rows)
            }
        };
        match number {
            Some(number) if usize::from(number) >= queries.len() => {
                Err(Error::corrupted("a plan needs a query that it does not have"))
            }
            _ => Ok(()),
        }
    }
}

impl Change {
    fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        let assignments = self.assignments.iter().flatten();
        assignments.for_each(|assignment| each(&assignment.value));
        self.returning.iter().for_each(each);
    }
}

impl Query {
    pub(crate) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        match &self.input {
            Input::Source
            | Input::Set(..)
            | Input::System(_)
            | Input::Distinct(..)
            | Input::Recursive(_)
            | Input::Working(_)
            | Input::Returned(_) => {}
            Input::Windows(windows) => windows.each_expression(each),
            Input::Functions(calls, _) => {
                calls.iter().flat_map(|call| &call.arguments).for_each(&mut *each);
            }
            Input::Values(rows) => rows.iter().flatten().for_each(&mut *each),
            Input::Joins(joins) => joins.each_expression(each),
        }
        self.select.each_expression(each);
    }

    /// The queries that it needs.
    pub(crate) fn each_number(&self, each: &mut dyn FnMut(QueryNumber)) {
        match &self.input {
            Input::Source
            | Input::Values(_)
            | Input::System(_)
            | Input::Functions(..)
            | Input::Working(_)
            | Input::Returned(_) => {}
            Input::Windows(Windows { rows, .. }) | Input::Distinct(rows, _) => each(*rows),
            Input::Recursive(Recursive { first, step, .. }) => {
                each(*first);
                each(*step);
            }
            Input::Set(first, steps) => {
                each(*first);
                steps.iter().for_each(|step| each(step.query));
            }
            Input::Joins(joins) => {
                for item in &joins.items {
                    match &item.rows {
                        ItemRows::Query(number) => each(*number),
                        ItemRows::Table(source) => {
                            source.access.query().into_iter().for_each(&mut *each)
                        }
                    }
                }
            }
        }
        self.select.source.access.query().into_iter().for_each(&mut *each);
        self.each_expression(&mut |expression| {
            for op in &expression.code {
                if let Op::Query(_, number) = op {
                    each(*number);
                }
            }
        });
    }

    /// Whether it reads rows of a table itself.
    pub(super) fn reads_table(&self) -> bool {
        let is_table = |item: &Item| matches!(item.rows, ItemRows::Table(_));
        match &self.input {
            Input::Joins(joins) => joins.items.iter().any(is_table),
            _ => self.select.source.relation.is_some(),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        if let Input::Joins(joins) = &self.input {
            for item in &joins.items {
                if let ItemRows::Table(source) = &item.rows {
                    source.check()?;
                }
            }
        }
        self.select.source.check()
    }
}

impl Source {
    pub(super) fn check(&self) -> Result<()> {
        self.relation.as_ref().map_or(Ok(()), Relation::check)
    }
}
