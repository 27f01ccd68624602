//! The bytes of the input log on the device.
//!
//! Integers are little-endian and unaligned types, so structs have no padding and read the same on
//! every machine. The header of a segment is one cache line and records of deferred calls a
//! checksum of its own and one of the payload; an all-zero line is not a valid header (O-24).

use std::mem::{offset_of, size_of};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::format::{StructLayout, describe};
use crate::ids::EpochNumber;

/// First four bytes of every segment in use.
pub const SEGMENT_MAGIC: [u8; 4] = *b"NVIL";
/// Version of everything in this file.
pub const CODEC_VERSION: u16 = 4;
/// Smallest size of a segment.
pub const SEGMENT_BYTES_MIN: u64 = 4 << 10;
/// Largest size of a segment.
pub const SEGMENT_BYTES_MAX: u64 = 16 << 20;
/// Size of a segment unless an option says otherwise. An epoch of one call takes a whole one.
pub const SEGMENT_BYTES_DEFAULT: u64 = 4 << 10;
/// Bytes in front of a segment's payload.
pub const HEADER_BYTES: usize = size_of::<SegmentHeader>();

/// What a segment's payload is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Kind {
    /// The inputs that one worker logged for an epoch.
    Stream = 1,
    /// The record that makes an epoch's streams count: a [`CommitHeader`] and its [`CommitEntry`]s.
    Commit = 2,
    /// Calls that an earlier epoch handed over to this one.
    Deferred = 3,
    /// What the inputs mean: the program that logged them. Written before the first epoch that it
    /// runs, and held until the next one is durable.
    Program = 4,
    /// Calls of a committed epoch that replay must not run. The newest whole record of an epoch
    /// counts.
    Verdict = 5,
    /// A whole epoch in one segment: its only stream, and behind that its commit record.
    Epoch = 6,
}

/// The epoch in the segments of a [`Kind::Program`]: larger than any, so that no checkpoint makes
/// them obsolete.
pub const PROGRAM_EPOCH: EpochNumber = EpochNumber(u64::MAX >> 1);

impl Kind {
    /// The kind of a number on the device.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        use Kind::{Commit, Deferred, Epoch, Program, Stream, Verdict};
        [Stream, Commit, Deferred, Program, Verdict, Epoch]
            .into_iter()
            .find(|kind| *kind as u16 == number)
    }
}

/// First line of a segment in use.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SegmentHeader {
    /// [`SEGMENT_MAGIC`].
    pub magic: [u8; 4],
    /// [`CODEC_VERSION`].
    pub version: U16,
    /// A [`Kind`].
    pub kind: U16,
    /// The store that wrote the segment; those of another store are free.
    pub instance: U64,
    /// The epoch that the payload is for.
    pub epoch: U64,
    /// Number of the `begin` or `write_deferred_calls` that the segment belongs to; never used
    /// twice.
    pub attempt: U64,
    /// Bytes of the whole record; zero in a stream, whose length the commit record knows.
    pub total_bytes: U64,
    /// Position in the stream or the record, from 0.
    pub ordinal: U32,
    /// Bytes after the header that are in use.
    pub payload_bytes: U32,
    /// Size of a segment when this one was written.
    pub segment_bytes: U32,
    /// The stream; zero in a record.
    pub stream: U16,
    /// Zero.
    pub reserved: U16,
    /// CRC-32 of the payload.
    pub payload_crc: U32,
    /// CRC-32 of the 60 bytes before.
    pub header_crc: U32,
}

const _: () = {
    assert!(size_of::<SegmentHeader>() == 64); // one cache line, torn only between its 8-byte words
    assert!(offset_of!(SegmentHeader, instance) == 8);
    assert!(offset_of!(SegmentHeader, epoch) == 16);
    assert!(offset_of!(SegmentHeader, attempt) == 24);
    assert!(offset_of!(SegmentHeader, total_bytes) == 32);
    assert!(offset_of!(SegmentHeader, ordinal) == 40);
    assert!(offset_of!(SegmentHeader, payload_bytes) == 44);
    assert!(offset_of!(SegmentHeader, segment_bytes) == 48);
    assert!(offset_of!(SegmentHeader, stream) == 52);
    assert!(offset_of!(SegmentHeader, payload_crc) == 56);
    assert!(offset_of!(SegmentHeader, header_crc) == 60);
    assert!(SEGMENT_BYTES_MAX <= u32::MAX as u64);
};

impl SegmentHeader {
    /// Fills in what all headers share, and the checksum over everything.
    #[must_use]
    pub fn completed(mut self) -> Self {
        self.magic = SEGMENT_MAGIC;
        self.version = U16::new(CODEC_VERSION);
        self.reserved = U16::ZERO;
        self.header_crc = U32::new(self.checksum());
        self
    }

    /// The header at the start of `segment`, if there is one and its checksum holds.
    #[must_use]
    pub fn parse(segment: &[u8]) -> Option<Self> {
        let (header, _) = Self::read_from_prefix(segment).ok()?;
        let valid = header.magic == SEGMENT_MAGIC && header.header_crc.get() == header.checksum();
        valid.then_some(header)
    }

    fn checksum(&self) -> u32 {
        crc32fast::hash(&self.as_bytes()[..offset_of!(SegmentHeader, header_crc)])
    }
}

/// First bytes of a commit record's payload. As many [`CommitEntry`]s follow as there are streams.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CommitHeader {
    /// Transactions of the epoch.
    pub calls: U64,
    /// The epoch's timestamp: nanoseconds since 1970.
    pub timestamp_ns: U64,
    /// The epoch's seed for randomness.
    pub seed: U64,
    /// Bytes of the record of deferred calls of this epoch.
    pub deferred_bytes: U64,
    /// CRC-32 of the record of deferred calls of this epoch.
    pub deferred_crc: U32,
    /// Number of streams.
    pub streams: U16,
    /// 1 if a record of deferred calls of this epoch was known when it was committed, else 0.
    pub deferred_known: U16,
    /// The attempt that wrote the program which the inputs are for.
    pub program: U64,
    /// State hash at the end of the epoch before, low half; zero where it is not known.
    pub hash_low: U64,
    /// State hash at the end of the epoch before, high half.
    pub hash_high: U64,
    /// 1 if the two halves count, else 0.
    pub hash_known: U64,
}

const _: () = {
    assert!(size_of::<CommitHeader>() == 72);
    assert!(offset_of!(CommitHeader, deferred_bytes) == 24);
    assert!(offset_of!(CommitHeader, deferred_crc) == 32);
    assert!(offset_of!(CommitHeader, streams) == 36);
    assert!(offset_of!(CommitHeader, deferred_known) == 38);
    assert!(offset_of!(CommitHeader, program) == 40);
    assert!(offset_of!(CommitHeader, hash_low) == 48);
    assert!(offset_of!(CommitHeader, hash_known) == 64);
};

/// What a commit record says of one stream.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CommitEntry {
    /// Bytes of the stream.
    pub bytes: U64,
    /// Number of its segments; zero if it is in the same segment as the commit record.
    pub segments: U32,
    /// CRC-32 over length and checksum of each of its segments, in order.
    pub digest: U32,
    /// Number of its first segment in the log space, for error messages.
    pub first_segment: U32,
    /// The stream.
    pub stream: U16,
    /// Zero.
    pub reserved: U16,
}

const _: () = {
    assert!(size_of::<CommitEntry>() == 24);
    assert!(offset_of!(CommitEntry, segments) == 8);
    assert!(offset_of!(CommitEntry, digest) == 12);
    assert!(offset_of!(CommitEntry, first_segment) == 16);
    assert!(offset_of!(CommitEntry, stream) == 20);
    assert!(offset_of!(CommitEntry, reserved) == 22);
};

/// Bytes of the commit record of an epoch with so many streams.
pub(super) const fn commit_bytes(streams: usize) -> usize {
    size_of::<CommitHeader>() + streams * size_of::<CommitEntry>()
}

/// Digest of a stream: binds a commit record to exactly these segments.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamDigest(crc32fast::Hasher);

impl StreamDigest {
    pub(super) fn add(&mut self, payload_bytes: u32, payload_crc: u32) {
        self.0.update(&payload_bytes.to_le_bytes());
        self.0.update(&payload_crc.to_le_bytes());
    }

    pub(super) fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}

/// The structs of the input log, for the format page.
#[must_use]
pub fn layout() -> Vec<StructLayout> {
    vec![
        describe!(SegmentHeader {
            magic: [u8; 4] = "the letters NVIL",
            version: U16 = "codec version",
            kind: U16 =
                "1 stream, 2 commit record, 3 deferred calls, 4 program, 5 verdict, 6 whole epoch",
            instance: U64 = "the store that wrote the segment",
            epoch: U64 = "the epoch that the payload is for",
            attempt: U64 = "number of the attempt to log the epoch, never used twice",
            total_bytes: U64 = "bytes of the whole record; zero in a stream",
            ordinal: U32 = "position in the stream or record",
            payload_bytes: U32 = "bytes after the header that are in use",
            segment_bytes: U32 = "size of a segment",
            stream: U16 = "the stream; zero in a record",
            reserved: U16 = "zero",
            payload_crc: U32 = "CRC-32 of the payload",
            header_crc: U32 = "CRC-32 of the 60 bytes before",
        }),
        describe!(CommitHeader {
            calls: U64 = "transactions of the epoch",
            timestamp_ns: U64 = "timestamp of the epoch, nanoseconds since 1970",
            seed: U64 = "seed of the epoch",
            deferred_bytes: U64 = "bytes of the record of deferred calls of this epoch",
            deferred_crc: U32 = "CRC-32 of the record of deferred calls of this epoch",
            streams: U16 = "number of streams; as many entries follow",
            deferred_known: U16 = "1 if the two fields of deferred calls count",
            program: U64 = "the attempt that wrote the program which the inputs are for",
            hash_low: U64 = "state hash at the end of the epoch before, low half",
            hash_high: U64 = "state hash at the end of the epoch before, high half",
            hash_known: U64 = "1 if the two halves count",
        }),
        describe!(CommitEntry {
            bytes: U64 = "bytes of the stream",
            segments: U32 = "number of its segments",
            digest: U32 = "CRC-32 over length and checksum of each of its segments",
            first_segment: U32 = "number of its first segment in the log space",
            stream: U16 = "the stream",
            reserved: U16 = "zero",
        }),
    ]
}
