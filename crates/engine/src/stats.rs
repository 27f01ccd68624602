//! What an epoch did, counted by each worker and added up at its end.

use pmem::Counters;

/// The phases of an epoch, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Phase {
    /// Sequences are drawn, write sets are declared, space is reserved.
    Declare,
    /// Inputs are written to the log and made durable.
    LogInputs,
    /// Rows are created.
    Insert,
    /// Stale external values are freed.
    MajorGc,
    /// Cached versions are evicted.
    EvictCache,
    /// Pending versions are appended.
    Append,
    /// Bodies run.
    Execute,
    /// Deleted and never-born rows are removed.
    Remove,
    /// Everything becomes durable.
    Checkpoint,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 9] = [
        Phase::Declare,
        Phase::LogInputs,
        Phase::Insert,
        Phase::MajorGc,
        Phase::EvictCache,
        Phase::Append,
        Phase::Execute,
        Phase::Remove,
        Phase::Checkpoint,
    ];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::LogInputs => "log_inputs",
            Phase::Declare => "declare",
            Phase::Insert => "insert",
            Phase::MajorGc => "major_gc",
            Phase::EvictCache => "evict_cache",
            Phase::Append => "append",
            Phase::Execute => "execute",
            Phase::Remove => "remove",
            Phase::Checkpoint => "checkpoint",
        }
    }
}

/// Adds up, field by field.
macro_rules! counts {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone, PartialEq, Eq)]
        pub struct $name { $($(#[$fdoc])* pub $field: u64),* }

        impl $name {
            /// Adds the counts of `other`.
            pub fn add(&mut self, other: &Self) { $(self.$field += other.$field;)* }
            /// Names and values, in order.
            pub fn fields(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field)),*]
            }
        }
    };
}

counts! {
    /// What workers count while they run an epoch.
    WorkCounts {
        /// Calls that committed.
        committed,
        /// Calls that aborted on purpose.
        aborted,
        /// Calls that failed (panic, undeclared write, limit).
        failed,
        /// Calls that were re-submitted.
        resubmitted,
        /// Rows created.
        rows_inserted,
        /// Rows removed, those never born included.
        rows_removed,
        /// Versions that died with the epoch, in DRAM.
        transient_versions,
        /// Versions written to the medium: one for each row written in the epoch.
        persistent_versions,
        /// Versions that became IGNORE.
        ignored_versions,
        /// Rows written once in the epoch, without a version array.
        single_write_rows,
        /// Rows with a version array.
        version_arrays,
        /// Elements moved by insertion into sorted arrays.
        insertion_moves,
        /// Stale inline versions overwritten by the final write (NV 4.4).
        minor_collections,
        /// Stale external values freed in the initialization phase (NV 4.4).
        major_collections,
        /// Reads served by a cached version.
        cache_hits,
        /// Reads served by the medium.
        cache_misses,
        /// Cached versions evicted.
        cache_evictions,
        /// Reads that had to wait for a pending version.
        waits,
        /// Row locks that were taken when another worker held them.
        contended_locks,
    }
}

/// What one epoch did.
#[derive(Debug, Default, Clone)]
pub struct EpochStats {
    /// Counts, over all workers.
    pub work: WorkCounts,
    /// What went to and from the medium, over all workers.
    pub medium: Counters,
    /// Nanoseconds of each phase, as the first worker saw it; zero without a clock. In the order of
    /// [`Phase::ALL`].
    pub phase_ns: [u64; Phase::ALL.len()],
    /// Nanoseconds of the whole epoch.
    pub total_ns: u64,
}

impl EpochStats {
    /// Adds another epoch's.
    pub fn add(&mut self, other: &Self) {
        self.work.add(&other.work);
        self.medium.add(&other.medium);
        for (sum, ns) in self.phase_ns.iter_mut().zip(other.phase_ns) {
            *sum += ns;
        }
        self.total_ns += other.total_ns;
    }
}

/// Bytes by structure, as NV Figure 8.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct MemoryUse {
    /// DRAM: hash and ordered indexes.
    pub index: u64,
    /// DRAM: row entries.
    pub row_entries: u64,
    /// DRAM: transient pool, at its largest.
    pub transient_pool: u64,
    /// DRAM: cached versions.
    pub cache: u64,
    /// Medium: segments of rows and their free lists.
    pub persistent_rows: u64,
    /// Medium: segments of values and their free lists.
    pub persistent_values: u64,
    /// Medium: log space.
    pub input_log: u64,
}

/// What opening a store took, in nanoseconds of the configured clock.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Whether the store was created just now.
    pub created: bool,
    /// Epoch of the checkpoint that recovery started from.
    pub checkpoint_epoch: u64,
    /// Epoch that the store is at now.
    pub epoch: u64,
    /// Rows found by the scan.
    pub rows: u64,
    /// Epochs replayed.
    pub epochs_replayed: u64,
    /// Calls replayed.
    pub calls_replayed: u64,
    /// Opening the device's store and reading the log.
    pub load_log_ns: u64,
    /// Visiting all rows (state hash included).
    pub scan_ns: u64,
    /// Building the indexes.
    pub rebuild_ns: u64,
    /// Running the sealed epochs again.
    pub replay_ns: u64,
}
