//! Plans of statements.

use super::change::{Action, Delete, Insert, InsertRows, Update};
use super::expression::{Expression, Op};
use super::foreign::Guarded;
use super::number::ObjectId;
use super::query::{Select, Source};
use super::relation::Relation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// Writes rows of a table that foreign keys refer from or to.
    Guarded(Box<Guarded>),
}

impl Plan {
    /// The columns of the answer; none if there are no rows.
    pub(crate) fn output(&self) -> &[Expression] {
        match self {
            Plan::Select(plan) => &plan.output,
            Plan::Insert(plan) => &plan.returning,
            Plan::Update(plan) => &plan.returning,
            Plan::Delete(plan) => &plan.returning,
            Plan::Guarded(guarded) => guarded.plan.output(),
        }
    }

    /// The table whose rows it writes.
    pub(crate) fn written(&self) -> Option<&Relation> {
        match self {
            Plan::Select(_) => None,
            Plan::Insert(plan) => Some(&plan.relation),
            Plan::Update(plan) => plan.source.relation.as_ref(),
            Plan::Delete(plan) => plan.source.relation.as_ref(),
            Plan::Guarded(guarded) => guarded.plan.written(),
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
                InsertRows::Copied(..) => true,
            },
            Plan::Update(_) | Plan::Delete(_) => true,
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

    fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        match self {
            Plan::Select(plan) => plan.each_expression(each),
            Plan::Insert(plan) => {
                match &plan.rows {
                    InsertRows::Listed(rows) => rows.iter().flatten().for_each(&mut *each),
                    InsertRows::Queried(query, columns) => {
                        query.each_expression(each);
                        columns.iter().for_each(&mut *each);
                    }
                    InsertRows::Copied(_, columns) => columns.iter().for_each(&mut *each),
                }
                if let Some(conflict) = &plan.conflict
                    && let Action::Update { assignments, filter } = &conflict.action
                {
                    assignments.iter().for_each(|assignment| each(&assignment.value));
                    filter.iter().for_each(&mut *each);
                }
                plan.returning.iter().for_each(each);
            }
            Plan::Update(plan) => {
                plan.source.each_expression(each);
                plan.assignments.iter().for_each(|assignment| each(&assignment.value));
                plan.returning.iter().for_each(each);
            }
            Plan::Delete(plan) => {
                plan.source.each_expression(each);
                plan.returning.iter().for_each(each);
            }
            Plan::Guarded(guarded) => {
                guarded.plan.each_expression(each);
                guarded.keys.iter().flat_map(|key| &key.defaults).for_each(each);
            }
        }
    }

    /// Refuses tables that no definition makes.
    pub(super) fn check(&self) -> Result<()> {
        let source = |source: &Source| source.relation.as_ref().map_or(Ok(()), Relation::check);
        match self {
            Plan::Select(plan) => source(&plan.source),
            Plan::Insert(plan) => {
                if let InsertRows::Queried(query, _) = &plan.rows {
                    source(&query.source)?;
                }
                plan.relation.check()
            }
            Plan::Update(plan) => source(&plan.source),
            Plan::Delete(plan) => source(&plan.source),
            Plan::Guarded(guarded) => {
                if !guarded.is_sound() {
                    return Err(Error::corrupted("foreign keys of a plan are damaged"));
                }
                guarded.relations.iter().try_for_each(Relation::check)?;
                guarded.plan.check()
            }
        }
    }
}
