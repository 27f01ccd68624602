//! Comma-separated values, as `dump` writes them (RFC 4180): a header, then a line for each row.
//!
//! A cell with nothing is null, one with two quotation marks an empty text. No crate is used for
//! this, because none tells the two apart.

use std::fs;
use std::path::{Path, PathBuf};

use nvcaracal::dynamic::{Cell, Value};

use super::lines::{Row, untyped};
use crate::output::Failure;

/// A cell of a line: nothing, or a text.
type Text = Option<String>;

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
    columns: Vec<Column>,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) of: Part,
    pub(super) cell: Cell,
}

/// Which part of a row a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    /// The whole value.
    Value,
    /// A field of it, by the column's name.
    Field,
}

impl Rows {
    /// Opens a file and compares its header with the columns of its table.
    pub(super) fn open(path: &Path, columns: Vec<Column>) -> Result<Self, Failure> {
        let text = fs::read_to_string(path);
        let text =
            text.map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
        let path = path.to_path_buf();
        let mut rows = Self { path, text, at: 0, line: 1, next_line: 1, columns: Vec::new() };
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

    /// What is wrong with the line that was read last.
    pub(super) fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("{}, line {}: {what}", self.path.display(), self.line))
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<Row>, Failure> {
        let Some(cells) = self.cells()? else { return Ok(None) };
        if cells.len() != self.columns.len() {
            let what = format!("{} cells, there are {} columns", cells.len(), self.columns.len());
            return Err(self.failure(&what));
        }
        let (mut key, mut whole, mut fields) = (Value::Null, None, Vec::new());
        for (text, column) in cells.into_iter().zip(&self.columns) {
            let Column { name, of, cell } = column;
            let value =
                value(text, *cell).map_err(|what| self.failure(&format!("{name}: {what}")))?;
            match (of, value) {
                (Part::Key, value) => key = value.unwrap_or(Value::Null),
                (Part::Value, value) => whole = Some(value.unwrap_or(Value::Null)),
                (Part::Field, Some(value)) => fields.push((name.clone(), value)),
                // A value of an older version does not have the field.
                (Part::Field, None) => {}
            }
        }
        Ok(Some(Row { key, value: whole.unwrap_or(Value::Struct(fields)) }))
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

/// What a cell says; nothing where there is nothing and null is no value.
fn value(cell: Text, of: Cell) -> Result<Option<Value>, String> {
    match cell {
        None if of.may_be_null => Ok(Some(Value::Null)),
        None => Ok(None),
        Some(text) if of.is_text => Ok(Some(Value::Text(text))),
        Some(text) => {
            let json = serde_json::from_str(&text);
            json.map(|json| Some(untyped(json))).map_err(|error| format!("{text:?}: {error}"))
        }
    }
}
