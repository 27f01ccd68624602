//! Options of the commands that read and write all rows of a store, and where it is.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

/// Where a store is, or its device's name. Paths need not be text.
#[derive(Debug, Clone)]
pub struct StorePath(PathBuf);

impl From<OsString> for StorePath {
    fn from(path: OsString) -> Self {
        Self(path.into())
    }
}

impl AsRef<Path> for StorePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// What is loaded, and where.
#[derive(Debug, Args)]
pub struct LoadArguments {
    /// A store, named as for `check`, or a directory that does not exist
    pub path: StorePath,
    /// Files of JSON lines, files of CSV whose names end in .csv and begin with that of their
    /// table, or directories with files that end in .jsonl or .csv
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Load rows into tables with secondary indexes, too
    ///
    /// Only the store's program can make the keys of an index. If two of the rows have one key in a
    /// unique index, the program cannot open the store any more.
    #[arg(long)]
    pub unchecked_indexes: bool,
    /// Load files that do not end with the line that says what they have, and directories without
    /// dump.end
    ///
    /// A dump ends so since release 0.2. One that does not was cut short, is older, or was written
    /// by hand. Whole tables may be missing then, without a word.
    #[arg(long)]
    pub without_end: bool,
    /// For tests: end the process without warning before the Nth call of a kind that it makes to a
    /// file of file:DIR, as log-sync:3
    #[arg(long, value_name = "FILE-CALL[:N]", hide = true)]
    pub die_at: Option<bench::FailPoint>,
    /// Write the result as one JSON object to standard output
    #[arg(long)]
    pub json: bool,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object for each row
    Jsonl,
    /// Comma-separated values with a header (RFC 4180)
    Csv,
}

/// What is written, and how.
#[derive(Debug, Args)]
pub struct DumpArguments {
    /// A store, named as for `check`
    pub path: StorePath,
    /// Only these tables
    #[arg(long, value_name = "TABLE[,TABLE...]", value_delimiter = ',')]
    pub table: Vec<String>,
    /// How rows are written
    #[arg(long, value_enum, default_value = "jsonl")]
    pub format: Format,
    /// Write one file for each table into this directory, which must be new or empty; needed for
    /// CSV of more than one table [default: standard output]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not read the files back to compare them with the state hash; only with --out
    #[arg(long)]
    pub no_verify: bool,
    /// Epochs after the checkpoint can only be seen by the program that wrote them: leave them out
    #[arg(long)]
    pub at_checkpoint: bool,
}
