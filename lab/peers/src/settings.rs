//! What is compared, and under which loads.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::databases::Database;
use crate::peer::{Error, Pace, Result, Shape};
use crate::value::{VALUE_BYTES_MAX, VALUE_BYTES_MIN};

/// Reads among how many operations a share of reads is given in.
pub(crate) const TEN: u64 = 10;

/// The rows that all operations choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// All, each as often as any other.
    All,
    /// So many, spread over the table.
    Hot(u64),
    /// All, by Zipf's law with an exponent of 0.9; those that are chosen often are spread over the
    /// table.
    Zipf,
}

/// What callers do at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Threads that each wait for the answer of one transaction before they go on.
    pub clients: usize,
    /// Of ten operations so many read, and the others update.
    pub read_ratio: u64,
    /// The rows that all operations choose from.
    pub rows: Chosen,
}

/// A limit of memory for each database.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Bytes that its process may have, with the pages of files that the system keeps for it.
    pub bytes: u64,
    /// The control group below which groups are made; none: that of this process.
    pub group: Option<PathBuf>,
}

/// What is compared.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the databases are made, in a temporary directory that is removed.
    pub directory: PathBuf,
    /// Which ones; each in a process of its own.
    pub databases: Vec<Database>,
    /// How long each measurement takes.
    pub time: Duration,
    /// How often each is made.
    pub rounds: u64,
    /// Rows in each database.
    pub rows: u64,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// Operations of a transaction, each on another row.
    pub operations: usize,
    /// Under which loads.
    pub loads: Vec<Load>,
    /// The limit of memory, if there is one.
    pub memory: Option<Memory>,
}

/// The cache of a database that has one of its own and no limit of memory.
const CACHE_BYTES: u64 = 1 << 30;

impl Settings {
    /// How often [`run`](crate::run) tells what comes next.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let databases = self.databases.len() as u64;
        2 * databases + (1 + databases) * self.loads.len() as u64 * self.rounds
    }

    /// Whether there is something to measure that can be.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self) -> Result<()> {
        let fail = |what: String| Err(Error::Failed(what));
        if self.databases.is_empty() || self.loads.is_empty() || self.rounds == 0 {
            return fail("there is nothing to measure".into());
        }
        if let Some(database) = self.databases.iter().find(|database| !database.is_built()) {
            let name = database.name();
            return fail(format!("this build has no {name}: build it with --features {name}"));
        }
        if !(VALUE_BYTES_MIN..=VALUE_BYTES_MAX).contains(&self.value_bytes) {
            let allowed = format!("must be from {VALUE_BYTES_MIN} to {VALUE_BYTES_MAX}");
            return fail(format!("values of {} bytes {allowed}", self.value_bytes));
        }
        for load in &self.loads {
            let rows = match load.rows {
                Chosen::Hot(rows) => rows,
                Chosen::All | Chosen::Zipf => self.rows,
            };
            let operations = self.operations as u64;
            if operations == 0 || operations > rows || rows > self.rows {
                return fail(format!(
                    "a transaction of {operations} operations on {rows} of {} rows cannot be: \
                     each operation is on another row",
                    self.rows
                ));
            }
            if load.clients == 0 || load.read_ratio > TEN {
                return fail(format!("a load cannot be: {load:?}"));
            }
        }
        Ok(())
    }

    pub(crate) fn shape(&self) -> Shape {
        let limit = self.memory.as_ref().map(|memory| memory.bytes);
        Shape {
            rows: self.rows,
            value_bytes: self.value_bytes,
            // Half of a limit is left for everything else: the process, logs, pages of files.
            cache_bytes: limit.map_or(CACHE_BYTES, |bytes| bytes / 2),
            is_limited: limit.is_some(),
            pace: Pace::Usual,
        }
    }
}
