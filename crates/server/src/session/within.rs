//! PREPARE, EXECUTE and EXPLAIN as text.

use super::about::text_column;
use super::conversation::Conversation;
use super::planned::{Prepared, Work};
use crate::store::{Parsed, Statement};
use std::sync::Arc;
use values::{Error, Result, SqlState, Type};

impl Conversation {
    /// What a statement is that has another one within it, or names one; `None` of all others.
    pub(super) async fn plan_within(
        &self,
        parsed: &Parsed,
        types: &[Option<Type>],
        bytes: usize,
    ) -> Result<Option<Prepared>> {
        if let Some(inner) = self.connection.explained(parsed).await? {
            self.connection.saw_catalog(self.catalog_version);
            let statement = self.connection.prepare(&inner, types).await?;
            return self.explained(&statement, bytes).map(Some);
        }
        if let Some((name, inner)) = self.connection.prepared(parsed).await? {
            let types = self.connection.parameter_types(parsed).await?;
            let statement = self.connection.prepare(&inner, &types).await?;
            if statement.is_definition() || statement.copy.is_some() {
                let message = "PREPARE is for statements that read and change rows";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            let columns = statement.columns.clone().into();
            let prepared = Arc::new(Prepared::new(Work::Store(statement), columns, bytes));
            let work = Work::Prepare(name, prepared, Arc::clone(parsed.text()));
            return Ok(Some(Prepared::new(work, Arc::new([]), bytes)));
        }
        let Some(name) = parsed.executed_name() else { return Ok(None) };
        let prepared = Arc::clone(&self.statements.look(&name)?.prepared);
        let Work::Store(statement) = &prepared.work else {
            let message = format!("EXECUTE of \"{name}\", which is about the session,");
            return Err(Error::unsupported(message + " is not supported", ""));
        };
        let statement = match self.connection.renewed(statement).await? {
            Some(again) => again,
            None => Arc::clone(statement),
        };
        let memory = self.connection.memory().grant();
        let given = self.connection.arguments(parsed, &statement.parameters, &memory).await?;
        let (given, memory) = (Some(given), Some(memory));
        let columns = Arc::clone(&prepared.columns);
        Ok(Some(Prepared {
            given,
            memory,
            ..Prepared::new(Work::Store(statement), columns, bytes)
        }))
    }

    fn explained(&self, statement: &Statement, bytes: usize) -> Result<Prepared> {
        if !statement.parameters.is_empty() && statement.copy.is_none() {
            let message = "EXPLAIN of a statement with parameters is not supported";
            return Err(Error::unsupported(message, "Write values in their place."));
        }
        let lines = statement.explain(&self.connection.catalog());
        let lines = lines
            .ok_or_else(|| Error::unsupported("EXPLAIN of a definition is not supported", ""))?;
        let columns = Arc::new([text_column("QUERY PLAN")]);
        Ok(Prepared::new(Work::Explain(lines.into()), columns, bytes))
    }
}
