//! The receiving half of a connection: handles the client's messages and queues the answers.

use super::copying::Copying;
use super::planned::{Cursor, Known, Named, Portal, Prepared, Work};
use super::queue::{Disconnected, Entry, Execution, Outcome, Queue, Room, Shape};
use super::sending::{Ends, outcome};
use super::settings::Settings;
use super::standing::Block;
use crate::cancel::{Registered, Requests};
use crate::codec::{Closing, Ended, Frame, Frames, Message, Messages, Severity};
use crate::databases::InUse;
use crate::limits::{GONE_PATIENCE, SENT_BYTES};
use crate::log;
use crate::shared::Shared;
use crate::store::{
    Answer, Cause, Connection, CopyIn, Ender, Mailbox, Parsed, Statement, caught_in,
};
use sql::Grant;
use sql::parse::SessionColumn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::time::Instant;
use values::{Datum, Error, Result, SqlState, Type};

/// The minimum number of bytes that an execution reserves in the queue.
const EXECUTION_BYTES: usize = 1 << 10;

/// Why a step failed.
pub(super) enum Stop {
    /// The statement has failed with this error, which is sent to the client.
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

/// Statements of the segment whose answers are not in the queue yet.
pub(super) enum Held {
    /// A write: submitted at the end of the segment, when nothing later can fail.
    Write(Submission),
    /// Several statements: submitted at the end of the segment, as one call.
    Several(Vec<Submission>),
    /// A read, already submitted.
    Read(Execution, Room),
    /// The rows of a COPY, written at the end of the segment, and the messages to send before it.
    Copy(Box<CopyIn>, Messages),
}

impl Held {
    /// Returns the statements that are not submitted yet.
    pub(super) fn submissions(self) -> Vec<Submission> {
        match self {
            Held::Write(one) => vec![one],
            Held::Several(all) => all,
            Held::Read(..) | Held::Copy(..) => Vec::new(),
        }
    }
}

/// A statement with its parameters.
pub(super) struct Submission {
    pub(super) prepared: Arc<Prepared>,
    pub(super) statement: Arc<Statement>,
    pub(super) values: Vec<Datum>,
    /// The memory of the values, if they are long.
    pub(super) memory: Option<Arc<Grant>>,
    pub(super) bytes: usize,
    pub(super) shape: Shape,
    /// The limit of rows, if the client has set one.
    pub(super) limit: Option<Limit>,
    /// Messages to send before the answer.
    pub(super) before: Messages,
}

/// The number of rows of a held statement to send, and the portal that keeps the remaining ones.
pub(super) struct Limit {
    pub(super) rows_max: usize,
    pub(super) portal: String,
    /// The number of the portal, by which a new one of the same name differs.
    pub(super) number: u64,
}

/// A session.
pub(super) struct Conversation {
    pub(super) connection: Connection,
    pub(super) settings: Settings,
    /// The settings as last reported to the client.
    pub(super) reported: Settings,
    pub(super) statements: Named<Known>,
    pub(super) portals: Named<Portal>,
    /// The number of portals bound so far.
    pub(super) bound: u64,
    pub(super) cursors: Named<Cursor>,
    pub(super) out: Messages,
    pub(super) held: Option<Held>,
    pub(super) block: Block,
    /// The COPY FROM that is receiving rows.
    pub(super) copying: Option<Box<Copying>>,
    /// The version of the catalog when the current message arrived.
    pub(super) catalog_version: u64,
    /// Whether the statement that runs is one of several of its text.
    pub(super) is_one_of_several: bool,
    /// Whether messages are skipped until the next Sync, after an error.
    pub(super) skips: bool,
    queue: Queue,
    pub(super) registered: Registered,
    pub(super) shared: Arc<Shared>,
    /// Dropped last: the database may be closed then.
    _database: InUse,
}

/// Waits for this long; for ever if it is `None`.
async fn passed(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => std::future::pending().await,
    }
}

/// Returns why a connection ends after its last message, and the error for the client.
fn end_of(ended: Ended) -> (Cause, Option<Error>) {
    match ended {
        Ended::Disconnected => (Cause::Disconnected, None),
        Ended::Refused(error) => (Cause::Disconnected, Some(error)),
    }
}

/// Interrupts the current message when the client cancels it or disconnects, or the server stops.
async fn listen<R: AsyncRead + Closing + Unpin>(
    ender: &Ender,
    frames: &Frames<R>,
    shared: &Shared,
    requests: &Requests,
) {
    let gone = async {
        frames.closed().await;
        tokio::time::sleep(GONE_PATIENCE).await;
    };
    let (mut gone, mut stopped) = (pin!(gone), pin!(shared.ended(requests)));
    loop {
        tokio::select! {
            () = requests.of_message() => ender.end_statement(Cause::Request),
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
        database: InUse,
    ) -> Conversation {
        let mut connection = database.store.connect();
        connection.set_environment(settings.environment());
        connection.set_process(registered.process);
        let mut out = Messages::default();
        settings.report(None, &mut out);
        registered.requests.activity.is_called(settings.application());
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
            is_one_of_several: false,
            skips: false,
            queue,
            registered,
            shared,
            _database: database,
        }
    }

    /// Returns what the session is told of channels that it listens to.
    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        self.connection.mailbox()
    }

    /// Returns a handle that interrupts the connection's statements.
    pub(super) fn ender(&self) -> Ender {
        self.connection.ender()
    }

    /// Handles messages until the client or the server ends the connection; returns which.
    pub(super) async fn run<R: AsyncRead + Closing + Unpin>(
        mut self,
        mut frames: Frames<R>,
    ) -> Cause {
        if self.flush().await.is_err() {
            return Cause::Disconnected;
        }
        let shared = Arc::clone(&self.shared);
        let (cause, last) = loop {
            self.registered.requests.message_done(frames.has_message(), self.holds());
            let frame = match self.next_frame(&mut frames, &shared).await {
                Ok(frame) => frame,
                Err(end) => break end,
            };
            self.connection.is_waited_for(!frames.has_more());
            self.begin_message(frame.kind);
            let (ender, requests) = (self.ender(), Arc::clone(&self.registered.requests));
            let mut done = pin!(caught_in(self.message(frame)));
            let next = tokio::select! {
                biased;
                next = &mut done => next,
                () = listen(&ender, &frames, &shared, &requests) => done.await,
            };
            match next {
                Ok(Ok(true)) => {}
                Ok(Ok(false) | Err(Disconnected)) => break (Cause::Disconnected, None),
                // The state that the message has left is unknown.
                Err(panic) => break (Cause::Disconnected, Some(panic)),
            }
        };
        // A held write without a Sync is never submitted.
        if let Some(error) = last {
            log::ended(&self.registered.requests.activity, &error);
            self.out.report(Severity::Fatal, &error);
            // The connection ends whether or not this arrives.
            let _ = self.flush().await;
        }
        cause
    }

    /// Receives the next message, and answers held statements if the client sends nothing.
    ///
    /// # Errors
    /// Why the connection ends, and the error for the client.
    async fn next_frame<R: AsyncRead + Closing + Unpin>(
        &mut self,
        frames: &mut Frames<R>,
        shared: &Shared,
    ) -> Result<Frame, (Cause, Option<Error>)> {
        // Dropping it would lose a message that is read in part.
        let pool = self.connection.memory();
        let requests = Arc::clone(&self.registered.requests);
        let mut next = Box::pin(requests.waiting(frames.next(&pool)));
        let mut stopped = pin!(shared.ended(&requests));
        loop {
            self.registered.requests.hold(self.holds());
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
            let (ender, requests) = (self.ender(), Arc::clone(&self.registered.requests));
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
            // The client has sent a message or disconnected, or the server stops.
            drop(next);
            let answered = tokio::select! {
                biased;
                answered = &mut answering => answered,
                () = listen(&ender, frames, shared, &requests) => answering.await,
            };
            answered.map_err(|Disconnected| (Cause::Disconnected, None))?;
            let stops = || (Cause::Shutdown, Some(Cause::Shutdown.error()));
            return frame.ok_or_else(stops)?.map_err(end_of);
        }
    }

    /// Whether there are statements of messages that are done.
    fn holds(&self) -> bool {
        self.held.is_some() || self.copying.is_some()
    }

    /// Begins with a message. A cancel request that has come after it ends its statement, or those
    /// that it submits.
    fn begin_message(&mut self, kind: u8) {
        let ender = self.ender();
        ender.begin_message();
        let runs = match kind {
            b'Q' | b'P' | b'B' | b'E' => !self.skips && self.copying.is_none(),
            b'S' => self.held.is_some(),
            _ => false,
        };
        if runs && self.registered.requests.take_of_message() {
            ender.end_statement(Cause::Request);
        }
    }

    /// Answers held statements; an error fails the segment.
    async fn answer_all_held(&mut self) -> Result<(), Disconnected> {
        match self.answer_held().await {
            Ok(()) => Ok(()),
            Err(Stop::Wrong(error)) => self.fail_segment(error).await,
            Err(Stop::Disconnected) => Err(Disconnected),
        }
    }

    /// Handles a message; returns `false` for the last one.
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
        let Frame { body, memory: _memory, .. } = frame;
        drop(body);
        let done = match message {
            Ok(Message::Terminate) => return Ok(false),
            Ok(Message::Query(text)) => return self.query(&text).await.map(|()| true),
            Ok(Message::Sync) => return self.sync().await.map(|()| true),
            Ok(Message::StrayCopy) => Ok(()),
            Ok(message) => self.extended(message, bytes).await,
            Err(error) if matches!(kind, b'Q' | b'F') => {
                // Query and FunctionCall are segments of their own, without a Sync.
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

    /// Drops held statements after an error. Messages that precede them are still sent.
    pub(super) fn drop_held(&mut self) {
        match self.held.take() {
            None => {}
            Some(Held::Read(execution, _)) => self.out = execution.before,
            Some(Held::Copy(_, before)) => self.out = before,
            Some(held) => {
                // The client ignores everything else up to the Sync.
                if let Some(first) = held.submissions().into_iter().next() {
                    self.out = first.before;
                }
            }
        }
    }

    /// Ends a segment: submits its held statements.
    async fn sync(&mut self) -> Result<(), Disconnected> {
        if self.depends_on_end() {
            // The held statements decide whether settings and cursors are kept.
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

    /// Queues the last statement of the segment together with the messages that follow it.
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
        self.end_block(true);
        self.ready();
        execution.after = std::mem::take(&mut self.out);
        self.push(execution, room).await
    }

    /// Queues an execution, after the messages so far.
    pub(super) async fn push(
        &mut self,
        mut execution: Execution,
        room: Room,
    ) -> Result<(), Disconnected> {
        self.flush().await?;
        if matches!(execution.outcome, Outcome::Pending(_)) {
            execution.unanswered = Some(self.registered.requests.queued());
        }
        self.queue.push(Entry::Execution(Box::new(execution)), room).await
    }

    /// Submits a statement once the queue has room for its answer.
    pub(super) async fn submit(
        &mut self,
        submission: Submission,
        is_read: bool,
    ) -> Result<(Execution, Room), Disconnected> {
        let cost = Arc::clone(&submission.prepared.cost);
        let guessed = if is_read { cost.load(Ordering::Relaxed) } else { 0 };
        let room = self.queue.room(EXECUTION_BYTES + submission.bytes + guessed).await?;
        self.connection.set_lock_timeout(self.settings.lock_timeout());
        let (statement, values) = (&submission.statement, submission.values);
        self.show_session_to(statement);
        self.runs(statement.text());
        self.block.has_run = true;
        let outcome = match self.connection.with_session(statement, &values).await {
            Err(error) => Outcome::Ready(Err(error)),
            Ok(statement) if self.is_in_block() => {
                Outcome::Pending(self.connection.submit_in_block(&statement, values))
            }
            Ok(statement) => Outcome::Pending(self.connection.submit(&statement, values)),
        };
        let execution = Execution::new(outcome, submission.shape, cost);
        let patience = self.settings.statement_timeout();
        let (before, _memory) = (submission.before, submission.memory);
        Ok((Execution { before, _memory, patience, ..execution }, room))
    }

    /// Shows other sessions that a statement with this text begins.
    pub(super) fn runs(&self, text: &str) {
        self.registered.requests.activity.runs(text, self.connection.now());
    }

    /// Returns when `statement_timeout` ends a statement that begins now.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.settings.statement_timeout().map(|patience| Instant::now() + patience)
    }

    /// Returns the events that interrupt a statement: a cancel request, and `deadline`.
    pub(super) fn ends_by(&self, deadline: Option<Instant>) -> Ends<'_> {
        Ends { requests: &self.registered.requests, is_sent: false, deadline }
    }

    /// Waits for the answer of an execution.
    pub(super) async fn awaited(&self, execution: Execution) -> Execution {
        let deadline = execution.patience.map(|patience| Instant::now() + patience);
        let answer = outcome(execution.outcome, self.ends_by(deadline)).await;
        Execution { outcome: Outcome::Ready(answer), _memory: None, ..execution }
    }

    /// Waits for an answer and queues it; an error fails the segment.
    pub(super) async fn settle(&mut self, execution: Execution, room: Room) -> Result<(), Stop> {
        let execution = self.awaited(execution).await;
        if let Outcome::Ready(Err(error)) = &execution.outcome {
            let error = error.clone();
            self.out.append(execution.before);
            return Err(Stop::Wrong(error));
        }
        Ok(self.push(execution, room).await?)
    }

    /// Runs a read and returns its answer, of which nothing is sent.
    pub(super) async fn read(&mut self, submission: Submission) -> Result<Answer, Stop> {
        let (execution, _room) = self.submit(submission, true).await?;
        match self.awaited(execution).await.outcome {
            Outcome::Ready(answer) => Ok(answer?),
            Outcome::Pending(_) => unreachable!("it was waited for"),
        }
    }

    /// Queues rows.
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

    /// Sends an error at once: the client may wait for it before it sends a Sync.
    pub(super) async fn report(&mut self, error: &Error) -> Result<(), Disconnected> {
        log::failed(&self.registered.requests.activity, error);
        self.out.report(Severity::Error, error);
        self.flush().await
    }

    /// Queues the messages so far.
    pub(super) async fn flush(&mut self) -> Result<(), Disconnected> {
        if self.out.is_empty() {
            return Ok(());
        }
        let out = std::mem::take(&mut self.out);
        self.queue.say(out).await
    }

    /// Flushes once the messages exceed `SENT_BYTES`.
    pub(super) async fn flush_long(&mut self) -> Result<(), Disconnected> {
        if self.out.len() < SENT_BYTES || self.held.is_some() {
            return Ok(());
        }
        self.flush().await
    }

    /// Parses a text of any number of statements.
    pub(super) async fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        let parsed = self.connection.parse(text).await?;
        self.connection.check_ended()?;
        Ok(parsed)
    }

    /// Plans a statement. `types` are the stated types of its parameters, `bytes` is its size.
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
            let count = SessionColumn::parameters(&asked);
            let types = vec![Type::Text; count];
            return Ok(Prepared::new(Work::Session(asked, types), columns, bytes));
        }
        if let Some(prepared) = self.plan_within(parsed, types, bytes).await? {
            return Ok(prepared);
        }
        let statement = self.connection.prepare(parsed, types).await?;
        if let Some(declared) = parsed.declared() {
            return Ok(Prepared::new(Work::Declare(declared, statement), Arc::new([]), bytes));
        }
        // The rows of a COPY are messages of their own.
        let columns = match &statement.copy {
            Some(_) => Vec::new(),
            None => statement.columns.clone(),
        };
        let columns = columns.into();
        let prepared = Prepared::new(Work::Store(statement), columns, bytes);
        Ok(Prepared { configs: parsed.configs(), ..prepared })
    }
}
