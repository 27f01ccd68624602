//! Scripts of sqllogictest: statements with their answers, errors by SQLSTATE. What they run on is
//! a [`Target`]: rows in memory here, calls and snapshots in the server's tests. The values of a
//! row stand in one line, with bars between them.

#![allow(dead_code, reason = "each test takes what it needs")]

use sql::ir::Space;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::path::Path;
use std::sync::{Arc, Mutex};
use values::{Datum, Error, Result, Zone, text};

/// What a script runs on.
pub(crate) trait Target: Send + 'static {
    /// Runs the one statement of a text; the rows of its answer as text.
    fn rows(&mut self, text: &str) -> Result<Vec<Vec<String>>>;

    /// All rows that the catalog leads to.
    fn state(&self) -> Vec<(Space, Vec<u8>, Vec<u8>)>;
}

/// All scripts, by their names.
pub(crate) fn scripts() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let files = std::fs::read_dir(crates.join("sql/tests/slt")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let read = |file: std::path::PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&file).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// A target that must not change where it fails.
struct Checked<T>(Arc<Mutex<T>>);

impl<T: Target> DB for Checked<T> {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, text: &str) -> Result<DBOutput<DefaultColumnType>> {
        let mut target = self.0.lock().unwrap();
        let before = target.state();
        let answer = target.rows(text);
        if answer.is_err() {
            assert!(target.state() == before, "an error changed rows: {text}");
        }
        let rows = answer?;
        let types = vec![DefaultColumnType::Any; rows.first().map_or(0, Vec::len)];
        Ok(DBOutput::Rows { types, rows })
    }

    fn error_sql_state(error: &Error) -> Option<String> {
        Some(error.state().code().to_owned())
    }
}

/// Runs a script on a target, and gives the target back.
pub(crate) fn run_script<T: Target>(name: &str, script: &str, target: T) -> T {
    let target = Arc::new(Mutex::new(target));
    let mut runner = Runner::new(|| {
        let own = Checked(Arc::clone(&target));
        async { Ok(own) }
    });
    runner.with_validator(|_, actual, expected| {
        actual.iter().map(|row| row.join("|")).eq(expected.iter().cloned())
    });
    let run = runner.run_script_with_name(script, name);
    run.unwrap_or_else(|error| panic!("{}", error.display(false)));
    drop(runner);
    let target = Arc::into_inner(target).expect("the runner has ended");
    target.into_inner().unwrap()
}

/// A row as scripts show it.
pub(crate) fn shown(row: &[Datum]) -> Vec<String> {
    let show = |value: &Datum| match value {
        Datum::Null => "NULL".to_owned(),
        value => text::print(value, &Zone::utc()),
    };
    row.iter().map(show).collect()
}
