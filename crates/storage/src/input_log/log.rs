//! The input log of an open store: who may write where, and in which order.

use std::sync::Arc;

use pmem::sync::{Mutex, MutexGuard};

use pmem::{AnyDevice, Device, DeviceError};

use super::archive::{Archive, ArchiveStatus, ArchiveWatch, Job};
use super::error::LogError;
use super::format::Kind;
use super::geometry::{Demand, Geometry};
use super::holdings::Holding;
use super::index::Index;
use super::space::{Run, Space};
use super::summary::EpochSummary;
use super::verdict::Verdicts;
use crate::ids::EpochNumber;

/// The log grows by at least this much at a time, if its limit allows it.
const GROW_BYTES_MIN: u64 = 4 << 20;

/// Buffers for commit records and records of deferred calls, kept from epoch to epoch.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) segment: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) segments: Vec<u32>,
}

impl Scratch {
    pub(super) fn new(segment_bytes: u64) -> Self {
        let segment = vec![0; segment_bytes as usize];
        Self { segment, payload: Vec::new(), segments: Vec::new() }
    }
}

/// The input log of an open store. See the module's documentation.
pub struct InputLog {
    pub(super) device: Arc<AnyDevice>,
    /// Where released epochs go, if they are kept.
    pub(super) archive: Option<Archive>,
    pub(super) geometry: Geometry,
    pub(super) space: Mutex<Space>,
    pub(super) index: Mutex<Arc<Index>>,
    pub(super) scratch: Mutex<Scratch>,
    /// Attempt and bytes of the program that the next epochs are logged under.
    pub(super) program: Mutex<Option<(u64, Vec<u8>)>>,
    pub(super) verdicts: Mutex<Verdicts>,
}

impl InputLog {
    /// Starts the log of an epoch and reserves the space for it, growing the log if necessary
    /// (O-43). No worker may `start` a stream of the epoch earlier, nor before the log of the epoch
    /// before is durable: recovery takes anything after an epoch that is not committed for damage.
    ///
    /// # Errors
    /// [`LogError::Full`] when the space cannot be had; nothing has changed then. The device's.
    ///
    /// # Panics
    /// If the epoch is committed or begun already.
    pub fn begin(&self, epoch: EpochNumber, demand: Demand) -> Result<(), LogError> {
        self.erase_leftovers()?;
        let mut space = self.space();
        assert!(
            epoch > space.committed,
            "epoch {epoch} is begun after {} was committed",
            space.committed
        );
        let begun = space.holdings.epochs().next_back().map(|last| last.epoch);
        assert!(begun < Some(epoch), "epoch {epoch} is begun once");
        space.forget_deferred_promises(epoch.previous().previous());
        let own = self.geometry.epoch_segments(&demand);
        let deferred_calls = self.geometry.deferred_segments(&demand);
        self.ensure(&mut space, Kind::Stream, epoch, own.saturating_add(deferred_calls))?;
        let total = u64::from(space.total());
        assert!(own <= total, "the log has the {own} segments of epoch {epoch}");
        assert!(deferred_calls <= total, "the log has the segments of its deferred calls");
        space.hold(Kind::Stream, epoch);
        space.promise(epoch, own as u32, deferred_calls as u32); // both at most all segments
        Ok(())
    }

    /// Gives up an epoch that was begun and not committed, for example because its inputs did not
    /// fit. No worker may append to it any more; the epoch can be begun again.
    ///
    /// # Panics
    /// If the epoch is not begun or is committed.
    pub fn abandon(&self, epoch: EpochNumber) {
        let mut space = self.space();
        let attempt = space.open_epoch(epoch).attempt;
        space.drop_holding(attempt);
    }

    /// Makes everything durable that was finished, committed or deferred so far; each of these
    /// fenced the port that it wrote with (O-22). Only after this may a final write of the
    /// committed epoch reach the device, or an answer leave (O-13).
    ///
    /// # Errors
    /// The device's, sticky (O-57): nothing may be answered any more.
    pub fn make_durable(&self) -> Result<(), LogError> {
        let committed = self.space().committed;
        self.device.log_sync()?;
        let mut space = self.space();
        space.durable = space.durable.max(committed);
        assert!(space.durable <= space.committed, "what is durable is committed");
        Ok(())
    }

    /// Whether the log of an epoch is durable, so that it will be executed whatever crashes.
    pub fn is_durable(&self, epoch: EpochNumber) -> bool {
        self.space().durable >= epoch
    }

    /// Frees the logs and records of deferred calls of all epochs up to `epoch`. To be called when
    /// a checkpoint of `epoch` or a later one is durable, not before: the space is written again at
    /// once (O-23).
    ///
    /// # Panics
    /// If one of the epochs is begun and not committed.
    pub fn release(&self, epoch: EpochNumber) {
        let job = |archived| self.archive_job(archived, epoch);
        let epoch = self.archive.as_ref().map_or(epoch, |archive| archive.keep_up(epoch, job));
        {
            let mut space = self.space();
            let is_newer = epoch > space.released;
            space.release(epoch);
            if is_newer {
                self.shrink_after_burst(&mut space);
            }
        }
        let mut index = self.index.lock().expect("no thread panicked with the index locked");
        Arc::make_mut(&mut index).release(epoch);
        let mut verdicts = self.verdicts.lock().expect("no panic while locked");
        verdicts.retain(|held, _| *held > epoch);
    }

    /// As [`InputLog::release`], and waits until what is to be archived is, or cannot be now.
    ///
    /// # Panics
    /// As [`InputLog::release`].
    pub fn release_archived(&self, epoch: EpochNumber) {
        if let Some(archive) = &self.archive {
            archive.wait();
            archive.try_again();
            self.release(epoch);
            archive.wait();
        }
        self.release(epoch);
    }

    /// Begins to archive all epochs up to one that has ended, of which the log stays: no checkpoint
    /// is needed. What failed before is tried again. Returns at once.
    ///
    /// An epoch that has not ended may still get a verdict, without which it must not be archived.
    pub fn archive_ended(&self, epoch: EpochNumber) {
        if let Some(archive) = &self.archive {
            archive.try_again();
            archive.keep_up(epoch, |archived| self.archive_job(archived, epoch));
        }
    }

    /// How the archive is, if there is one.
    pub fn archive_status(&self) -> Option<ArchiveStatus> {
        self.archive.as_ref().map(Archive::status)
    }

    /// What waits for epochs to be archived, if they are.
    pub fn archive_watch(&self) -> Option<ArchiveWatch> {
        self.archive.as_ref().map(Archive::watch)
    }

    /// The committed epochs behind those that are archived, up to one.
    fn archive_job(&self, archived: EpochNumber, last: EpochNumber) -> Option<Job> {
        let space = self.space();
        let is_in = |held: &EpochNumber| *held > archived && *held <= last;
        let first = space.holdings.epochs().map(|held| held.epoch).find(is_in)?;
        let is_needed = |held: &&Holding| is_in(&held.epoch) || held.kind == Kind::Program;
        let needed = space.holdings.iter().filter(is_needed);
        let segments = needed.flat_map(|held| held.segments.iter().copied()).collect();
        Some(Job { first, last, segments })
    }

    /// Gives back all log space that is not in use, but what the log grows by at once: the store is
    /// closed. To be called when all epochs are released.
    ///
    /// # Errors
    /// The device's.
    pub fn shrink(&self) -> Result<(), LogError> {
        let kept = self.growth_segments();
        if !self.shrink_to(&mut self.space(), kept)? {
            self.device.save_again()?;
            self.shrink_to(&mut self.space(), kept)?;
        }
        Ok(())
    }

    /// Gives back what is more than twice of what was in use since the last release, if that is
    /// more than a quarter of the log: it grows by as much.
    fn shrink_after_burst(&self, space: &mut Space) {
        let kept = space.take_peak().saturating_mul(2).max(self.growth_segments());
        let total = space.total();
        if total - space.end_with(kept) > (total / 4).max(self.growth_segments()) {
            // The device remembers a failure, and refuses everything from then on (O-57).
            let _ = self.shrink_to(space, kept);
        }
    }

    /// Gives back what is behind the segments in use and so many; whether that was done.
    fn shrink_to(&self, space: &mut Space, kept: u32) -> Result<bool, LogError> {
        let end = space.end_with(kept);
        if !self.device.takes_snapshots() || end == space.total() {
            return Ok(false);
        }
        if !space.leftovers.is_empty() || !self.device.shrink_log(self.geometry.offset(end))? {
            return Ok(false);
        }
        space.shrink(end);
        Ok(true)
    }

    /// Segments that the log grows by at least.
    fn growth_segments(&self) -> u32 {
        u32::try_from(GROW_BYTES_MIN / self.geometry.segment_bytes).unwrap_or(u32::MAX).max(1)
    }

    /// Bytes of the segments that are held for epochs and records of deferred calls.
    pub fn bytes_in_use(&self) -> u64 {
        self.geometry.offset(self.space().in_use())
    }

    /// Number of segments of the log space.
    pub fn segments_total(&self) -> u32 {
        self.space().total()
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        self.geometry.segment_bytes
    }

    /// The newest epoch that is committed, or that needs no log because of a checkpoint.
    pub fn committed_epoch(&self) -> EpochNumber {
        self.space().committed
    }

    /// The largest timestamp of the epochs that were found here or committed since, released ones
    /// too; zero if there are none.
    pub(crate) fn timestamp_ns(&self) -> u64 {
        self.space().timestamp_ns
    }

    /// What the log holds, by epoch: all that is committed and not released.
    pub fn summary(&self) -> Vec<EpochSummary> {
        let space = self.space();
        let committed = space.holdings.epochs().filter(|held| held.committed);
        let mut epochs: Vec<EpochSummary> = committed
            .map(|held| EpochSummary {
                epoch: held.epoch,
                streams: held.streams,
                calls: held.calls,
                bytes: held.bytes,
                segments: held.segments.len() as u32,
                deferred_bytes: space
                    .deferred_calls(held.epoch)
                    .map(|deferred_calls| deferred_calls.bytes),
                hash_before: held.hash_before,
            })
            .collect();
        epochs.sort_by_key(|summary| summary.epoch);
        epochs
    }

    pub(super) fn device(&self) -> &AnyDevice {
        &self.device
    }

    pub(super) fn geometry(&self) -> Geometry {
        self.geometry
    }

    pub(super) fn scratch(&self) -> MutexGuard<'_, Scratch> {
        self.scratch.lock().expect("no thread panicked with the log's buffers locked")
    }

    pub(super) fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().expect("no thread panicked with the log's space locked")
    }

    pub(super) fn index(&self) -> Arc<Index> {
        self.index.lock().expect("no thread panicked with the index locked").clone()
    }

    pub(super) fn change_index(&self, change: impl FnOnce(&mut Index)) {
        let mut index = self.index.lock().expect("no thread panicked with the index locked");
        change(Arc::make_mut(&mut index));
    }

    /// Takes up to `max` segments for a holding, growing the log if there is none.
    pub(super) fn take(&self, epoch: EpochNumber, attempt: u64, max: u32) -> Result<Run, LogError> {
        let mut space = self.space();
        if let Some(run) = space.take(attempt, max) {
            return Ok(run);
        }
        let kind = space.kind(attempt);
        self.ensure(&mut space, kind, epoch, 1)?;
        Ok(space.take(attempt, max).expect("the log has grown"))
    }

    /// Makes sure that `segments` more can be promised, growing the log if necessary: by a quarter
    /// or [`GROW_BYTES_MIN`] if that is allowed, otherwise by exactly what is missing.
    fn ensure(
        &self,
        space: &mut Space,
        kind: Kind,
        epoch: EpochNumber,
        segments: u64,
    ) -> Result<(), LogError> {
        let missing = space.missing(kind, segments);
        if missing == 0 {
            return Ok(());
        }
        let bytes = self.geometry.offset(space.total());
        let exact = bytes.saturating_add(missing.saturating_mul(self.geometry.segment_bytes));
        let roomy = exact.max(bytes + (bytes / 4).max(GROW_BYTES_MIN));
        let roomy = roomy.checked_next_multiple_of(self.geometry.segment_bytes).unwrap_or(exact);
        self.grow(exact, roomy).map_err(|reason| match reason {
            DeviceError::Full { .. } => LogError::Full {
                epoch,
                wanted_bytes: exact - bytes,
                free_bytes: self.geometry.offset(space.surplus(kind)),
                log_bytes: bytes,
                reason: self.with_archive(reason),
            },
            other => LogError::Device(other),
        })?;
        let total = self.device.log_bytes() / self.geometry.segment_bytes;
        space.free.grow(u32::try_from(total).unwrap_or(u32::MAX));
        assert!(space.missing(kind, segments) == 0, "the log has grown by what was missing");
        Ok(())
    }

    /// Why the log is full, if that is because its archive fails.
    fn with_archive(&self, reason: DeviceError) -> DeviceError {
        let failed = self.archive_status().and_then(|status| status.error);
        match (failed, reason) {
            (Some(why), DeviceError::Full { what, wanted_bytes, limit_bytes }) => {
                let what = format!("{what}, which is kept because its archive fails ({why}),");
                DeviceError::Full { what, wanted_bytes, limit_bytes }
            }
            (_, reason) => reason,
        }
    }

    pub(super) fn grow(&self, exact: u64, roomy: u64) -> Result<(), DeviceError> {
        assert!(exact <= roomy, "there is room for what is needed");
        let limit_bytes = u64::from(u32::MAX) * self.geometry.segment_bytes;
        if exact > limit_bytes {
            let what = "input log".to_string();
            let limit_bytes = Some(limit_bytes);
            return Err(DeviceError::Full { what, wanted_bytes: exact, limit_bytes });
        }
        match self.device.grow_log(roomy.min(limit_bytes)) {
            Err(DeviceError::Full { .. }) if exact < roomy => self.device.grow_log(exact),
            result => result,
        }
    }
}
