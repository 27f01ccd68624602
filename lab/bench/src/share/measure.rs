//! Which share of the machine's limit a run reached, and what each phase waited for most.
//!
//! The least time of a phase is what its memory work would take alone: the lines that it has to
//! fetch, all of them in flight as well as the machine can, and the lines, log bytes and fences
//! that it wrote, divided by the threads. No instruction, no wait of one worker for another and no
//! miss that is not overlapped is in it. What cannot be said is left out, so it is rather too
//! small: what declarations and bodies keep to themselves, what is read beside declared keys in
//! append, version arrays, image snapshots of the image. It can still be larger than the time that
//! was measured, where the processor's caches held the lines: they are charged as if they never
//! did.

use std::path::Path;

use bench::Result;
use bench::report::ratio;
use engine::{EpochStats, Phase, PhaseStats};
use pmem::DeviceSpec;
use serde::Serialize;

use crate::roofline::{Costs, measure_costs};
use crate::setup::Settings;

/// When to measure the machine after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measuring {
    /// After runs that took much longer than the measurement does.
    AfterLongRuns,
    /// After every run.
    Always,
    /// Not at all.
    Never,
}

/// Seconds in epochs from which on a run counts as long.
const LONG_SECONDS: f64 = 5.0;

impl Measuring {
    /// Whether to measure after a run of so many seconds.
    pub(crate) fn is_due(self, seconds: f64) -> bool {
        match self {
            Self::AfterLongRuns => seconds >= LONG_SECONDS,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// What the limit of a run is, and how near it came.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// What this machine's memory costs.
    pub costs: Costs,
    /// Per cent of the time in epochs that its memory work would take alone.
    pub percent: f64,
    /// Transactions per second if there were nothing else.
    pub limit_txn_per_s: f64,
    /// Each phase, in order.
    pub phases: Vec<PhaseShare>,
}

/// One phase, over all epochs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseShare {
    /// Its name.
    pub phase: &'static str,
    /// Time that it took.
    pub measured_ns: f64,
    /// Time that its memory work takes at least.
    pub least_ns: f64,
    /// `least_ns` in per cent of `measured_ns`.
    pub percent: f64,
    /// Per cent of the workers' time in it that they waited for the slowest.
    pub waiting_percent: f64,
    /// What takes the largest part of its time; empty if it took none.
    pub bound_by: &'static str,
    /// What `least_ns` consists of.
    pub parts: Parts,
}

/// The memory work of a phase by kind, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Parts {
    /// Lines fetched, many of them in flight.
    pub reads_ns: f64,
    /// Lines written.
    pub stores_ns: f64,
    /// The log: its bytes as a stream, or syncs of its file.
    pub log_ns: f64,
    /// Fences.
    pub fences_ns: f64,
    /// Time that an emulated device added.
    pub added_ns: f64,
}

impl Parts {
    fn by_name(self) -> [(&'static str, f64); 5] {
        [
            ("reads", self.reads_ns),
            ("stores", self.stores_ns),
            ("log", self.log_ns),
            ("fences", self.fences_ns),
            ("the emulated device", self.added_ns),
        ]
    }

    fn sum(self) -> f64 {
        self.by_name().iter().map(|(_, ns)| ns).sum()
    }

    /// The largest part.
    fn largest(self) -> &'static str {
        let parts = self.by_name();
        parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name)
    }
}

/// How a device writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteKind {
    /// With flushes, fences and non-temporal stores.
    Persistent,
    /// With ordinary stores; a log in memory, or in a file that is synced.
    Memory { synced: bool },
}

impl WriteKind {
    fn of(spec: &DeviceSpec) -> Self {
        match spec {
            DeviceSpec::Emulated(_) | DeviceSpec::Dax(_) => Self::Persistent,
            DeviceSpec::File(_) => Self::Memory { synced: true },
            DeviceSpec::Dram | DeviceSpec::Crash => Self::Memory { synced: false },
        }
    }
}

/// Measures the machine and holds a run against it.
///
/// # Errors
/// `Usage` if there is not enough memory; the disk's.
pub(crate) fn measure(
    stats: &EpochStats,
    epochs: u64,
    settings: &Settings,
    spec: &DeviceSpec,
) -> Result<Share> {
    let bar = settings.progress.bar("limits", 1, "measurement of memory");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let log = match spec {
        DeviceSpec::File(directory) => {
            Some((directory.as_path() as &Path, stats.device.log_bytes / epochs.max(1)))
        }
        _ => None,
    };
    let costs = measure_costs(settings.engine.workers.min(cores), log)?;
    drop(bar);
    Ok(share(stats, epochs, WriteKind::of(spec), costs))
}

fn share(stats: &EpochStats, epochs: u64, device: WriteKind, costs: Costs) -> Share {
    let phases: Vec<PhaseShare> = Phase::ALL
        .into_iter()
        .zip(&stats.phases)
        .zip(stats.phase_ns)
        .map(|((phase, did), ns)| {
            let mut parts = written(did, device, &costs);
            parts.reads_ns = fetched(phase, stats).ns(&costs) / costs.threads as f64;
            if phase == Phase::LogInputs && device == (WriteKind::Memory { synced: true }) {
                // One sync for each epoch, by one thread.
                parts.log_ns += costs.log_sync_ns * epochs as f64;
            }
            phase_share(phase, did, ns as f64, parts)
        })
        .collect();
    let least_ns: f64 = phases.iter().map(|phase| phase.least_ns).sum();
    let work = &stats.work;
    let answered = (work.committed + work.aborted + work.failed) as f64;
    Share {
        costs,
        percent: percent(least_ns, stats.total_ns as f64),
        limit_txn_per_s: ratio(answered * 1e9, least_ns),
        phases,
    }
}

fn phase_share(phase: Phase, did: &PhaseStats, measured_ns: f64, parts: Parts) -> PhaseShare {
    let least_ns = parts.sum();
    let waiting_percent = percent(did.waited_ns as f64, (did.waited_ns + did.busy_ns) as f64);
    let waiting_ns = measured_ns * waiting_percent / 100.0;
    let own_ns = (measured_ns - least_ns - waiting_ns).max(0.0);
    let bound_by = if measured_ns == 0.0 {
        ""
    } else if least_ns >= own_ns && least_ns >= waiting_ns {
        parts.largest()
    } else if waiting_ns > own_ns {
        "waiting for the slowest"
    } else {
        "the program"
    };
    PhaseShare {
        phase: phase.name(),
        measured_ns,
        least_ns,
        percent: percent(least_ns, measured_ns),
        waiting_percent,
        bound_by,
        parts,
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    100.0 * ratio(part, whole)
}

/// Lines that are fetched from memory: random ones, and those that follow them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Fetched {
    random: u64,
    next: u64,
}

impl Fetched {
    fn ns(self, costs: &Costs) -> f64 {
        self.random as f64 * costs.read_line_ns + self.next as f64 * costs.read_next_line_ns
    }
}

/// What a phase has to fetch. Every row that the epoch writes counts once in a phase, however often
/// it is written; the others once for each declaration or read.
fn fetched(phase: Phase, stats: &EpochStats) -> Fetched {
    let work = &stats.work;
    let written = work.single_write_rows + work.version_arrays;
    // New rows have no version yet, and their entries were just made.
    let existed = written.saturating_sub(work.rows_inserted);
    let only_read = work.declared_keys.saturating_sub(work.appends);
    let headers = work.persistent_versions.saturating_sub(work.rows_inserted);
    let random = match phase {
        // The place of a new key in the index.
        Phase::Insert => work.rows_inserted,
        // Entry and header of a row.
        Phase::MajorGc => 2 * work.major_collections,
        Phase::EvictCache => work.cache_evictions,
        // Index and entry.
        Phase::Append => 2 * (existed + only_read),
        // Entry and value of what is read, the header of what is written.
        Phase::Execute => {
            let values = work.cache_misses + work.cache_hits;
            (existed + only_read).max(values) + values + headers
        }
        // Index and entry.
        Phase::Remove => 2 * work.rows_removed,
        Phase::Serial | Phase::Declare | Phase::LogInputs | Phase::Checkpoint => 0,
    };
    let lines = stats.phases[phase as usize].device.lines_read;
    // Where reads cost something headers are among the lines.
    let headers = if stats.device.added_ns > 0 { headers } else { 0 };
    let next = match phase {
        Phase::Execute => lines.saturating_sub(work.cache_misses + headers),
        _ => 0,
    };
    Fetched { random, next }
}

/// What the stores of a phase cost at least.
fn written(did: &PhaseStats, device: WriteKind, costs: &Costs) -> Parts {
    let count = &did.device;
    let lines_nt = count.lines_written.saturating_sub(count.flushes);
    // A flush is of one line or few, so the other blocks are those of non-temporal stores.
    let begun = count.blocks_written.saturating_sub(count.flushes);
    let begun = begun.clamp(lines_nt.div_ceil(4), lines_nt) as f64;
    let next = lines_nt as f64 - begun;
    let (stores_ns, fences_ns) = match device {
        WriteKind::Persistent => (
            begun * costs.store_nt_line_ns
                + next * costs.store_nt_next_line_ns
                + count.flushes as f64 * costs.flush_line_ns,
            (count.fences + count.store_orders) as f64 * costs.fence_ns,
        ),
        // Next lines pass for a stream.
        WriteKind::Memory { .. } => (
            (begun + count.flushes as f64) * costs.store_line_ns
                + next * 64.0 * costs.stream_nt_byte_ns,
            0.0,
        ),
    };
    let log_ns = match device {
        WriteKind::Memory { synced: true } => 0.0,
        _ => count.log_bytes as f64 * costs.stream_nt_byte_ns,
    };
    let threads = costs.threads as f64;
    Parts {
        reads_ns: 0.0,
        stores_ns: stores_ns / threads,
        log_ns: log_ns / threads,
        fences_ns: fences_ns / threads,
        added_ns: count.added_ns as f64 / threads,
    }
}

#[cfg(test)]
mod tests {
    use pmem::Counters;

    use super::*;

    fn costs() -> Costs {
        Costs {
            threads: 2,
            read_line_ns: 20.0,
            read_next_line_ns: 4.0,
            store_line_ns: 10.0,
            flush_line_ns: 50.0,
            store_nt_line_ns: 30.0,
            store_nt_next_line_ns: 6.0,
            stream_nt_byte_ns: 0.1,
            fence_ns: 100.0,
            log_sync_ns: 1e6,
            ..Costs::default()
        }
    }

    /// 1,000 rows of 16 lines, each read and written once, and 10 new ones.
    fn stats() -> EpochStats {
        let mut stats = EpochStats::default();
        let work = &mut stats.work;
        (work.declared_keys, work.appends, work.single_write_rows) = (1110, 1010, 1010);
        (work.rows_inserted, work.persistent_versions, work.cache_misses) = (10, 1010, 1100);
        work.committed = 100;
        let execute = &mut stats.phases[Phase::Execute as usize];
        execute.device = Counters {
            lines_read: 1100 * 16,
            lines_written: 2 * 1010,
            blocks_written: 2 * 1010,
            flushes: 1010,
            store_orders: 100,
            ..Counters::default()
        };
        stats.phases[Phase::LogInputs as usize].device.log_bytes = 10_000;
        stats.phase_ns = [1_000_000; Phase::ALL.len()];
        stats.total_ns = 9_000_000;
        stats
    }

    #[test]
    fn lines_are_counted_where_they_are_fetched() {
        let stats = stats();
        let random = |phase| fetched(phase, &stats).random;
        assert_eq!(random(Phase::Insert), 10);
        assert_eq!(random(Phase::Append), 2 * (1000 + 100));
        assert_eq!(random(Phase::Execute), 1100 + 1100 + 1000);
        assert_eq!(fetched(Phase::Execute, &stats).next, 1100 * 15);
        assert_eq!(random(Phase::Checkpoint), 0);
    }

    #[test]
    fn each_device_is_charged_for_its_own_way_to_write() {
        let near = |left: f64, right: f64| assert!((left - right).abs() < 1e-6, "{left} {right}");
        let of = |phase: Phase, device| written(&stats().phases[phase as usize], device, &costs());
        let persistent = of(Phase::Execute, WriteKind::Persistent);
        near(persistent.stores_ns, 1010.0 * (30.0 + 50.0) / 2.0);
        near(persistent.fences_ns, 100.0 * 100.0 / 2.0);
        near(of(Phase::LogInputs, WriteKind::Persistent).log_ns, 10_000.0 * 0.1 / 2.0);
        let memory = of(Phase::Execute, WriteKind::Memory { synced: false });
        near(memory.stores_ns, 2.0 * 1010.0 * 10.0 / 2.0);
        near(memory.fences_ns, 0.0);
        let synced = share(&stats(), 3, WriteKind::Memory { synced: true }, costs());
        near(synced.phases[Phase::LogInputs as usize].parts.log_ns, 3e6);
    }

    #[test]
    fn a_phase_is_bound_by_what_takes_most_of_it() {
        let bound = |reads_ns, waited_ns| {
            let did = PhaseStats { waited_ns, busy_ns: 200 - waited_ns, ..PhaseStats::default() };
            let parts = Parts { reads_ns, fences_ns: 1.0, ..Parts::default() };
            phase_share(Phase::Append, &did, 100.0, parts).bound_by
        };
        assert_eq!(bound(60.0, 20), "reads");
        assert_eq!(bound(20.0, 20), "the program");
        assert_eq!(bound(20.0, 140), "waiting for the slowest");
        let none = phase_share(Phase::Remove, &PhaseStats::default(), 0.0, Parts::default());
        assert_eq!((none.bound_by, none.percent), ("", 0.0));
    }

    #[test]
    fn the_whole_is_the_sum_of_the_phases() {
        let whole = share(&stats(), 1, WriteKind::Persistent, costs());
        let least: f64 = whole.phases.iter().map(|phase| phase.least_ns).sum();
        assert!((whole.percent - least / 9e6 * 100.0).abs() < 1e-9);
        assert!((whole.limit_txn_per_s - 100.0 * 1e9 / least).abs() < 1e-6);
    }

    #[test]
    fn short_runs_are_not_followed_by_a_measurement_unless_asked_for() {
        assert!(!Measuring::AfterLongRuns.is_due(4.9) && Measuring::AfterLongRuns.is_due(5.0));
        assert!(Measuring::Always.is_due(0.0) && !Measuring::Never.is_due(1e9));
    }
}
