//! Segments: the messages between two Syncs, or one text.
//!
//! From its first statement that writes or locks rows on, a segment is one transaction; at
//! REPEATABLE READ and SERIALIZABLE from its first statement on. Its statements are held and
//! submitted as one call at its end. If one has to be answered earlier, they become an implicit
//! block instead.

use super::conversation::{Conversation, Held, Stop, Submission};
use super::portal::Part;
use super::queue::{Disconnected, Outcome};
use super::sending::outcome;
use super::standing::Standing;
use crate::limits::{HELD_BYTES_MAX, HELD_MAX, SENT_BYTES};
use crate::store::Statement;
use std::time::Duration;
use values::{Error, Result, SqlState};

/// How long the answer to a read is delayed, to be sent in one packet with that to the Sync.
const READ_PATIENCE: Duration = Duration::from_millis(2);
/// How long writes are held for a Sync, with which they are one call. Afterwards the client is
/// assumed to wait for their answers.
const WRITE_PATIENCE: Duration = Duration::from_millis(50);

/// Returns the error of a statement after COPY FROM, whose rows are written at the Sync.
pub(super) fn behind_a_copy() -> Error {
    let message = "nothing can run behind COPY FROM, before the next Sync";
    Error::unsupported(message, "Send Sync behind it.")
}

impl Conversation {
    /// Holds a statement until the end of the segment.
    pub(super) fn hold(&mut self, submission: Submission) -> Result<()> {
        self.held = Some(match self.held.take() {
            None => Held::Write(submission),
            Some(held @ Held::Copy(..)) => {
                self.held = Some(held);
                return Err(behind_a_copy());
            }
            Some(held) => {
                let mut all = held.submissions();
                all.push(submission);
                Held::Several(all)
            }
        });
        Ok(())
    }

    /// Whether a definition is held, on which later statements may depend.
    pub(super) fn holds_definition(&self) -> bool {
        matches!(&self.held, Some(Held::Write(one)) if one.statement.is_definition())
    }

    /// Whether the held statements exceed a limit.
    pub(super) fn holds_much(&self) -> bool {
        let (count, bytes) = match &self.held {
            None | Some(Held::Read(..) | Held::Copy(..)) => return false,
            Some(Held::Write(one)) => (1, one.bytes),
            Some(Held::Several(all)) => (all.len(), all.iter().map(|one| one.bytes).sum()),
        };
        let is_alone = count == 1;
        count > HELD_MAX || bytes > HELD_BYTES_MAX && !is_alone || self.out.len() > SENT_BYTES
    }

    /// Runs held statements in an implicit block, and queues their answers.
    pub(super) async fn open_held(&mut self) -> Result<(), Stop> {
        let Some(held) = self.held.take() else { return Ok(()) };
        if let Held::Copy(..) = held {
            self.held = Some(held);
            return Err(behind_a_copy().into());
        }
        let all = held.submissions();
        let behind = std::mem::take(&mut self.out);
        self.open_implicit().await?;
        for mut submission in all {
            let limit = submission.limit.take();
            let (mut execution, room) = self.submit(submission, true).await?;
            if let Some(limit) = limit {
                execution = self.first_rows(execution, &limit).await;
            }
            self.settle(execution, room).await?;
        }
        self.out.append(behind);
        Ok(())
    }

    /// Answers held statements as for a Flush. An error fails the segment.
    pub(super) async fn answer_held(&mut self) -> Result<(), Stop> {
        match self.held.take() {
            None => Ok(()),
            Some(Held::Read(execution, room)) => {
                let behind = std::mem::take(&mut self.out);
                self.settle(execution, room).await?;
                self.out.append(behind);
                Ok(())
            }
            Some(Held::Copy(rows, before)) => {
                self.held = Some(Held::Copy(rows, before));
                Ok(())
            }
            held @ Some(Held::Write(_) | Held::Several(_)) => {
                self.held = held;
                self.open_held().await
            }
        }
    }

    /// How long statements are held while the client sends nothing; `None` for ever.
    pub(super) fn held_patience(&self) -> Option<Duration> {
        match &self.held {
            None | Some(Held::Copy(..)) => None,
            Some(Held::Read(..)) => Some(READ_PATIENCE),
            Some(Held::Write(_) | Held::Several(_)) => Some(WRITE_PATIENCE),
        }
    }

    /// Fails the segment: sends the error, and skips messages until the Sync. Held statements are
    /// answered first, and the first error among them takes precedence.
    pub(super) async fn fail_segment(&mut self, error: Error) -> Result<(), Disconnected> {
        let error = match self.answer_held().await {
            Ok(()) => error,
            Err(Stop::Wrong(first)) => first,
            Err(Stop::Disconnected) => return Err(Disconnected),
        };
        self.drop_held();
        self.fail_block();
        self.skips = true;
        self.report(&error).await
    }

    /// Refuses a definition where nothing may be written, before its names are looked up, and what
    /// would lock rows. Begins an implicit block for another write there, so that the block refuses
    /// it.
    pub(super) async fn refuse_by_block(&mut self, statement: &Statement) -> Result<(), Stop> {
        if self.is_read_only()
            && let Some(command) = statement.command()
        {
            let message = format!("cannot execute {command} in a read-only transaction");
            return Err(Error::new(SqlState::READ_ONLY_TRANSACTION, message).into());
        }
        if statement.is_read() || self.is_in_block() || !self.is_read_only() {
            return Ok(());
        }
        self.open_held().await?;
        if !self.is_in_block() {
            self.open_implicit().await?;
        }
        Ok(())
    }

    /// Runs statements as one call, all or none, and queues their answers. Returns the error of its
    /// COMMIT, which is behind them, or `in_place` of the last one.
    pub(super) async fn run_together(
        &mut self,
        all: Vec<Submission>,
        in_place: bool,
    ) -> Result<Result<()>, Stop> {
        let mut statements = Vec::with_capacity(all.len());
        let mut shapes = Vec::with_capacity(all.len());
        let mut _memory = Vec::with_capacity(all.len());
        for one in all {
            statements.push((one.statement, one.values));
            _memory.push(one.memory);
            shapes.push((one.before, one.shape, one.limit));
        }
        let (pending, results) = self.connection.submit_together(statements);
        let ends = self.ends_by(self.deadline());
        let mut results = match outcome(Outcome::Pending(pending), ends).await {
            Ok(_) => results.take(),
            Err(error) => vec![Err(error)],
        };
        let is_whole = results.len() == shapes.len() || matches!(results.last(), Some(Err(_)));
        assert!(is_whole, "{} of {} statements are answered", results.len(), shapes.len());
        if in_place && results.len() > shapes.len() {
            drop(results.remove(shapes.len() - 1));
        }
        let mut results = results.into_iter();
        for ((before, shape, limit), result) in shapes.into_iter().zip(&mut results) {
            self.out.append(before);
            let (mut answer, mut is_suspended) = (result?, false);
            if let Some(limit) = limit {
                // The remaining rows are dropped: the portals have ended with their segment.
                let part = Part::of(answer, limit.rows_max);
                (answer, is_suspended) = (part.answer, part.is_suspended);
            }
            self.rows(answer, shape, is_suspended).await?;
        }
        Ok(results.next().map_or(Ok(()), |end| end.map(drop)))
    }

    /// Ends a segment that holds several statements.
    pub(super) async fn release_several(
        &mut self,
        all: Vec<Submission>,
    ) -> Result<(), Disconnected> {
        let is_apart = |one: &Submission| {
            let own = &one.statement;
            own.needs_system() || own.awaits_rows() || own.uses_temporary()
        };
        if all.iter().any(is_apart) || all.iter().all(|one| one.statement.is_read()) {
            // A call cannot read the system catalog nor wait for claims, and reads alone need none.
            self.held = Some(Held::Several(all));
            match self.open_held().await {
                Ok(()) => {}
                Err(Stop::Disconnected) => return Err(Disconnected),
                Err(Stop::Wrong(error)) => {
                    self.held = None;
                    self.fail_block();
                    self.report(&error).await?;
                }
            }
            return self.end_segment().await;
        }
        let then = std::mem::take(&mut self.out);
        match self.run_together(all, false).await {
            Ok(Ok(())) => self.out.append(then),
            Err(Stop::Disconnected) => return Err(Disconnected),
            Ok(Err(error)) | Err(Stop::Wrong(error)) => {
                self.fail_block();
                self.report(&error).await?;
            }
        }
        self.end_segment().await
    }

    /// Ends a segment or text: commits its implicit block, or rolls it back if it has failed.
    pub(super) async fn end_segment(&mut self) -> Result<(), Disconnected> {
        assert!(self.held.is_none(), "what a segment holds takes place before its end, or never");
        let ended = match self.block.standing {
            Standing::Idle => {
                self.end_block(true);
                Ok("")
            }
            Standing::Open if self.block.is_implicit => self.commit(false).await,
            Standing::Failed if self.block.is_implicit => self.roll_back(false).await,
            Standing::Open | Standing::Failed => Ok(""),
        };
        if let Err(error) = ended {
            self.report(&error).await?;
        }
        self.ready();
        self.flush().await
    }
}
