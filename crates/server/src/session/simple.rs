//! The simple protocol: a text with any number of statements, answered as text.

use super::conversation::{Conversation, Held, Stop, Submission};
use super::copy::not_alone;
use super::planned::{Prepared, Work};
use super::queue::{Disconnected, Shape};
use crate::codec::Format;
use crate::store::{Control, Parsed};
use sql::parse::{BlockModes, Own};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState};

impl Conversation {
    /// Runs the statements of a text up to the first error, and says that it is ready.
    pub(super) async fn query(&mut self, text: &str) -> Result<(), Disconnected> {
        match self.statements_of(text).await {
            Ok(()) => {}
            Err(Stop::Disconnected) => return Err(Disconnected),
            Err(Stop::Wrong(error)) => {
                self.drop_held();
                self.fail_block();
                self.report(&error).await?;
            }
        }
        if self.copying.is_some() {
            return Ok(());
        }
        self.end_segment().await
    }

    async fn statements_of(&mut self, text: &str) -> Result<(), Stop> {
        #[cfg(test)]
        crate::store::planted(crate::store::Place::Message, text);
        self.runs(text);
        match self.held.take() {
            None => {}
            Some(Held::Read(execution, room)) => self.settle(execution, room).await?,
            held => {
                // A text without a Sync before it goes on with the segment.
                self.held = held;
                self.open_held().await?;
            }
        }
        let mut all = self.parse(text).await?;
        let bytes = text.len();
        self.is_one_of_several = all.len() > 1;
        self.begin_transaction();
        let in_block = self.is_in_block();
        if !in_block
            && all.len() > 1
            && let Some((begun, submissions)) = self.together(&all, bytes).await
        {
            return self.all_at_once(begun, submissions).await;
        }
        let Some(last) = all.pop() else {
            self.out.empty_query();
            return Ok(());
        };
        for parsed in all {
            self.begin_transaction();
            if !self.is_in_block() && self.begins_implicit(&parsed) {
                self.open_implicit().await?;
            }
            self.statement(parsed, bytes, false).await?;
        }
        self.statement(last, bytes, true).await
    }

    /// Whether a statement of a text, which is not its last one, begins a block of the rest.
    fn begins_implicit(&self, parsed: &Parsed) -> bool {
        match parsed.control() {
            Some(control) => matches!(control, Control::Own(Own::SetConstraints(_))),
            None => !parsed.is_query() || self.keeps_snapshot(),
        }
    }

    /// The statements of a text that can be one call, as nothing has to be answered before its end:
    /// several of which any but the last writes, or the last, too, where all read one snapshot; or
    /// a whole block. Any error is found again by who runs them one by one.
    async fn together(&self, all: &[Parsed], bytes: usize) -> Option<(Begun, Vec<Submission>)> {
        if all.iter().any(Parsed::is_definition) {
            return None;
        }
        let begun = begun(all);
        let (inner, is_read_only) = match &begun {
            Some((modes, _)) => (&all[1..all.len() - 1], modes.is_read_only),
            None => (all, None),
        };
        if is_read_only.unwrap_or_else(|| self.is_read_only()) {
            return None;
        }
        let is_one = begun.is_some() || self.keeps_snapshot();
        let checked = if is_one { inner } else { inner.split_last()?.1 };
        if !checked.iter().any(is_write) {
            return None;
        }
        let mut submissions = Vec::with_capacity(inner.len());
        for parsed in inner {
            submissions.push(self.submission(parsed, bytes).await.ok()??);
        }
        Some((begun, submissions))
    }

    async fn all_at_once(
        &mut self,
        begun: Begun,
        submissions: Vec<Submission>,
    ) -> Result<(), Stop> {
        let Some((modes, tag)) = begun else {
            return Ok(self.run_together(submissions, true).await??);
        };
        self.out.command_complete(&tag);
        match self.run_together(submissions, false).await {
            Ok(committed) => {
                committed?;
                self.out.command_complete(&"COMMIT");
            }
            Err(stop) => {
                // The client is in the block until it rolls it back.
                self.begin(&modes, tag).await?;
                return Err(stop);
            }
        }
        Ok(())
    }

    /// A statement of a text; `None` if it is none for the store, or has messages of its own.
    async fn submission(&self, parsed: &Parsed, bytes: usize) -> Result<Option<Submission>> {
        let prepared = Arc::new(self.plan(parsed, &[], bytes).await?);
        let Work::Store(statement) = &prepared.work else { return Ok(None) };
        if !prepared.configs.is_empty()
            || statement.copy.is_some()
            || statement.needs_system()
            || statement.awaits_rows()
            || statement.uses_temporary()
        {
            return Ok(None);
        }
        Ok(Some(Submission {
            statement: Arc::clone(statement),
            values: values_of(&prepared)?,
            memory: prepared.memory.clone(),
            bytes,
            shape: self.shape(&prepared),
            limit: None,
            before: Default::default(),
            prepared,
        }))
    }

    async fn statement(&mut self, parsed: Parsed, bytes: usize, is_last: bool) -> Result<(), Stop> {
        self.begin_transaction();
        let prepared = Arc::new(self.plan(&parsed, &[], bytes).await?);
        drop(parsed);
        let shape = self.shape(&prepared);
        let statement = match &prepared.work {
            Work::Nothing => return Ok(()),
            Work::Control(control) => {
                self.begin_fetch(control).await?;
                let answer = self.control(control, &shape).await?;
                self.local_answer(&answer, &shape, false);
                return Ok(());
            }
            Work::Session(..) | Work::Prepare(..) | Work::Explain(_) => {
                let values = values_of(&prepared)?;
                let answer = self.about_work(&prepared.work, &values).await?;
                self.local_answer(&answer, &shape, false);
                return Ok(());
            }
            Work::Declare(_, statement) if !statement.parameters.is_empty() => {
                return Err(no_parameter().into());
            }
            Work::Declare(..) => {
                return self.declare(&prepared, Vec::new(), None, bytes).await;
            }
            Work::Store(statement) => Arc::clone(statement),
        };
        if statement.copy.is_some() {
            if !is_last {
                return Err(not_alone().into());
            }
            return self.copy(&statement, true).await;
        }
        let values = values_of(&prepared)?;
        self.set_configs(&prepared).await?;
        self.refuse_by_block(&statement).await?;
        let begins = statement.locks_rows() || statement.notifies();
        if begins && !is_last && !self.is_in_block() {
            self.open_implicit().await?;
        }
        let is_read = statement.is_read() || self.is_in_block();
        let submission = Submission {
            memory: prepared.memory.clone(),
            prepared,
            statement,
            values,
            bytes,
            shape,
            limit: None,
            before: std::mem::take(&mut self.out),
        };
        let (execution, room) = self.submit(submission, is_read).await?;
        if is_last && !self.is_in_block() && !self.depends_on_end() {
            Ok(self.push(execution, room).await?)
        } else {
            self.settle(execution, room).await
        }
    }

    fn shape(&self, prepared: &Prepared) -> Shape {
        let as_text: Arc<[Format]> = Arc::new([]);
        Shape {
            is_described: prepared.has_rows(),
            wants_notices: self.settings.wants_notices(),
            wants_warnings: self.settings.wants_warnings(),
            ..Shape::of(prepared, &as_text, self.settings.zone())
        }
    }
}

/// The values of a statement that its text must have.
fn values_of(prepared: &Prepared) -> Result<Vec<Datum>> {
    match (&prepared.given, prepared.parameters()) {
        (Some(values), _) => Ok(values.clone()),
        (None, []) => Ok(Vec::new()),
        (None, _) => Err(no_parameter()),
    }
}

fn no_parameter() -> Error {
    Error::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1")
}

/// The modes and the tag of a text that is one block, from BEGIN to COMMIT.
type Begun = Option<(BlockModes, &'static str)>;

fn begun(all: &[Parsed]) -> Begun {
    let [first, .., last] = all else { return None };
    let begun = match first.control()? {
        Control::Begin(modes) => (modes, "BEGIN"),
        Control::Start(modes) => (modes, "START TRANSACTION"),
        _ => return None,
    };
    (last.control() == Some(Control::Commit(false))).then_some(begun)
}

fn is_write(parsed: &Parsed) -> bool {
    parsed.control().is_none() && !parsed.is_query()
}
