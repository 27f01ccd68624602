//! Finding the segments of a log space, and judging which of them belong together.
//!
//! Knows headers and checksums, not what recovery makes of them. Only segments of this store and of
//! epochs after the checkpoint are remembered; everything else is free space, whatever it holds
//! (O-24).

use std::collections::BTreeMap;

use pmem::LogSpace;

use super::error::LogError;
use super::format::{CODEC_VERSION, HEADER_BYTES, Kind, SegmentHeader, StreamDigest};
use super::geometry::Geometry;
use super::summary::StreamSummary;
use crate::ids::EpochNumber;

/// The largest number of an attempt: one for each nanosecond of a century.
const ATTEMPT_MAX: u64 = 1 << 62;

/// Where a segment belongs. The order puts what belongs together side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) epoch: EpochNumber,
    pub(super) kind: Kind,
    pub(super) attempt: u64,
    pub(super) stream: u16,
    pub(super) ordinal: u32,
}

/// A segment with a valid header.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundSegment {
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
    pub(super) found: BTreeMap<Key, FoundSegment>,
    /// Largest attempt number in any header of this store, however old.
    pub(super) attempt_max: u64,
    pub(super) segments_total: u32,
    /// Bytes that were read to find all of it.
    pub(super) read_bytes: u64,
    /// A store whose segments are in the log and that is not this one.
    pub(super) foreign: Option<u64>,
    /// The segments of other stores.
    pub(super) foreign_segments: Vec<u32>,
    /// Segments of this store and of epochs after the checkpoint, and those that begin with a part
    /// of a header: what is not held of them is to be erased.
    pub(super) doubtful: Vec<u32>,
}

/// Reads segments, and counts the bytes.
struct Reader<'l, L> {
    log: &'l L,
    geometry: Geometry,
    buffer: Vec<u8>,
    bytes: u64,
}

impl<'l, L: LogSpace> Reader<'l, L> {
    fn new(log: &'l L, geometry: Geometry) -> Self {
        let buffer = vec![0; geometry.segment_bytes as usize];
        Self { log, geometry, buffer, bytes: 0 }
    }

    /// The first bytes of a segment.
    fn read(&mut self, number: u32, bytes: usize) -> Result<&[u8], LogError> {
        assert!(bytes <= self.buffer.len(), "{bytes} bytes are more than a segment");
        let into = &mut self.buffer[..bytes];
        self.log.log_read(self.geometry.offset(number), into)?;
        self.bytes += bytes as u64;
        Ok(into)
    }

    /// The payload that the header of a segment names, if there is room for it.
    fn payload(&mut self, number: u32, header: &SegmentHeader) -> Result<Option<&[u8]>, LogError> {
        let end = HEADER_BYTES + header.payload_bytes.get() as usize;
        if end > self.buffer.len() {
            return Ok(None);
        }
        Ok(Some(&self.read(number, end)?[HEADER_BYTES..]))
    }
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
    /// Reads the headers of all segments, and besides what matters of their payloads.
    pub(super) fn read<L: LogSpace>(
        log: &L,
        geometry: Geometry,
        checkpoint: EpochNumber,
    ) -> Result<Self, LogError> {
        let segments = log.log_bytes() / geometry.segment_bytes;
        let segments_total = u32::try_from(segments).unwrap_or(u32::MAX);
        let mut reader = Reader::new(log, geometry);
        let mut scan = Self { segments_total, ..Self::default() };
        for number in 0..segments_total {
            let first = reader.read(number, HEADER_BYTES)?;
            let Some(header) = SegmentHeader::parse(first) else {
                if first.iter().any(|byte| *byte != 0) {
                    scan.doubtful.push(number);
                }
                continue;
            };
            if header.instance.get() != geometry.instance {
                scan.foreign.get_or_insert(header.instance.get());
                scan.foreign_segments.push(number);
                continue;
            }
            check_attempt(&header, geometry.offset(number))?;
            scan.attempt_max = scan.attempt_max.max(header.attempt.get());
            if header.epoch.get() > checkpoint.0 {
                scan.add(number, &header, &mut reader)?;
            }
        }
        scan.read_bytes = reader.bytes;
        Ok(scan)
    }

    /// Remembers a segment of an epoch after the checkpoint.
    fn add<L: LogSpace>(
        &mut self,
        number: u32,
        header: &SegmentHeader,
        reader: &mut Reader<'_, L>,
    ) -> Result<(), LogError> {
        let geometry = reader.geometry;
        let kind = check_header(header, geometry, geometry.offset(number))?;
        let payload_bytes = header.payload_bytes.get();
        let payload = reader.payload(number, header)?;
        let key = Key {
            epoch: EpochNumber(header.epoch.get()),
            kind,
            attempt: header.attempt.get(),
            stream: header.stream.get(),
            ordinal: header.ordinal.get(),
        };
        let found = FoundSegment {
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

    /// The segments of one stream, commit record or record of deferred calls, by ordinal. There may
    /// be gaps.
    fn pieces(
        &self,
        epoch: EpochNumber,
        kind: Kind,
        attempt: u64,
        stream: u16,
    ) -> impl Iterator<Item = (u32, &FoundSegment)> {
        let first = Key { epoch, kind, attempt, stream, ordinal: 0 };
        let last = Key { ordinal: u32::MAX, ..first };
        self.found.range(first..=last).map(|(key, found)| (key.ordinal, found))
    }

    /// The attempts that left a segment of `kind`, by epoch.
    pub(super) fn attempts(&self, kind: Kind) -> Vec<(EpochNumber, u64)> {
        let keys = self.found.keys().filter(|key| key.kind == kind);
        let mut attempts: Vec<(EpochNumber, u64)> =
            keys.map(|key| (key.epoch, key.attempt)).collect();
        attempts.dedup();
        attempts
    }

    /// The segments of a commit record or a record of deferred calls if all of them are there and
    /// intact.
    pub(super) fn record(&self, epoch: EpochNumber, kind: Kind, attempt: u64) -> Option<Vec<u32>> {
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

    /// The segments of a stream if they are exactly those that the commit record names.
    pub(super) fn stream(
        &self,
        epoch: EpochNumber,
        attempt: u64,
        committed: &StreamSummary,
    ) -> Result<Vec<u32>, Lack> {
        let lack = |ordinal: u32, segment: u32, what: &'static str| {
            Err(Lack { stream: committed.stream, ordinal, segment, what })
        };
        let mut segments = Vec::new();
        let mut bytes = 0;
        let mut digest = StreamDigest::default();
        for (ordinal, found) in self.pieces(epoch, Kind::Stream, attempt, committed.stream) {
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
        if (segments.len() as u32) < committed.segments {
            return lack(segments.len() as u32, committed.first_segment, "it is missing");
        }
        let exact = segments.len() as u32 == committed.segments
            && bytes == committed.bytes
            && digest.value() == committed.digest;
        if !exact {
            return lack(
                0,
                committed.first_segment,
                "the stream is not the one that was committed",
            );
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
        epoch: EpochNumber(header.epoch.get()),
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
        return Err(LogError::Codec {
            offset,
            epoch: EpochNumber(epoch),
            version,
            kind: number,
            known: CODEC_VERSION,
        });
    };
    let stored = u64::from(header.segment_bytes.get());
    let given = geometry.segment_bytes;
    if stored != given {
        return Err(LogError::OtherSegmentBytes {
            epoch: EpochNumber(epoch),
            offset,
            stored,
            given,
        });
    }
    Ok(kind)
}
