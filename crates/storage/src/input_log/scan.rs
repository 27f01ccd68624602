//! Finding the segments of a log space, and judging which of them belong together.
//!
//! Knows headers and checksums, not what recovery makes of them. Only segments of this store and of
//! epochs after the checkpoint are remembered; everything else is free space, whatever it holds
//! (O-24).

use std::collections::BTreeMap;

use pmem::Device;
use zerocopy::FromBytes;

use super::error::LogError;
use super::format::{
    CODEC_VERSION, HEADER_BYTES, Kind, SealHeader, SegmentHeader, StreamDigest, seal_bytes,
};
use super::geometry::Geometry;
use super::summary::StreamSummary;

/// The log is read in pieces of this size, or of one segment if that is larger.
const READ_BYTES: u64 = 1 << 20;

/// The largest number of an attempt: one for each nanosecond of a century.
const ATTEMPT_MAX: u64 = 1 << 62;

/// Where a segment belongs. The order puts what belongs together side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) epoch: u64,
    pub(super) kind: Kind,
    pub(super) attempt: u64,
    pub(super) stream: u16,
    pub(super) ordinal: u32,
}

/// A segment with a valid header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) segment: u32,
    pub(super) payload_bytes: u32,
    pub(super) payload_crc: u32,
    pub(super) total_bytes: u64,
    /// Whether the payload has the checksum that the header names.
    pub(super) intact: bool,
}

/// All segments that may matter.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) found: BTreeMap<Key, Found>,
    /// Largest attempt number in any header of this store, however old.
    pub(super) attempt_max: u64,
    /// Largest timestamp of the seals up to the checkpoint that were not overwritten yet.
    pub(super) timestamp_ns: u64,
    pub(super) segments_total: u32,
    /// A store whose segments are in the log and that is not this one.
    pub(super) foreign: Option<u64>,
    /// The segments of other stores.
    pub(super) foreign_segments: Vec<u32>,
    /// Segments of this store and of epochs after the checkpoint, and those that begin with a part
    /// of a header: what is not held of them is to be erased.
    pub(super) doubtful: Vec<u32>,
}

/// The timestamp of an epoch whose seal begins in a segment.
fn timestamp_of(header: &SegmentHeader, segment: &[u8]) -> Option<u64> {
    let payload = segment[HEADER_BYTES..].get(..header.payload_bytes.get() as usize)?;
    let seal = match Kind::from_number(header.kind.get())? {
        Kind::Seal if header.ordinal.get() == 0 => payload,
        Kind::Epoch => payload.get(payload.len().checked_sub(seal_bytes(1))?..)?,
        _ => return None,
    };
    if crc32fast::hash(payload) != header.payload_crc.get() {
        return None;
    }
    Some(SealHeader::read_from_prefix(seal).ok()?.0.timestamp_ns.get())
}

/// What a stream lacks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lack {
    pub(super) stream: u16,
    pub(super) ordinal: u32,
    pub(super) segment: u32,
    pub(super) what: &'static str,
}

impl Scan {
    /// Reads the log space once, front to back.
    pub(super) fn read<D: Device>(
        device: &D,
        geometry: Geometry,
        checkpoint: u64,
    ) -> Result<Self, LogError> {
        let segments = device.log_bytes() / geometry.segment_bytes;
        let segments_total = u32::try_from(segments).unwrap_or(u32::MAX);
        let mut scan = Self { segments_total, ..Self::default() };
        let end = geometry.offset(segments_total);
        let mut piece = vec![0; READ_BYTES.max(geometry.segment_bytes).min(end) as usize];
        let mut offset = 0;
        while offset < end {
            let now = (end - offset).min(piece.len() as u64) as usize;
            device.log_read(offset, &mut piece[..now])?;
            for (at, segment) in piece[..now].chunks(geometry.segment_bytes as usize).enumerate() {
                let number = (offset / geometry.segment_bytes) as u32 + at as u32;
                scan.add(number, segment, geometry, checkpoint)?;
            }
            offset += now as u64;
        }
        Ok(scan)
    }

    fn add(
        &mut self,
        number: u32,
        segment: &[u8],
        geometry: Geometry,
        checkpoint: u64,
    ) -> Result<(), LogError> {
        let Some(header) = SegmentHeader::parse(segment) else {
            if segment[..HEADER_BYTES].iter().any(|byte| *byte != 0) {
                self.doubtful.push(number);
            }
            return Ok(());
        };
        if header.instance.get() != geometry.instance {
            self.foreign.get_or_insert(header.instance.get());
            self.foreign_segments.push(number);
            return Ok(());
        }
        check_attempt(&header, geometry.offset(number))?;
        self.attempt_max = self.attempt_max.max(header.attempt.get());
        if header.epoch.get() <= checkpoint {
            let timestamp_ns = timestamp_of(&header, segment).unwrap_or(0);
            self.timestamp_ns = self.timestamp_ns.max(timestamp_ns);
            return Ok(());
        }
        let kind = check_header(&header, geometry, geometry.offset(number))?;
        let payload_bytes = header.payload_bytes.get();
        let payload = segment[HEADER_BYTES..].get(..payload_bytes as usize);
        let key = Key {
            epoch: header.epoch.get(),
            kind,
            attempt: header.attempt.get(),
            stream: header.stream.get(),
            ordinal: header.ordinal.get(),
        };
        let found = Found {
            segment: number,
            payload_bytes,
            payload_crc: header.payload_crc.get(),
            total_bytes: header.total_bytes.get(),
            intact: payload.map(crc32fast::hash) == Some(header.payload_crc.get()),
        };
        self.doubtful.push(number);
        self.found.entry(key).or_insert(found);
        Ok(())
    }

    /// The segments of one stream, seal or carry, by ordinal. There may be gaps.
    fn pieces(
        &self,
        epoch: u64,
        kind: Kind,
        attempt: u64,
        stream: u16,
    ) -> impl Iterator<Item = (u32, &Found)> {
        let first = Key { epoch, kind, attempt, stream, ordinal: 0 };
        let last = Key { ordinal: u32::MAX, ..first };
        self.found.range(first..=last).map(|(key, found)| (key.ordinal, found))
    }

    /// The attempts that left a segment of `kind`, by epoch.
    pub(super) fn attempts(&self, kind: Kind) -> Vec<(u64, u64)> {
        let keys = self.found.keys().filter(|key| key.kind == kind);
        let mut attempts: Vec<(u64, u64)> = keys.map(|key| (key.epoch, key.attempt)).collect();
        attempts.dedup();
        attempts
    }

    /// The segments of a seal or a carry if all of them are there and intact.
    pub(super) fn record(&self, epoch: u64, kind: Kind, attempt: u64) -> Option<Vec<u32>> {
        let mut segments = Vec::new();
        let (mut bytes, mut total_bytes) = (0, None);
        for (ordinal, found) in self.pieces(epoch, kind, attempt, 0) {
            let fits = *total_bytes.get_or_insert(found.total_bytes) == found.total_bytes;
            if ordinal as usize != segments.len() || !found.intact || !fits {
                return None;
            }
            bytes += u64::from(found.payload_bytes);
            segments.push(found.segment);
        }
        (total_bytes == Some(bytes)).then_some(segments)
    }

    /// The segments of a stream if they are exactly those that the seal names.
    pub(super) fn stream(
        &self,
        epoch: u64,
        attempt: u64,
        sealed: &StreamSummary,
    ) -> Result<Vec<u32>, Lack> {
        let lack = |ordinal: u32, segment: u32, what: &'static str| {
            Err(Lack { stream: sealed.stream, ordinal, segment, what })
        };
        let mut segments = Vec::new();
        let mut bytes = 0;
        let mut digest = StreamDigest::default();
        for (ordinal, found) in self.pieces(epoch, Kind::Stream, attempt, sealed.stream) {
            if ordinal as usize != segments.len() {
                break;
            }
            if !found.intact {
                return lack(ordinal, found.segment, "its payload does not have its checksum");
            }
            bytes += u64::from(found.payload_bytes);
            digest.add(found.payload_bytes, found.payload_crc);
            segments.push(found.segment);
        }
        if (segments.len() as u32) < sealed.segments {
            return lack(segments.len() as u32, sealed.first_segment, "it is missing");
        }
        let exact = segments.len() as u32 == sealed.segments
            && bytes == sealed.bytes
            && digest.value() == sealed.digest;
        if !exact {
            return lack(0, sealed.first_segment, "the stream is not the one that was sealed");
        }
        Ok(segments)
    }
}

/// Refuses an attempt number that no store reaches: the next ones must be larger, and fit.
fn check_attempt(header: &SegmentHeader, offset: u64) -> Result<(), LogError> {
    if header.attempt.get() <= ATTEMPT_MAX {
        return Ok(());
    }
    Err(LogError::Damaged {
        epoch: header.epoch.get(),
        stream: header.stream.get(),
        ordinal: header.ordinal.get(),
        offset,
        what: "the number of its attempt is larger than any store reaches",
    })
}

/// Refuses what this build cannot read although it is still needed.
fn check_header(header: &SegmentHeader, geometry: Geometry, offset: u64) -> Result<Kind, LogError> {
    let epoch = header.epoch.get();
    let (version, number) = (header.version.get(), header.kind.get());
    let kind = Kind::from_number(number).filter(|_| version == CODEC_VERSION);
    let Some(kind) = kind else {
        return Err(LogError::Codec { offset, epoch, version, kind: number, known: CODEC_VERSION });
    };
    let stored = u64::from(header.segment_bytes.get());
    let given = geometry.segment_bytes;
    if stored != given {
        return Err(LogError::OtherSegmentBytes { epoch, offset, stored, given });
    }
    Ok(kind)
}
