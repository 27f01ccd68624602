//! What the process of a database is told before it begins, and what it says: a JSON object a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::calls::Plan;
use super::verify::{Found, Known};
use crate::databases::Database;
use crate::peer::Error;

/// What a process does until the power is cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) database: Database,
    pub(super) path: PathBuf,
    pub(super) plan: Plan,
    /// The rows were made, and that was answered.
    pub(super) is_loaded: bool,
    /// What is known of each caller.
    pub(super) known: Vec<Known>,
    /// Milliseconds of calls between an open and a close; none: it ends when it has verified.
    pub(super) run_ms: Option<u64>,
}

/// What it says while it does that.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Said {
    /// What it does from now on.
    Phase(Phase),
    /// The rows that are there from the beginning are.
    Loaded,
    /// Only some of them are, and it was never said that all are; it ends.
    Partial,
    /// What the database holds.
    Verified(Found),
    /// The call of a caller with this number was answered.
    Answered { caller: u64, number: u64 },
    /// It ends, because something failed.
    Failed(Error),
}

/// What a database does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// It is opened, and recovers, or is made.
    Opening,
    /// It is checked, and its rows are read.
    Checking,
    /// Callers wait for answers.
    Running,
    /// It is closed in good order.
    Closing,
}

impl Phase {
    pub(super) const ALL: [Self; 4] = [Self::Opening, Self::Checking, Self::Running, Self::Closing];
}
