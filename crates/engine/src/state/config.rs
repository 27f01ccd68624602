//! Options of an engine, with their defaults and limits.

use std::sync::Arc;

use pmem::{DeviceSpec, Profile};
use storage::{ChangeLog, StoreOptions};

use crate::design::variants::Lab;
use crate::error::{EngineError, Result};
use crate::state::running::RunningCalls;
use crate::state::watch::Watch;
use crate::worker_id::WORKERS_MAX;

/// More is no machine's memory.
const CACHE_BYTES_MAX: u64 = 1 << 42;

/// Options that may change at every open.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Worker threads, 1 to 64. The thread that calls [`crate::Engine::run_epoch`] is the first of
    /// them.
    pub workers: usize,
    /// Bytes of DRAM for cached versions, over all workers; 0 switches the cache off. On devices
    /// whose reads cost what DRAM costs the cache only copies, so 0 is the default; see
    /// [`EngineConfig::for_device`].
    pub cache_bytes: u64,
    /// Epochs between two checkpoints, 1 to 1,000,000. On memory devices 1 is the paper's; on
    /// devices that snapshot, the image is saved that often while every epoch ends consistent.
    /// Default 1; see [`EngineConfig::for_device`].
    pub checkpoint_every: u64,
    /// On devices that snapshot, the image is not saved either before the log since the last time
    /// has so many bytes, and a quarter of those of the pages that changed: a snapshot writes at
    /// most four times what was logged. 0 (the default): epochs alone decide.
    pub checkpoint_log_bytes: u64,
    /// Split-on-demand (CA 3.4): rows with at least so many versions in an epoch are contended, and
    /// the pieces that update them ([`crate::WriteSet::update_piece`]) run apart from their calls.
    /// 0 (the default): pieces always run with their calls.
    pub split_threshold: u32,
    /// Bytes of DRAM for what was overwritten and a snapshot still sees, over all snapshots. Beyond
    /// half of it the oldest end until there is but one. Default 512 MiB.
    pub snapshot_bytes_max: u64,
    /// Whether the rows that calls contend for are found in each epoch
    /// ([`crate::EpochOutcome::contention`]). It changes no answer and no state. Default false.
    pub contention: bool,
    /// Bytes of the stacks of the workers' threads that are left for procedures, 64 KiB to 1 GiB.
    /// The first worker runs on the stack of the thread that calls [`crate::Engine::run_epoch`] or
    /// opens the store, which should have as much. Default 8 MiB.
    pub procedure_stack_bytes: usize,
    /// Bytes by which the image may grow in an epoch for values of which only the longest possible
    /// length is known, or a quarter of the image if that is more. An epoch that needs more is
    /// refused as if there was no space: calls of its serial part need what they write. Default: no
    /// limit.
    pub guessed_growth_max: u64,
    /// Whether an epoch of several calls is refused, as if there was no space, where the rows that
    /// they may write have more than a quarter of the pages that a limit of memory leaves for the
    /// image. Who sets it runs the calls in smaller epochs. Default false.
    pub refuses_large_epochs: bool,
    /// Tables whose rows are all read and checked by an open before it writes anything, where pages
    /// come when they are touched: a damaged one ends the process then. Default: none.
    pub read_at_open: Vec<String>,
    /// Where the changes of tables go that consumers follow also after the process has ended.
    /// Default: nowhere.
    pub change_log: Option<Arc<ChangeLog>>,
    /// Geometry, for a store that is created.
    pub store: StoreOptions,
    /// Monotonic nanoseconds, for the times in reports, and to notice that workers lose their time
    /// by waiting for each other. No answer depends on it, and the engine reads no other clock.
    pub clock: fn() -> u64,
    /// What is told where an epoch is; nothing by default. For tests.
    pub watch: Watch,
    /// Says to other threads which calls run, also while a store is opened.
    pub running: RunningCalls,
    /// For experiments.
    pub lab: Lab,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            workers: 1,
            cache_bytes: 0,
            checkpoint_every: 1,
            checkpoint_log_bytes: 0,
            split_threshold: 0,
            snapshot_bytes_max: 512 << 20,
            contention: false,
            procedure_stack_bytes: 8 << 20,
            guessed_growth_max: u64::MAX,
            refuses_large_epochs: false,
            read_at_open: Vec::new(),
            change_log: None,
            store: StoreOptions::default(),
            clock: || 0,
            watch: Watch::default(),
            running: RunningCalls::default(),
            lab: Lab::default(),
        }
    }
}

/// Cache on devices whose reads take longer than those of DRAM.
const CACHE_BYTES: u64 = 256 << 20;
/// An image snapshot writes whole pages and syncs three files, which costs more than the log of
/// many small epochs.
const SNAPSHOT_EVERY: u64 = 100;
/// Replaying so much log takes seconds at most, and pages that change all the time are written
/// seldom.
const SNAPSHOT_LOG_BYTES: u64 = 32 << 20;
/// How many times the bytes of the log an image snapshot writes at most.
pub(crate) const SNAPSHOT_AMPLIFICATION: u64 = 4;

/// While a snapshot is written, the next one waits for it only if there is so many times the log
/// that one is due after: calls go on meanwhile.
pub(crate) const LOGGED_WHILE_SAVING: u64 = 16;

impl EngineConfig {
    /// The defaults for a device: a cache where reading takes longer than from DRAM, which
    /// `emulated:none` does not; where it snapshots the image, 100 epochs and 32 MiB of log between
    /// two checkpoints.
    pub fn for_device(device: &DeviceSpec) -> Self {
        match device {
            DeviceSpec::Dram | DeviceSpec::Crash | DeviceSpec::Emulated(Profile::None) => {
                Self::default()
            }
            DeviceSpec::Emulated(_) | DeviceSpec::Dax(_) => {
                Self { cache_bytes: CACHE_BYTES, ..Self::default() }
            }
            DeviceSpec::File(_) => Self {
                checkpoint_every: SNAPSHOT_EVERY,
                checkpoint_log_bytes: SNAPSHOT_LOG_BYTES,
                ..Self::default()
            },
        }
    }

    /// The same with a checkpoint after so many epochs, if the caller says so.
    #[must_use]
    pub fn checkpoint_after(self, epochs: Option<u64>) -> Self {
        match epochs {
            None => self,
            Some(checkpoint_every) => Self { checkpoint_every, checkpoint_log_bytes: 0, ..self },
        }
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// `Limit` naming the option, its value and its range.
    pub fn validate(&self) -> Result<()> {
        let range = |name: &str, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(EngineError::Limit(format!("{name} is {value}, must be from {low} to {high}")))
        };
        range("workers", self.workers as u64, 1, WORKERS_MAX as u64)?;
        range("cache_bytes", self.cache_bytes, 0, CACHE_BYTES_MAX)?;
        let stack_bytes = self.procedure_stack_bytes as u64;
        range("procedure_stack_bytes", stack_bytes, 64 << 10, 1 << 30)?;
        range("cache_epochs", self.lab.cache_epochs, 0, 1_000_000)?;
        range("checkpoint_every", self.checkpoint_every, 1, 1_000_000)?;
        self.validate_design()
    }

    /// A design without a log has nothing but its checkpoints.
    fn validate_design(&self) -> Result<()> {
        let design = self.lab.design;
        if design.logs() {
            return Ok(());
        }
        let name = design.name();
        if self.checkpoint_every != 1 {
            return Err(EngineError::Limit(format!(
                "checkpoint_every is {}, must be 1 with design {name}, which has no log",
                self.checkpoint_every
            )));
        }
        if design.is_all_nvmm() && self.cache_bytes > 0 {
            return Err(EngineError::Limit(format!(
                "cache_bytes is {}, must be 0 with design {name}, which caches nothing",
                self.cache_bytes
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_only_where_reading_is_slow_and_few_image_snapshots() {
        for (device, cache_bytes, checkpoint_every) in [
            ("dram", 0, 1),
            ("crash", 0, 1),
            ("emulated:none", 0, 1),
            ("emulated:optane", 256 << 20, 1),
            ("emulated:optane-lines", 256 << 20, 1),
            ("emulated:eadr", 256 << 20, 1),
            ("emulated:cxl", 256 << 20, 1),
            ("emulated:low", 256 << 20, 1),
            ("emulated:high", 256 << 20, 1),
            ("dax:/pm/db", 256 << 20, 1),
            ("file:db", 0, 100),
        ] {
            let config = EngineConfig::for_device(&device.parse().unwrap());
            let found = (config.cache_bytes, config.checkpoint_every);
            assert_eq!(found, (cache_bytes, checkpoint_every), "{device}");
        }
    }
}
