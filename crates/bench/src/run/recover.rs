//! `recover`: opens a store that `bench` made, which replays what its log holds, and says how long
//! each part took and what it read.

use engine::{EngineConfig, RecoveryReport};
use pmem::{Counters, DeviceSpec};
use serde::Serialize;

use super::open::{options, settle};
use crate::clock::now_ns;
use crate::setup::{Limits, Maker, stored_parameters};
use crate::{Job, Result};

/// What a recovery did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecoverSummary {
    /// Epoch that the store is at now.
    pub epoch: u64,
    /// Epoch of the checkpoint that recovery started from.
    pub checkpoint_epoch: u64,
    /// Digest of all tables.
    pub state_digest: String,
    /// The workload that the store was made for.
    pub workload: &'static str,
    /// What the scan said of the state hash: `verified`, or, where the store did not know its own,
    /// `computed`; `kept` where no row was visited, because the indexes were kept.
    pub recovered_hash: &'static str,
    /// Live rows.
    pub rows: u64,
    /// Epochs replayed.
    pub epochs_replayed: u64,
    /// Those of them whose state was compared with what they had come to before.
    pub epochs_verified: u64,
    /// Calls replayed.
    pub calls_replayed: u64,
    /// Calls that were left out: epoch, position and reason.
    pub skipped: Vec<String>,
    /// Calls that wait for the next epoch.
    pub deferred: u64,
    /// Worker threads.
    pub workers: usize,
    /// Opening the device (on `file`: reading the image into memory).
    pub open_device_ms: f64,
    /// Reading the superblock and the log.
    pub load_log_ms: f64,
    /// Visiting all rows.
    pub scan_ms: f64,
    /// Building the indexes.
    pub rebuild_ms: f64,
    /// Running the committed epochs again.
    pub replay_ms: f64,
    /// Closing: the checkpoint of the recovered epoch, made durable.
    pub close_ms: f64,
    /// Everything together, without the close.
    pub total_ms: f64,
    /// What loading read of the image: superblocks, catalog, pools, segment directory. Reads of the
    /// log are not counted, but cost time where reads do.
    pub load_log: ImageReads,
    /// What the scan read: the header of each row, and its value for the state hash.
    pub scan: ImageReads,
    /// What building the indexes read: the key of each row.
    pub rebuild: ImageReads,
    /// What the replayed epochs counted: all their reads where these cost something, else the
    /// values that calls read.
    pub replay: ImageReads,
    /// All of them.
    pub total: ImageReads,
}

/// Reads of the image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ImageReads {
    /// Cache lines of 64 bytes.
    pub lines_read: u64,
    /// Blocks of 256 bytes.
    pub blocks_read: u64,
}

impl From<&Counters> for ImageReads {
    fn from(device: &Counters) -> Self {
        Self { lines_read: device.lines_read, blocks_read: device.blocks_read }
    }
}

impl RecoverSummary {
    /// The parts by name, with milliseconds and what they read, as far as that is counted.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, f64, Option<ImageReads>); 7] {
        [
            ("open device", self.open_device_ms, None),
            ("load log", self.load_log_ms, Some(self.load_log)),
            ("scan", self.scan_ms, Some(self.scan)),
            ("rebuild", self.rebuild_ms, Some(self.rebuild)),
            ("replay", self.replay_ms, Some(self.replay)),
            ("total", self.total_ms, Some(self.total)),
            ("close (checkpoint)", self.close_ms, None),
        ]
    }
}

/// What is known when a store is open again, besides what the recovery reports.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// Digest of all tables.
    pub state_digest: String,
    /// Live rows.
    pub rows: u64,
    /// Calls that wait for the next epoch.
    pub deferred: u64,
    /// Worker threads.
    pub workers: usize,
    /// Times in nanoseconds: opening the device, everything without the close, the close.
    pub open_device_ns: u64,
    /// See `open_device_ns`.
    pub total_ns: u64,
    /// See `open_device_ns`.
    pub close_ns: u64,
}

impl RecoverSummary {
    /// What a recovery of a job's store did.
    #[must_use]
    pub fn new(job: &Job, found: &RecoveryReport, recovered: Recovered) -> Self {
        let mut all = Counters::default();
        let parts = [&found.load_log, &found.scan, &found.rebuild, &found.replay];
        parts.into_iter().for_each(|part| all.add(part));
        let Recovered { state_digest, rows, deferred, workers, .. } = recovered;
        Self {
            epoch: found.epoch.0,
            checkpoint_epoch: found.checkpoint_epoch.0,
            state_digest,
            workload: job.name(),
            recovered_hash: found.hash.name(),
            rows,
            epochs_replayed: found.epochs_replayed,
            epochs_verified: found.epochs_verified,
            calls_replayed: found.calls_replayed,
            skipped: found
                .skipped
                .iter()
                .map(|v| format!("call {} of epoch {}: {}", v.position, v.epoch, v.reason))
                .collect(),
            deferred,
            workers,
            open_device_ms: ms(recovered.open_device_ns),
            load_log_ms: ms(found.load_log_ns),
            scan_ms: ms(found.scan_ns),
            rebuild_ms: ms(found.rebuild_ns),
            replay_ms: ms(found.replay_ns),
            close_ms: ms(recovered.close_ns),
            total_ms: ms(recovered.total_ns),
            load_log: (&found.load_log).into(),
            scan: (&found.scan).into(),
            rebuild: (&found.rebuild).into(),
            replay: (&found.replay).into(),
            total: (&all).into(),
        }
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Recovers a store and closes it again. Calls that the last process left to the next epoch run in
/// one.
///
/// # Errors
/// `Store` if it is not one that the library made for `bench`; the library's.
pub fn recover(spec: &DeviceSpec, workers: usize) -> Result<RecoverSummary> {
    let job = stored_parameters(spec, Maker::Library)?.job()?;
    let limits = Limits::existing(spec);
    let mut config = EngineConfig { workers, clock: now_ns, ..EngineConfig::for_device(spec) };
    config.store.segment_bytes = job.parameters().segment_bytes;
    let (options, _) = options(&job)?;
    let options = options
        .engine(config)
        .data_bytes_max(limits.image_bytes)
        .log_bytes_max(limits.log_bytes)
        .create(false);
    let started = now_ns();
    let database = options.open_device(spec.clone())?;
    let finished = now_ns();
    settle(&database)?;
    let found = database.recovery().clone();
    let stats = database.stats();
    let closing = now_ns();
    database.close()?;
    let of_parts = found.load_log_ns + found.scan_ns + found.rebuild_ns + found.replay_ns;
    let recovered = Recovered {
        state_digest: format!("{:032x}", stats.state_hash),
        rows: stats.rows,
        deferred: stats.deferred_calls as u64,
        workers,
        open_device_ns: (finished - started).saturating_sub(of_parts),
        total_ns: finished - started,
        close_ns: now_ns() - closing,
    };
    let epoch = stats.epoch;
    Ok(RecoverSummary { epoch, ..RecoverSummary::new(&job, &found, recovered) })
}
