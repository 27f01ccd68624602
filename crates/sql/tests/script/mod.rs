//! Scripts in the form of sqllogictest: statements with their answers, errors by SQLSTATE. What
//! they run on is a [`Target`]: rows in memory here, calls and snapshots in the server's tests.

#![allow(dead_code, reason = "each test takes what it needs")]

use sql::ir::Space;
use std::path::Path;
use values::{Datum, Result, Zone, text};

/// What a script runs on.
pub(crate) trait Target {
    /// Runs the one statement of a text; the rows of its answer as text.
    fn rows(&mut self, text: &str) -> Result<Vec<Vec<String>>>;

    /// All rows that the catalog leads to.
    fn state(&self) -> Vec<(Space, Vec<u8>, Vec<u8>)>;
}

/// One statement of a script and what must come of it.
#[derive(Debug)]
pub(crate) struct Record {
    line: usize,
    text: String,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    Ok,
    Error(String),
    Rows(Vec<String>),
}

/// All scripts, by their names.
pub(crate) fn scripts() -> Vec<(String, Vec<Record>)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let files = std::fs::read_dir(crates.join("sql/tests/slt")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let read = |file: std::path::PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        (name, records(&std::fs::read_to_string(&file).unwrap()))
    };
    files.into_iter().map(read).collect()
}

/// `statement ok`, `statement error CODE` or `query`, then the text; rows follow `----`.
fn records(script: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut lines = script.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut text = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty() && *line != "----") {
            text += line;
            text.push('\n');
        }
        let mut rows = Vec::new();
        if lines.next_if(|(_, line)| *line == "----").is_some() {
            while let Some((_, row)) = lines.next_if(|(_, line)| !line.is_empty()) {
                rows.push(row.to_owned());
            }
        }
        let expected = match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["statement", "ok"] => Expected::Ok,
            ["statement", "error", code] => Expected::Error(code.to_owned()),
            ["query"] => Expected::Rows(rows),
            _ => panic!("line {}: {line}", at + 1),
        };
        records.push(Record { line: at + 1, text, expected });
    }
    records
}

/// Runs one statement, and checks what comes of it.
pub(crate) fn check(name: &str, record: &Record, target: &mut impl Target) {
    let before = target.state();
    let place = format!("{name}:{}: {}", record.line, record.text);
    match (target.rows(&record.text), &record.expected) {
        (Ok(_), Expected::Ok) => {}
        (Ok(rows), Expected::Rows(expected)) => {
            let found: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
            assert_eq!(&found, expected, "{place}");
        }
        (Err(error), Expected::Error(code)) => {
            assert_eq!(error.state().code(), code, "{place}{error}");
            assert!(target.state() == before, "an error changed rows: {place}");
        }
        (Err(error), _) => panic!("{place}{error} at {:?}", error.position()),
        (Ok(rows), Expected::Error(code)) => panic!("{place}no error {code} but {rows:?}"),
    }
}

/// A row as scripts show it.
pub(crate) fn shown(row: &[Datum]) -> Vec<String> {
    let show = |value: &Datum| match value {
        Datum::Null => "NULL".to_owned(),
        value => text::print(value, &Zone::utc()),
    };
    row.iter().map(show).collect()
}
