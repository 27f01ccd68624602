//! Rows of bytes as clients send them.

use super::binary::BinaryRows;
use super::form::{Form, Style};
use super::lines::{Line, Lines};
use super::records::Records;
use crate::ir::Kind;
use crate::memory::Grant;
use std::sync::Arc;
use values::{Datum, Result, Zone};

/// Makes rows of bytes that come in parts.
#[derive(Debug)]
pub struct Reader {
    kind: ReaderKind,
    /// What a row takes while it is made: as much as the largest so far.
    memory: Arc<Grant>,
}

#[derive(Debug)]
enum ReaderKind {
    Lines {
        lines: Lines,
        records: Records,
        /// Whether the next line is the one of names.
        is_header: bool,
    },
    Binary(BinaryRows),
}

/// A row, and the number of its line.
pub type NumberedRow = (u64, Vec<Datum>);

impl Reader {
    /// For rows with these columns of a table, which take `memory` while they are made.
    pub fn new<'a>(
        table: &str,
        form: &Form,
        columns: impl Iterator<Item = (&'a str, Kind)>,
        zone: &Zone,
        memory: Arc<Grant>,
    ) -> Reader {
        let kind = match form.style {
            Style::Binary => ReaderKind::Binary(BinaryRows::new(table, columns)),
            Style::Text | Style::Csv => ReaderKind::Lines {
                lines: Lines::new(form),
                records: Records::new(table, form, columns, zone),
                is_header: form.header,
            },
        };
        Reader { kind, memory }
    }

    /// More bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.kind {
            ReaderKind::Lines { lines, .. } => lines.push(bytes),
            ReaderKind::Binary(rows) => rows.push(bytes),
        }
    }

    /// The next whole row.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn next_row(&mut self) -> Result<Option<NumberedRow>> {
        match &mut self.kind {
            ReaderKind::Lines { lines, records, is_header } => {
                while let Some(line) = lines.next_line()? {
                    if !std::mem::take(is_header) {
                        return numbered(records, &line, &self.memory).map(Some);
                    }
                }
                Ok(None)
            }
            ReaderKind::Binary(rows) => {
                Ok(rows.next_row(&self.memory)?.map(|row| (rows.number, row)))
            }
        }
    }

    /// What is left when all bytes have come.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn last_row(&mut self) -> Result<Option<NumberedRow>> {
        let place = self.place();
        match &mut self.kind {
            ReaderKind::Lines { lines, records, is_header } => {
                match lines.last_line().map_err(|error| error.with_context(place))? {
                    Some(line) if !std::mem::take(is_header) => {
                        numbered(records, &line, &self.memory).map(Some)
                    }
                    _ => Ok(None),
                }
            }
            ReaderKind::Binary(rows) => rows.end().map(|()| None),
        }
    }

    /// Where it is, as errors say it.
    pub fn place(&self) -> String {
        let (table, number) = match &self.kind {
            ReaderKind::Lines { lines, records, .. } => (records.table(), lines.number()),
            ReaderKind::Binary(rows) => (rows.table.as_str(), rows.number),
        };
        format!("COPY {table}, line {}", number + 1)
    }
}

fn numbered(records: &Records, line: &Line<'_>, memory: &Grant) -> Result<NumberedRow> {
    Ok((line.number, records.row(line, memory)?))
}
