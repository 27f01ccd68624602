//! The statement within PREPARE, and what EXECUTE says.

use super::statement::Statement;
use crate::bind::{name_of, own_name};
use sqlparser::ast::{DataType, Expr, Statement as Tree};

impl Statement {
    /// Whether another statement is within it.
    pub fn has_part(&self) -> bool {
        matches!(&self.tree, Tree::Prepare { .. } | Tree::Explain { .. })
    }

    /// The name that PREPARE gives, and the statement that it is for.
    pub fn prepared(&self) -> Option<(String, Statement)> {
        let Tree::Prepare { name, statement, .. } = &self.tree else { return None };
        Some((name_of(name), self.part(statement)))
    }

    /// The types that PREPARE states.
    pub(crate) fn prepared_types(&self) -> &[DataType] {
        match &self.tree {
            Tree::Prepare { data_types, .. } => data_types,
            _ => &[],
        }
    }

    /// The name that EXECUTE says, and its values.
    pub(crate) fn executed(&self) -> Option<(String, &[Expr])> {
        let Tree::Execute { name: Some(name), parameters, immediate: false, .. } = &self.tree
        else {
            return None;
        };
        Some((own_name(name).ok()?, parameters))
    }

    /// The name of the prepared statement that EXECUTE runs.
    pub fn executed_name(&self) -> Option<String> {
        self.executed().map(|(name, _)| name)
    }
}
