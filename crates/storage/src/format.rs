//! Every struct and word that lies on the device, with its size and offsets pinned.
//!
//! Little-endian, fixed width, offsets and never addresses (O-45). The image begins with two
//! superblocks, two checkpoint records, two catalogs, the pool states and the segment directory;
//! the rest is segments. docs/format.md describes the whole; `nvcaracal inspect format` prints
//! [`layout`].
//!
//! Knows nothing of transactions or of how an epoch runs.

use std::mem::{offset_of, size_of};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First eight bytes of a superblock.
pub const SUPERBLOCK_MAGIC: [u8; 8] = *b"NVCARACL";
/// Format version; a store of another major version is refused (O-53).
pub const FORMAT_VERSION: u32 = 8;
/// Feature bits that a reader must know to open the store at all.
pub const FEATURES_KNOWN: u64 = 0;

/// Most tables of one store.
pub const TABLES_MAX: usize = 128;
/// Most sub-pools: independent allocators, shared out among however many workers there are (O-44).
pub const SUB_POOLS: usize = 64;
/// Smallest value class in bytes; classes are powers of two.
pub const CLASS_BYTES_MIN: u64 = 128;
/// Largest value class in bytes.
pub const CLASS_BYTES_MAX: u64 = 256 * 1024;
/// Number of value classes.
pub const CLASSES: usize =
    (CLASS_BYTES_MAX.trailing_zeros() - CLASS_BYTES_MIN.trailing_zeros()) as usize + 1;
/// Pools: one of rows for each table, one of values for each class.
pub const POOLS: usize = TABLES_MAX + CLASSES;
/// Longest table name in bytes.
pub const NAME_BYTES: usize = 48;
/// Longest key in bytes.
pub const KEY_BYTES_MAX: u32 = 256;
/// Longest value in bytes. The length of a value has 18 bits in its pointer.
pub const VALUE_BYTES_MAX: u32 = (CLASS_BYTES_MAX - 16) as u32;
/// Bytes of a row's header line, which holds everything that recovery must see change atomically.
pub const ROW_HEADER_BYTES: u64 = 64;
/// Key bytes inside the header line; the rest of a longer key follows it.
pub const KEY_BYTES_IN_HEADER: u64 = 24;

/// Offset of the first superblock; the second follows 4 KiB later.
pub const SUPERBLOCKS_OFFSET: u64 = 0;
/// Distance between the two superblocks.
pub const SUPERBLOCK_STRIDE: u64 = 4096;
/// Offset of the two checkpoint records, one 256-byte block each.
pub const CHECKPOINTS_OFFSET: u64 = 8192;
/// Distance between the two checkpoint records.
pub const CHECKPOINT_STRIDE: u64 = 256;
/// Offset of the first copy of the catalog.
pub const CATALOGS_OFFSET: u64 = 12288;
/// Distance between the two copies of the catalog.
pub const CATALOG_STRIDE: u64 = ((size_of::<CatalogHeader>()
    + TABLES_MAX * size_of::<TableRecord>()) as u64)
    .next_multiple_of(4096);
/// Offset of the pool states.
pub const POOL_STATES_OFFSET: u64 = CATALOGS_OFFSET + 2 * CATALOG_STRIDE;
/// Offset of the segment directory.
pub const DIRECTORY_OFFSET: u64 =
    (POOL_STATES_OFFSET + (SUB_POOLS * POOLS * 64) as u64).next_multiple_of(4096);

/// Geometry of a store, written once at creation, twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Superblock {
    /// [`SUPERBLOCK_MAGIC`].
    pub magic: [u8; 8],
    /// [`FORMAT_VERSION`].
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
    /// Where inline values are: [`HEAP_IN_HALVES`], [`HEAP_IN_HEADER`], or in a heap of so many
    /// bytes behind the header and the key, a multiple of 8, which both versions of a row share.
    pub inline_heap: u32,
}

impl TableRecord {
    /// Bytes of a heap that both versions of a row share; 0: there is none.
    pub fn shared_heap_bytes(&self) -> u32 {
        if self.inline_heap.is_multiple_of(8) { self.inline_heap } else { 0 }
    }
}

/// The inline heap follows the header line and the key, in two halves.
pub const HEAP_IN_HALVES: u32 = 0;
/// The inline heap is the last two words of the header line, behind a key of at most 8 bytes.
/// Chosen when the table is made; values that grow beyond 8 bytes later are in the pools.
pub const HEAP_IN_HEADER: u32 = 1;

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
    /// [`HASH_KNOWN`] or [`HASH_UNKNOWN`].
    pub hash_state: u64,
    /// Generation of the catalog.
    pub catalog: u64,
    /// Epoch whose end this is. Written last, as one 8-byte store.
    pub epoch: u64,
}

/// The state hash of a checkpoint is that of its rows.
pub const HASH_KNOWN: u64 = 1;
/// The state hash of a checkpoint was not maintained; its place holds zeros.
pub const HASH_UNKNOWN: u64 = 2;

const _: () = {
    assert!(size_of::<CheckpointRecord>() == 64);
    assert!(offset_of!(CheckpointRecord, hash_state) == 40);
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
    /// Entries taken from the free list.
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
    /// [`ValuePointer`].
    pub pointer: u64,
}

const _: () = {
    assert!(size_of::<RowHeader>() == ROW_HEADER_BYTES as usize);
    assert!(offset_of!(RowHeader, table) == 32);
    assert!(offset_of!(RowHeader, crc) == 36);
    assert!(offset_of!(RowHeader, key) == 40);
};

/// Epoch in the high 40 bits, position in the epoch in the low 24; total order of everything
/// (O-01). Epochs count from 1, so 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SerialId(pub u64);

/// Bits of the position.
pub const POSITION_BITS: u32 = 24;
/// Most transactions of an epoch.
pub const EPOCH_CALLS_MAX: u64 = (1 << POSITION_BITS) - 1;
/// Last epoch number: at a thousand epochs a second, 34 years times a thousand.
pub const EPOCH_MAX: u64 = (1 << (64 - POSITION_BITS)) - 1;

impl SerialId {
    /// The serial id of a position in an epoch.
    #[inline(always)]
    pub fn new(epoch: u64, position: u64) -> Self {
        debug_assert!(epoch <= EPOCH_MAX && position <= EPOCH_CALLS_MAX);
        Self(epoch << POSITION_BITS | position)
    }

    /// Epoch part.
    #[inline(always)]
    pub fn epoch(self) -> u64 {
        self.0 >> POSITION_BITS
    }

    /// Position part.
    #[inline(always)]
    pub fn position(self) -> u64 {
        self.0 & EPOCH_CALLS_MAX
    }
}

/// Where a persistent value is: bits 0-1 kind (0 none, 1 in the row's inline heap, 2 in the value
/// pool), bits 2-19 length in bytes, bits 20-63 offset of the pool slot in 16-byte units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValuePointer(pub u64);

impl ValuePointer {
    /// A value in the inline heap.
    pub fn inline(len: u64) -> Self {
        debug_assert!(len <= u64::from(VALUE_BYTES_MAX));
        Self(1 | len << 2)
    }

    /// A value in a pool slot.
    pub fn external(offset: u64, len: u64) -> Self {
        debug_assert!(len <= u64::from(VALUE_BYTES_MAX) && offset.is_multiple_of(16));
        Self(2 | len << 2 | (offset / 16) << 20)
    }

    /// Length of the value in bytes.
    pub fn value_bytes(self) -> u64 {
        self.0 >> 2 & 0x3ffff
    }

    /// Whether there is no value.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Offset of the pool slot, if the value is in one.
    pub fn external_offset(self) -> Option<u64> {
        (self.0 & 3 == 2).then_some((self.0 >> 20) * 16)
    }

    /// Whether the value is in the inline heap.
    pub fn is_inline(self) -> bool {
        self.0 & 3 == 1
    }

    /// Whether the word can be one of ours.
    pub fn is_valid(self) -> bool {
        self.0 == 0
            || self.value_bytes() <= u64::from(VALUE_BYTES_MAX)
                && (self.is_inline() && self.0 >> 20 == 0 || self.external_offset().is_some())
    }
}

/// One field of an on-device struct, for `inspect format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldLayout {
    /// Name in the source.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// What it is for.
    pub meaning: &'static str,
}

/// One on-device struct, for `inspect format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructLayout {
    /// Name in the source.
    pub name: &'static str,
    /// Size in bytes.
    pub bytes: usize,
    /// Fields in order.
    pub fields: Vec<FieldLayout>,
}

/// Describes a struct by its own definition, so that the page cannot differ from the code.
macro_rules! describe {
    ($type:ty { $($field:ident: $fty:ty = $meaning:literal),* $(,)? }) => {{
        // A field left out or of another type would not compile or not add up.
        let fields = vec![$($crate::format::FieldLayout {
            name: stringify!($field),
            offset: std::mem::offset_of!($type, $field),
            bytes: { let _check: fn(&$type) -> &$fty = |s| &s.$field; size_of::<$fty>() },
            meaning: $meaning,
        }),*];
        assert_eq!(fields.iter().map(|f| f.bytes).sum::<usize>(), size_of::<$type>());
        $crate::format::StructLayout { name: stringify!($type), bytes: size_of::<$type>(), fields }
    }};
}

pub(crate) use describe;

/// The layout of every struct of the image, in the order of its place.
pub fn layout() -> Vec<StructLayout> {
    vec![
        describe!(Superblock {
            magic: [u8; 8] = "NVCARACL",
            version: u32 = "format version",
            crc: u32 = "CRC-32 with this field zero",
            features_required: u64 = "features a reader must know",
            features_optional: u64 = "features a reader may ignore",
            instance: u64 = "random number of the store",
            segment_bytes: u64 = "bytes of a segment",
            segments_max: u64 = "entries of the segment directory",
            log_segment_bytes: u64 = "bytes of a segment of the input log",
        }),
        describe!(CheckpointRecord {
            sequence: u64 = "number of the checkpoint",
            hash_low: u64 = "running state hash, low half",
            hash_high: u64 = "running state hash, high half",
            rows: u64 = "live rows",
            deferred_calls: u32 = "calls deferred to the next epoch",
            crc: u32 = "CRC-32 with this field zero",
            hash_state: u64 = "1: the state hash is known, 2: it is not",
            catalog: u64 = "generation of the catalog",
            epoch: u64 = "epoch, stored last",
        }),
        describe!(CatalogHeader {
            generation: u64 = "number of this catalog; its parity is that of the copy",
            places: u32 = "records",
            crc: u32 = "CRC-32 of the header with this field zero, and of the records",
            reserved: [u64; 6] = "zero",
        }),
        describe!(TableRecord {
            name: [u8; NAME_BYTES] = "name, padded with zeros",
            row_bytes: u32 = "bytes of a row",
            key_bytes_max: u32 = "longest key",
            value_bytes_max: u32 = "longest value",
            index_kind: u32 = "1 hash, 2 ordered, 3 sequences",
            types: u64 = "hash of the types of keys and values in words; 0: not known",
            type_versions: u32 = "versions of the type of the values",
            inline_heap: u32 = "0: halves, 1: two words in the header, else bytes of a shared heap",
        }),
        describe!(PoolState {
            sets: [PoolOffsets; 2] = "bump, head and tail, by parity of the checkpoint",
            collected_tail: u64 = "tail after the last major collection",
            crcs: [u32; 2] = "CRC-32 of each set",
        }),
        describe!(PoolOffsets {
            bump: u64 = "slots allocated by the bump allocator",
            head: u64 = "entries taken from the free list",
            tail: u64 = "entries appended to the free list",
        }),
        describe!(RowHeader {
            versions: [VersionWords; 2] = "the two versions",
            table: u16 = "table of the row",
            key_bytes: u16 = "bytes of the key",
            crc: u32 = "CRC-32 of table and key",
            key: [u8; KEY_BYTES_IN_HEADER as usize] = "first bytes of the key",
        }),
        describe!(VersionWords {
            serial_id: u64 = "writer; 0: no version",
            pointer: u64 = "kind, length, offset of the value",
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_01_serial_ids_order_by_epoch_then_position() {
        let last = SerialId::new(7, EPOCH_CALLS_MAX);
        assert!(last < SerialId::new(8, 0));
        assert_eq!((last.epoch(), last.position()), (7, EPOCH_CALLS_MAX));
        assert_eq!(SerialId::new(EPOCH_MAX, 5).epoch(), EPOCH_MAX);
    }

    #[test]
    fn o_42_pointers_keep_length_and_offset_at_their_limits() {
        for len in [0, 1, 4097, u64::from(VALUE_BYTES_MAX)] {
            let p = ValuePointer::external((1 << 48) - 16, len);
            assert_eq!((p.value_bytes(), p.external_offset()), (len, Some((1 << 48) - 16)));
            assert!(p.is_valid());
            let p = ValuePointer::inline(len);
            assert_eq!((p.value_bytes(), p.external_offset(), p.is_null()), (len, None, false));
            assert!(p.is_inline() && p.is_valid());
        }
    }

    /// O-54: what no pointer of ours looks like is damage.
    #[test]
    fn o_54_other_words_are_no_pointers() {
        let too_long = u64::from(VALUE_BYTES_MAX) + 1;
        for (word, is_valid) in [
            (0, true),
            (3, false),
            (4, false),
            (1 | too_long << 2, false),
            (2 | too_long << 2 | 5 << 20, false),
            (1 | 8 << 2 | 1 << 20, false),
            (1 | 8 << 2 | 1 << 63, false),
            (3 | 8 << 2 | 5 << 20, false),
        ] {
            assert_eq!(ValuePointer(word).is_valid(), is_valid, "{word:#x}");
        }
    }

    #[test]
    fn the_layout_page_covers_every_byte() {
        assert!(layout().len() >= 7);
    }
}
