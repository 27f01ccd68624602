//! Where the parts of an image lie that come before its segments.

use crate::format::limits::{POOLS, SUB_POOLS, TABLES_MAX};
use crate::format::structs::{CatalogHeader, TableRecord};

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
