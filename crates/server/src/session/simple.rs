//! The simple protocol: a text with any number of statements, answered as text.

use super::conversation::{Conversation, Held, Stop, Submission};
use super::extended::behind_a_write;
use super::planned::{Prepared, Work};
use super::queue::{Disconnected, Shape};
use crate::codec::Format;
use crate::store::Parsed;
use std::sync::Arc;
use values::{Error, Result, SqlState};

impl Conversation {
    /// Runs the statements of a text up to the first error, and says that it is ready.
    pub(super) async fn query(&mut self, text: &str) -> Result<(), Disconnected> {
        match self.statements_of(text).await {
            Ok(()) => {}
            Err(Stop::Disconnected) => return Err(Disconnected),
            Err(Stop::Wrong(error)) => self.report(&error).await?,
        }
        if self.copying.is_some() {
            return Ok(());
        }
        self.out.ready();
        self.flush().await
    }

    async fn statements_of(&mut self, text: &str) -> Result<(), Stop> {
        match self.held.take() {
            None => {}
            Some(Held::Read(execution, room)) => self.settle(execution, room).await?,
            Some(held) => {
                self.held = Some(held);
                self.drop_held();
                return Err(behind_a_write().into());
            }
        }
        let mut all = self.parse(text)?;
        let Some(last) = all.pop() else {
            self.out.empty_query();
            return Ok(());
        };
        // Before anything runs: a write that is followed by something could not be undone with it.
        if all.iter().any(|parsed| parsed.control().is_none() && !parsed.is_query()) {
            return Err(several().into());
        }
        let bytes = text.len();
        for parsed in all {
            self.statement(parsed, bytes, false).await?;
        }
        self.statement(last, bytes, true).await
    }

    async fn statement(&mut self, parsed: Parsed, bytes: usize, is_last: bool) -> Result<(), Stop> {
        let prepared = Arc::new(self.plan(&parsed, &[], bytes)?);
        drop(parsed);
        let shape = self.shape(&prepared);
        let statement = match &prepared.work {
            Work::Nothing => return Ok(()),
            Work::Control(control) => return Ok(self.control(control, &shape)?),
            Work::Session(asked) => return Ok(self.about(asked, &shape)?),
            Work::Store(statement) => Arc::clone(statement),
        };
        if statement.copy.is_some() {
            return self.copy(&statement, true).await;
        }
        if !statement.parameters.is_empty() {
            let message = "there is no parameter $1";
            return Err(Error::new(SqlState::UNDEFINED_PARAMETER, message).into());
        }
        let is_read = statement.is_read();
        if !is_last && !is_read {
            return Err(several().into());
        }
        let submission = Submission {
            prepared,
            statement,
            values: Vec::new(),
            bytes,
            shape,
            rows_max: 0,
            before: std::mem::take(&mut self.out),
        };
        let (execution, room) = self.submit(submission, is_read).await?;
        if is_last {
            Ok(self.push(execution, room).await?)
        } else {
            self.settle(execution, room).await
        }
    }

    fn shape(&self, prepared: &Prepared) -> Shape {
        let as_text: Arc<[Format]> = Arc::new([]);
        Shape {
            is_described: true,
            wants_notices: self.settings.wants_notices(),
            ..Shape::of(prepared, &as_text, self.settings.zone())
        }
    }
}

fn several() -> Error {
    let instead = "Send each statement by itself, or the one that writes last.";
    behind_a_write().with_hint(instead)
}
