//! JSON lines, as `dump` writes them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use nvcaracal::dynamic::Value;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::output::Failure;

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

/// A key and a value, without types.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowLine {
    key: Json,
    value: Json,
}

pub(super) struct Row {
    pub(super) key: Value,
    pub(super) value: Value,
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
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path);
        let file =
            file.map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
        Ok(Self { path: path.to_path_buf(), reader: BufReader::new(file), number: 0, left: 0 })
    }

    /// What is wrong with the line that was read last.
    pub(super) fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("{}, line {}: {what}", self.path.display(), self.number))
    }

    pub(super) fn next(&mut self) -> Result<Option<Line>, Failure> {
        let mut text = String::new();
        self.number += 1;
        let read = self.reader.read_line(&mut text);
        if read.map_err(|error| self.failure(&error.to_string()))? == 0 {
            return match self.left {
                0 => Ok(None),
                left => Err(self.failure(&format!("the file ends, and {left} rows are missing"))),
            };
        }
        let json: Json =
            serde_json::from_str(&text).map_err(|error| self.failure(&error.to_string()))?;
        let wrong = |error: serde_json::Error| error.to_string();
        if json.get("table").is_some() {
            let head: Head =
                serde_json::from_value(json).map_err(|error| self.failure(&wrong(error)))?;
            if self.left > 0 {
                return Err(
                    self.failure(&format!("{} rows of the table before are missing", self.left))
                );
            }
            self.left = head.rows;
            return Ok(Some(Line::Head(head)));
        }
        let row: RowLine =
            serde_json::from_value(json).map_err(|error| self.failure(&wrong(error)))?;
        if self.left == 0 {
            return Err(self.failure("more rows than the line that describes the table says"));
        }
        self.left -= 1;
        Ok(Some(Line::Row(Row { key: untyped(row.key), value: untyped(row.value) })))
    }
}

/// The lines of all files that describe tables, when every other line was read, too.
pub(super) fn heads<'f>(files: impl Iterator<Item = &'f PathBuf>) -> Result<Vec<Head>, Failure> {
    let mut heads: Vec<Head> = Vec::new();
    for path in files {
        let mut lines = Lines::open(path)?;
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

/// A value of JSON.
pub(super) fn untyped(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(flag),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Value::Unsigned(number.into()),
            (None, Some(number)) => Value::Signed(number.into()),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(items) => Value::List(items.into_iter().map(untyped).collect()),
        Json::Object(fields) => {
            Value::Struct(fields.into_iter().map(|(name, of)| (name, untyped(of))).collect())
        }
    }
}
