//! EXPLAIN: its options, and the statement within it.

use super::statement::Statement;
use crate::bind::name_of;
use sqlparser::ast::{DescribeAlias, Expr, Statement as Tree, UtilityOption, Value};
use values::{Error, Result, SqlState};

/// How EXPLAIN answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    /// Lines.
    Text,
    /// One value of JSON.
    Json,
    /// One text.
    Yaml,
}

/// What EXPLAIN asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explain {
    /// Whether the statement runs.
    pub is_analyzed: bool,
    /// The form of the answer.
    pub format: ExplainFormat,
    /// Whether the run's time is a part of its step.
    pub has_timing: bool,
    /// Whether the times of planning and running are shown.
    pub has_summary: bool,
}

/// The options of EXPLAIN as far as they are read.
#[derive(Default)]
struct Options {
    analyze: bool,
    format: Option<ExplainFormat>,
    timing: Option<bool>,
    summary: Option<bool>,
    needs_analyze: Option<&'static str>,
}

impl Statement {
    /// What EXPLAIN asks for, and the statement whose plan it shows.
    ///
    /// # Errors
    /// Options that PostgreSQL does not have, and XML.
    pub fn explained(&self) -> Result<Option<(Explain, Statement)>> {
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
        if *describe_alias != DescribeAlias::Explain || *query_plan || *estimate {
            let message = format!("syntax error at or near \"{describe_alias}\"");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        let mut asked = Options { analyze: *analyze, ..Options::default() };
        if format.is_some() {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"FORMAT\""));
        }
        for option in options.iter().flatten() {
            asked.take(option)?;
        }
        Ok(Some((asked.checked()?, self.part(statement))))
    }
}

impl Options {
    fn take(&mut self, option: &UtilityOption) -> Result<()> {
        let name = name_of(&option.name);
        let argument = option.arg.as_ref();
        match name.as_str() {
            "analyze" => self.analyze = truth(&name, argument)?,
            "timing" => {
                self.timing = Some(truth(&name, argument)?);
                self.needs_analyze = self.timing.filter(|is| *is).map(|_| "TIMING");
            }
            "summary" => self.summary = Some(truth(&name, argument)?),
            "wal" => {
                if truth(&name, argument)? {
                    self.needs_analyze = Some("WAL");
                }
            }
            "verbose" | "costs" | "settings" | "buffers" | "generic_plan" | "memory" => {
                truth(&name, argument)?;
            }
            "format" => self.format = Some(format(argument)?),
            _ => {
                let message = format!("unrecognized EXPLAIN option \"{name}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        }
        Ok(())
    }

    fn checked(self) -> Result<Explain> {
        if let Some(name) = self.needs_analyze.filter(|_| !self.analyze) {
            let message = format!("EXPLAIN option {name} requires ANALYZE");
            return Err(Error::new(SqlState::INVALID_PARAMETER, message));
        }
        Ok(Explain {
            is_analyzed: self.analyze,
            format: self.format.unwrap_or(ExplainFormat::Text),
            has_timing: self.timing.unwrap_or(self.analyze),
            has_summary: self.summary.unwrap_or(self.analyze),
        })
    }
}

/// The word of an option, in small letters.
fn word(argument: &Expr) -> String {
    match argument {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.to_ascii_lowercase(),
            other => other.to_string().to_ascii_lowercase(),
        },
        other => other.to_string().to_ascii_lowercase(),
    }
}

/// The truth value of an option, which is true where nothing is said.
fn truth(name: &str, argument: Option<&Expr>) -> Result<bool> {
    match argument.map(word).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(_) => {
            let message = format!("{name} requires a Boolean value");
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

fn format(argument: Option<&Expr>) -> Result<ExplainFormat> {
    let Some(argument) = argument else {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "format requires a parameter"));
    };
    match word(argument).as_str() {
        "text" => Ok(ExplainFormat::Text),
        "json" => Ok(ExplainFormat::Json),
        "yaml" => Ok(ExplainFormat::Yaml),
        "xml" => Err(Error::unsupported("EXPLAIN with FORMAT XML is not supported", "Use JSON.")),
        other => {
            let message = format!("unrecognized value for EXPLAIN option \"format\": \"{other}\"");
            Err(Error::new(SqlState::INVALID_PARAMETER, message))
        }
    }
}
