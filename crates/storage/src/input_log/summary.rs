//! What is known of logged epochs.

use crate::digest::StateHash;
use crate::ids::EpochNumber;

/// What a finished stream consists of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StreamSummary {
    /// Number of the stream in its epoch.
    pub stream: u16,
    /// Its bytes.
    pub bytes: u64,
    /// Its segments.
    pub segments: u32,
    /// Digest of its segments.
    pub digest: u32,
    /// Number of its first segment in the log space; zero if it has none.
    pub first_segment: u32,
}

/// What is logged of an epoch beside its streams.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// The epoch.
    pub epoch: EpochNumber,
    /// Transactions in all streams.
    pub calls: u64,
    /// Timestamp of the epoch: nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Seed of the epoch.
    pub seed: u64,
    /// State hash at the end of the epoch before, if it is maintained: replay must come to it.
    pub hash_before: Option<StateHash>,
    /// The streams, numbered from 0 without gaps.
    pub streams: Vec<StreamSummary>,
}

/// Committed epochs: all after a checkpoint, up to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommittedRange {
    /// The epoch of the checkpoint.
    pub checkpoint: EpochNumber,
    /// The last committed epoch; that of the checkpoint if there is none.
    pub last: EpochNumber,
}

/// What the log holds of one committed epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochSummary {
    /// The epoch.
    pub epoch: EpochNumber,
    /// Number of its streams.
    pub streams: u32,
    /// Transactions.
    pub calls: u64,
    /// Bytes of all streams.
    pub bytes: u64,
    /// Segments of streams and commit record.
    pub segments: u32,
    /// Bytes of the calls deferred to this epoch; `None` if the log has no record of deferred calls
    /// for it.
    pub deferred_bytes: Option<u64>,
    /// State hash at the end of the epoch before, if its commit record knows it.
    pub hash_before: Option<StateHash>,
}
