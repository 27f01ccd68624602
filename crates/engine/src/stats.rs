//! What an epoch did, counted by each worker and added up at its end.

mod text;

use pmem::{Counters, PageUse};
use storage::EpochNumber;

/// The phases of an epoch, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Phase {
    /// The calls of the serial part run.
    Serial,
    /// Sequences are allocated, write sets are declared, space is reserved.
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
    pub const ALL: [Phase; 10] = [
        Phase::Serial,
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
            Phase::Serial => "serial",
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
        /// Calls that were deferred to the next epoch.
        deferred,
        /// Calls that ran in the serial part.
        serial,
        /// Rows created.
        rows_inserted,
        /// Rows removed, those never born included.
        rows_removed,
        /// Versions that died with the epoch, in DRAM.
        transient_versions,
        /// Transient versions whose memory was reclaimed within the epoch, because no call could
        /// see them any more.
        versions_reused,
        /// Versions written to the device: one for each row written in the epoch.
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
        /// Reads served by the device.
        cache_misses,
        /// Cached versions evicted.
        cache_evictions,
        /// Reads that had to wait for a pending version, or for a call that may change an index.
        waits,
        /// Workers that took the rest of an epoch's calls, because waiting for versions of others
        /// had cost all of them more than their work together was worth.
        rests_taken,
        /// Row locks that were acquired when another worker held them; none with batch append.
        contended_locks,
        /// Keys that calls declared, those that they only read included.
        declared_keys,
        /// Versions appended. With a lock for each row: each but the first one of a new row took it
        /// once.
        appends,
        /// Appends to a row to which another worker had appended last in the epoch: its entry, and
        /// its version array if it has one, came from another core. With batch append: rows whose
        /// array was made by another worker than had claimed them.
        locks_handed_over,
        /// Batch append: appends that waited in a buffer, because their row was claimed already.
        batched_appends,
        /// Of these, those that found the row claimed by another worker. The first such look at a
        /// row brings a copy of its entry from another core; nothing changes it meanwhile.
        claims_of_others,
        /// Reads of transient versions that another worker had made.
        versions_handed_over,
        /// Pieces of calls that ran, or were given up with their calls.
        pieces,
        /// Those of them that updated contended rows apart from their calls (CA 3.4).
        pieces_split,
        /// Reads of versions on the device that were written in the same epoch, by this worker or
        /// another one.
        final_versions_read,
    }
}

/// What all workers did in one phase.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PhaseStats {
    /// What went to and from the device.
    pub device: Counters,
    /// Nanoseconds in which workers waited for all others, added up; zero without a clock.
    pub waited_ns: u64,
    /// Nanoseconds in which they did not, added up.
    pub busy_ns: u64,
    /// Those of the busiest worker.
    pub busiest_ns: u64,
}

impl PhaseStats {
    /// Adds another epoch's.
    fn add(&mut self, other: &Self) {
        self.device.add(&other.device);
        self.waited_ns += other.waited_ns;
        self.busy_ns += other.busy_ns;
        self.busiest_ns += other.busiest_ns;
    }
}

/// What one worker measures at the end of each phase.
#[derive(Debug, Default)]
pub(crate) struct Laps {
    /// In the order of [`Phase::ALL`].
    phases: [Lap; Phase::ALL.len()],
    /// When the phase began that is running.
    began_ns: u64,
}

#[derive(Debug, Default)]
struct Lap {
    device: Counters,
    elapsed_ns: u64,
    waited_ns: u64,
}

impl Laps {
    /// Nanoseconds of each phase.
    pub(crate) fn phase_ns(&self) -> [u64; Phase::ALL.len()] {
        self.phases.each_ref().map(|lap| lap.elapsed_ns)
    }

    /// An epoch begins.
    pub(crate) fn start(&mut self, now_ns: u64) {
        *self = Self { began_ns: now_ns, ..Self::default() };
    }

    /// A phase ends in which the worker waited so long for others.
    pub(crate) fn lap(&mut self, phase: Phase, now_ns: u64, waited_ns: u64, device: &Counters) {
        let lap = &mut self.phases[phase as usize];
        lap.elapsed_ns += now_ns.saturating_sub(self.began_ns);
        lap.waited_ns += waited_ns;
        lap.device.add(device);
        self.began_ns = now_ns;
    }
}

/// What one epoch did.
#[derive(Debug, Default, Clone)]
pub struct EpochStats {
    /// Counts, over all workers.
    pub work: WorkCounts,
    /// What went to and from the device, over all workers.
    pub device: Counters,
    /// Nanoseconds of each phase, as the first worker saw it; zero without a clock. In the order of
    /// [`Phase::ALL`].
    pub phase_ns: [u64; Phase::ALL.len()],
    /// What all workers did in each phase. In the order of [`Phase::ALL`].
    pub phases: [PhaseStats; Phase::ALL.len()],
    /// Workers that ran it: one if it was small, no more than
    /// [`Engine::limit_workers`](crate::Engine::limit_workers) allows.
    pub workers: usize,
    /// Calls that the worker ran that ran most of them.
    pub calls_most: u64,
    /// Versions that the worker appended that appended most of them.
    pub appends_most: u64,
    /// Pieces split off that the worker ran that ran most of them.
    pub pieces_most: u64,
    /// Nanoseconds of the whole epoch.
    pub total_ns: u64,
}

impl EpochStats {
    /// Adds one worker's part of the epoch.
    pub(crate) fn add_worker(&mut self, work: &WorkCounts, laps: &Laps, calls: u64) {
        self.work.add(work);
        self.workers += 1;
        self.calls_most = self.calls_most.max(calls);
        self.appends_most = self.appends_most.max(work.appends);
        self.pieces_most = self.pieces_most.max(work.pieces_split);
        for (phase, lap) in self.phases.iter_mut().zip(&laps.phases) {
            let busy_ns = lap.elapsed_ns.saturating_sub(lap.waited_ns);
            phase.device.add(&lap.device);
            phase.waited_ns += lap.waited_ns;
            phase.busy_ns += busy_ns;
            phase.busiest_ns = phase.busiest_ns.max(busy_ns);
            self.device.add(&lap.device);
        }
    }

    /// Adds another epoch's.
    pub fn add(&mut self, other: &Self) {
        self.work.add(&other.work);
        self.device.add(&other.device);
        for (sum, ns) in self.phase_ns.iter_mut().zip(other.phase_ns) {
            *sum += ns;
        }
        for (sum, phase) in self.phases.iter_mut().zip(&other.phases) {
            sum.add(phase);
        }
        self.calls_most += other.calls_most;
        self.appends_most += other.appends_most;
        self.pieces_most += other.pieces_most;
        self.total_ns += other.total_ns;
    }
}

/// Bytes by structure, as NV Figure 8.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct MemoryUse {
    /// DRAM: hash and ordered indexes. With a limit of memory, what of them is not in `pages`.
    pub index: u64,
    /// DRAM: row entries.
    pub row_entries: u64,
    /// DRAM: transient pool, at its largest.
    pub transient_pool: u64,
    /// DRAM: cached versions, and small rows that readers keep, with a limit of memory.
    pub cache: u64,
    /// DRAM: values and index entries that were overwritten, kept for snapshots that live, or have
    /// ended and are not freed yet.
    pub snapshots: u64,
    /// What of the image is in memory, where that may be larger; `None` where all of it is.
    pub pages: Option<PageUse>,
    /// Device: segments of rows and their free lists.
    pub persistent_rows: u64,
    /// Device: segments of values and their free lists.
    pub persistent_values: u64,
    /// Device: log space.
    pub input_log: u64,
}

/// What recovery could say of the state hash (O-48).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum HashCheck {
    /// The checkpoint's was compared with that of the rows: they are equal.
    #[default]
    Verified,
    /// The checkpoint had none. The one that is maintained from now on was computed from the rows
    /// as they were found: damage to them would not have been noticed.
    Computed,
    /// The checkpoint had none, and none was computed, because none is maintained.
    Unknown,
    /// The checkpoint's goes on: no row was visited, because the indexes were kept. Pages are
    /// checked when they are read, each by a checksum.
    Kept,
}

impl HashCheck {
    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Kept => "kept",
            Self::Computed => "computed",
            Self::Unknown => "unknown",
        }
    }
}

/// A version of a procedure that a program keeps for logs of before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptProcedure {
    /// The procedure's name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// Whether the log that was replayed was written with it.
    pub was_needed: bool,
}

/// What opening a store took, in nanoseconds of the configured clock. Its text is for operators.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Whether the store was created just now.
    pub created: bool,
    /// Epoch of the checkpoint that recovery started from.
    pub checkpoint_epoch: EpochNumber,
    /// Epoch that the store is at now.
    pub epoch: EpochNumber,
    /// Largest timestamp of an epoch that the log knows: the epochs that follow should have no
    /// smaller one.
    pub timestamp_ns: u64,
    /// Rows of the checkpoint.
    pub rows: u64,
    /// Whether the indexes were those that the checkpoint has kept. Else all rows were visited to
    /// make them.
    pub indexes_kept: bool,
    /// Whether the rows were held against a state hash.
    pub hash: HashCheck,
    /// Epochs replayed.
    pub epochs_replayed: u64,
    /// Those of them whose state hash after the replay is known to be that of the run before.
    pub epochs_verified: u64,
    /// Calls replayed.
    pub calls_replayed: u64,
    /// Procedures that the program keeps for logs of before (O-107). The store needs none of them
    /// any longer: its log has been replayed, and goes on with the procedures of now.
    pub kept_procedures: Vec<KeptProcedure>,
    /// Whether the disk had no room for the file `replay`, without which a call that ends the
    /// process in a replay is not found.
    pub deaths_unnoted: bool,
    /// Calls that were left out, because it was decided that they count as failed.
    pub skipped: Vec<storage::input_log::Verdict>,
    /// Opening the device's store and reading the log.
    pub load_log_ns: u64,
    /// Visiting all rows (state hash included).
    pub scan_ns: u64,
    /// Building the indexes.
    pub rebuild_ns: u64,
    /// Running the committed epochs again.
    pub replay_ns: u64,
    /// What opening the store read of the image. Reads of the log space are counted nowhere.
    pub load_log: Counters,
    /// What the scan read.
    pub scan: Counters,
    /// What building the indexes read.
    pub rebuild: Counters,
    /// What the replayed epochs counted.
    pub replay: Counters,
}

impl RecoveryReport {
    /// Adds what a second open found, behind a replay for a program of before.
    pub(crate) fn add_second(&mut self, second: &Self) {
        self.epoch = second.epoch;
        self.timestamp_ns = second.timestamp_ns;
        self.rows = second.rows;
        self.deaths_unnoted |= second.deaths_unnoted;
        self.load_log_ns += second.load_log_ns;
        self.scan_ns += second.scan_ns;
        self.rebuild_ns += second.rebuild_ns;
        self.replay_ns += second.replay_ns;
        self.load_log.add(&second.load_log);
        self.scan.add(&second.scan);
        self.rebuild.add(&second.rebuild);
        self.replay.add(&second.replay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_and_epochs_add_up_and_the_busiest_stand_out() {
        let epoch = |waited: [u64; 2], calls: [u64; 2]| {
            let mut stats = EpochStats::default();
            for worker in 0..2 {
                let mut laps = Laps::default();
                laps.start(1000);
                let device = Counters { fences: 3, ..Counters::default() };
                laps.lap(Phase::Append, 1010, 0, &device);
                laps.lap(Phase::Execute, 1110, waited[worker], &device);
                let work = WorkCounts { appends: 10 * calls[worker], ..WorkCounts::default() };
                stats.add_worker(&work, &laps, calls[worker]);
                assert_eq!(laps.phase_ns()[Phase::Execute as usize], 100);
            }
            stats
        };
        let mut sum = epoch([0, 60], [7, 3]);
        sum.add(&epoch([20, 0], [4, 6]));
        let execute = &sum.phases[Phase::Execute as usize];
        assert_eq!((execute.waited_ns, execute.busy_ns, execute.busiest_ns), (80, 320, 200));
        assert_eq!((execute.device.fences, sum.device.fences), (12, 24));
        assert_eq!(sum.phases[Phase::Append as usize].busy_ns, 40);
        assert_eq!((sum.calls_most, sum.appends_most, sum.work.appends), (13, 130, 200));
    }
}
