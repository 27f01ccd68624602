//! A scenario and its difference as a script for psql.

use super::scenario::Difference;
use crate::compare::show;
use crate::generate::{Script, Sending};

/// The statements for psql, what psql cannot say as comments, and both answers.
pub(crate) fn to_psql(script: &Script, difference: &Difference) -> String {
    let mut text = String::new();
    for step in &script.steps {
        if let Sending::Extended(choices) = step.sending {
            text.push_str(&format!("-- by the extended protocol, {choices:?}:\n"));
            for statement in &step.statements {
                let (sql, parameters) = statement.tree.to_parameters();
                let values: Vec<_> =
                    parameters.iter().map(|one| one.kind.literal(one.text.as_deref())).collect();
                text.push_str(&format!("--   {sql}   with {}\n", values.join(", ")));
            }
        }
        let statements: Vec<_> = step.statements.iter().map(|one| one.tree.to_sql()).collect();
        let separator = if step.sending == Sending::Simple { "\\; " } else { ";\n" };
        text.push_str(&statements.join(separator));
        text.push_str(";\n");
    }
    for table in &script.tables {
        if difference.label.starts_with("contents") {
            text.push_str(&format!("SELECT * FROM {table};\n"));
        }
    }
    text.push_str(&format!("-- {}\n-- PostgreSQL 15:\n", difference.label));
    text.push_str(&show(&difference.theirs));
    text.push_str("-- nvcaracal:\n");
    text.push_str(&show(&difference.ours));
    text
}
