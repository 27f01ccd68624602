//! The input log of an open store: who may write where, and in which order.

use std::sync::Arc;

use pmem::sync::{Mutex, MutexGuard};

use pmem::{Device, DeviceError};

use super::error::LogError;
use super::format::{
    HEADER_BYTES, Kind, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SealEntry, SealHeader,
};
use super::reader::{self, Index, Recovered};
use super::seal::Scratch;
use super::space::{Run, Space};
use super::verdict::Verdicts;
use super::writer::StreamWriter;
use crate::StateHash;

/// The log grows by at least this much at a time, if its limit allows it.
const GROW_BYTES_MIN: u64 = 4 << 20;

/// What an epoch may need of the log space. More may be written if there is room.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Streams that may be written.
    pub streams: u16,
    /// Bytes of all streams together.
    pub bytes: u64,
    /// Bytes that the epoch may hand over to the next one with [`InputLog::write_carry`].
    pub carry_bytes: u64,
}

/// What the log holds of one sealed epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochSummary {
    /// The epoch.
    pub epoch: u64,
    /// Number of its streams.
    pub streams: u32,
    /// Transactions.
    pub calls: u64,
    /// Bytes of all streams.
    pub bytes: u64,
    /// Segments of streams and seal.
    pub segments: u32,
    /// Bytes of the calls carried over to this epoch; `None` if the log has no carry for it.
    pub carry_bytes: Option<u64>,
    /// State hash at the end of the epoch before, if its seal knows it.
    pub hash_before: Option<StateHash>,
}

/// How segments lie and whose they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    pub(super) instance: u64,
    pub(super) segment_bytes: u64,
}

impl Geometry {
    pub(super) fn payload_bytes_max(&self) -> u64 {
        self.segment_bytes - HEADER_BYTES as u64
    }

    pub(super) fn offset(&self, segment: u32) -> u64 {
        u64::from(segment) * self.segment_bytes
    }

    /// Segments of a seal or a carry; even an empty one has a segment.
    pub(super) fn record_segments(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.payload_bytes_max()).max(1)
    }

    /// Most segments that an epoch can take, whichever way its bytes are spread over the streams.
    fn epoch_segments(&self, demand: &Demand) -> u64 {
        let seal = size_of::<SealHeader>() + size_of::<SealEntry>() * usize::from(demand.streams);
        let partial = u64::from(demand.streams);
        demand.bytes / self.payload_bytes_max() + partial + self.record_segments(seal as u64)
    }

    fn carry_segments(&self, demand: &Demand) -> u64 {
        if demand.carry_bytes == 0 { 0 } else { self.record_segments(demand.carry_bytes) }
    }
}

/// The input log of an open store. See the module's documentation.
pub struct InputLog<D: Device> {
    device: Arc<D>,
    geometry: Geometry,
    space: Mutex<Space>,
    index: Mutex<Arc<Index>>,
    scratch: Mutex<Scratch>,
    /// Attempt and bytes of the program that the next epochs are logged under.
    pub(super) program: Mutex<Option<(u64, Vec<u8>)>>,
    pub(super) verdicts: Mutex<Verdicts>,
}

impl<D: Device> InputLog<D> {
    /// Finds what the log of the store `instance` holds of the epochs after `checkpoint_epoch`.
    ///
    /// Changes nothing on the medium, but first makes durable what an earlier process wrote and did
    /// not sync: what is found sealed here must not be lost by a power cut later (O-13).
    /// `segment_bytes` must be the same for all the life of the store.
    ///
    /// # Errors
    /// [`LogError::Gap`], [`LogError::Damaged`], [`LogError::CarryDamaged`],
    /// [`LogError::ProgramLost`] or [`LogError::Conflict`] when the log has lost what no crash can
    /// take away; [`LogError::Codec`] and [`LogError::OtherSegmentBytes`] when it was written by
    /// another build or with another option; the device's errors. A torn end is none of these: it
    /// reads as an epoch that was never started.
    pub fn open(
        device: Arc<D>,
        instance: u64,
        segment_bytes: u64,
        checkpoint_epoch: u64,
    ) -> Result<(Self, Recovered), LogError> {
        let (min, max) = (SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        if !segment_bytes.is_power_of_two() || !(min..=max).contains(&segment_bytes) {
            return Err(LogError::SegmentBytes { given: segment_bytes, min, max });
        }
        device.log_sync()?;
        let geometry = Geometry { instance, segment_bytes };
        let found = reader::recover(&*device, geometry, checkpoint_epoch)?;
        let log = Self {
            device,
            geometry,
            space: Mutex::new(found.space),
            index: Mutex::new(Arc::new(found.index)),
            scratch: Mutex::new(Scratch::new(segment_bytes)),
            program: Mutex::new(found.program),
            verdicts: Mutex::new(found.verdicts),
        };
        Ok((log, found.recovered))
    }

    /// A writer for one worker, to be used again in every epoch.
    pub fn stream_writer(&self) -> StreamWriter {
        StreamWriter::new(self.geometry.segment_bytes)
    }

    /// Starts the log of an epoch and reserves the space for it, growing the log if necessary
    /// (O-43). No worker may `start` a stream of the epoch earlier, nor before the log of the epoch
    /// before is durable: recovery takes anything after an epoch that is not sealed for damage.
    ///
    /// # Errors
    /// [`LogError::Full`] when the space cannot be had; nothing has changed then.
    ///
    /// # Panics
    /// If the epoch is sealed or begun already.
    pub fn begin(&self, epoch: u64, demand: Demand) -> Result<(), LogError> {
        let mut space = self.space();
        assert!(epoch > space.sealed, "epoch {epoch} is begun after {} was sealed", space.sealed);
        let mut begun = space.holdings.iter().filter(|holding| holding.kind == Kind::Stream);
        assert!(begun.all(|holding| holding.epoch != epoch), "epoch {epoch} is begun once");
        space.forget_carry_promises(epoch.saturating_sub(2));
        let own = self.geometry.epoch_segments(&demand);
        let carry = self.geometry.carry_segments(&demand);
        self.ensure(&mut space, (Kind::Stream, epoch), own.saturating_add(carry))?;
        space.hold(Kind::Stream, epoch);
        space.promise(epoch, own as u32, carry as u32); // both are at most the number of segments
        Ok(())
    }

    /// Gives up an epoch that was begun and not sealed, for example because its inputs did not fit.
    /// No worker may append to it any more; the epoch can be begun again.
    ///
    /// # Panics
    /// If the epoch is not begun or is sealed.
    pub fn abandon(&self, epoch: u64) {
        let mut space = self.space();
        let attempt = space.open_epoch(epoch).attempt;
        space.drop_holding(attempt);
    }

    /// Makes everything durable that was finished, sealed or carried so far; each of these fenced
    /// the port that it wrote with (O-22). Only after this may a final write of the sealed epoch
    /// reach the image, or an answer leave (O-13).
    ///
    /// # Errors
    /// The device's, sticky (O-57): nothing may be answered any more.
    pub fn make_durable(&self) -> Result<(), LogError> {
        let sealed = self.space().sealed;
        self.device.log_sync()?;
        let mut space = self.space();
        space.durable = space.durable.max(sealed);
        Ok(())
    }

    /// Frees the logs and carries of all epochs up to `epoch`. To be called when a checkpoint of
    /// `epoch` or a later one is durable, not before: the space is written again at once (O-23).
    ///
    /// # Panics
    /// If one of the epochs is begun and not sealed.
    pub fn release(&self, epoch: u64) {
        self.space().release(epoch);
        let mut index = self.index.lock().expect("no thread panicked with the index locked");
        Arc::make_mut(&mut index).release(epoch);
        let mut verdicts = self.verdicts.lock().expect("no panic while locked");
        verdicts.retain(|held, _| *held > epoch);
    }

    /// Bytes of the segments that are held for epochs and carries.
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

    /// The newest epoch that is sealed, or that needs no log because of a checkpoint.
    pub fn sealed_epoch(&self) -> u64 {
        self.space().sealed
    }

    /// What the log holds, by epoch: all that is sealed and not released.
    pub fn summary(&self) -> Vec<EpochSummary> {
        let space = self.space();
        let sealed = space.holdings.iter().filter(|held| held.kind == Kind::Stream && held.sealed);
        let mut epochs: Vec<EpochSummary> = sealed
            .map(|held| EpochSummary {
                epoch: held.epoch,
                streams: held.streams,
                calls: held.calls,
                bytes: held.bytes,
                segments: held.segments.len() as u32,
                carry_bytes: space.carry(held.epoch).map(|carry| carry.bytes),
                hash_before: held.hash_before,
            })
            .collect();
        epochs.sort_by_key(|summary| summary.epoch);
        epochs
    }

    pub(super) fn device(&self) -> &D {
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
    pub(super) fn take(&self, epoch: u64, attempt: u64, max: u32) -> Result<Run, LogError> {
        let mut space = self.space();
        if let Some(run) = space.take(attempt, max) {
            return Ok(run);
        }
        let kind = space.kind(attempt);
        self.ensure(&mut space, (kind, epoch), 1)?;
        Ok(space.take(attempt, max).expect("the log has grown"))
    }

    /// Makes sure that `segments` more can be promised, growing the log if necessary: by a quarter
    /// or [`GROW_BYTES_MIN`] if that is allowed, otherwise by exactly what is missing.
    fn ensure(
        &self,
        space: &mut Space,
        (kind, epoch): (Kind, u64),
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
                reason,
            },
            other => LogError::Device(other),
        })?;
        let total = self.device.log_bytes() / self.geometry.segment_bytes;
        space.free.grow(u32::try_from(total).unwrap_or(u32::MAX));
        assert!(space.missing(kind, segments) == 0, "the log has grown by what was missing");
        Ok(())
    }

    fn grow(&self, exact: u64, roomy: u64) -> Result<(), DeviceError> {
        let limit_bytes = u64::from(u32::MAX) * self.geometry.segment_bytes;
        if exact > limit_bytes {
            let what = "input log".to_string();
            return Err(DeviceError::Full { what, wanted_bytes: exact, limit_bytes });
        }
        match self.device.grow_log(roomy.min(limit_bytes)) {
            Err(DeviceError::Full { .. }) if exact < roomy => self.device.grow_log(exact),
            result => result,
        }
    }
}
