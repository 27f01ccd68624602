//! How a store is opened.

use crate::config::NAME;
use nvcaracal::{DeviceSpec, Options, Tuning};
use sql::MemoryPool;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use values::Timestamp;

/// How many times the steps of another statement a COPY may do, which is bounded by its bytes.
pub(super) const COPY_STEPS_TIMES: u64 = 16;

/// What is done on the thread of a client does no more steps: other clients of it wait.
pub(super) const STEPS_AT_ONCE: u64 = 4_096;

/// Where a store is, and what it may take.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Where it is; it is made if there is none.
    pub device: DeviceSpec,
    /// The name of the database.
    pub database: Arc<str>,
    /// Most bytes of rows and values: address space.
    pub data_bytes_max: u64,
    /// Most bytes of the input log: address space.
    pub log_bytes_max: u64,
    /// A directory that gets the log of all epochs; `None`: it is not kept.
    pub archive: Option<PathBuf>,
    /// How long after its answers an epoch is in that directory.
    pub archive_delay: Duration,
    /// Most bytes of memory for rows, values and indexes; `None`: all of them are in memory.
    pub memory_limit_bytes: Option<u64>,
    /// Threads that run calls; 0 for what the library chooses.
    pub workers: usize,
    /// Threads that parse, plan and read.
    pub threads: usize,
    /// Statements that compute at a time, of those that take longer than a slice; 0 for one on each
    /// core.
    pub computing_max: usize,
    /// How long a statement computes outside of calls until others come.
    pub slice: Duration,
    /// The work of a definition for which all that writes waits; one that does more runs beside it.
    pub short_steps_max: u64,
    /// The work that one statement may do, in steps.
    pub steps_max: u64,
    /// Bytes that one statement may collect.
    pub memory_bytes_max: usize,
    /// Bytes that all statements together may have outside of calls: what they collect, the rows
    /// of answers until they are sent, of cursors and blocks, and texts with what was made of them.
    pub statement_memory_bytes: usize,
    /// The memory that statements of several stores share; instead of `statement_memory_bytes`.
    pub shared_memory: Option<Arc<MemoryPool>>,
    /// Gives memory that the allocator keeps after statements freed it back to the system. Called
    /// before statements and freed memory together exceed `statement_memory_bytes`.
    pub reclaim: fn(),
    /// Bytes of rows of a COPY that is one call, or part of one.
    pub copy_bytes_max: usize,
    /// Bytes of rows that one of several calls of a COPY or a definition writes.
    pub part_bytes: usize,
    /// Bytes of plans that are kept for statements to come.
    pub plans_bytes_max: usize,
    /// The library's own settings, of which the longest call is set here.
    pub tuning: Tuning,
    /// For tests: changes the options of the library.
    #[doc(hidden)]
    pub adjust: fn(Options) -> Options,
    /// What `now()` is when a statement is submitted.
    pub clock: fn() -> Timestamp,
    /// Called again and again by each statement that computes for long outside of calls; asks
    /// whether that was told to end. Tests stop statements here.
    pub pace: fn(&dyn Fn() -> bool),
}

impl StoreOptions {
    /// A store on a device, with the usual limits.
    #[must_use]
    pub fn at(device: DeviceSpec) -> StoreOptions {
        StoreOptions {
            device,
            database: NAME.into(),
            data_bytes_max: 64 << 30,
            log_bytes_max: 64 << 30,
            archive: None,
            archive_delay: Duration::from_secs(10),
            memory_limit_bytes: None,
            workers: 0,
            threads: 4,
            computing_max: 0,
            slice: Duration::from_millis(1),
            short_steps_max: 5_000,
            steps_max: 1_000_000,
            memory_bytes_max: 64 << 20,
            statement_memory_bytes: 1 << 30,
            shared_memory: None,
            reclaim: || (),
            copy_bytes_max: 16 << 20,
            part_bytes: 1 << 20,
            plans_bytes_max: 64 << 20,
            tuning: Tuning::default(),
            adjust: |options| options,
            clock: system_time,
            pace: |_| {},
        }
    }

    /// A store in memory, which ends with the process.
    #[must_use]
    pub fn memory() -> StoreOptions {
        StoreOptions::at(DeviceSpec::Dram)
    }
}

/// Microseconds from 1970 to 2000, where timestamps begin.
const EPOCH_MICROSECONDS: i128 = 946_684_800_000_000;

fn system_time() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let microseconds = since.map_or(0, |since| since.as_micros() as i128);
    let now = Timestamp::from_microseconds(microseconds - EPOCH_MICROSECONDS);
    now.expect("the machine's time is one of SQL")
}

/// Why a store was not opened or closed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The library refused.
    #[error(transparent)]
    Database(#[from] nvcaracal::Error),
    /// The catalog in the store cannot be read.
    #[error("the catalog cannot be read: {0}")]
    Catalog(values::Error),
    /// The directory of several databases cannot be used.
    #[error("the folder of databases cannot be used: {0}")]
    Folder(std::io::Error),
    /// No threads could be started.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_tells_the_time_of_now() {
        let shown = system_time().print();
        assert!(("2024"..="2199").contains(&&shown[..4]), "{shown}");
        let first = Timestamp::parse("1970-01-01 00:00:00").unwrap();
        assert_eq!(i128::from(first.bits()), -EPOCH_MICROSECONDS);
    }
}
