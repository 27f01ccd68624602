//! One half of a connection: it takes messages and says what follows from them.

use super::copying::Copying;
use super::planned::{Cursor, Named, Portal, Prepared, Work};
use super::queue::{Disconnected, Entry, Execution, Outcome, Queue, Room, Shape};
use super::sending::{Ends, outcome};
use super::settings::Settings;
use super::standing::Block;
use crate::cancel::Registered;
use crate::codec::{Closing, Ended, Frame, Frames, Message, Messages, Severity};
use crate::limits::{GONE_PATIENCE, SENT_BYTES};
use crate::shared::Shared;
use crate::store::{Answer, Cause, Connection, CopyIn, Ender, Parsed, Statement, caught_in};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::Notify;
use tokio::time::Instant;
use values::{Datum, Error, Result, SqlState, Type};

/// The least that an execution takes of the queue.
const EXECUTION_BYTES: usize = 1 << 10;

/// Why a step was not done.
pub(super) enum Stop {
    /// The statement is wrong; the client is told.
    Wrong(Error),
    /// The client has disconnected.
    Disconnected,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Wrong(error)
    }
}

impl From<Disconnected> for Stop {
    fn from(_: Disconnected) -> Stop {
        Stop::Disconnected
    }
}

/// A statement of the segment whose answer was not yet given to the queue.
pub(super) enum Held {
    /// It is submitted when the segment ends, as nothing can fail behind it then.
    Write(Submission),
    /// All of them are submitted then, as one.
    Several(Vec<Submission>),
    /// It was submitted.
    Read(Execution, Room),
    /// Rows that came for a COPY: written when the segment ends. With what is sent before.
    Copy(Box<CopyIn>, Messages),
}

impl Held {
    /// The statements that were not submitted yet.
    pub(super) fn submissions(self) -> Vec<Submission> {
        match self {
            Held::Write(one) => vec![one],
            Held::Several(all) => all,
            Held::Read(..) | Held::Copy(..) => Vec::new(),
        }
    }
}

/// A statement with its values.
pub(super) struct Submission {
    pub(super) prepared: Arc<Prepared>,
    pub(super) statement: Arc<Statement>,
    pub(super) values: Vec<Datum>,
    pub(super) bytes: usize,
    pub(super) shape: Shape,
    /// Set if not all rows are sent.
    pub(super) limit: Option<Limit>,
    /// What is sent before its answer.
    pub(super) before: Messages,
}

/// How many rows of a held statement are sent, and the portal that keeps the others.
pub(super) struct Limit {
    pub(super) rows_max: usize,
    pub(super) portal: String,
    /// The number of the portal.
    pub(super) number: u64,
}

/// A session, and what its client was told but not yet sent.
pub(super) struct Conversation {
    pub(super) connection: Connection,
    pub(super) settings: Settings,
    /// The settings that the client was told last.
    pub(super) reported: Settings,
    pub(super) statements: Named<Arc<Prepared>>,
    pub(super) portals: Named<Portal>,
    /// How many portals were bound.
    pub(super) bound: u64,
    pub(super) cursors: Named<Cursor>,
    pub(super) out: Messages,
    pub(super) held: Option<Held>,
    pub(super) block: Block,
    /// The COPY whose rows come.
    pub(super) copying: Option<Box<Copying>>,
    /// The version of the catalog when the message came that is dealt with.
    pub(super) catalog_version: u64,
    /// Whether messages are passed over until the next Sync.
    pub(super) skips: bool,
    queue: Queue,
    pub(super) registered: Registered,
    shared: Arc<Shared>,
}

/// Waits as long as the patience with a client; `None` has no end.
async fn passed(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => std::future::pending().await,
    }
}

/// Why a connection ends behind its last message, and what the client is told.
fn end_of(ended: Ended) -> (Cause, Option<Error>) {
    match ended {
        Ended::Disconnected => (Cause::Disconnected, None),
        Ended::Refused(error) => (Cause::Disconnected, Some(error)),
    }
}

/// Lets what a message does end when the client wants that, or goes, or the server stops.
async fn listen<R: AsyncRead + Closing + Unpin>(
    ender: &Ender,
    frames: &Frames<R>,
    shared: &Shared,
    cancelled: &Notify,
) {
    let gone = async {
        frames.closed().await;
        tokio::time::sleep(GONE_PATIENCE).await;
    };
    let (mut gone, mut stopped) = (pin!(gone), pin!(shared.stopped()));
    loop {
        tokio::select! {
            () = cancelled.notified() => ender.end_statement(Cause::Request),
            () = &mut gone => return ender.end(Cause::Disconnected),
            () = &mut stopped => return ender.end(Cause::Shutdown),
        }
    }
}

impl Conversation {
    pub(super) fn new(
        queue: Queue,
        settings: Settings,
        registered: Registered,
        shared: Arc<Shared>,
    ) -> Conversation {
        let mut connection = shared.store.connect();
        connection.set_zone((**settings.zone()).clone());
        let mut out = Messages::default();
        settings.report(None, &mut out);
        out.key_data(registered.process, registered.secret);
        out.ready(b'I');
        Conversation {
            connection,
            reported: settings.clone(),
            settings,
            statements: Named::new(),
            portals: Named::new(),
            bound: 0,
            cursors: Named::new(),
            out,
            held: None,
            block: Block::default(),
            copying: None,
            catalog_version: 0,
            skips: false,
            queue,
            registered,
            shared,
        }
    }

    /// Ends what the connection does.
    pub(super) fn ender(&self) -> Ender {
        self.connection.ender()
    }

    /// Goes on until the client or the server ends it; why.
    pub(super) async fn run<R: AsyncRead + Closing + Unpin>(
        mut self,
        mut frames: Frames<R>,
    ) -> Cause {
        if self.flush().await.is_err() {
            return Cause::Disconnected;
        }
        let shared = Arc::clone(&self.shared);
        let (cause, last) = loop {
            let frame = match self.next_frame(&mut frames, &shared).await {
                Ok(frame) => frame,
                Err(end) => break end,
            };
            self.connection.is_waited_for(!frames.has_more());
            let (ender, cancelled) = (self.ender(), Arc::clone(&self.registered.cancelled));
            let mut done = pin!(caught_in(self.message(frame)));
            let next = tokio::select! {
                biased;
                next = &mut done => next,
                () = listen(&ender, &frames, &shared, &cancelled) => done.await,
            };
            match next {
                Ok(Ok(true)) => {}
                Ok(Ok(false) | Err(Disconnected)) => break (Cause::Disconnected, None),
                // What the message has left undone is not known.
                Err(panic) => break (Cause::Disconnected, Some(panic)),
            }
        };
        // Without a Sync behind it a write that is held never takes place.
        if let Some(error) = last {
            self.out.report(Severity::Fatal, &error);
            // Whether it arrives does not matter any more.
            let _ = self.flush().await;
        }
        cause
    }

    /// The next message; why there is none, and what the client is told. A client that sends none
    /// gets the answers to what is held.
    async fn next_frame<R: AsyncRead + Closing + Unpin>(
        &mut self,
        frames: &mut Frames<R>,
        shared: &Shared,
    ) -> Result<Frame, (Cause, Option<Error>)> {
        // It must not be left half read.
        let mut next = Box::pin(frames.next());
        let mut stopped = pin!(shared.stopped());
        loop {
            tokio::select! {
                biased;
                () = &mut stopped => return Err((Cause::Shutdown, Some(Cause::Shutdown.error()))),
                () = passed(self.patience()) => {
                    let message = "terminating connection due to idle-in-transaction timeout";
                    let error = Error::new(SqlState::IDLE_IN_TRANSACTION, message);
                    return Err((Cause::Disconnected, Some(error)));
                }
                frame = &mut next => return frame.map_err(end_of),
                cause = self.copy_ends() => {
                    let ended = self.copy_fails(cause.error()).await;
                    ended.map_err(|Disconnected| (Cause::Disconnected, None))?;
                    continue;
                }
                () = passed(self.held_patience()) => {}
            }
            let (ender, cancelled) = (self.ender(), Arc::clone(&self.registered.cancelled));
            let mut answering = pin!(self.answer_all_held());
            let frame = tokio::select! {
                biased;
                answered = &mut answering => {
                    answered.map_err(|Disconnected| (Cause::Disconnected, None))?;
                    continue;
                }
                frame = &mut next => Some(frame),
                () = &mut stopped => None,
            };
            // The client wants more by now, or goes, or the server stops.
            drop(next);
            let answered = tokio::select! {
                biased;
                answered = &mut answering => answered,
                () = listen(&ender, frames, shared, &cancelled) => answering.await,
            };
            answered.map_err(|Disconnected| (Cause::Disconnected, None))?;
            let stops = || (Cause::Shutdown, Some(Cause::Shutdown.error()));
            return frame.ok_or_else(stops)?.map_err(end_of);
        }
    }

    /// Answers what is held, or tells the client what is wrong with it.
    async fn answer_all_held(&mut self) -> Result<(), Disconnected> {
        match self.answer_held().await {
            Ok(()) => Ok(()),
            Err(Stop::Wrong(error)) => self.fail_segment(error).await,
            Err(Stop::Disconnected) => Err(Disconnected),
        }
    }

    /// Takes a message; `false` of the last one.
    async fn message(&mut self, frame: Frame) -> Result<bool, Disconnected> {
        self.catalog_version = self.connection.catalog_version();
        if self.copying.is_some() {
            return self.copy_message(frame).await;
        }
        if self.skips && !matches!(frame.kind, b'S' | b'X') {
            return Ok(true);
        }
        let (kind, bytes) = (frame.kind, frame.body.len());
        let message = Message::decode(&frame);
        drop(frame);
        let done = match message {
            Ok(Message::Terminate) => return Ok(false),
            Ok(Message::Query(text)) => return self.query(&text).await.map(|()| true),
            Ok(Message::Sync) => return self.sync().await.map(|()| true),
            Ok(Message::StrayCopy) => Ok(()),
            Ok(message) => self.extended(message, bytes).await,
            Err(error) if matches!(kind, b'Q' | b'F') => {
                // They end where they end: there is no Sync behind them.
                self.fail_segment(error).await?;
                self.skips = false;
                return self.end_segment().await.map(|()| true);
            }
            Err(error) => Err(Stop::Wrong(error)),
        };
        match done {
            Ok(()) => Ok(true),
            Err(Stop::Disconnected) => Err(Disconnected),
            Err(Stop::Wrong(error)) => self.fail_segment(error).await.map(|()| true),
        }
    }

    /// The segment failed: a write that is held does not take place, and only what was said before
    /// it is sent.
    pub(super) fn drop_held(&mut self) {
        match self.held.take() {
            None => {}
            Some(Held::Read(execution, _)) => self.out = execution.before,
            Some(Held::Copy(_, before)) => self.out = before,
            Some(held) => {
                // Clients pass over everything up to the Sync.
                if let Some(first) = held.submissions().into_iter().next() {
                    self.out = first.before;
                }
            }
        }
    }

    /// The end of a segment: its write takes place.
    async fn sync(&mut self) -> Result<(), Disconnected> {
        if self.has_changes() {
            // Whether settings stay is known with the answer to what is held.
            self.answer_all_held().await?;
        }
        if !self.is_in_block() {
            self.portals.clear();
        }
        self.skips = false;
        match self.held.take() {
            None => self.end_segment().await,
            Some(Held::Several(all)) => self.release_several(all).await,
            Some(held) => self.release(held).await,
        }
    }

    /// Gives the segment's last statement to the queue, with all that is said until its end.
    async fn release(&mut self, held: Held) -> Result<(), Disconnected> {
        let then = std::mem::take(&mut self.out);
        let (mut execution, room) = match held {
            Held::Read(execution, room) => (execution, room),
            Held::Several(_) => unreachable!("they are released as one"),
            Held::Copy(rows, before) => return self.release_copy(*rows, before, then).await,
            Held::Write(mut submission) => {
                let limit = submission.limit.take();
                let is_read = submission.statement.is_read();
                let (execution, room) = self.submit(submission, is_read).await?;
                match limit {
                    None => (execution, room),
                    Some(limit) => (self.first_rows(execution, &limit).await, room),
                }
            }
        };
        execution.then.append(then);
        self.end_changes(true);
        self.ready();
        execution.after = std::mem::take(&mut self.out);
        self.push(execution, room).await
    }

    /// Gives an execution to the queue, behind what was said.
    pub(super) async fn push(
        &mut self,
        execution: Execution,
        room: Room,
    ) -> Result<(), Disconnected> {
        self.flush().await?;
        self.queue.push(Entry::Execution(Box::new(execution)), room).await
    }

    /// Submits a statement as soon as the queue has room for it.
    pub(super) async fn submit(
        &mut self,
        submission: Submission,
        is_read: bool,
    ) -> Result<(Execution, Room), Disconnected> {
        let cost = Arc::clone(&submission.prepared.cost);
        let guessed = if is_read { cost.load(Ordering::Relaxed) } else { 0 };
        let room = self.queue.room(EXECUTION_BYTES + submission.bytes + guessed).await?;
        let (statement, values) = (&submission.statement, submission.values);
        self.show_session_to(statement);
        self.block.has_run = true;
        let pending = match self.is_in_block() {
            false => self.connection.submit(statement, values),
            true => self.connection.submit_in_block(statement, values),
        };
        let outcome = Outcome::Pending(pending);
        let execution = Execution::new(outcome, submission.shape, cost);
        let patience = self.settings.statement_timeout();
        Ok((Execution { before: submission.before, patience, ..execution }, room))
    }

    /// When the time of a statement that begins now is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.settings.statement_timeout().map(|patience| Instant::now() + patience)
    }

    /// What ends a statement before its time, which is over then.
    pub(super) fn ends_by(&self, deadline: Option<Instant>) -> Ends<'_> {
        Ends { cancelled: &self.registered.cancelled, deadline }
    }

    /// The same with its answer.
    pub(super) async fn awaited(&self, execution: Execution) -> Execution {
        let deadline = execution.patience.map(|patience| Instant::now() + patience);
        let answer = outcome(execution.outcome, self.ends_by(deadline)).await;
        Execution { outcome: Outcome::Ready(answer), ..execution }
    }

    /// Waits for a read and has its answer sent; its error is the segment's.
    pub(super) async fn settle(&mut self, execution: Execution, room: Room) -> Result<(), Stop> {
        let execution = self.awaited(execution).await;
        if let Outcome::Ready(Err(error)) = &execution.outcome {
            let error = error.clone();
            self.out.append(execution.before);
            return Err(Stop::Wrong(error));
        }
        Ok(self.push(execution, room).await?)
    }

    /// Waits for a read, of which the caller sends what it wants.
    pub(super) async fn read(&mut self, submission: Submission) -> Result<Answer, Stop> {
        let (execution, _room) = self.submit(submission, true).await?;
        match self.awaited(execution).await.outcome {
            Outcome::Ready(answer) => Ok(answer?),
            Outcome::Pending(_) => unreachable!("it was waited for"),
        }
    }

    /// Sends rows that are here.
    pub(super) async fn rows(
        &mut self,
        answer: Answer,
        shape: Shape,
        is_suspended: bool,
    ) -> Result<(), Disconnected> {
        let room = self.queue.room(EXECUTION_BYTES).await?;
        let execution = Execution::new(Outcome::Ready(Ok(answer)), shape, Arc::default());
        self.push(Execution { is_suspended, ..execution }, room).await
    }

    /// Tells the client an error, at once: it may wait for it without a Sync.
    pub(super) async fn report(&mut self, error: &Error) -> Result<(), Disconnected> {
        self.out.report(Severity::Error, error);
        self.flush().await
    }

    /// Gives what was said to the queue.
    pub(super) async fn flush(&mut self) -> Result<(), Disconnected> {
        if self.out.is_empty() {
            return Ok(());
        }
        let out = std::mem::take(&mut self.out);
        self.queue.say(out).await
    }

    /// The same, if it has become much.
    pub(super) async fn flush_long(&mut self) -> Result<(), Disconnected> {
        if self.out.len() < SENT_BYTES || self.held.is_some() {
            return Ok(());
        }
        self.flush().await
    }

    /// The statements of a text.
    pub(super) async fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        self.connection.parse(text).await
    }

    /// What one of them is for this session.
    pub(super) async fn plan(
        &self,
        parsed: &Parsed,
        types: &[Option<Type>],
        bytes: usize,
    ) -> Result<Prepared> {
        let control = parsed.control();
        self.check_block(control.as_ref())?;
        if let Some(control) = control {
            let columns = self.columns_of(&control)?;
            return Ok(Prepared::new(Work::Control(control), columns, bytes));
        }
        if let Some(asked) = parsed.session_columns().filter(|_| parsed.declared().is_none()) {
            let columns = super::about::columns(&asked);
            return Ok(Prepared::new(Work::Session(asked), columns, bytes));
        }
        if let Some(prepared) = self.plan_within(parsed, types, bytes).await? {
            return Ok(prepared);
        }
        let statement = self.connection.prepare(parsed, types).await?;
        if let Some(declared) = parsed.declared() {
            return Ok(Prepared::new(Work::Declare(declared, statement), Arc::new([]), bytes));
        }
        // The rows of a COPY are no answer.
        let columns = match &statement.copy {
            Some(_) => Vec::new(),
            None => statement.columns.clone(),
        };
        let columns = columns.into();
        Ok(Prepared::new(Work::Store(statement), columns, bytes))
    }
}
