//! What a database did so far.

use std::time::Duration;

use engine::EpochStats;

use crate::host::driver::Status;
use crate::observe::contention::Window;
use crate::observe::histogram::Histogram;
use crate::observe::procedures::{self, EpochCounts, Procedure, ProcedureStats};

/// Counts since the database was opened, and where it is now. See
/// [`Database::stats`](crate::Database::stats). Its text is for operators: lines with aligned names
/// and a table of the procedures, in milliseconds.
///
/// ```
/// # use nvcaracal::{Database, HashTable, Stop, Table, Transaction, procedure};
/// const POINTS: HashTable<u64, u64> = Table::hash("points");
///
/// #[procedure]
/// fn set(tx: &mut Transaction, player: u64, points: u64) -> Result<(), Stop> {
///     Ok(tx.insert(POINTS, player, &points)?)
/// }
///
/// # let options = Database::options().table(POINTS).procedure::<Set>();
/// # let db = options.open_device(nvcaracal::DeviceSpec::Dram)?;
/// db.call(Set { player: 1, points: 10 })?;
/// let text = db.stats().to_string();
/// println!("{text}");
/// assert!(text.contains("rows            1\n"));
/// assert!(text.contains("calls           1 committed, 0 aborted, 0 failed"));
/// assert_eq!(text.lines().last().unwrap().split_whitespace().take(2).last(), Some("1"));
/// # Ok::<(), nvcaracal::Error>(())
/// ```
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// Number of the last epoch, which goes on over reopening.
    pub epoch: u64,
    /// Epoch from which a recovery would start now.
    pub checkpoint_epoch: u64,
    /// Rows in all tables, sequences included.
    pub rows: u64,
    /// A hash of all rows: databases with the same content have the same.
    pub state_hash: u128,
    /// Epochs that ran.
    pub epochs: u64,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that gave up on purpose.
    pub aborted: u64,
    /// Calls that failed.
    pub failed: u64,
    /// How often a call was deferred, because it would have written what it did not predict or
    /// changed an index, or what its declaration read had changed.
    pub deferred: u64,
    /// Calls that were refused for lack of space.
    pub refused: u64,
    /// Calls that wait in the queue now, and the bytes of their arguments.
    pub queued_calls: usize,
    /// See `queued_calls`.
    pub queued_bytes: usize,
    /// Threads and tasks that wait now until the queue has room for what they submit.
    pub blocked_submitters: usize,
    /// Deferred calls that come first in the next epoch: also those of before a recovery, whose
    /// callers have ended.
    pub deferred_calls: usize,
    /// Why the archive of the log could not be written, if it could not when it was tried last
    /// ([`Options::archive`](crate::Options::archive)): calls go on, and the log grows.
    pub archive_error: Option<String>,
    /// From the first submission for an epoch to its answers: half of the epochs took at most this,
    /// within an eighth.
    pub latency_p50: Duration,
    /// 99 of 100 epochs took at most this.
    pub latency_p99: Duration,
    /// What the last epoch did and how long each phase took.
    pub last_epoch: EpochStats,
    /// Counts and latencies of each procedure, by name.
    pub procedures: Vec<ProcedureStats>,
}

/// Counts while the sequencer runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    stats: Stats,
    latencies: Histogram,
    /// By their numbers.
    procedures: Vec<Procedure>,
    pub(crate) contention: Window,
}

impl Recorder {
    pub(crate) fn new(procedures: Vec<Procedure>, contention: Window) -> Self {
        let (stats, latencies) = (Stats::default(), Histogram::default());
        Self { stats, latencies, procedures, contention }
    }

    pub(crate) fn epoch(
        &mut self,
        epoch: EpochStats,
        counts: &mut EpochCounts,
        status: Status,
        latency: Option<Duration>,
    ) {
        procedures::add(&mut self.procedures, counts, latency);
        let stats = &mut self.stats;
        stats.epochs += 1;
        stats.committed += epoch.work.committed;
        stats.aborted += epoch.work.aborted;
        stats.failed += epoch.work.failed;
        stats.deferred += epoch.work.deferred;
        stats.last_epoch = epoch;
        if let Some(latency) = latency {
            self.latencies.record(latency, 1);
        }
        self.place(status);
    }

    /// Empty counts of its procedures.
    pub(crate) fn counts(&self) -> EpochCounts {
        EpochCounts::new(&self.procedures)
    }

    pub(crate) fn refused(&mut self, calls: usize) {
        self.stats.refused += calls as u64;
    }

    /// Whether the archive could be written; whether that has changed.
    pub(crate) fn archive(&mut self, error: Option<String>) -> bool {
        let before = std::mem::replace(&mut self.stats.archive_error, error);
        before != self.stats.archive_error
    }

    pub(crate) fn place(&mut self, status: Status) {
        assert!(status.epoch.0 >= self.stats.epoch, "epoch {} came too late", status.epoch);
        assert!(status.checkpoint_epoch <= status.epoch, "the checkpoint is of a later epoch");
        self.stats.epoch = status.epoch.0;
        self.stats.checkpoint_epoch = status.checkpoint_epoch.0;
        self.stats.rows = status.rows;
        self.stats.state_hash = status.state_hash.0;
        self.stats.deferred_calls = status.deferred;
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let mut procedures: Vec<_> = self.procedures.iter().map(Procedure::stats).collect();
        procedures.sort_by_key(|procedure| procedure.name);
        Stats {
            latency_p50: self.latencies.at_most(500),
            latency_p99: self.latencies.at_most(990),
            procedures,
            ..self.stats.clone()
        }
    }
}
