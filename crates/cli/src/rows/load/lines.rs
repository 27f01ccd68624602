//! JSON lines, as `dump` writes them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::input::{At, NO_UTF_8, open, text_of};
use crate::output::Failure;
use crate::rows::ending::{End, Section, WITHOUT_END};
use crate::rows::typed::Row;

/// The line that describes a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) table: String,
    pub(super) index: String,
    pub(super) key_bytes_max: u32,
    pub(super) value_bytes_max: u32,
    pub(super) row_bytes: u32,
    /// Only where both versions of a row share its heap.
    #[serde(default)]
    pub(super) shared_heap_bytes: u32,
    pub(super) types: Vec<String>,
    /// How many follow; the end of a file may be lost.
    pub(super) rows: u64,
    /// How many are in the table's file of CSV, if there is one.
    #[serde(default)]
    pub(super) csv_rows: Option<u64>,
}

pub(super) enum Line {
    Head(Head),
    Row(Row),
}

/// The lines of a file.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    number: u64,
    /// Rows that the last head announced and that did not come yet.
    left: u64,
    /// What came since the last line that ends a dump.
    section: Section,
    /// Whether such a line is the last one of the file.
    must_end: bool,
}

impl Lines {
    /// Opens a file, of which `must_end` says whether the last line has to be one that ends a dump.
    pub(super) fn open(path: &Path, must_end: bool) -> Result<Self, Failure> {
        let reader = BufReader::new(open(path)?);
        let (path, section) = (path.to_path_buf(), Section::default());
        Ok(Self { path, reader, number: 0, left: 0, section, must_end })
    }

    /// The line that was read last.
    pub(super) fn at(&self) -> At<'_> {
        At { path: &self.path, line: self.number }
    }

    /// What is wrong with the line that was read last.
    pub(super) fn failure(&self, what: &str) -> Failure {
        self.at().failure(what)
    }

    pub(super) fn next(&mut self) -> Result<Option<Line>, Failure> {
        loop {
            let Some(text) = self.line()? else { return self.file_ends() };
            let Some(end) = End::parse(&text) else { return self.line_of(&text).map(Some) };
            let missing = Err(format!("{} rows of the table before are missing", self.left));
            let is_whole = if self.left > 0 { missing } else { end };
            let compared = is_whole.and_then(|end| self.section.check(&end));
            compared.map_err(|what| self.failure(&what))?;
            self.section = Section::default();
        }
    }

    fn file_ends(&self) -> Result<Option<Line>, Failure> {
        match self.left {
            0 if self.number == 1 => Err(self.failure("the file is empty")),
            0 if self.must_end && !self.section.is_empty() => {
                let what = "the file ends without the line that says what the dump has";
                Err(self.failure(&format!("{what}: {WITHOUT_END}")))
            }
            0 => Ok(None),
            left => Err(self.failure(&format!("the file ends, and {left} rows are missing"))),
        }
    }

    /// A line that ends nothing.
    fn line_of(&mut self, text: &str) -> Result<Line, Failure> {
        self.section.add(text.as_bytes());
        let is_head = serde_json::from_str::<IsHead>(text).is_ok_and(|line| line.table.is_some());
        if is_head {
            let head: Head =
                serde_json::from_str(text).map_err(|error| self.failure(&error.to_string()))?;
            if self.left > 0 {
                return Err(
                    self.failure(&format!("{} rows of the table before are missing", self.left))
                );
            }
            self.left = head.rows;
            self.section.tables += 1;
            return Ok(Line::Head(head));
        }
        let row = Row::parse(text).map_err(|what| self.failure(&what))?;
        if self.left == 0 {
            return Err(self.failure("more rows than the line that describes the table says"));
        }
        self.left -= 1;
        self.section.rows += 1;
        Ok(Line::Row(row))
    }

    /// The text of the next line.
    fn line(&mut self) -> Result<Option<String>, Failure> {
        self.number += 1;
        let mut bytes = Vec::new();
        let read = self.reader.read_until(b'\n', &mut bytes);
        if read.map_err(|error| self.failure(&error.to_string()))? == 0 {
            return Ok(None);
        }
        let text = match self.number {
            1 => text_of(bytes),
            _ => String::from_utf8(bytes).map_err(|_| NO_UTF_8.to_string()),
        };
        text.map(Some).map_err(|what| self.failure(&what))
    }
}

/// Whether a line describes a table.
#[derive(Deserialize)]
struct IsHead {
    table: Option<serde::de::IgnoredAny>,
}

/// The lines of all files that describe tables, when every other line was read, too.
/// `must_end` is that of [`Lines::open`].
pub(super) fn heads<'f>(
    files: impl Iterator<Item = &'f PathBuf>,
    must_end: bool,
) -> Result<Vec<Head>, Failure> {
    let mut heads: Vec<Head> = Vec::new();
    for path in files {
        let mut lines = Lines::open(path, must_end)?;
        while let Some(line) = lines.next()? {
            if let Line::Head(head) = line {
                if heads.iter().any(|other| other.table == head.table) {
                    return Err(lines.failure(&format!("table {:?} comes twice", head.table)));
                }
                heads.push(head);
            }
        }
    }
    Ok(heads)
}
