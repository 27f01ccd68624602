//! The layout of on-device structs in words, which their definitions give.

use crate::format::limits::{KEY_BYTES_IN_HEADER, NAME_BYTES};
use crate::format::structs::{
    CatalogHeader, CheckpointRecord, PoolOffsets, PoolState, RowHeader, Superblock, TableRecord,
    VersionWords,
};

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
            timestamp_ns: u64 = "timestamp of the newest logged epoch, nanoseconds since 1970",
            catalog: u32 = "generation of the catalog",
            hash_state: u32 = "1: the state hash is known, 2: it is not",
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
            inline_heap: u32 = "0: halves, 1: two words in the header, 2 in bits 0-2: one value, \
                                else bytes of a shared heap",
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
    fn the_layout_page_covers_every_byte() {
        assert!(layout().len() >= 7);
    }
}
