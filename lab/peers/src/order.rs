//! What the process of a database is told, and what it answers.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::databases::Database;
use crate::peer::{Error, Shape};
use crate::settings::Load;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make a database, and all of its rows.
    Load { database: Database, path: PathBuf, shape: Shape },
    /// Let callers run transactions for a time.
    Measure { load: Load, operations: usize, time: Duration, seed: u64 },
    /// Close the database, and compare its rows with what was answered.
    Finish,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    Loaded { seconds: f64 },
    Measured(Measured),
    Finished(Finished),
    Failed(Error),
}

/// What callers of one database came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) transactions: u64,
    pub(crate) seconds: f64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    /// Of all threads of the process.
    pub(crate) cpu_ns: u64,
    /// By the process, if the system counts that.
    pub(crate) written_bytes: Option<u64>,
}

/// What is left at the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Finished {
    /// What its files take on the disk after the last measurement, before it is closed.
    pub(crate) disk_bytes: u64,
    /// The same after it was closed.
    pub(crate) closed_disk_bytes: u64,
    /// What was written after loading, closing included.
    pub(crate) written_bytes: Option<u64>,
    /// Updates of rows that were answered.
    pub(crate) updates: u64,
    /// Rows that were compared with what was answered.
    pub(crate) checked_rows: u64,
}
