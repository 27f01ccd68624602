//! What is asked of each database, and why a comparison fails.

use serde::{Deserialize, Serialize};

/// Why a comparison failed, or why a database does not run in it.
#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
pub enum Error {
    /// Something does not work.
    #[error("{0}")]
    Failed(String),
    /// A database cannot have so much data, by its own word or by the limit of memory.
    #[error("{0}")]
    Refused(String),
    /// A database does not hold what it answered.
    #[error("{0}")]
    Lost(String),
}

impl Error {
    pub(crate) fn of(who: &str, what: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{who}: {what}"))
    }

    pub(crate) fn refused(who: &str, what: impl std::fmt::Display) -> Self {
        Self::Refused(format!("{who}: {what}"))
    }

    pub(crate) fn lost(who: &str, what: impl std::fmt::Display) -> Self {
        Self::Lost(format!("{who}: {what}"))
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// One row that a transaction reads, updates or inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Operation {
    pub(crate) row: u64,
    pub(crate) does: Does,
}

/// What a transaction does with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Does {
    Read,
    /// It adds 1 to the counter and writes the whole value anew.
    Update,
    /// It makes the row, which is not there, with a counter of 0.
    Insert,
}

/// Whether a transaction only reads.
pub(crate) fn only_reads(operations: &[Operation]) -> bool {
    operations.iter().all(|operation| operation.does == Does::Read)
}

/// What each database holds, and what it may have in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// Rows 0 up to this.
    pub(crate) rows: u64,
    /// Bytes of each value.
    pub(crate) value_bytes: usize,
    /// Bytes of the cache of a database that has one of its own.
    pub(crate) cache_bytes: u64,
    /// Whether there is a limit of memory, which data may exceed.
    pub(crate) is_limited: bool,
    pub(crate) pace: Pace,
}

/// How much a database keeps back until it writes it, and whether answers wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Pace {
    /// As much as it does by itself.
    Usual,
    /// Little, so that short runs have checkpoints; the number chooses among ways to do that.
    Short(u64),
    /// Little, and answers do not wait for the disk: a power cut loses them.
    Unsynced,
}

/// A database with one table: keys of 8 bytes, values as [`crate::value`] has them.
pub(crate) trait Peer: Sync {
    /// Makes all rows, with counters of 0; durable when it returns.
    fn load(&self) -> Result<()>;
    /// What one thread calls it with.
    fn caller(&self) -> Result<Box<dyn Caller + '_>>;
    /// All rows in the order of their keys.
    fn rows(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()>;
    /// Whether it finds itself whole, as far as it can tell.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// Closes it in good order.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A thread's way into a database.
pub(crate) trait Caller {
    /// Runs one transaction, of different rows in ascending order. All of it is serializable, and
    /// its updates are durable when this returns.
    fn transact(&mut self, operations: &[Operation]) -> Result<()>;
}
