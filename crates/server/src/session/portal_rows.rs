//! FETCH, MOVE and CLOSE of portals of Bind, which only go on: as in PostgreSQL they are cursors
//! that cannot go back.

use super::conversation::{Conversation, Stop, Submission};
use super::planned::{Progress, Work};
use super::queue::Shape;
use crate::store::{Answer, Control, OutputColumn};
use sql::parse::{Fetch, FetchTo};
use std::sync::Arc;
use values::{Error, Result, SqlState};

impl Conversation {
    /// The columns of a cursor, or of a portal of Bind with this name.
    pub(super) fn columns_of_cursor(&self, name: &str) -> Result<Arc<[OutputColumn]>> {
        if self.is_portal(name) {
            return Ok(Arc::clone(&self.portals.look(name)?.prepared.columns));
        }
        Ok(Arc::clone(&self.cursors.look(name)?.columns))
    }

    /// Whether a name is that of a portal of Bind, and of no cursor.
    pub(super) fn is_portal(&self, name: &str) -> bool {
        !self.cursors.has(name) && self.portals.has(name)
    }

    /// Runs the portal that FETCH or MOVE goes on with, if it has not run.
    pub(super) async fn begin_fetch(&mut self, control: &Control) -> Result<(), Stop> {
        let Control::Fetch(Fetch { cursor: name, .. }) = control else { return Ok(()) };
        if !self.is_portal(name) {
            return Ok(());
        }
        self.open_held().await?;
        let zone = Arc::clone(self.settings.zone());
        let portal = self.portals.get(name)?;
        if !matches!(portal.progress, Progress::New) {
            return Ok(());
        }
        let prepared = Arc::clone(&portal.prepared);
        let Work::Store(statement) = &prepared.work else {
            let message = format!("FETCH of portal \"{name}\", which is about the session,");
            return Err(Error::unsupported(message + " is not supported", "").into());
        };
        let statement = Arc::clone(statement);
        if statement.copy.is_some() || !statement.has_rows() {
            let message = format!("portal \"{name}\" cannot be run");
            return Err(Error::new(SqlState::WRONG_STATE, message).into());
        }
        let submission = Submission {
            statement: Arc::clone(&statement),
            values: std::mem::take(&mut portal.values),
            memory: portal.memory.take(),
            bytes: portal.bytes,
            shape: Shape::of(&prepared, &portal.formats, &zone),
            limit: None,
            before: Default::default(),
            prepared,
        };
        portal.progress = Progress::Done;
        self.set_configs(&submission.prepared.clone()).await?;
        self.refuse_by_block(&statement).await?;
        let answer = self.read(submission).await?;
        self.portals.get(name)?.progress = Progress::Left(answer);
        Ok(())
    }

    /// FETCH or MOVE of a portal that has run.
    pub(super) fn fetch_portal(&mut self, fetch: &Fetch, shape: &Shape) -> Result<Answer> {
        let portal = self.portals.get(&fetch.cursor)?;
        if !fetch.is_move && portal.prepared.columns != shape.columns {
            let message = "cached plan must not change result type";
            return Err(Error::unsupported(message, "Prepare the FETCH again."));
        }
        let Progress::Left(left) = &mut portal.progress else {
            let message = format!("portal \"{}\" cannot be run", fetch.cursor);
            return Err(Error::new(SqlState::WRONG_STATE, message));
        };
        let wide = |count: i64| usize::try_from(count).unwrap_or(usize::MAX);
        let (passed, taken) = match fetch.to {
            FetchTo::Forward(count @ 1..) => (0, wide(count)),
            FetchTo::End => (0, usize::MAX),
            FetchTo::Relative(count @ 1..) => (wide(count) - 1, 1),
            FetchTo::Absolute(1..) => {
                let message = "FETCH of a stated row of a portal of Bind is not supported";
                return Err(Error::unsupported(message, "Declare a cursor for its query."));
            }
            _ => {
                let error = Error::new(SqlState::WRONG_STATE, "cursor can only scan forward");
                return Err(
                    error.with_hint("Declare it with SCROLL option to enable backward scan.")
                );
            }
        };
        drop(left.rows.drain(..passed.min(left.rows.len())));
        let rows: Vec<_> = left.rows.drain(..taken.min(left.rows.len())).collect();
        if fetch.is_move {
            return Ok(Answer { tag: format!("MOVE {}", rows.len()), ..Answer::default() });
        }
        Ok(Answer { tag: format!("FETCH {}", rows.len()), rows, ..Answer::default() })
    }
}
