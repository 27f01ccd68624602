//! The other half of a connection: it waits for answers in order and sends them.

use super::queue::{Entry, Execution, Outcome, Queued, Shape};
use crate::cancel::Requests;
use crate::codec::{Messages, Severity};
use crate::limits::SENT_BYTES;
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

/// What ends a statement that is waited for.
pub(super) struct Ends<'s> {
    /// The cancel requests of the session.
    pub(super) requests: &'s Requests,
    /// Whether it is the next one whose answer is sent, and no part of the message that is handled.
    pub(super) is_sent: bool,
    /// `statement_timeout`
    pub(super) deadline: Option<Instant>,
}

impl Ends<'_> {
    /// Waits for one of them.
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

    /// Waits for what a connection does, which is told to end when one of them comes.
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

/// Waits for an answer. A statement that is no call yet may be ended meanwhile; the answer says
/// whether it was.
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
        // What it waits for may never come.
        return Err(cause.error());
    }
    let answer = pending.await;
    if cause == Cause::Request && interrupted.take_back() {
        // It was done already: the request is for what has arrived behind it, if anything has. One
        // that comes while a call runs ends nothing.
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
    /// Whether the client was told last that the server waits, outside of a block.
    is_idle: bool,
    /// Whether the connection ends, as the session has missed notifications.
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

    /// Says messages; before the server waits outside of a block, what the session was told.
    fn say(&mut self, messages: Messages) {
        let (messages, idle) = messages.split_idle();
        self.is_idle &= messages.is_empty();
        self.out.append(messages);
        if let Some(idle) = idle {
            self.tell();
            self.out.append(idle);
            self.is_idle = true;
            self.requests.activity.waits(b'I', (self.clock)());
        }
    }

    /// Says what the session was told of channels that it listens to.
    fn tell(&mut self) {
        match self.mailbox.take() {
            Ok(all) => {
                for Notification { process, channel, payload } in all {
                    self.out.notification(process, &channel, &payload);
                }
            }
            Err(missed) if !self.has_missed => {
                self.out.report(Severity::Fatal, &missed);
                self.has_missed = true;
            }
            Err(_) => {}
        }
    }

    /// The next entry. Meanwhile an idle client learns what its session is told.
    async fn next(&mut self, queue: &mut Receiver<Queued>) -> io::Result<Option<Queued>> {
        loop {
            if let Ok(queued) = queue.try_recv() {
                return Ok(Some(queued));
            }
            self.flush().await?;
            if self.has_missed {
                return Ok(None);
            }
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
            Err(error) => self.out.report(Severity::Error, &error),
        }
        self.say(execution.after);
        Ok(())
    }

    /// Sends an answer, part by part; says how many bytes it had.
    async fn answer(
        &mut self,
        answer: Answer,
        shape: &Shape,
        is_suspended: bool,
    ) -> io::Result<usize> {
        if let Some(notice) = answer.notice.filter(|_| shape.wants_notices) {
            let notice = Error::new(SqlState::SUCCESSFUL_COMPLETION, notice);
            self.out.report(Severity::Notice, &notice);
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
