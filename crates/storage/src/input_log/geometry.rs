//! How the log space is divided, and how much of it an epoch may need.

use super::format::{HEADER_BYTES, commit_bytes};

/// What an epoch may need of the log space. More may be written if there is room.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Streams that may be written.
    pub streams: u16,
    /// Bytes of all streams together.
    pub bytes: u64,
    /// Bytes that the epoch may hand over to the next one with
    /// [`super::InputLog::write_deferred_calls`].
    pub deferred_bytes: u64,
}

/// How segments lie and whose they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometry {
    pub(crate) instance: u64,
    pub(crate) segment_bytes: u64,
}

impl Geometry {
    pub(super) fn payload_bytes_max(&self) -> u64 {
        self.segment_bytes - HEADER_BYTES as u64
    }

    pub(super) fn offset(&self, segment: u32) -> u64 {
        u64::from(segment) * self.segment_bytes
    }

    /// Segments of a commit record or a record of deferred calls; even an empty one has a segment.
    pub(super) fn record_segments(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.payload_bytes_max()).max(1)
    }

    /// Most segments that an epoch can take, whichever way its bytes are spread over the streams.
    pub(super) fn epoch_segments(&self, demand: &Demand) -> u64 {
        let commit = commit_bytes(demand.streams.into());
        let partial = u64::from(demand.streams);
        demand.bytes / self.payload_bytes_max() + partial + self.record_segments(commit as u64)
    }

    pub(super) fn deferred_segments(&self, demand: &Demand) -> u64 {
        if demand.deferred_bytes == 0 { 0 } else { self.record_segments(demand.deferred_bytes) }
    }
}
