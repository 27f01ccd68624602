//! The sending half of a connection: awaits answers in their order, and writes them to the socket.

use super::queue::{Entry, Execution, Outcome, Queued, Shape};
use crate::cancel::Requests;
use crate::codec::{Messages, Severity};
use crate::limits::SENT_BYTES;
use crate::log;
use crate::store::{Answer, Cause, Ender, Mailbox, Notification, caught_in};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until};
use values::{Error, Result, SqlState, Timestamp};

/// The events that interrupt a statement while its answer is awaited.
pub(super) struct Ends<'s> {
    /// The cancel requests of the session.
    pub(super) requests: &'s Requests,
    /// Whether the answer is the next in the send queue. Otherwise the statement belongs to the
    /// message that is being handled.
    pub(super) is_sent: bool,
    /// When `statement_timeout` expires.
    pub(super) deadline: Option<Instant>,
}

impl Ends<'_> {
    /// Waits for the first of the events.
    pub(super) async fn come(&self) -> Cause {
        let passed = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let cancelled = async {
            match self.is_sent {
                true => self.requests.of_sent().await,
                false => self.requests.of_message().await,
            }
        };
        tokio::select! {
            () = self.requests.lost() => Cause::Lost,
            () = cancelled => Cause::Request,
            () = passed => Cause::Timeout,
        }
    }

    /// Awaits a future of the connection, and interrupts its statement at the first event.
    pub(super) async fn or<T>(&self, ender: &Ender, doing: impl Future<Output = T>) -> T {
        let mut doing = pin!(doing);
        tokio::select! {
            biased;
            done = &mut doing => return done,
            cause = self.come() => ender.end_statement(cause),
        }
        doing.await
    }
}

/// Awaits an answer. At the first event a statement that was not submitted yet is interrupted, and
/// then answers with an error.
pub(super) async fn outcome(outcome: Outcome, ends: Ends<'_>) -> Result<Answer> {
    let mut pending = match outcome {
        Outcome::Ready(answer) => return answer,
        Outcome::Pending(pending) => pending,
    };
    let cause = tokio::select! {
        biased;
        answer = &mut pending => return answer,
        cause = ends.come() => cause,
    };
    let interrupted = pending.interrupt(cause);
    if cause == Cause::Lost {
        // Its locks may never be released.
        return Err(cause.error());
    }
    let answer = pending.await;
    if cause == Cause::Request && interrupted.take_back() {
        // The statement had finished: the request counts for the next message, if one has arrived.
        // Calls that were submitted are never cancelled.
        ends.requests.give_back();
    }
    answer
}

/// Sends until the queue ends or the client has disconnected.
pub(super) struct Sending<W> {
    socket: W,
    out: Messages,
    requests: Arc<Requests>,
    mailbox: Arc<Mailbox>,
    clock: fn() -> Timestamp,
    /// Whether the last message was ReadyForQuery outside of a block.
    is_idle: bool,
    /// Whether the connection ends because the session has missed notifications.
    has_missed: bool,
}

impl<W: AsyncWrite + Unpin> Sending<W> {
    pub(super) fn new(
        socket: W,
        requests: Arc<Requests>,
        mailbox: Arc<Mailbox>,
        clock: fn() -> Timestamp,
    ) -> Sending<W> {
        let (out, is_idle, has_missed) = Default::default();
        Sending { socket, out, requests, mailbox, clock, is_idle, has_missed }
    }

    /// Appends messages. Notifications precede a ReadyForQuery outside of a block.
    fn say(&mut self, messages: Messages) {
        let (messages, idle) = messages.split_idle();
        self.is_idle &= messages.is_empty();
        self.out.append(messages);
        if let Some(idle) = idle {
            self.tell();
            if self.has_missed {
                return;
            }
            self.out.append(idle);
            self.is_idle = true;
            self.requests.activity.waits(b'I', (self.clock)());
        }
    }

    /// Appends the notifications of the session.
    fn tell(&mut self) {
        match self.mailbox.take() {
            Ok(all) => {
                for Notification { process, channel, payload } in all {
                    self.out.notification(process, &channel, &payload);
                }
            }
            Err(missed) if !self.has_missed => {
                log::ended(&self.requests.activity, &missed);
                self.out.report(Severity::Fatal, &missed);
                self.has_missed = true;
            }
            Err(_) => {}
        }
    }

    /// Returns the next entry of the queue. An idle client receives notifications meanwhile.
    async fn next(&mut self, queue: &mut Receiver<Queued>) -> io::Result<Option<Queued>> {
        loop {
            if self.has_missed {
                self.flush().await?;
                return Ok(None);
            }
            if let Ok(queued) = queue.try_recv() {
                return Ok(Some(queued));
            }
            self.flush().await?;
            let mailbox = Arc::clone(&self.mailbox);
            tokio::select! {
                biased;
                queued = queue.recv() => return Ok(queued),
                () = mailbox.told(), if self.is_idle => self.tell(),
            }
        }
    }

    pub(super) async fn run(mut self, mut queue: Receiver<Queued>) -> io::Result<()> {
        while let Some(queued) = self.next(&mut queue).await? {
            match queued.entry {
                Entry::Said(messages) => self.say(messages),
                Entry::Execution(execution) => {
                    match caught_in(self.execution(*execution)).await {
                        Ok(sent) => sent?,
                        Err(panic) => {
                            // An answer that was sent in part has no end but this.
                            log::ended(&self.requests.activity, &panic);
                            self.out.report(Severity::Fatal, &panic);
                            break;
                        }
                    }
                }
            }
            if self.out.len() >= SENT_BYTES {
                self.flush().await?;
            }
        }
        self.flush().await?;
        self.socket.shutdown().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.socket.write_all(self.out.bytes()).await?;
            self.socket.flush().await?;
            self.out.clear();
        }
        Ok(())
    }

    async fn execution(&mut self, execution: Execution) -> io::Result<()> {
        self.is_idle = false;
        let requests = Arc::clone(&self.requests);
        let deadline = execution.patience.map(|patience| Instant::now() + patience);
        let ends = Ends { requests: &requests, is_sent: true, deadline };
        let mut waiting = pin!(outcome(execution.outcome, ends));
        let ready = poll_fn(|context| match waiting.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => Poll::Ready(None),
        });
        let answer = match ready.await {
            Some(answer) => answer,
            None => {
                // What is complete does not wait for what is not.
                self.flush().await?;
                waiting.await
            }
        };
        // A request that it has not heard is for nothing that the client sends from here on.
        drop(execution.unanswered);
        self.out.append(execution.before);
        match answer {
            Ok(answer) => {
                let bytes = self.answer(answer, &execution.shape, execution.is_suspended).await?;
                Execution::learn(&execution.cost, bytes);
                self.out.append(execution.then);
            }
            Err(error) => {
                log::failed(&requests.activity, &error);
                self.out.report(Severity::Error, &error);
            }
        }
        self.say(execution.after);
        Ok(())
    }

    /// Sends an answer in parts, and returns its size in bytes.
    async fn answer(
        &mut self,
        answer: Answer,
        shape: &Shape,
        is_suspended: bool,
    ) -> io::Result<usize> {
        if let Some(notice) = answer.notice.filter(|_| shape.wants_notices) {
            for line in notice.lines() {
                let notice = Error::new(SqlState::SUCCESSFUL_COMPLETION, line);
                self.out.report(Severity::Notice, &notice);
            }
        }
        for warning in answer.warnings.iter().filter(|_| shape.wants_warnings) {
            self.out.report(Severity::Warning, warning);
        }
        if shape.is_described {
            self.out.row_description(&shape.columns, |at| shape.format(at));
        }
        assert!(
            answer.rows.first().is_none_or(|row| row.len() == shape.columns.len()),
            "the client knows the columns of the rows"
        );
        let mut bytes = 0;
        for row in answer.rows {
            let before = self.out.len();
            self.out.data_row(&row, |at| shape.format(at), &shape.zone);
            bytes += self.out.len() - before;
            if self.out.len() >= SENT_BYTES {
                self.flush().await?;
            }
        }
        if is_suspended {
            self.out.portal_suspended();
        } else {
            self.out.command_complete(&answer.tag);
        }
        Ok(bytes)
    }
}
