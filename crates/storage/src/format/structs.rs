//! The structs of an image, each with its size and its offsets pinned.

use std::mem::{offset_of, size_of};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::format::limits::{KEY_BYTES_IN_HEADER, NAME_BYTES, ROW_HEADER_BYTES};

/// Geometry of a store, written once at creation, twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Superblock {
    /// [`crate::format::SUPERBLOCK_MAGIC`].
    pub magic: [u8; 8],
    /// [`crate::format::FORMAT_VERSION`].
    pub version: u32,
    /// CRC-32 of the struct with this field zero.
    pub crc: u32,
    /// Features without which the store must not be opened.
    pub features_required: u64,
    /// Features that a reader may ignore.
    pub features_optional: u64,
    /// Random number of this store; the input log has it too (O-52).
    pub instance: u64,
    /// Bytes of a segment, a power of two.
    pub segment_bytes: u64,
    /// Entries of the segment directory: the most segments that this store can have.
    pub segments_max: u64,
    /// Bytes of a segment of the input log.
    pub log_segment_bytes: u64,
}

const _: () = {
    assert!(size_of::<Superblock>() == 64);
    assert!(offset_of!(Superblock, version) == 8);
    assert!(offset_of!(Superblock, crc) == 12);
    assert!(offset_of!(Superblock, instance) == 32);
};

/// First line of a copy of the catalog; its records follow. Of the two copies that one counts whose
/// generation the checkpoint names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CatalogHeader {
    /// Number of this catalog, one more than that of the one before; its parity is the number of
    /// the copy.
    pub generation: u64,
    /// Records, those of unused numbers included.
    pub places: u32,
    /// CRC-32 of the header with this field zero, and of the records.
    pub crc: u32,
    /// Zero.
    pub reserved: [u64; 6],
}

const _: () = {
    assert!(size_of::<CatalogHeader>() == 64);
    assert!(offset_of!(CatalogHeader, crc) == 12);
};

/// One table of the catalog, whose number is the position of its record. All zeros: the number is
/// not in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TableRecord {
    /// Name, padded with zeros.
    pub name: [u8; NAME_BYTES],
    /// Bytes of a row with its inline heap; a multiple of 64.
    pub row_bytes: u32,
    /// Longest key; exactly 8 means that all keys have 8 bytes.
    pub key_bytes_max: u32,
    /// Longest value.
    pub value_bytes_max: u32,
    /// 1 hash, 2 ordered, 3 sequences.
    pub index_kind: u32,
    /// Hash of what a program says of the types of keys and values, of all versions of them; 0:
    /// nothing.
    pub types: u64,
    /// Versions that there are of the type of the values.
    pub type_versions: u32,
    /// Where inline values are: [`HEAP_IN_HALVES`], [`HEAP_IN_HEADER`], [`HEAP_SINGLE`] with bits
    /// above it, or in a heap of so many bytes behind the header and the key, a multiple of 8,
    /// which both versions of a row share.
    pub inline_heap: u32,
}

impl TableRecord {
    /// Bytes of a heap that both versions of a row share; 0: there is none.
    pub fn shared_heap_bytes(&self) -> u32 {
        if self.inline_heap.is_multiple_of(8) { self.inline_heap } else { 0 }
    }

    /// Of rows with one inline value: the bytes that they would have with two.
    pub fn row_bytes_of_two(&self) -> Option<u32> {
        let is_single = self.inline_heap & ((1 << SINGLE_SHIFT) - 1) == HEAP_SINGLE;
        is_single.then_some(self.inline_heap >> SINGLE_SHIFT << LINE_SHIFT)
    }

    /// Where the inline values of rows are that have one, and would have so many bytes with two.
    pub fn single_heap(row_bytes_of_two: u32) -> u32 {
        assert!(row_bytes_of_two.is_multiple_of(1 << LINE_SHIFT), "rows have whole lines");
        HEAP_SINGLE | row_bytes_of_two >> LINE_SHIFT << SINGLE_SHIFT
    }
}

/// The inline heap follows the header line and the key, in two halves.
pub const HEAP_IN_HALVES: u32 = 0;
/// The inline heap is the last two words of the header line, behind a key of at most 8 bytes.
/// Chosen when the table is made; values that grow beyond 8 bytes later are in the pools.
pub const HEAP_IN_HEADER: u32 = 1;
/// The inline heap follows the header line and the key, and has one value, that of the newest
/// version. Above these three bits is the number of lines that a row would have with two halves.
pub const HEAP_SINGLE: u32 = 2;
/// Bits of [`HEAP_SINGLE`].
const SINGLE_SHIFT: u32 = 3;
/// A line has so many bits of an address.
const LINE_SHIFT: u32 = 6;

const _: () = {
    assert!(size_of::<TableRecord>() == 80);
    assert!(offset_of!(TableRecord, row_bytes) == 48);
    assert!(offset_of!(TableRecord, types) == 64);
    assert!(offset_of!(TableRecord, inline_heap) == 76);
};

/// The checkpoint: one line, its epoch stored last. Of the two records the newer valid one counts;
/// which of the two it is also says which of a pool's two offset sets counts (O-23, O-38).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CheckpointRecord {
    /// Number of this checkpoint; its parity is the number of the record.
    pub sequence: u64,
    /// Running state hash, low half (O-48); zero where it is not known.
    pub hash_low: u64,
    /// Running state hash, high half.
    pub hash_high: u64,
    /// Live rows.
    pub rows: u64,
    /// Calls that were deferred in this epoch; the log has them to the next.
    pub deferred_calls: u32,
    /// CRC-32 of the struct with this field zero.
    pub crc: u32,
    /// Timestamp of the newest epoch whose calls were logged by then, nanoseconds since 1970: no
    /// later epoch has an earlier one.
    pub timestamp_ns: u64,
    /// Generation of the catalog.
    pub catalog: u32,
    /// [`HASH_KNOWN`] or [`HASH_UNKNOWN`].
    pub hash_state: u32,
    /// Epoch whose end this is. Written last, as one 8-byte store.
    pub epoch: u64,
}

/// The state hash of a checkpoint is that of its rows.
pub const HASH_KNOWN: u32 = 1;
/// The state hash of a checkpoint was not maintained; its place holds zeros.
pub const HASH_UNKNOWN: u32 = 2;

const _: () = {
    assert!(size_of::<CheckpointRecord>() == 64);
    assert!(offset_of!(CheckpointRecord, timestamp_ns) == 40);
    assert!(offset_of!(CheckpointRecord, epoch) == 56);
};

/// Words of a pool's state line: two sets of offsets used in turn, and the collector's tail (NV
/// 5.4, 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PoolState {
    /// The two sets; the set of the newest checkpoint's parity counts.
    pub sets: [PoolOffsets; 2],
    /// Tail after the last major collection; never reverted, so it counts when it is beyond the
    /// set's tail.
    pub collected_tail: u64,
    /// CRC-32 of each set.
    pub crcs: [u32; 2],
}

/// How much of a pool is in use. All are counters that only grow.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct PoolOffsets {
    /// Slots allocated by the bump allocator.
    pub bump: u64,
    /// Entries popped from the free list.
    pub head: u64,
    /// Entries appended to the free list.
    pub tail: u64,
}

const _: () = {
    assert!(size_of::<PoolState>() == 64);
    assert!(offset_of!(PoolState, collected_tail) == 48);
};

/// A persistent row's header line. The inline heap follows: two fixed halves, one for each version,
/// or one heap that both share; or, with [`HEAP_IN_HEADER`], it is the last two words of `key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RowHeader {
    /// The two versions. The stale one is overwritten, serial id first (O-26).
    pub versions: [VersionWords; 2],
    /// Table of the row.
    pub table: u16,
    /// Bytes of the key.
    pub key_bytes: u16,
    /// CRC-32 of table and key.
    pub crc: u32,
    /// First bytes of the key.
    pub key: [u8; KEY_BYTES_IN_HEADER as usize],
}

/// One version: who wrote it and where its value is.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct VersionWords {
    /// Serial id of the writer; 0: no version.
    pub serial_id: u64,
    /// [`crate::ValuePointer`].
    pub pointer: u64,
}

const _: () = {
    assert!(size_of::<RowHeader>() == ROW_HEADER_BYTES as usize);
    assert!(offset_of!(RowHeader, table) == 32);
    assert!(offset_of!(RowHeader, crc) == 36);
    assert!(offset_of!(RowHeader, key) == 40);
};
