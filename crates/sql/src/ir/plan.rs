//! Plans of statements.

use super::change::{Delete, Insert, InsertRows, Update};
use super::expression::Expression;
use super::query::{Select, Source};
use super::relation::Relation;
use serde::{Deserialize, Serialize};
use values::Result;

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
}

impl Plan {
    /// The columns of the answer; none if there are no rows.
    pub(crate) fn output(&self) -> &[Expression] {
        match self {
            Plan::Select(plan) => &plan.output,
            Plan::Insert(plan) => &plan.returning,
            Plan::Update(plan) => &plan.returning,
            Plan::Delete(plan) => &plan.returning,
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
        }
    }
}
