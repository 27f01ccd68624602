//! Plans of statements.

use super::change::{Delete, Insert, InsertRows, Update};
use super::claim::Claim;
use super::composed::{Composed, Input, Main, QUERY_DEPTH_MAX, Query};
use super::expression::{Expression, Op};
use super::foreign::changed_children;
use super::guarded::Guarded;
use super::number::ObjectId;
use super::query::Select;
use super::relation::Relation;
use super::system::{RowsCall, RowsFunction, SystemFunction};
use super::writing::{Part, Writing};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use values::{Error, Result};

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Plan {
    /// Reads rows.
    Select(Select),
    /// Adds rows.
    Insert(Insert),
    /// Changes rows.
    Update(Update),
    /// Removes rows.
    Delete(Delete),
    /// One of these with several tables or queries.
    Composed(Composed),
    /// Writes rows of a table that foreign keys refer from or to.
    Guarded(Box<Guarded>),
    /// Has parts in its WITH that write.
    Writing(Box<Writing>),
    /// MERGE, as parts that write: no two of them may write one row.
    Merge(Box<Writing>),
}

impl Plan {
    /// The columns of the answer; none if there are no rows.
    pub(crate) fn output(&self) -> &[Expression] {
        match self {
            Plan::Select(plan) => &plan.output,
            Plan::Insert(plan) => &plan.returning,
            Plan::Update(plan) => &plan.returning,
            Plan::Delete(plan) => &plan.returning,
            Plan::Composed(plan) => plan.output(),
            Plan::Guarded(guarded) => guarded.plan.output(),
            Plan::Writing(plan) | Plan::Merge(plan) => plan.output(),
        }
    }

    /// The one table whose rows it writes.
    pub(crate) fn written(&self) -> Option<&Relation> {
        match self {
            Plan::Select(_) | Plan::Writing(_) | Plan::Merge(_) => None,
            Plan::Insert(plan) => Some(&plan.relation),
            Plan::Update(plan) => plan.source.relation.as_ref(),
            Plan::Delete(plan) => plan.source.relation.as_ref(),
            Plan::Composed(plan) => plan.main.written(),
            Plan::Guarded(guarded) => guarded.plan.written(),
        }
    }

    /// The tables whose rows it may write, by their ids.
    pub fn writes(&self) -> BTreeSet<ObjectId> {
        let id = |relation: &Relation| relation.id;
        match self {
            Plan::Guarded(guarded) => {
                let own = guarded.plan.writes().into_iter();
                own.chain(changed_children(&guarded.relations, &guarded.keys)).collect()
            }
            Plan::Writing(plan) | Plan::Merge(plan) => {
                let part = |part: &Part| {
                    let own = part.main.written().map(id).into_iter();
                    let children = changed_children(&part.relations, &part.keys);
                    own.chain(children).collect::<Vec<_>>()
                };
                plan.parts.iter().flat_map(part).collect()
            }
            plan => plan.written().map(id).into_iter().collect(),
        }
    }

    /// How often each sequence stands in its expressions: as many numbers are taken for each row
    /// that they are computed for.
    pub fn numbers(&self) -> BTreeMap<ObjectId, u32> {
        let mut numbers = BTreeMap::new();
        self.each_expression(&mut |expression| {
            for op in &expression.code {
                if let Op::Next(sequence) = op {
                    *numbers.entry(*sequence).or_default() += 1;
                }
            }
        });
        numbers
    }

    /// Whether rows of a table decide how often its expressions are computed.
    pub fn is_by_rows(&self) -> bool {
        match self {
            Plan::Select(plan) => plan.source.relation.is_some(),
            Plan::Insert(plan) => match &plan.rows {
                InsertRows::Listed(_) => {
                    let returned = plan.returning.iter().any(Expression::takes_number);
                    plan.conflict.is_some() || returned
                }
                InsertRows::Queried(query, _) => query.source.relation.is_some(),
                InsertRows::Composed(..) | InsertRows::Copied(..) => true,
            },
            Plan::Update(_)
            | Plan::Delete(_)
            | Plan::Composed(_)
            | Plan::Writing(_)
            | Plan::Merge(_) => true,
            Plan::Guarded(guarded) => {
                let mut defaults = guarded.keys.iter().flat_map(|key| &key.defaults);
                guarded.plan.is_by_rows() || defaults.any(Expression::takes_number)
            }
        }
    }

    /// How many numbers a COPY of this many rows takes.
    pub fn numbers_of_copy(&self, rows: u32) -> BTreeMap<ObjectId, u32> {
        let times = |(id, count): (ObjectId, u32)| (id, count.saturating_mul(rows));
        self.numbers().into_iter().map(times).collect()
    }

    /// Whether its rows come with the first parameter.
    pub fn is_copy(&self) -> bool {
        match self {
            Plan::Guarded(guarded) => guarded.plan.is_copy(),
            plan => matches!(plan, Plan::Insert(Insert { rows: InsertRows::Copied(..), .. })),
        }
    }

    /// Whether it only answers, but for numbers that it may take.
    pub fn is_query(&self) -> bool {
        match self {
            Plan::Select(_) => true,
            Plan::Composed(plan) => matches!(plan.main, Main::Query(_)),
            Plan::Insert(_)
            | Plan::Update(_)
            | Plan::Delete(_)
            | Plan::Guarded(_)
            | Plan::Writing(_)
            | Plan::Merge(_) => false,
        }
    }

    /// The statement's first word, as PostgreSQL says it in messages.
    pub fn command(&self) -> &'static str {
        match self {
            _ if self.is_copy() => "COPY FROM",
            Plan::Select(_) => "SELECT",
            Plan::Insert(_) => "INSERT",
            Plan::Update(_) => "UPDATE",
            Plan::Delete(_) => "DELETE",
            Plan::Composed(plan) => plan.main.command(),
            Plan::Guarded(guarded) => guarded.plan.command(),
            Plan::Merge(_) => "MERGE",
            Plan::Writing(plan) => plan.last().map_or("SELECT", Main::command),
        }
    }

    /// Whether queries are in queries deeper than they may be.
    pub(crate) fn is_too_deep(&self) -> bool {
        match self {
            Plan::Composed(plan) => plan.depth().is_none_or(|depth| depth > QUERY_DEPTH_MAX),
            Plan::Writing(plan) | Plan::Merge(plan) => {
                plan.depth().is_none_or(|depth| depth > QUERY_DEPTH_MAX)
            }
            _ => false,
        }
    }

    fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        match self {
            Plan::Select(plan) => plan.each_expression(each),
            Plan::Insert(plan) => plan.each_expression(each),
            Plan::Update(plan) => plan.each_expression(each),
            Plan::Delete(plan) => plan.each_expression(each),
            Plan::Composed(plan) => plan.each_expression(each),
            Plan::Guarded(guarded) => {
                guarded.plan.each_expression(each);
                guarded.keys.iter().flat_map(|key| &key.defaults).for_each(each);
            }
            Plan::Writing(plan) | Plan::Merge(plan) => plan.each_expression(each),
        }
    }

    /// Whether it reads the system catalog or the session, which calls do not know.
    pub fn needs_system(&self) -> bool {
        let mut needs = self.has_system_rows();
        self.each_expression(&mut |expression| needs |= expression.needs_system());
        needs
    }

    /// Whether all that it reads so are functions of the session whose values can stand in their
    /// place, as they depend on constants and parameters only.
    pub fn needs_session_only(&self) -> bool {
        let mut is_only = !self.has_system_rows();
        self.each_expression(&mut |expression| is_only &= expression.needs_session_only());
        is_only
    }

    /// The claims of rows that it makes, each once.
    pub fn claims(&self) -> Vec<Claim> {
        let mut claims: Vec<Claim> = Vec::new();
        self.each_expression(&mut |expression| {
            for claim in expression.claims() {
                if !claims.contains(claim) {
                    claims.push(claim.clone());
                }
            }
        });
        claims
    }

    /// Whether it has random values: their seed is behind its parameters.
    pub fn needs_seed(&self) -> bool {
        let mut needs = false;
        self.each_expression(&mut |expression| needs |= expression.needs_seed());
        needs
    }

    /// Whether it notifies listeners, which only calls do.
    pub fn notifies(&self) -> bool {
        let mut notifies = false;
        self.each_expression(&mut |expression| notifies |= expression.notifies());
        notifies
    }

    /// Whether it does something beside reading and writing rows, which only queries do.
    pub fn has_effects(&self) -> bool {
        self.any_system_function(SystemFunction::has_effect)
    }

    /// Whether all that it asks the server for is to do something, so that its answer depends
    /// neither on the system catalog nor on the session's settings.
    pub fn has_only_effects(&self) -> bool {
        !self.has_system_rows() && !self.any_system_function(|function| !function.has_effect())
    }

    fn any_system_function(&self, is_meant: impl Fn(SystemFunction) -> bool) -> bool {
        let mut any = false;
        self.each_expression(&mut |expression| {
            any |= expression
                .code
                .iter()
                .any(|op| matches!(op, Op::System(function, _) if is_meant(*function)));
        });
        any
    }

    /// Whether it reads the system catalog or the session as rows.
    fn has_system_rows(&self) -> bool {
        let queries = match self {
            Plan::Composed(plan) => &plan.queries[..],
            Plan::Writing(plan) | Plan::Merge(plan) => &plan.queries,
            _ => &[],
        };
        let is_of_system = |call: &RowsCall| call.function == RowsFunction::ListeningChannels;
        queries.iter().any(|query| match &query.input {
            Input::System(_) => true,
            Input::Functions(calls, _) => calls.iter().any(is_of_system),
            _ => false,
        })
    }

    /// Whether it reads rows of a table.
    pub fn reads_tables(&self) -> bool {
        match self {
            Plan::Select(plan) => plan.source.relation.is_some(),
            Plan::Composed(plan) => plan.queries.iter().any(Query::reads_table),
            _ => true,
        }
    }

    /// Refuses tables that no definition makes, and queries that need others than they may.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Plan::Select(plan) => plan.source.check(),
            Plan::Insert(plan) => plan.check(),
            Plan::Update(plan) => plan.source.check(),
            Plan::Delete(plan) => plan.source.check(),
            Plan::Composed(plan) => plan.check(),
            Plan::Guarded(guarded) => {
                if !guarded.is_sound() {
                    return Err(Error::corrupted("foreign keys of a plan are damaged"));
                }
                guarded.relations.iter().try_for_each(Relation::check)?;
                guarded.plan.check()
            }
            Plan::Writing(_) | Plan::Merge(_) if self.is_too_deep() => {
                Err(Error::corrupted("queries of a plan are damaged"))
            }
            Plan::Writing(plan) | Plan::Merge(plan) => plan.check(),
        }
    }
}
