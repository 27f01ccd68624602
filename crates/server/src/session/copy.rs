//! COPY: rows that come as messages of their own, and rows that go so.

use super::conversation::{Conversation, Held, Stop};
use super::copying::Copying;
use super::queue::Disconnected;
use super::sending::Ends;
use crate::codec::{Frame, Messages, Severity};
use crate::limits::SENT_BYTES;
use crate::log;
use crate::store::{Cause, Copy, CopyIn, Direction, Statement};
use sql::copy::{Reader, Style, Writer};
use std::pin::pin;
use std::sync::Arc;
use values::{Error, Result, SqlState};

/// The error of a COPY beside other statements.
pub(super) fn not_alone() -> Error {
    let message = "COPY beside other statements is not supported";
    Error::unsupported(message, "Send it by itself.")
}

impl Conversation {
    /// Begins a COPY FROM, or does a COPY TO.
    pub(super) async fn copy(
        &mut self,
        statement: &Arc<Statement>,
        is_simple: bool,
    ) -> Result<(), Stop> {
        let copy = statement.copy.as_ref().expect("it is a COPY");
        self.block.has_run = true;
        if self.held.is_some() || self.block.is_implicit {
            return Err(not_alone().into());
        }
        if copy.direction == Direction::From && self.is_read_only() && !statement.is_own() {
            let message = "cannot execute COPY FROM in a read-only transaction";
            return Err(Error::new(SqlState::READ_ONLY_TRANSACTION, message).into());
        }
        match copy.direction {
            Direction::To => self.copy_to(statement, copy).await,
            Direction::From => {
                assert!(self.copying.is_none(), "the rows of one COPY come at a time");
                self.out.copy_in(copy.columns.len(), copy.form.style == Style::Binary);
                self.flush().await?;
                let table = copy.table.as_ref().map_or("", |table| &table.relation.name);
                let columns = copy.columns.iter().map(|column| (column.name.as_str(), column.kind));
                let (zone, memory) = (self.settings.zone(), self.connection.memory().grant());
                self.copying = Some(Box::new(Copying {
                    reader: Reader::new(table, &copy.form, columns, zone, memory),
                    rows: CopyIn::new(statement, self.is_in_block(), &self.connection),
                    is_simple,
                    deadline: self.deadline(),
                }));
                Ok(())
            }
        }
    }

    async fn copy_to(&mut self, statement: &Arc<Statement>, copy: &Copy) -> Result<(), Stop> {
        self.connection.set_lock_timeout(self.settings.lock_timeout());
        self.show_session_to(statement);
        let (requests, ender) = (Arc::clone(&self.registered.requests), self.ender());
        let ends = Ends { requests: &requests, is_sent: false, deadline: self.deadline() };
        let is_in_block = self.is_in_block();
        let begun = self.connection.copy_out(statement, is_in_block);
        let mut rows = ends.or(&ender, begun).await?;
        // A request between two pages is heard, too.
        let mut ended = pin!(ends.come());
        self.out.copy_out(copy.columns.len(), copy.form.style == Style::Binary);
        let writer = Writer::new(&copy.form, self.settings.zone());
        let (mut count, mut line) = (0_u64, Vec::new());
        writer.begin(copy.columns.iter().map(|column| column.name.as_str()), &mut line);
        // As PostgreSQL does it: the header of the binary format goes with the first row.
        if copy.form.style != Style::Binary && !line.is_empty() {
            self.out.copy_data(&line);
            line.clear();
        }
        loop {
            let page = tokio::select! {
                biased;
                cause = &mut ended => return Err(cause.error().into()),
                page = rows.next_page() => page?,
            };
            if page.is_empty() {
                break;
            }
            count += page.len() as u64;
            for row in &page {
                writer.row(row, &mut line);
                self.out.copy_data(&line);
                line.clear();
            }
            if self.out.len() >= SENT_BYTES {
                tokio::select! {
                    biased;
                    cause = &mut ended => return Err(cause.error().into()),
                    flushed = self.flush() => flushed?,
                }
            }
        }
        writer.end(&mut line);
        if !line.is_empty() {
            self.out.copy_data(&line);
        }
        self.out.copy_done();
        self.out.command_complete(&format!("COPY {count}"));
        Ok(())
    }

    /// Takes a message while rows come; `false` of the connection's last one.
    pub(super) async fn copy_message(&mut self, frame: Frame) -> Result<bool, Disconnected> {
        let done = match frame.kind {
            b'd' | b'c' if self.registered.requests.take_of_message() => {
                Err(Cause::Request.error())
            }
            b'd' if frame.refused.is_some() => Err(frame.refused.expect("it was looked at")),
            b'd' => {
                let copying = self.copying.as_mut().expect("a COPY is under way");
                copying.bytes(&frame.body, &mut self.connection).await.map(|()| false)
            }
            b'c' => {
                let copying = self.copying.as_mut().expect("a COPY is under way");
                copying.rest(&mut self.connection).await.map(|()| true)
            }
            // They say nothing here: some clients send them between rows.
            b'H' | b'S' => Ok(false),
            b'X' => return Ok(false),
            b'f' => {
                let said = frame.body.split(|byte| *byte == 0).next().unwrap_or_default();
                let reason = String::from_utf8_lossy(said);
                let message = format!("COPY from stdin failed: {reason}");
                let copying = self.copying.as_ref().expect("a COPY is under way");
                let context = copying.reader.place();
                Err(Error::new(SqlState::QUERY_CANCELED, message).with_context(context))
            }
            kind => {
                let message =
                    format!("unexpected message type 0x{kind:02X} during COPY from stdin");
                Err(Error::new(SqlState::PROTOCOL_VIOLATION, message))
            }
        };
        match done {
            Ok(false) => Ok(true),
            Ok(true) => self.copied().await.map(|()| true),
            Err(error) => self.copy_fails(error).await.map(|()| true),
        }
    }

    /// Waits for what ends a COPY whose rows come; without one for ever.
    pub(super) async fn copy_ends(&self) -> Cause {
        let Some(copying) = &self.copying else { return std::future::pending().await };
        self.ends_by(copying.deadline).come().await
    }

    /// Ends the COPY whose rows come.
    pub(super) async fn copy_fails(&mut self, error: Error) -> Result<(), Disconnected> {
        let mut copying = self.copying.take().expect("a COPY is under way");
        let error = copying.rows.first_error(error).await;
        self.fail_block();
        self.report(&error).await?;
        if copying.is_simple {
            return self.end_segment().await;
        }
        self.skips = true;
        Ok(())
    }

    /// All rows have come.
    async fn copied(&mut self) -> Result<(), Disconnected> {
        let copying = self.copying.take().expect("a COPY is under way");
        if copying.is_simple {
            return self.release_copy(copying.rows, Messages::default(), Messages::default()).await;
        }
        let before = std::mem::take(&mut self.out);
        self.held = Some(Held::Copy(Box::new(copying.rows), before));
        Ok(())
    }

    /// Writes the rows and ends the segment.
    pub(super) async fn release_copy(
        &mut self,
        rows: CopyIn,
        before: Messages,
        then: Messages,
    ) -> Result<(), Disconnected> {
        let deadline = self.deadline();
        self.out.append(before);
        let (requests, ender) = (Arc::clone(&self.registered.requests), self.ender());
        let ends = Ends { requests: &requests, is_sent: false, deadline };
        match ends.or(&ender, rows.finish(&mut self.connection)).await {
            Ok(answer) => {
                self.out.command_complete(&answer.tag);
                self.out.append(then);
            }
            Err(error) => {
                self.fail_block();
                log::failed(&self.registered.requests.activity, &error);
                self.out.report(Severity::Error, &error);
            }
        }
        self.end_segment().await
    }
}
