//! Execute: a portal is run once, and answers its rows part by part.
//!
//! As PostgreSQL does it: a statement that answers rows takes place as a whole with the first
//! Execute, whatever its limit; a limit that is reached suspends the portal, although no row may be
//! left; and a portal at its end answers no rows. A statement without rows knows no limit, and is
//! run once.

use super::conversation::{Conversation, Held, Limit, Stop, Submission};
use super::planned::{Prepared, Progress, Work};
use super::queue::{Disconnected, Execution, Outcome, Shape};
use super::segment::behind_a_copy;
use crate::codec::Messages;
use crate::store::{Answer, Control, Statement};
use sql::parse::{FetchTo, Own};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState};

/// The rows that one Execute answers, and those that it leaves.
pub(super) struct Part {
    pub(super) answer: Answer,
    pub(super) left: Answer,
    pub(super) is_suspended: bool,
}

impl Part {
    /// Splits an answer at a limit of rows; 0 is none. Each tag counts its own rows.
    pub(super) fn of(mut answer: Answer, rows_max: usize) -> Part {
        let is_suspended = rows_max > 0 && answer.rows.len() >= rows_max;
        let rows = if is_suspended { answer.rows.split_off(rows_max) } else { Vec::new() };
        let (tag, memory) = (answer.tag.clone(), answer.memory.clone());
        let left = Answer { tag, rows, memory, ..Answer::default() };
        answer.tag = counted(&answer.tag, answer.rows.len());
        Part { answer, left, is_suspended }
    }
}

/// A tag with another count, if it has one.
fn counted(tag: &str, count: usize) -> String {
    match tag.rsplit_once(' ') {
        Some((words, last)) if last.parse::<u64>().is_ok() => format!("{words} {count}"),
        _ => tag.to_owned(),
    }
}

impl Conversation {
    /// Runs a portal, or goes on with its rows.
    pub(super) async fn execute(&mut self, name: &str, rows_max: usize) -> Result<(), Stop> {
        if !self.portals.has(name) && self.cursors.has(name) {
            self.open_held().await?;
            return Ok(self.execute_cursor(name, rows_max)?);
        }
        if matches!(self.portals.get(name)?.progress, Progress::Held) {
            self.open_held().await?;
        }
        let portal = self.portals.get(name)?;
        let prepared = Arc::clone(&portal.prepared);
        let shape = Shape::of(&prepared, &portal.formats, self.settings.zone());
        if matches!(prepared.work, Work::Nothing) {
            self.out.empty_query();
            return Ok(());
        }
        self.check_block(prepared.control())?;
        let (wants_notices, wants_warnings) =
            (self.settings.wants_notices(), self.settings.wants_warnings());
        let shape = Shape { wants_notices, wants_warnings, ..shape };
        let portal = self.portals.get(name)?;
        let (values, bytes) = (std::mem::take(&mut portal.values), portal.bytes);
        let memory = portal.memory.take();
        match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::New => {}
            Progress::Left(answer) => {
                self.open_held().await?;
                return Ok(self.answer_part(name, answer, shape, rows_max).await?);
            }
            Progress::Held | Progress::Done => {
                let message = format!("portal \"{name}\" cannot be run");
                return Err(Error::new(SqlState::WRONG_STATE, message).into());
            }
        }
        match &prepared.work {
            Work::Declare(..) => self.declare(&prepared, values, memory, bytes).await,
            Work::Store(statement) => {
                let (statement, limit) = (Arc::clone(statement), None);
                let before = Messages::default();
                let submission =
                    Submission { prepared, statement, values, memory, bytes, shape, limit, before };
                self.execute_stored(name, submission, rows_max).await
            }
            _ => self.about_session(name, &prepared, &values, &shape, rows_max).await,
        }
    }

    /// Runs the statement of a portal for the first time.
    async fn execute_stored(
        &mut self,
        name: &str,
        mut submission: Submission,
        rows_max: usize,
    ) -> Result<(), Stop> {
        let statement = Arc::clone(&submission.statement);
        if statement.copy.is_some() {
            return self.copy(&statement, false).await;
        }
        if matches!(self.held, Some(Held::Copy(..))) {
            return Err(behind_a_copy().into());
        }
        let (is_read, locks_rows) = (statement.is_read(), statement.locks_rows());
        let rows_max = if statement.has_rows() { rows_max } else { 0 };
        if statement.is_definition() || is_read && rows_max > 0 {
            self.open_held().await?;
        }
        let begins = self.keeps_snapshot() || locks_rows && !self.is_in_block();
        if begins && is_read && rows_max > 0 {
            self.open_implicit().await?;
        }
        self.set_configs(&submission.prepared).await?;
        self.refuse_by_block(&statement).await?;
        if rows_max > 0 && (is_read || self.is_in_block()) {
            let shape = submission.shape.clone();
            let answer = self.read(submission).await?;
            return Ok(self.answer_part(name, answer, shape, rows_max).await?);
        }
        submission.before = std::mem::take(&mut self.out);
        self.block.has_run = true;
        if self.is_in_block() {
            let (execution, room) = self.submit(submission, true).await?;
            self.settle(execution, room).await?;
            self.set_at_end(name, &statement);
        } else if is_read && self.held.is_none() && !begins {
            let (execution, room) = self.submit(submission, true).await?;
            self.held = Some(Held::Read(execution, room));
            self.set_at_end(name, &statement);
        } else {
            submission.limit = self.held_limit(name, rows_max)?;
            self.set_at_end(name, &statement);
            self.hold(submission)?;
        }
        Ok(())
    }

    /// Says in a portal that its statement is held, if its rows are limited.
    fn held_limit(&mut self, name: &str, rows_max: usize) -> Result<Option<Limit>> {
        if rows_max == 0 {
            return Ok(None);
        }
        let portal = self.portals.get(name)?;
        portal.progress = Progress::Held;
        Ok(Some(Limit { rows_max, portal: name.to_owned(), number: portal.number }))
    }

    /// Says in a portal whose statement answers all rows at once that none is left.
    fn set_at_end(&mut self, name: &str, statement: &Statement) {
        if let Ok(portal) = self.portals.get(name)
            && statement.has_rows()
            && !matches!(portal.progress, Progress::Held)
        {
            let (tag, rows) = (statement.tag_of_none(), Vec::new());
            portal.progress = Progress::Left(Answer { tag, rows, ..Answer::default() });
        }
    }

    /// Waits for the answer of a held statement, and keeps in its portal what goes beyond the
    /// limit.
    pub(super) async fn first_rows(&mut self, execution: Execution, limit: &Limit) -> Execution {
        let mut execution = self.awaited(execution).await;
        if let Outcome::Ready(Ok(answer)) = &mut execution.outcome {
            let part = Part::of(std::mem::take(answer), limit.rows_max);
            (*answer, execution.is_suspended) = (part.answer, part.is_suspended);
            if let Ok(portal) = self.portals.get(&limit.portal)
                && portal.number == limit.number
            {
                portal.progress = Progress::Left(part.left);
            }
        }
        execution
    }

    /// Sends the first rows of an answer, and keeps the others in the portal.
    async fn answer_part(
        &mut self,
        name: &str,
        answer: Answer,
        shape: Shape,
        rows_max: usize,
    ) -> Result<(), Disconnected> {
        let part = Part::of(answer, rows_max);
        if let Ok(portal) = self.portals.get(name) {
            portal.progress = Progress::Left(part.left);
        }
        self.rows(part.answer, shape, part.is_suspended).await
    }

    /// Does what is about the session, behind what is held.
    async fn about_session(
        &mut self,
        name: &str,
        prepared: &Prepared,
        values: &[Datum],
        shape: &Shape,
        rows_max: usize,
    ) -> Result<(), Stop> {
        self.open_held().await?;
        let begins = match &prepared.work {
            Work::Control(Control::Own(Own::SetConstraints(_))) => true,
            // What else the segment has may fail.
            Work::Explain(explaining) => {
                explaining.asked.is_analyzed && !explaining.statement.is_read()
            }
            _ => false,
        };
        if begins && !self.is_in_block() {
            self.open_implicit().await?;
        }
        let answer = match &prepared.work {
            Work::Control(control) => {
                self.begin_fetch(control).await?;
                self.control(control, shape).await?
            }
            work => self.about_work(work, values).await?,
        };
        if !prepared.has_rows() {
            self.local_answer(&answer, shape, false);
            return Ok(());
        }
        let part = Part::of(answer, rows_max);
        if let Ok(portal) = self.portals.get(name) {
            portal.progress = Progress::Left(part.left);
        }
        self.local_answer(&part.answer, shape, part.is_suspended);
        Ok(())
    }

    /// Goes on with the rows of a cursor of SQL, which is a portal, too.
    fn execute_cursor(&mut self, name: &str, rows_max: usize) -> Result<()> {
        self.check_block(None)?;
        let cursor = self.cursors.get(name)?;
        let shape = Shape {
            columns: Arc::clone(&cursor.columns),
            formats: Arc::new([]),
            zone: Arc::clone(self.settings.zone()),
            is_described: false,
            wants_notices: true,
            wants_warnings: true,
        };
        let to = match i64::try_from(rows_max) {
            Ok(0) | Err(_) => FetchTo::End,
            Ok(count) => FetchTo::Forward(count),
        };
        let rows = cursor.fetch(to)?;
        let is_suspended = rows_max > 0 && rows.len() >= rows_max;
        let answer = Answer { tag: format!("SELECT {}", rows.len()), rows, ..Answer::default() };
        self.local_answer(&answer, &shape, is_suspended);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::Datum;

    #[test]
    fn an_answer_is_split_at_a_limit() {
        let answer = |tag: &str, rows: i32| Answer {
            tag: tag.to_owned(),
            rows: (0..rows).map(|row| vec![Datum::Int4(row)]).collect(),
            ..Answer::default()
        };
        let check = |tag, rows, rows_max, expected: (&str, usize, usize, bool)| {
            let part = Part::of(answer(tag, rows), rows_max);
            let found = (
                part.answer.tag.as_str(),
                part.answer.rows.len(),
                part.left.rows.len(),
                part.is_suspended,
            );
            assert_eq!(found, expected, "{tag}, {rows} rows, at most {rows_max}");
        };
        check("SELECT 3", 3, 0, ("SELECT 3", 3, 0, false));
        check("SELECT 3", 3, 2, ("SELECT 2", 2, 1, true));
        check("SELECT 3", 3, 3, ("SELECT 3", 3, 0, true));
        check("SELECT 3", 3, 4, ("SELECT 3", 3, 0, false));
        check("INSERT 0 3", 1, 0, ("INSERT 0 1", 1, 0, false));
        check("SHOW", 1, 1, ("SHOW", 1, 0, true));
        check("EXPLAIN", 0, 1, ("EXPLAIN", 0, 0, false));
    }
}
