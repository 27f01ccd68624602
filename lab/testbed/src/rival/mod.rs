//! What every rival engine offers: transactions on one thread each, and a state to look at.

mod counts;

use std::ops::Range;
use std::sync::Arc;

use pmem::{Counters, Device};
use workloads::{Abort, TableId, TableSpec, Visit};

use crate::error::{Error, Result};
use crate::image::layout::{PAGE_BYTES, WORKERS_MAX};

pub use counts::{Counts, RecoveryReport, RegionCounts};

/// Why a transaction did not come to its end.
#[derive(Debug)]
pub enum Stop {
    /// Another transaction was in the way: it runs again.
    Conflict,
    /// It gave up on purpose, with this code.
    Abort(u32),
    /// The engine cannot go on.
    Failed(Error),
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort.0)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// How an engine is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that run transactions, and that recover.
    pub workers: usize,
    /// Most bytes of rows that are cached in DRAM, where an engine caches.
    pub cache_bytes: u64,
    /// Transactions of one worker in a group, where an engine commits groups.
    pub group_calls: u64,
    /// Microseconds of a group, where a thread ends groups; 0: a group ends when a worker has run
    /// `group_calls` transactions of it.
    pub group_us: u64,
    /// Bytes of a page of slots, or of a segment of a log.
    pub page_bytes: u64,
    /// Bytes of a redo log after which an engine that keeps one takes a checkpoint.
    pub log_bytes: u64,
    #[cfg(test)]
    pub(crate) fault: Option<Fault>,
    #[cfg(test)]
    pub(crate) at_phase: Option<AtPhase>,
}

/// Where a commit or a checkpoint is that others may come in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has its place in the log, and nothing else has happened.
    Reserved,
    /// What was written is seen, and nothing of it was logged.
    Installed,
    /// It may be relied upon.
    Published,
    /// A checkpoint is about to copy a table.
    Copying,
    /// A checkpoint waits for a transaction.
    Waiting,
}

/// What a test does when one is there.
#[cfg(test)]
#[derive(Clone)]
pub(crate) struct AtPhase(pub(crate) std::sync::Arc<dyn Fn(Phase) + Send + Sync>);

#[cfg(test)]
impl std::fmt::Debug for AtPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtPhase")
    }
}

/// A mistake that tests make on purpose, to see that their checks find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// What was read is not read again before the commit.
    NoReadValidation,
    /// Transactions that write nothing read the newest versions, as if they were in a snapshot.
    NewestInSnapshot,
    /// Scans do not notice keys that came or went.
    NoNodeValidation,
    /// The mark of a commit is not ordered behind what it marks.
    NoFenceBeforeMark,
    /// A slot is reused before what took its place is durable.
    EarlyReuse,
    /// What a call wrote stays when it gives up.
    KeepAborted,
    /// A lock is granted though others have it or wait for it.
    GrantAtOnce,
    /// A call runs when one lock manager has granted it everything, the others may not have.
    OneManagerGrants,
    /// A reader does not wait for a version that is not written yet, and reads an older one.
    SkipPending,
    /// A call of several partitions runs in all of them, and only the last to come waits for it.
    NoRendezvous,
    /// A graph has no edges of reads; nor do reservations of reads count.
    NoReadEdges,
    /// Calls commit that seem to run both before one and behind another.
    NoPivots,
    /// A version becomes even before what it stands for is durable.
    EvenBeforeFence,
    /// The version of a row that is written is raised though it is odd.
    RaisesOdd,
    /// A row is overwritten though another transaction wrote it behind the snapshot.
    OverwritesNewer,
    /// A log record counts though its checksum is wrong.
    NoChecksum,
}

impl Options {
    /// Options for so many workers, with a cache that all rows fit into.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers,
            cache_bytes: u64::MAX,
            group_calls: 256,
            group_us: 40_000,
            page_bytes: PAGE_BYTES,
            log_bytes: 64 << 20,
            #[cfg(test)]
            fault: None,
            #[cfg(test)]
            at_phase: None,
        }
    }

    /// How many workers there are, if there may be so many.
    pub(crate) fn check_workers(&self) -> Result<usize> {
        match self.workers {
            workers @ 1..=WORKERS_MAX => Ok(workers),
            workers => {
                let what = format!("workers is {workers}, allowed are 1 to {WORKERS_MAX}");
                Err(Error::Limit(what))
            }
        }
    }

    /// A commit or a checkpoint is there; of interest to tests only.
    #[inline(always)]
    pub(crate) fn reach(&self, phase: Phase) {
        #[cfg(test)]
        if let Some(AtPhase(act)) = &self.at_phase {
            act(phase);
        }
        let _ = phase;
    }

    /// Whether a mistake is made; never outside of tests.
    #[inline(always)]
    pub(crate) fn has(&self, fault: Fault) -> bool {
        #[cfg(test)]
        return self.fault == Some(fault);
        #[cfg(not(test))]
        {
            let _ = fault;
            false
        }
    }
}

/// An engine on a device.
pub trait Rival: Send + Sync + Sized + 'static {
    /// Where it keeps its rows.
    type Device: Device;
    /// One worker's transactions.
    type Session: Session;
    /// Name for reports.
    const NAME: &'static str;
    /// Whether all comes out as if transactions ran one by one in the order of their places. If
    /// not, they are isolated by snapshots, which [`Session::snapshot`] tells.
    const SERIALIZABLE: bool = true;

    /// Makes an empty store.
    ///
    /// # Errors
    /// The device's, and tables that do not fit.
    fn create(device: Arc<Self::Device>, tables: &[TableSpec], options: &Options) -> Result<Self>;

    /// Recovers the store that such an engine left on the device, however it ended.
    ///
    /// # Errors
    /// The device's, and what cannot be such a store.
    fn open(
        device: Arc<Self::Device>,
        tables: &[TableSpec],
        options: &Options,
    ) -> Result<(Self, RecoveryReport)>;

    /// The way of a worker to the store. One at a time for each number below the number of workers.
    ///
    /// # Panics
    /// If there is no such worker.
    fn session(&self, worker: usize) -> Self::Session;

    /// Visits all rows of a table while no transaction runs; in key order if it is ordered.
    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8]));

    /// Reads a row while no transaction runs.
    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>>;

    /// Ends. All sessions have finished.
    ///
    /// # Errors
    /// The device's.
    fn close(self) -> Result<()>;
}

/// What a running transaction does with rows.
pub trait Accesses {
    /// Reads a row.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop>;

    /// Visits rows with `low <= key < high`, own writes included.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop>;

    /// Inserts a row, or overwrites it.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop>;

    /// Overwrites a row; false if there is none.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop>;

    /// Changes a private copy of a row; false if there is none.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop>;

    /// Changes a part of a row: `change` gets the whole as it was, and a copy of the part.
    ///
    /// # Errors
    /// A conflict, a part outside of the row, or the engine's failure.
    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop>;

    /// Deletes a row; false if there is none.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop>;
}

/// Changes a part of a value: `change` gets the value as it was, and a copy of the part.
pub(crate) fn change_part(
    value: &mut [u8],
    part: Range<usize>,
    copy: &mut Vec<u8>,
    change: impl FnOnce(&[u8], &mut [u8]),
) -> Result<(), Stop> {
    let Some(old) = value.get(part.clone()) else {
        let what = format!("bytes {part:?} are not in a row of {} bytes", value.len());
        return Err(Error::Broken(what).into());
    };
    copy.clear();
    copy.extend_from_slice(old);
    change(value, copy);
    value[part].copy_from_slice(copy);
    Ok(())
}

/// The transactions of one worker, one after the other. Between `begin` and one of `commit`,
/// `give_up` and `roll_back` it reads and writes; of these, all but `roll_back` may find a
/// conflict, after which only `roll_back` is left.
pub trait Session: Accesses + Send + 'static {
    /// A transaction begins.
    fn begin(&mut self);

    /// Commits; the transaction's place in the serial order. Others may have the same place, if
    /// they all write nothing.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn commit(&mut self) -> Result<u64, Stop>;

    /// Ends a transaction that gave up on purpose: nothing of it is written, but what it read, and
    /// so its reason, holds at the place in the serial order that is returned.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn give_up(&mut self) -> Result<u64, Stop>;

    /// Ends a transaction without an answer.
    fn roll_back(&mut self);

    /// The place that the transaction which ended last read the state of, if that is another one
    /// than its own.
    fn snapshot(&self) -> Option<u64> {
        None
    }

    /// Transactions up to this place in the serial order may be answered: all of them that have
    /// committed are durable.
    fn durable(&self) -> u64;

    /// Waits until everything is durable that this session committed. It may go on afterwards.
    ///
    /// # Errors
    /// The engine's failure.
    fn finish(&mut self) -> Result<()>;

    /// What went through the device since the last time.
    fn take_counters(&mut self) -> Counters;

    /// What its transactions did.
    fn count(&self) -> Counts;
}
