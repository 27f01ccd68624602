//! Giving up the end of a log on purpose, where damage has made it unreadable.

use std::collections::BTreeSet;
use std::sync::Arc;

use pmem::{AnyDevice, Device, Port};

use super::error::LogError;
use super::format::{HEADER_BYTES, Kind, PROGRAM_EPOCH};
use super::geometry::Geometry;
use super::log::InputLog;
use super::reader::check_up_to;
use super::scan::{Key, Scan};
use super::summary::CommittedRange;
use crate::ids::EpochNumber;

/// What was given up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Epochs of which something was in the log, whole or not.
    pub epochs: BTreeSet<EpochNumber>,
    /// Segments that were erased, those of another store included.
    pub segments: u32,
}

/// Whether a segment is still needed if the log ends after an epoch.
pub(super) fn is_kept(key: &Key, last: EpochNumber) -> bool {
    key.epoch <= last || key.kind == Kind::Deferred && key.epoch == last.next() || is_program(key)
}

fn is_program(key: &Key) -> bool {
    key.epoch == PROGRAM_EPOCH
}

impl InputLog {
    /// Makes the last epoch that is kept the end of the log: everything after it is erased, and the
    /// store is a branch of its own (S23), because epochs of the same numbers will be others.
    /// Accepts the device. Afterwards the log opens, with a program that is not known if that was
    /// lost, too.
    ///
    /// # Errors
    /// As [`InputLog::open`] if the epochs that are kept cannot be read back, with
    /// nothing changed; the device's.
    pub fn give_up(
        device: &Arc<AnyDevice>,
        instance: u64,
        segment_bytes: u64,
        kept: CommittedRange,
    ) -> Result<GivenUp, LogError> {
        let CommittedRange { checkpoint, last } = kept;
        assert!(checkpoint <= last, "what a checkpoint holds is not given up");
        let geometry = Geometry { instance, segment_bytes };
        let mut scan = Scan::read(device.as_ref(), geometry, checkpoint)?;
        let mut given_up = GivenUp::default();
        let mut erased = scan.foreign_segments.clone();
        for (key, found) in scan.found.iter().filter(|(key, _)| !is_kept(key, last)) {
            given_up.epochs.insert(key.epoch);
            erased.push(found.segment);
        }
        scan.found.retain(|key, _| is_kept(key, last));
        check_up_to(device.as_ref(), geometry, kept, &scan)?;
        device.begin_branch()?;
        device.accept()?;
        device.note_opening(last.next())?;
        let mut port = Port::new(Arc::clone(device), u32::MAX);
        for segment in &erased {
            port.log_write(geometry.offset(*segment), &[0; HEADER_BYTES])?;
        }
        port.log_fence();
        device.log_sync()?;
        given_up.segments = erased.len() as u32;
        let (log, _) = Self::open(Arc::clone(device), instance, segment_bytes, checkpoint)?;
        if log.program().is_none() {
            log.write_program(&mut port, &[])?;
        }
        Ok(given_up)
    }
}
