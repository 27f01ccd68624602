//! What a rival engine counts, and what its recovery did.

use pmem::Counters;

/// What happened to regions of code that are atomic.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RegionCounts {
    /// Regions that came to their end, fall-backs included.
    pub ended: u64,
    /// Aborts because of other threads ...
    pub conflicts: u64,
    /// ... of write sets beyond the nearest cache ...
    pub write_sets: u64,
    /// ... of read sets beyond the second one ...
    pub read_sets: u64,
    /// ... before flushes, stores past the cache and system calls ...
    pub forbidden: u64,
    /// ... by the region itself ...
    pub gave_up: u64,
    /// ... and for no reason that is known.
    pub unknown: u64,
    /// Regions that ran under the fall-back lock, or with locks of their own.
    pub fallbacks: u64,
}

impl RegionCounts {
    /// Adds the counts of another worker.
    pub fn add(&mut self, other: &Self) {
        self.ended += other.ended;
        self.conflicts += other.conflicts;
        self.write_sets += other.write_sets;
        self.read_sets += other.read_sets;
        self.forbidden += other.forbidden;
        self.gave_up += other.gave_up;
        self.unknown += other.unknown;
        self.fallbacks += other.fallbacks;
    }
}

/// What one worker's transactions did beyond what the device counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Versions of rows that were written to the device.
    pub tuples_written: u64,
    /// Rows that were read from the device into a cache.
    pub cache_misses: u64,
    /// Rows that were dropped from a cache.
    pub evictions: u64,
    /// Old versions of rows that were read, where there are snapshots.
    pub old_versions_read: u64,
    /// Transactions that were logged, where there is a redo log.
    pub log_records: u64,
    /// Checkpoints of such a log.
    pub checkpoints: u64,
    /// Regions of code that are atomic, where there are such.
    pub regions: RegionCounts,
}

impl Counts {
    /// Adds the counts of another worker.
    pub fn add(&mut self, other: &Self) {
        self.tuples_written += other.tuples_written;
        self.cache_misses += other.cache_misses;
        self.evictions += other.evictions;
        self.old_versions_read += other.old_versions_read;
        self.log_records += other.log_records;
        self.checkpoints += other.checkpoints;
        self.regions.add(&other.regions);
    }
}

/// What recovery did, and how long its parts took.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Pages that were scanned.
    pub pages: u64,
    /// Slots that held a version of a row.
    pub versions: u64,
    /// Of these, the ones that count: the newest committed version of each row.
    pub rows: u64,
    /// Of these, the ones of transactions that had not committed.
    pub uncommitted: u64,
    /// Nanoseconds of finding out which transactions had committed.
    pub find_committed_ns: u64,
    /// Nanoseconds of reading all versions and building the indexes.
    pub build_ns: u64,
    /// Nanoseconds of everything after that.
    pub finish_ns: u64,
    /// What went through the ports.
    pub counters: Counters,
}
