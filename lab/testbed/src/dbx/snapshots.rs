//! The clock of transactions that read snapshots, and what the second version of a row is (Pisces).
//!
//! The word `second` of a record is one of
//!
//! * 0: there is one version;
//! * the number of a transaction, which writes a second one, and has the row for itself until it
//!   ends;
//! * the time at which that transaction committed, with [`COMMITTED`]; with [`MOVING`], too, while
//!   the second version takes the place of the first.
//!
//! A transaction with snapshot *s* reads what was committed at times up to *s*. It is announced
//! before it has its snapshot, so that a second version whose time is not above any snapshot that
//! is announced is what every transaction reads that runs now or begins later.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use workloads::TableId;

use crate::grace::Padded;
use crate::image::layout::WORKERS_MAX;

/// In `second`: what is above these bits is a time.
const COMMITTED: u64 = 1;
const MOVING: u64 = 2;
const MARKS: u32 = 2;

/// What a worker announces that reads nothing.
const IDLE: u64 = u64::MAX;
/// What is known of a transaction that does not commit yet, and of one that has no time yet.
const NOT_YET: u64 = u64::MAX;
const UNKNOWN: u64 = u64::MAX - 1;

/// Which version a snapshot has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    /// The second one, of this time.
    Second(u64),
    /// It will be known soon.
    Unknown,
}

/// See the module's documentation.
pub(super) struct Snapshots {
    clock: Padded<AtomicU64>,
    /// By worker: a time that is not above its snapshot.
    running: Box<[Padded<AtomicU64>]>,
    /// By worker: when its transaction committed, as far as that is known.
    commits: Box<[Padded<AtomicU64>]>,
}

impl Snapshots {
    pub(super) fn new(workers: usize) -> Self {
        let words = |value: u64| (0..workers).map(|_| Padded(AtomicU64::new(value))).collect();
        let (running, commits) = (words(IDLE), words(NOT_YET));
        Self { clock: Padded(AtomicU64::new(0)), running, commits }
    }

    /// Times are above this one from now on.
    pub(super) fn start_behind(&self, time: u64) {
        self.clock.0.fetch_max(time, Ordering::SeqCst);
    }

    /// A worker's transaction begins; its snapshot.
    pub(super) fn begin(&self, worker: usize) -> u64 {
        let announced = self.clock.0.load(Ordering::SeqCst);
        self.running[worker].0.store(announced, Ordering::SeqCst);
        self.clock.0.load(Ordering::SeqCst)
    }

    /// A worker's transaction reads no more.
    pub(super) fn leave(&self, worker: usize) {
        self.running[worker].0.store(IDLE, Ordering::SeqCst);
    }

    /// The next time.
    pub(super) fn tick(&self) -> u64 {
        self.clock.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// A worker's transaction commits, and is seen by all snapshots that are not below the time
    /// that is returned. Who needs to know meanwhile waits.
    pub(super) fn commit(&self, worker: usize) -> u64 {
        self.commits[worker].0.store(UNKNOWN, Ordering::SeqCst);
        let time = self.tick();
        self.commits[worker].0.store(time, Ordering::SeqCst);
        time
    }

    /// The second versions of a worker's transaction have its time themselves.
    pub(super) fn forget(&self, worker: usize) {
        self.commits[worker].0.store(NOT_YET, Ordering::SeqCst);
    }

    /// Whether all other transactions have snapshots not below a time.
    pub(super) fn others_read_from(&self, time: u64, worker: usize) -> bool {
        let mut others = self.running.iter().enumerate().filter(|(other, _)| *other != worker);
        others.all(|(_, running)| running.0.load(Ordering::SeqCst) >= time)
    }

    /// Which version a snapshot has of a row. The answer counts if `second` is still the same
    /// afterwards.
    pub(super) fn which(&self, second: u64, snapshot: u64) -> Which {
        let time = match (second, committed_at(second)) {
            (0, _) => return Which::First,
            (_, Some(time)) => time,
            (number, None) => self.commits[worker_of(number)].0.load(Ordering::SeqCst),
        };
        match time {
            UNKNOWN => Which::Unknown,
            time if time != NOT_YET && time <= snapshot => Which::Second(time),
            _ => Which::First,
        }
    }
}

/// When a second version was committed, if it was.
pub(super) fn committed_at(second: u64) -> Option<u64> {
    (second & COMMITTED != 0).then_some(second >> MARKS)
}

/// What stands in `second` of a version that was committed at a time.
pub(super) fn committed(time: u64) -> u64 {
    time << MARKS | COMMITTED
}

/// The same while it takes the place of the first.
pub(super) fn moving(second: u64) -> u64 {
    second | MOVING
}

/// Whether `second` stands for the same version in both cases.
pub(super) fn is_same(second: u64, other: u64) -> bool {
    second | MOVING == other | MOVING && (second != 0) == (other != 0)
}

fn worker_of(number: u64) -> usize {
    (number >> MARKS) as usize % WORKERS_MAX
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) table: TableId,
    pub(super) record: u32,
}

/// What one worker's transactions know of themselves.
#[derive(Default)]
pub(super) struct Own {
    pub(super) snapshot: u64,
    /// The number of the running transaction.
    pub(super) number: u64,
    transactions: u64,
    /// Rows that the transaction has for itself.
    pub(super) rows: Vec<Row>,
    /// Second versions that the worker committed, with their times.
    pub(super) seconds: VecDeque<(u64, Row)>,
}

impl Own {
    /// A transaction begins.
    pub(super) fn begin(&mut self, worker: usize, snapshot: u64) {
        self.transactions += 1;
        self.number = (self.transactions * WORKERS_MAX as u64 + worker as u64) << MARKS;
        self.snapshot = snapshot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_the_second_version_from_its_time_on() {
        let snapshots = Snapshots::new(2);
        let mut own = Own::default();
        own.begin(1, snapshots.begin(1));
        assert_eq!(snapshots.which(0, 9), Which::First);
        assert_eq!(snapshots.which(own.number, 9), Which::First, "it has not committed");
        snapshots.commits[1].0.store(UNKNOWN, Ordering::SeqCst);
        assert_eq!(snapshots.which(own.number, 9), Which::Unknown);
        let time = snapshots.commit(1);
        for second in [own.number, committed(time), moving(committed(time))] {
            assert_eq!(snapshots.which(second, time - 1), Which::First);
            assert_eq!(snapshots.which(second, time), Which::Second(time));
        }
        snapshots.forget(1);
        assert_eq!(snapshots.which(own.number, 9), Which::First, "the next one");
    }

    #[test]
    fn a_second_version_stays_as_long_as_one_may_read_the_first() {
        let snapshots = Snapshots::new(2);
        let snapshot = snapshots.begin(0);
        let time = snapshots.commit(1);
        assert!(snapshot < time && !snapshots.others_read_from(time, 1));
        snapshots.leave(0);
        assert!(snapshots.others_read_from(time, 1));
        assert!(snapshots.begin(0) >= time && snapshots.others_read_from(time, 1));
    }
}
