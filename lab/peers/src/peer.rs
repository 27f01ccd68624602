//! What is compared, and how.

use std::path::PathBuf;
use std::time::Duration;

/// Why a comparison failed, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    pub(crate) fn of(peer: &str, what: impl std::fmt::Display) -> Self {
        Self(format!("{peer}: {what}"))
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What is compared.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the databases are made, in a temporary directory that is removed.
    pub directory: PathBuf,
    /// How long each of them is measured with each number of callers.
    pub time: Duration,
    /// Rows in each.
    pub rows: u64,
    /// Numbers of callers.
    pub clients: Vec<usize>,
}

impl Settings {
    /// How often [`run`](crate::run) tells what comes next.
    #[must_use]
    pub fn steps(&self) -> u64 {
        (PEERS + (1 + PEERS) * self.clients.len()) as u64
    }
}

/// Databases that are compared.
pub(crate) const PEERS: usize = 4;

/// Bytes of a value; the first eight are a counter.
pub(crate) const VALUE_BYTES: usize = 100;

/// A database with one table: keys of 8 bytes, values of [`VALUE_BYTES`].
pub(crate) trait Peer: Sync {
    /// Its name and version.
    fn name(&self) -> String;
    /// Makes rows 0 up to `rows`, with counters of 0.
    fn load(&self, rows: u64) -> Result<()>;
    /// Adds 1 to the counter of a row, and returns when that is durable.
    fn update(&self, row: u64) -> Result<()>;
    /// The sum of all counters.
    fn sum(&self) -> Result<u64>;
}

/// The value after an update of its counter.
pub(crate) fn counted(value: &[u8]) -> Option<Vec<u8>> {
    let mut value = value.to_vec();
    let counter = value.first_chunk_mut()?;
    *counter = (u64::from_le_bytes(*counter) + 1).to_le_bytes();
    Some(value)
}

pub(crate) fn counter(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |counter| u64::from_le_bytes(*counter))
}
