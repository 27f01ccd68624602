//! PREPARE, EXECUTE and EXPLAIN as text.

use super::conversation::Conversation;
use super::planned::{Prepared, Work};
use crate::store::Parsed;
use std::sync::Arc;
use tokio::time::Instant;
use values::{Error, Result, SqlState, Type};

impl Conversation {
    /// What a statement is that has another one within it, or names one; `None` of all others.
    pub(super) async fn plan_within(
        &self,
        parsed: &Parsed,
        types: &[Option<Type>],
        bytes: usize,
    ) -> Result<Option<Prepared>> {
        if let Some((asked, inner)) = self.connection.explained(parsed).await? {
            self.connection.saw_catalog(self.catalog_version);
            let begun = Instant::now();
            let prepared = match inner.executed_name() {
                Some(name) => self.plan_executed(&inner, &name, bytes).await?,
                None => {
                    let statement = self.connection.prepare(&inner, types).await?;
                    let columns = statement.columns.clone().into();
                    let prepared = Prepared::new(Work::Store(statement), columns, bytes);
                    Prepared { configs: inner.configs(), ..prepared }
                }
            };
            return Prepared::explain(asked, prepared, begun.elapsed()).map(Some);
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
        match parsed.executed_name() {
            Some(name) => self.plan_executed(parsed, &name, bytes).await.map(Some),
            None => Ok(None),
        }
    }

    /// The statement that EXECUTE runs, with its values.
    async fn plan_executed(&self, parsed: &Parsed, name: &str, bytes: usize) -> Result<Prepared> {
        let prepared = Arc::clone(&self.statements.look(name)?.prepared);
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
        Ok(Prepared { given, memory, ..Prepared::new(Work::Store(statement), columns, bytes) })
    }
}
