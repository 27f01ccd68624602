//! Where a copied log ends, which was copied while a process wrote to it.
//!
//! What was durable when the copy began is whole in it; of what was logged meanwhile any part may
//! be there. So the copy ends with the last epoch up to which all are whole, and the rest is
//! erased.

use pmem::{DeviceError, LogSpace};

use super::error::LogError;
use super::format::{HEADER_BYTES, Kind, SegmentHeader};
use super::geometry::Geometry;
use super::give_up::is_kept;
use super::reader::{check_up_to, find_committed};
use super::scan::Scan;
use super::summary::CommittedRange;
use crate::ids::EpochNumber;

/// The end of a copied log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CopiedEnd {
    /// The last epoch that it has, or the checkpoint.
    pub(crate) last: EpochNumber,
    /// Where the segments begin that are to be erased: [`HEADER_BYTES`] of zeros make one free.
    pub(crate) erased: Vec<u64>,
    /// Whether it has a program, as every log of a store.
    pub(crate) has_program: bool,
    /// Bytes of log space before which all that is needed is.
    pub(crate) bytes: u64,
    /// The timestamp of the last epoch; 0 if that is the checkpoint.
    pub(crate) timestamp_ns: u64,
}

/// The newest epoch of which a log has inputs: all before it are durable.
///
/// # Errors
/// The log's.
pub(crate) fn newest_begun<L: LogSpace>(
    log: &L,
    geometry: Geometry,
) -> Result<EpochNumber, LogError> {
    let mut newest = EpochNumber(0);
    let mut header = [0; HEADER_BYTES];
    let segments = u32::try_from(log.log_bytes() / geometry.segment_bytes).unwrap_or(u32::MAX);
    for segment in 0..segments {
        log.log_read(geometry.offset(segment), &mut header)?;
        let Some(header) = SegmentHeader::parse(&header) else { continue };
        let kind = Kind::from_number(header.kind.get());
        let has_inputs = matches!(kind, Some(Kind::Stream | Kind::Commit | Kind::Epoch));
        if has_inputs && header.instance.get() == geometry.instance {
            newest = newest.max(EpochNumber(header.epoch.get()));
        }
    }
    Ok(newest)
}

/// Gives out the segments of a store that matter behind a checkpoint, each with its place: those of
/// later epochs, and the program. They may be written just now.
///
/// # Errors
/// The log's, and those of `each`.
pub(crate) fn copy_segments<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    checkpoint: EpochNumber,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), DeviceError>,
) -> Result<(), LogError> {
    let mut buffer = vec![0; geometry.segment_bytes as usize];
    let segments = u32::try_from(log.log_bytes() / geometry.segment_bytes).unwrap_or(u32::MAX);
    let needed = |bytes: &[u8]| {
        let header = SegmentHeader::parse(bytes)?;
        let is_needed =
            header.instance.get() == geometry.instance && header.epoch.get() > checkpoint.0;
        is_needed.then_some(HEADER_BYTES + header.payload_bytes.get() as usize)
    };
    for segment in 0..segments {
        let offset = geometry.offset(segment);
        log.log_read(offset, &mut buffer[..HEADER_BYTES])?;
        if needed(&buffer[..HEADER_BYTES]).is_none() {
            continue;
        }
        // Header and payload of one moment, as far as reads are.
        log.log_read(offset, &mut buffer)?;
        if let Some(bytes) = needed(&buffer).and_then(|end| buffer.get(..end)) {
            each(offset, bytes)?;
        }
    }
    Ok(())
}

/// Finds the end of a copied log, or ends it with an epoch that is asked for.
///
/// # Errors
/// [`LogError::NotCopied`] if the epoch that is asked for is not there; as
/// [`super::InputLog::open`] if what is kept cannot be read back.
pub(crate) fn end_of_copy<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    checkpoint: EpochNumber,
    asked: Option<EpochNumber>,
) -> Result<CopiedEnd, LogError> {
    let mut scan = Scan::read(log, geometry, checkpoint)?;
    let (epochs, _) = find_committed(log, geometry, &scan)?;
    let mut last = checkpoint;
    while epochs.contains_key(&last.next()) && asked != Some(last) {
        last = last.next();
    }
    if let Some(asked) = asked.filter(|asked| *asked != last) {
        return Err(LogError::NotCopied { asked, first: checkpoint, last });
    }
    let dropped = scan.found.iter().filter(|(key, _)| !is_kept(key, last));
    let erased = dropped.map(|(_, found)| geometry.offset(found.segment)).collect();
    scan.found.retain(|key, _| is_kept(key, last));
    let range = CommittedRange { checkpoint, last };
    let has_program = check_up_to(log, geometry, range, &scan)?;
    let end =
        scan.found.values().map(|found| geometry.offset(found.segment) + geometry.segment_bytes);
    let timestamp_ns = epochs.get(&last).map_or(0, |epoch| epoch.info.timestamp_ns);
    let bytes = end.max().unwrap_or(0);
    Ok(CopiedEnd { last, erased, has_program, bytes, timestamp_ns })
}
