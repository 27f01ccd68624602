//! EXPLAIN: the plan of a statement, and with ANALYZE what a run of it takes.

use super::about::{tagged, text_column};
use super::conversation::{Conversation, Stop, Submission};
use super::planned::{Explaining, Prepared, Work};
use super::queue::Shape;
use crate::codec::{Format, Messages};
use crate::store::{Answer, OutputColumn, Statement};
use sql::Measured;
use sql::ir::Kind;
use sql::parse::{Explain, ExplainFormat};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use values::{Datum, Error, Result, Type};

/// The name of the answer's column.
const COLUMN: &str = "QUERY PLAN";

impl Prepared {
    /// EXPLAIN of a statement, whose plan took so long.
    ///
    /// # Errors
    /// The statement is none whose plan can be shown.
    pub(super) fn explain(
        asked: Explain,
        prepared: Prepared,
        planning: Duration,
    ) -> Result<Prepared> {
        let statement = match &prepared.work {
            Work::Store(statement) if !statement.is_definition() => Arc::clone(statement),
            _ => return Err(Error::unsupported("EXPLAIN of a definition is not supported", "")),
        };
        if statement.copy.is_some() {
            return Err(Error::unsupported("EXPLAIN of COPY is not supported", ""));
        }
        let column = match asked.format {
            ExplainFormat::Json => {
                OutputColumn { name: COLUMN.to_owned(), kind: Kind::plain(Type::Json) }
            }
            ExplainFormat::Text | ExplainFormat::Yaml => text_column(COLUMN),
        };
        let (bytes, given, memory) =
            (prepared.bytes, prepared.given.clone(), prepared.memory.clone());
        let prepared = Arc::new(prepared);
        let explaining = Explaining { asked, prepared, statement, planning };
        let work = Work::Explain(Arc::new(explaining));
        Ok(Prepared { given, memory, ..Prepared::new(work, Arc::new([column]), bytes) })
    }
}

impl Conversation {
    /// Answers EXPLAIN; with ANALYZE the statement takes place.
    pub(super) async fn explain(
        &mut self,
        explaining: &Explaining,
        values: &[Datum],
    ) -> Result<Answer, Stop> {
        let asked = &explaining.asked;
        let statement = match self.connection.renewed(&explaining.statement).await? {
            Some(again) => again,
            None => Arc::clone(&explaining.statement),
        };
        let plan = statement.explain(&self.connection.catalog());
        let Some(plan) = plan else { unreachable!("definitions are refused before") };
        let measured = match asked.is_analyzed {
            true => Some(self.measure(explaining, statement, values).await?),
            false => None,
        };
        let shown = plan.rows(asked, explaining.planning, measured);
        let datum = |text: String| match asked.format {
            ExplainFormat::Json => Datum::Json(text.into()),
            ExplainFormat::Text | ExplainFormat::Yaml => Datum::text(text),
        };
        let rows = shown.into_iter().map(|text| vec![datum(text)]).collect();
        Ok(tagged("EXPLAIN", rows))
    }

    /// Runs a statement, and tells what that took.
    async fn measure(
        &mut self,
        explaining: &Explaining,
        statement: Arc<Statement>,
        values: &[Datum],
    ) -> Result<Measured, Stop> {
        let prepared = Arc::clone(&explaining.prepared);
        self.set_configs(&prepared).await?;
        self.refuse_by_block(&statement).await?;
        let as_text: Arc<[Format]> = Arc::new([]);
        let submission = Submission {
            statement,
            values: values.to_vec(),
            memory: prepared.memory.clone(),
            bytes: prepared.bytes,
            shape: Shape::of(&prepared, &as_text, self.settings.zone()),
            limit: None,
            before: Messages::default(),
            prepared,
        };
        let begun = Instant::now();
        let answer = self.read(submission).await?;
        Ok(Measured { rows: answer.rows.len(), time: begun.elapsed(), steps: answer.steps })
    }
}
