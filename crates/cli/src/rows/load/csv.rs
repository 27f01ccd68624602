//! Comma-separated values, as `dump` writes them (RFC 4180): a header, then a line for each row.
//!
//! A cell with nothing is null, one with two quotation marks an empty text. No crate is used for
//! this, because none tells the two apart.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::input::{At, open, text_of};
use crate::output::Failure;
use crate::rows::typed::{Column, Text};

/// The rows of a file.
pub(super) struct Rows {
    path: PathBuf,
    text: String,
    /// Where the next line begins.
    at: usize,
    /// The line that was read last, and the one after it.
    line: u64,
    next_line: u64,
    /// Of the cells of each line.
    pub(super) columns: Vec<Column>,
}

impl Rows {
    /// Opens a file and compares its header with the columns of its table.
    pub(super) fn open(path: &Path, columns: Vec<Column>) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        let read = open(path)?.read_to_end(&mut bytes);
        read.map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
        let text = text_of(bytes).map_err(|what| At { path, line: 1 }.failure(&what))?;
        let path = path.to_path_buf();
        let mut rows = Self { path, text, at: 0, line: 1, next_line: 1, columns: Vec::new() };
        if rows.text.is_empty() {
            return Err(rows.failure("the file is empty"));
        }
        if !rows.text.ends_with(['\n', '\r']) {
            rows.line = rows.text.lines().count() as u64;
            return Err(rows.failure(
                "the last line does not end, so the file may have been cut: end it with a line end",
            ));
        }
        rows.columns = rows.in_order_of_header(columns)?;
        Ok(rows)
    }

    /// Columns may come in any order; none may be missing.
    fn in_order_of_header(&mut self, mut wanted: Vec<Column>) -> Result<Vec<Column>, Failure> {
        let header = self.cells()?.unwrap_or_default();
        let given: Vec<String> = header.into_iter().map(Option::unwrap_or_default).collect();
        let all: Vec<String> = wanted.iter().map(|column| column.name.clone()).collect();
        let found = given.iter().map(|name| {
            let at = wanted.iter().position(|column| column.name == *name)?;
            Some(wanted.remove(at))
        });
        match found.collect::<Option<Vec<_>>>() {
            Some(columns) if wanted.is_empty() => Ok(columns),
            _ => Err(self.failure(&format!(
                "the columns are {}, those of the table {}",
                given.join(", "),
                all.join(", ")
            ))),
        }
    }

    /// The line that was read last.
    pub(super) fn at(&self) -> At<'_> {
        At { path: &self.path, line: self.line }
    }

    /// What is wrong with the line that was read last.
    pub(super) fn failure(&self, what: &str) -> Failure {
        self.at().failure(what)
    }

    /// The cells of the next row, in the order of the columns.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Text>>, Failure> {
        let Some(cells) = self.cells()? else { return Ok(None) };
        if cells.len() != self.columns.len() {
            let what = format!("{} cells, there are {} columns", cells.len(), self.columns.len());
            return Err(self.failure(&what));
        }
        Ok(Some(cells))
    }

    /// The cells of the next line that has any.
    fn cells(&mut self) -> Result<Option<Vec<Text>>, Failure> {
        self.line = self.next_line;
        if self.at == self.text.len() {
            return Ok(None);
        }
        let mut cells = Vec::new();
        loop {
            let cell = self.cell()?;
            cells.push(cell);
            let rest = &self.text[self.at..];
            if rest.starts_with(',') {
                self.at += 1;
                continue;
            }
            let end = ["\r\n", "\n"].into_iter().find(|end| rest.starts_with(end));
            match end {
                Some(end) => self.at += end.len(),
                None if rest.is_empty() => {}
                None if rest.starts_with('\r') => {
                    return Err(self.failure("the line ends in CR alone: end lines in LF or CR LF"));
                }
                None => return Err(self.failure("something follows the end of a quoted cell")),
            }
            self.next_line += 1;
            return Ok(Some(cells));
        }
    }

    fn cell(&mut self) -> Result<Text, Failure> {
        let rest = &self.text[self.at..];
        let Some(quoted) = rest.strip_prefix('"') else {
            let len = rest.find([',', '\r', '\n']).unwrap_or(rest.len());
            self.at += len;
            return Ok((len > 0).then(|| rest[..len].to_string()));
        };
        let (mut text, mut from) = (String::new(), 0);
        while let Some(len) = quoted[from..].find('"') {
            text.push_str(&quoted[from..from + len]);
            from += len + 1;
            if !quoted[from..].starts_with('"') {
                self.at += 1 + from;
                self.next_line += text.matches('\n').count() as u64;
                return Ok(Some(text));
            }
            text.push('"');
            from += 1;
        }
        Err(self.failure("a quoted cell does not end"))
    }
}
