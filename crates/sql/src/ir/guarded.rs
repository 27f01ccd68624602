//! Plans of statements on tables with foreign keys.

use super::foreign::{ForeignKey, are_sound};
use super::plan::Plan;
use super::relation::Relation;
use serde::{Deserialize, Serialize};

/// A statement that writes, with the foreign keys that it may touch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guarded {
    /// The statement without them.
    pub plan: Plan,
    /// The tables that they are between; the first is the statement's.
    pub relations: Vec<Relation>,
    /// The keys.
    pub keys: Vec<ForeignKey>,
}

impl Guarded {
    /// Whether all numbers name something.
    pub(super) fn is_sound(&self) -> bool {
        self.plan.written().is_some()
            && !matches!(self.plan, Plan::Guarded(_))
            && !self.relations.is_empty()
            && are_sound(&self.relations, &self.keys)
    }
}
