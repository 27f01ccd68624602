//! Every struct and word that lies on the device, with its size and offsets pinned.
//!
//! Little-endian, fixed width, offsets and never addresses (O-45). The image begins with two
//! superblocks, two checkpoint records, two catalogs, the pool states and the segment directory;
//! the rest is segments. docs/format.md describes the whole; `nvcaracal inspect format` prints
//! [`layout`].
//!
//! Knows nothing of transactions or of how an epoch runs.

mod limits;
mod pointer;
mod serial_id;

mod structs;

mod places;

mod layout;
mod read;

pub use layout::{FieldLayout, StructLayout, layout};
pub use limits::{
    CLASS_BYTES_MAX, CLASS_BYTES_MIN, CLASSES, FEATURE_CONSUMERS, FEATURE_KEPT_INDEXES,
    FEATURE_REMEMBERED_PROGRAMS, FEATURE_SINGLE_HEAPS, FEATURES_KNOWN, FORMAT_VERSION,
    KEY_BYTES_IN_HEADER, KEY_BYTES_MAX, NAME_BYTES, POOLS, ROW_HEADER_BYTES, SUB_POOLS,
    SUPERBLOCK_MAGIC, TABLES_MAX, VALUE_BYTES_MAX,
};
pub use places::{
    CATALOG_STRIDE, CATALOGS_OFFSET, CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, DIRECTORY_OFFSET,
    POOL_STATES_OFFSET, SUPERBLOCK_STRIDE, SUPERBLOCKS_OFFSET,
};
pub use pointer::ValuePointer;
pub use serial_id::{EPOCH_CALLS_MAX, EPOCH_MAX, POSITION_BITS, SerialId};
pub use structs::{
    CatalogHeader, CheckpointRecord, HASH_KNOWN, HASH_UNKNOWN, HEAP_IN_HALVES, HEAP_IN_HEADER,
    HEAP_SINGLE, PoolOffsets, PoolState, RowHeader, Superblock, TableRecord, VersionWords,
};

pub(crate) use layout::describe;
pub(crate) use read::read_struct;
