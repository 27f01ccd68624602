//! Writing segments, each with its header.

use pmem::Port;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use super::error::LogError;
use super::format::{HEADER_BYTES, Kind, SegmentHeader};
use super::geometry::Geometry;
use crate::ids::EpochNumber;

/// Where a segment belongs; the rest of its header follows from the payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentPlace {
    pub(super) kind: Kind,
    pub(super) epoch: EpochNumber,
    pub(super) attempt: u64,
    pub(super) stream: u16,
    pub(super) ordinal: u32,
    pub(super) total_bytes: u64,
}

impl SegmentPlace {
    /// The first segment of a record that is no part of a stream.
    pub(super) fn of_record(kind: Kind, epoch: EpochNumber, attempt: u64, bytes: usize) -> Self {
        Self { kind, epoch, attempt, stream: 0, ordinal: 0, total_bytes: bytes as u64 }
    }
}

/// The only stream of an epoch, before it is written.
pub(super) struct OnlyStream<'b> {
    /// Segments with the stream, each with room for its header in front, and room for a commit
    /// record behind the stream.
    pub(super) buffer: &'b mut [u8],
    /// Bytes in use.
    pub(super) filled: usize,
    /// Whether the log is synced when it is written, before anything else is done.
    pub(super) syncs_next: bool,
}

/// Completes the header in front of the payload in `buffer` and writes both at once. Returns the
/// payload's checksum.
pub(super) fn write_segment(
    port: &mut Port,
    geometry: Geometry,
    segment: u32,
    place: SegmentPlace,
    buffer: &mut [u8],
) -> Result<u32, LogError> {
    let payload_crc = complete_header(geometry, place, buffer);
    let room = geometry.segment_bytes;
    assert!(buffer.len() as u64 <= room, "a segment of {room} bytes ends before its payload");
    port.log_write(geometry.offset(segment), buffer)?;
    Ok(payload_crc)
}

/// Completes the header in front of the payload in `buffer`. Returns the payload's checksum.
pub(super) fn complete_header(geometry: Geometry, place: SegmentPlace, buffer: &mut [u8]) -> u32 {
    let is_stream = place.kind == Kind::Stream;
    assert!(is_stream || place.stream == 0, "a record belongs to no stream");
    let (head, payload) = buffer.split_at_mut(HEADER_BYTES);
    let payload_crc = crc32fast::hash(payload);
    let header = SegmentHeader {
        magic: [0; 4],
        version: U16::ZERO,
        kind: U16::new(place.kind as u16),
        instance: U64::new(geometry.instance),
        epoch: U64::new(place.epoch.0),
        attempt: U64::new(place.attempt),
        total_bytes: U64::new(place.total_bytes),
        ordinal: U32::new(place.ordinal),
        payload_bytes: U32::new(payload.len() as u32),
        segment_bytes: U32::new(geometry.segment_bytes as u32),
        stream: U16::new(place.stream),
        reserved: U16::ZERO,
        payload_crc: U32::new(payload_crc),
        header_crc: U32::ZERO,
    };
    head.copy_from_slice(header.completed().as_bytes());
    payload_crc
}
