//! The other half of a connection: it waits for answers in order and sends them.

use super::queue::{Entry, Execution, Outcome, Queued, Shape};
use crate::cancel::Requests;
use crate::codec::{Messages, Severity};
use crate::limits::SENT_BYTES;
use crate::store::{Answer, Cause, Ender, caught_in};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until};
use values::{Error, Result, SqlState};

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
    let is_call = pending.interrupt(cause);
    if cause == Cause::Lost {
        // What it waits for may never come.
        return Err(cause.error());
    }
    let answer = pending.await;
    if cause == Cause::Request && answer.is_ok() && !is_call {
        // A query that was done already: the request is for what has arrived behind it, if anything
        // has. One that comes while a call runs ends nothing.
        ends.requests.give_back();
    }
    answer
}

/// Sends until the queue ends or the client has disconnected.
pub(super) struct Sending<W> {
    socket: W,
    out: Messages,
    requests: Arc<Requests>,
}

impl<W: AsyncWrite + Unpin> Sending<W> {
    pub(super) fn new(socket: W, requests: Arc<Requests>) -> Sending<W> {
        Sending { socket, out: Messages::default(), requests }
    }

    pub(super) async fn run(mut self, mut queue: Receiver<Queued>) -> io::Result<()> {
        loop {
            let queued = match queue.try_recv() {
                Ok(queued) => queued,
                Err(_) => {
                    self.flush().await?;
                    let Some(queued) = queue.recv().await else { break };
                    queued
                }
            };
            match queued.entry {
                Entry::Said(messages) => self.out.append(messages),
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
        self.out.append(execution.after);
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
