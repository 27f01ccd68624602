//! Where lines end in bytes that come in parts.

use super::form::{Form, Style};
use values::{Error, Result, SqlState};

/// The longest line: a row has less.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'l> {
    /// Its number, from 1: that of its last line, if a field in quotes has several.
    pub(super) number: u64,
    /// Its bytes.
    pub(super) bytes: &'l [u8],
}

/// Bytes as they come, of which lines are taken.
#[derive(Debug)]
pub(super) struct Lines {
    style: Style,
    quote: u8,
    escape: u8,
    bytes: Vec<u8>,
    /// Where the next line begins, and how far it was looked at.
    begin: usize,
    at: usize,
    /// Whether a quote is open.
    in_quotes: bool,
    /// Line ends so far, those within quotes included.
    number: u64,
    /// Whether the first line ended in CR LF: then all do.
    returns: Option<bool>,
    /// Whether `\.` has come: what follows does not count.
    has_ended: bool,
}

impl Lines {
    /// No bytes yet.
    pub(super) fn new(form: &Form) -> Lines {
        Lines {
            style: form.style,
            quote: form.quote,
            escape: form.escape,
            bytes: Vec::new(),
            begin: 0,
            at: 0,
            in_quotes: false,
            number: 0,
            returns: None,
            has_ended: false,
        }
    }

    /// More bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.has_ended {
            return;
        }
        self.bytes.drain(..self.begin);
        self.at -= self.begin;
        self.begin = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line.
    ///
    /// # Errors
    /// A line that is too long.
    pub(super) fn next_line(&mut self) -> Result<Option<Line<'_>>> {
        if self.has_ended {
            return Ok(None);
        }
        let Some(end) = self.line_end() else {
            if self.bytes.len() - self.begin > LINE_BYTES_MAX {
                let message = format!("a line of COPY has more than {LINE_BYTES_MAX} bytes");
                return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
            }
            return Ok(None);
        };
        Ok(self.take(end, end + 1))
    }

    /// What is left behind the last line end.
    ///
    /// # Errors
    /// Quotes that are open.
    pub(super) fn last_line(&mut self) -> Result<Option<Line<'_>>> {
        if self.has_ended || self.begin == self.bytes.len() {
            return Ok(None);
        }
        self.number += 1;
        if self.in_quotes {
            return Err(Error::new(SqlState::BAD_COPY_FILE, "unterminated CSV quoted field"));
        }
        let end = self.bytes.len();
        Ok(self.take(end, end))
    }

    /// How many lines there were.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The line that ends here, before the one that begins at `next`; `None` of the one that ends
    /// all.
    fn take(&mut self, end: usize, next: usize) -> Option<Line<'_>> {
        let mut bytes = &self.bytes[self.begin..end];
        (self.begin, self.at) = (next, next);
        let has_return = bytes.last() == Some(&b'\r');
        if has_return && *self.returns.get_or_insert(true) {
            bytes = &bytes[..bytes.len() - 1];
        }
        self.returns.get_or_insert(false);
        if bytes == b"\\." {
            self.has_ended = true;
            return None;
        }
        Some(Line { number: self.number, bytes })
    }

    /// Where the line that begins ends.
    fn line_end(&mut self) -> Option<usize> {
        match self.style {
            Style::Csv => self.csv_line_end(),
            Style::Text | Style::Binary => self.text_line_end(),
        }
    }

    fn text_line_end(&mut self) -> Option<usize> {
        let is_special = |byte: &u8| matches!(byte, b'\n' | b'\\');
        while let Some(plain) = self.bytes[self.at..].iter().position(is_special) {
            self.at += plain;
            if self.bytes[self.at] == b'\n' {
                self.number += 1;
                return Some(self.at);
            }
            // A line end behind a backslash belongs to the field.
            let next = self.bytes.get(self.at + 1)?;
            self.number += u64::from(*next == b'\n');
            self.at += 2;
        }
        self.at = self.bytes.len();
        None
    }

    fn csv_line_end(&mut self) -> Option<usize> {
        while let Some(byte) = self.bytes.get(self.at).copied() {
            if self.in_quotes && byte == self.escape && byte != self.quote {
                let next = *self.bytes.get(self.at + 1)?;
                self.at += usize::from(next == self.quote || next == self.escape);
            } else if byte == self.quote {
                self.in_quotes = !self.in_quotes;
            } else if byte == b'\n' {
                self.number += 1;
                if !self.in_quotes {
                    return Some(self.at);
                }
            }
            self.at += 1;
        }
        None
    }
}
