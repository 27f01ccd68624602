//! Statements within PREPARE and EXPLAIN, and what EXECUTE says.

use super::statement::Statement;
use crate::bind::{name_of, own_name};
use sqlparser::ast::{DataType, DescribeAlias, Expr, Statement as Tree, UtilityOption};
use values::{Error, Result, SqlState};

/// Options of EXPLAIN that ask for what there is, or for less of it.
const OPTIONS: &[&str] = &["verbose", "costs", "settings", "summary", "generic_plan", "memory"];

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

    /// The statement whose plan EXPLAIN asks for.
    ///
    /// # Errors
    /// ANALYZE, and other options that ask for what is not measured.
    pub fn explained(&self) -> Result<Option<Statement>> {
        let Tree::Explain {
            describe_alias,
            analyze,
            verbose: _,
            query_plan,
            estimate,
            statement,
            format,
            options,
        } = &self.tree
        else {
            return Ok(None);
        };
        let refused = |what: &str| {
            Err(Error::unsupported(format!("EXPLAIN with {what} is not supported"), ""))
        };
        if *analyze {
            return refused("ANALYZE");
        }
        if *query_plan || *estimate || format.is_some() {
            return refused("another format");
        }
        if *describe_alias != DescribeAlias::Explain {
            let message = format!("syntax error at or near \"{describe_alias}\"");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        for UtilityOption { name, arg } in options.iter().flatten() {
            let (name, arg) = (name_of(name), arg.as_ref().map(ToString::to_string));
            let arg = arg.unwrap_or_default().to_ascii_lowercase();
            let is_off = matches!(arg.trim_matches('\''), "false" | "off" | "0" | "none");
            let is_text = name == "format" && arg.trim_matches('\'') == "text";
            match name.as_str() {
                _ if is_off || is_text || OPTIONS.contains(&name.as_str()) => {}
                "analyze" | "buffers" | "wal" | "timing" | "format" | "serialize" => {
                    return refused(&name.to_ascii_uppercase());
                }
                _ => {
                    let message = format!("unrecognized EXPLAIN option \"{name}\"");
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
            }
        }
        Ok(Some(self.part(statement)))
    }
}
