//! Statements with parts that write in their WITH.

use super::change::InsertRows;
use super::composed::{Main, Query, depth};
use super::expression::Expression;
use super::foreign::{ForeignKey, are_sound};
use super::relation::Relation;
use serde::{Deserialize, Serialize};
use values::{Error, Result};

/// A statement with parts that write. All parts see the rows as they were before the statement;
/// what one writes others see only in the rows that it returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Writing {
    /// The queries of all parts; each needs only those before it, and rows of parts.
    pub queries: Vec<Query>,
    /// What is done, in order, each part once and to its end. The last is the statement itself.
    pub parts: Vec<Part>,
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What is done.
    pub main: Main,
    /// The tables of `keys`; the first is the one that the part writes.
    pub relations: Vec<Relation>,
    /// The foreign keys that it touches, which are kept when all parts are done.
    pub keys: Vec<ForeignKey>,
}

impl Writing {
    /// The statement itself.
    pub(crate) fn last(&self) -> Option<&Main> {
        self.parts.last().map(|part| &part.main)
    }

    pub(super) fn output(&self) -> &[Expression] {
        self.last().map_or(&[], |main| main.output(&self.queries))
    }

    pub(super) fn each_expression(&self, each: &mut dyn FnMut(&Expression)) {
        self.queries.iter().for_each(|query| query.each_expression(each));
        for part in &self.parts {
            part.main.each_expression(each);
            part.keys.iter().flat_map(|key| &key.defaults).for_each(&mut *each);
        }
    }

    /// How deep queries are in queries.
    pub(super) fn depth(&self) -> Option<usize> {
        depth(&self.queries)
    }

    /// Refuses what no statement makes.
    pub(super) fn check(&self) -> Result<()> {
        self.queries.iter().try_for_each(Query::check)?;
        for part in &self.parts {
            part.main.check(&self.queries)?;
            part.relations.iter().try_for_each(Relation::check)?;
            let is_copy = matches!(
                &part.main,
                Main::Insert(insert) if matches!(insert.rows, InsertRows::Copied(..))
            );
            let is_sound = part.keys.is_empty() || !part.relations.is_empty();
            if is_copy || !is_sound || !are_sound(&part.relations, &part.keys) {
                return Err(Error::corrupted("parts of a plan are damaged"));
            }
        }
        Ok(())
    }
}
