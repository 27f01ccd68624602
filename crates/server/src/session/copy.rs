//! COPY: rows that come as messages of their own, and rows that go so.

use super::conversation::{Conversation, Held, Stop};
use super::copying::Copying;
use super::queue::Disconnected;
use crate::codec::{Frame, Messages, Severity};
use crate::limits::SENT_BYTES;
use crate::store::{Copy, CopyIn, Direction, Statement};
use sql::copy::{Lines, Records, Writer};
use std::sync::Arc;
use values::{Error, Result, SqlState};

/// The error of a COPY beside other statements.
pub(super) fn not_alone() -> Error {
    let message = "COPY beside other statements, or COPY TO in a block, is not supported";
    Error::unsupported(message, "Send it by itself, COPY TO outside of a block.")
}

impl Conversation {
    /// Begins a COPY FROM, or does a COPY TO.
    pub(super) async fn copy(
        &mut self,
        statement: &Arc<Statement>,
        is_simple: bool,
    ) -> Result<(), Stop> {
        let copy = statement.copy.as_ref().expect("it is a COPY");
        let is_out = copy.direction == Direction::To;
        if self.held.is_some() || self.block.is_implicit || is_out && self.is_in_block() {
            return Err(not_alone().into());
        }
        match copy.direction {
            Direction::To => self.copy_to(statement, copy).await,
            Direction::From => {
                assert!(self.copying.is_none(), "the rows of one COPY come at a time");
                self.out.copy_in(copy.columns.len());
                self.flush().await?;
                let table = copy.table.as_ref().map_or("", |table| &table.relation.name);
                let columns = copy.columns.iter().map(|column| (column.name.as_str(), column.kind));
                self.copying = Some(Box::new(Copying {
                    lines: Lines::new(&copy.form),
                    records: Records::new(table, &copy.form, columns, self.settings.zone()),
                    rows: CopyIn::new(statement, self.is_in_block()),
                    is_header: copy.form.header,
                    is_simple,
                }));
                Ok(())
            }
        }
    }

    async fn copy_to(&mut self, statement: &Arc<Statement>, copy: &Copy) -> Result<(), Stop> {
        let cancelled = Arc::clone(&self.registered.cancelled);
        let mut rows = self.connection.copy_out(statement).await?;
        self.out.copy_out(copy.columns.len());
        let writer = Writer::new(&copy.form, self.settings.zone());
        let (mut count, mut line) = (0_u64, Vec::new());
        if copy.form.header {
            let names = copy.columns.iter().map(|column| column.name.as_str());
            writer.header(names, &mut line);
            self.out.copy_data(&line);
        }
        loop {
            let page = rows.next_page().await?;
            if page.is_empty() {
                break;
            }
            count += page.len() as u64;
            for row in &page {
                line.clear();
                writer.row(row, &mut line);
                self.out.copy_data(&line);
            }
            if self.out.len() >= SENT_BYTES {
                tokio::select! {
                    biased;
                    () = cancelled.notified() => {
                        let message = "canceling statement due to user request";
                        return Err(Error::new(SqlState::QUERY_CANCELED, message).into());
                    }
                    flushed = self.flush() => flushed?,
                }
            }
        }
        self.out.copy_done();
        self.out.command_complete(&format!("COPY {count}"));
        Ok(())
    }

    /// Takes a message while rows come; `false` of the connection's last one.
    pub(super) async fn copy_message(&mut self, frame: Frame) -> Result<bool, Disconnected> {
        let done = match frame.kind {
            b'd' => self.copy_lines(&frame.body).await.map(|()| false),
            b'c' => self.copy_rest().await.map(|()| true),
            // They say nothing here: some clients send them between rows.
            b'H' | b'S' => Ok(false),
            b'X' => return Ok(false),
            b'f' => {
                let said = frame.body.split(|byte| *byte == 0).next().unwrap_or_default();
                let reason = String::from_utf8_lossy(said);
                let message = format!("COPY from stdin failed: {reason}");
                let context = self.copy_place();
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
            Err(error) => {
                let copying = self.copying.take().expect("a COPY is under way");
                self.fail_block();
                self.report(&error).await?;
                if copying.is_simple {
                    self.ready();
                    self.flush().await?;
                } else {
                    self.skips = true;
                }
                Ok(true)
            }
        }
    }

    fn copy_place(&self) -> String {
        let copying = self.copying.as_ref().expect("a COPY is under way");
        format!("COPY {}, line {}", copying.records.table(), copying.lines.number() + 1)
    }

    async fn copy_lines(&mut self, bytes: &[u8]) -> Result<()> {
        let copying = self.copying.as_mut().expect("a COPY is under way");
        copying.lines.push(bytes);
        while let Some(line) = copying.lines.next_line()? {
            copying.line(&line, &mut self.connection).await?;
        }
        Ok(())
    }

    async fn copy_rest(&mut self) -> Result<()> {
        let place = self.copy_place();
        let copying = self.copying.as_mut().expect("a COPY is under way");
        match copying.lines.last_line().map_err(|error| error.with_context(place))? {
            Some(line) => copying.line(&line, &mut self.connection).await,
            None => Ok(()),
        }
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
        self.out.append(before);
        match rows.finish(&mut self.connection).await {
            Ok(answer) => {
                self.out.command_complete(&answer.tag);
                self.out.append(then);
            }
            Err(error) => {
                self.fail_block();
                self.out.report(Severity::Error, &error);
            }
        }
        self.ready();
        self.flush().await
    }
}
