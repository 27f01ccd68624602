//! Superblocks and catalog: what a store is, written at creation and when a table is added.
//!
//! The superblock is written twice; either copy opens the store (O-53). A catalog record is
//! written, made durable, and only then used; its own checksum says whether it is complete.

use pmem::{Device, Port};
use zerocopy::{FromBytes, IntoBytes};

use crate::format::{
    CATALOG_OFFSET, FEATURES_KNOWN, FORMAT_VERSION, KEY_BYTES_MAX, NAME_BYTES, ROW_HEADER_BYTES,
    SUPERBLOCK_MAGIC, SUPERBLOCK_STRIDE, SUPERBLOCKS_OFFSET, Superblock, TABLES_MAX, TableRecord,
    VALUE_BYTES_MAX,
};
use crate::{Result, RowLayout, StorageError};

/// How the rows of a table are found. Stored in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// Point reads only.
    Hash,
    /// Point reads and scans.
    Ordered,
    /// A family of sequences: 8-byte keys, 8-byte values.
    Sequence,
}

/// A table as its user asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// Unique name, 1 to 48 bytes.
    pub name: String,
    /// How rows are found.
    pub index: IndexKind,
    /// Longest key, 1 to 256 bytes. Exactly 8 means that every key has 8 bytes.
    pub key_bytes_max: u32,
    /// Longest value, 0 to 262,128 bytes.
    pub value_bytes_max: u32,
    /// Bytes of a persistent row; 0 chooses one that keeps values of up to 2,048 bytes inline, and
    /// 256 (NV 5.3) where they are longer.
    pub row_bytes: u32,
}

/// Longest value that the default row size keeps inline.
const INLINE_BYTES_DEFAULT: u32 = 2048;
/// Row size where values are longer (NV 5.3).
const ROW_BYTES_EXTERNAL: u32 = 256;

impl TableDefinition {
    /// Checks the limits and fixes the row size.
    ///
    /// # Errors
    /// `Limit` naming the table, the value and the limit.
    pub fn to_record(&self, segment_bytes: u64) -> Result<TableRecord> {
        let limit = |what: &str, is: u64, range: String| {
            Err(StorageError::Limit(format!(
                "table {:?}: {what} is {is}, must be {range}",
                self.name
            )))
        };
        if self.name.is_empty() || self.name.len() > NAME_BYTES || self.name.contains('\0') {
            return limit(
                "length of the name",
                self.name.len() as u64,
                format!("1 to {NAME_BYTES}"),
            );
        }
        if !(1..=KEY_BYTES_MAX).contains(&self.key_bytes_max) {
            return limit(
                "longest key",
                self.key_bytes_max.into(),
                format!("1 to {KEY_BYTES_MAX}"),
            );
        }
        let value_limit = u64::from(VALUE_BYTES_MAX).min(segment_bytes);
        if u64::from(self.value_bytes_max) > value_limit {
            let range = format!("0 to {value_limit} (segments have {segment_bytes} bytes)");
            return limit("longest value", self.value_bytes_max.into(), range);
        }
        if self.index == IndexKind::Sequence && (self.key_bytes_max, self.value_bytes_max) != (8, 8)
        {
            return limit(
                "key of a sequence",
                self.key_bytes_max.into(),
                "8, and its value 8".into(),
            );
        }
        let row_bytes = match self.row_bytes {
            0 if self.value_bytes_max <= INLINE_BYTES_DEFAULT => {
                RowLayout::row_bytes_all_inline(self.key_bytes_max, self.value_bytes_max)
            }
            0 => ROW_BYTES_EXTERNAL.max(RowLayout::row_bytes_all_inline(self.key_bytes_max, 0)),
            given => given,
        };
        let least =
            RowLayout::row_bytes_all_inline(self.key_bytes_max, 0).max(ROW_HEADER_BYTES as u32);
        if !row_bytes.is_multiple_of(64)
            || row_bytes < least
            || u64::from(row_bytes) > segment_bytes
        {
            let range = format!("a multiple of 64 from {least} to {segment_bytes}");
            return limit("row size", row_bytes.into(), range);
        }
        let mut record = TableRecord {
            name: [0; NAME_BYTES],
            row_bytes,
            key_bytes_max: self.key_bytes_max,
            value_bytes_max: self.value_bytes_max,
            index_kind: match self.index {
                IndexKind::Hash => 1,
                IndexKind::Ordered => 2,
                IndexKind::Sequence => 3,
            },
            crc: 0,
            reserved: [0; 3],
        };
        record.name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        record.crc = crc32fast::hash(record.as_bytes());
        Ok(record)
    }
}

/// What a catalog record says.
pub(crate) fn definition(record: &TableRecord) -> TableDefinition {
    let len = record.name.iter().position(|&b| b == 0).unwrap_or(NAME_BYTES);
    TableDefinition {
        name: String::from_utf8_lossy(&record.name[..len]).into_owned(),
        index: match record.index_kind {
            1 => IndexKind::Hash,
            2 => IndexKind::Ordered,
            _ => IndexKind::Sequence,
        },
        key_bytes_max: record.key_bytes_max,
        value_bytes_max: record.value_bytes_max,
        row_bytes: record.row_bytes,
    }
}

fn read_struct<T: FromBytes, D: Device>(device: &D, offset: u64) -> T {
    let mut bytes = vec![0u8; size_of::<T>()];
    for (i, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&device.image().load_u64(offset + i as u64 * 8).to_le_bytes());
    }
    T::read_from_bytes(&bytes).expect("sizes match")
}

fn superblock_crc(superblock: &Superblock) -> u32 {
    crc32fast::hash(Superblock { crc: 0, ..*superblock }.as_bytes())
}

/// Writes both superblocks, the second once the first is durable: a crash tears at most one of
/// them.
pub(crate) fn write_superblocks<D: Device>(port: &mut Port<D>, mut superblock: Superblock) {
    superblock.crc = superblock_crc(&superblock);
    for copy in 0..2 {
        let at = SUPERBLOCKS_OFFSET + copy * SUPERBLOCK_STRIDE;
        // SAFETY: at creation nobody else uses the device.
        unsafe { port.store_bytes(at, superblock.as_bytes()) };
        port.flush(at, size_of::<Superblock>() as u64);
        port.fence();
    }
}

/// Reads the superblock: `None` if the device is empty.
///
/// # Errors
/// `Foreign` for other bytes or another version, `Corrupt` if both copies are damaged.
pub(crate) fn read_superblock<D: Device>(device: &D) -> Result<Option<Superblock>> {
    if device.image_bytes() < SUPERBLOCKS_OFFSET + 2 * SUPERBLOCK_STRIDE {
        return Ok(None);
    }
    let copies: [Superblock; 2] =
        [0, 1].map(|copy| read_struct(device, SUPERBLOCKS_OFFSET + copy * SUPERBLOCK_STRIDE));
    let unused = |s: &Superblock| s.as_bytes().iter().all(|&b| b == 0);
    if copies.iter().all(unused) {
        return Ok(None);
    }
    if let Some(good) =
        copies.iter().find(|s| s.magic == SUPERBLOCK_MAGIC && s.crc == superblock_crc(s))
    {
        if good.version != FORMAT_VERSION {
            return Err(StorageError::Foreign(format!(
                "it has format version {}, this program reads version {FORMAT_VERSION}",
                good.version
            )));
        }
        if good.features_required & !FEATURES_KNOWN != 0 {
            return Err(StorageError::Foreign(format!(
                "it needs features {:#x} that this program does not know",
                good.features_required & !FEATURES_KNOWN
            )));
        }
        return Ok(Some(*good));
    }
    let never_checkpointed = crate::checkpoint::read(device).map_or(true, |c| c.epoch == 0);
    if unused(&copies[1]) && never_checkpointed && is_torn(&copies[0]) {
        // A crash while the store was created: there is nothing in it.
        return Ok(None);
    }
    if copies.iter().any(|s| s.magic == SUPERBLOCK_MAGIC) {
        return Err(StorageError::Corrupt("both superblocks fail their checksum".into()));
    }
    Err(StorageError::Foreign(format!("it begins with the bytes {:02x?}", copies[0].magic)))
}

/// Whether the words of a superblock are ours, as far as they reached the medium.
fn is_torn(superblock: &Superblock) -> bool {
    superblock.magic == SUPERBLOCK_MAGIC || superblock.magic == [0; 8]
}

/// Reads the catalog.
///
/// # Errors
/// `Corrupt` with the number of the damaged record, if it is not the last one, or of one that
/// describes no table.
pub(crate) fn read_catalog<D: Device>(device: &D, segment_bytes: u64) -> Result<Vec<TableRecord>> {
    let mut tables = Vec::new();
    for place in 0..TABLES_MAX {
        let record: TableRecord = read_struct(device, record_offset(place));
        if crc32fast::hash(TableRecord { crc: 0, ..record }.as_bytes()) != record.crc {
            // Zeros end the catalog, and so does a torn record that a crash left while the table
            // was added: nothing refers to it. Anything after it proves damage instead.
            let next_used =
                place + 1 < TABLES_MAX && device.image().load_u64(record_offset(place + 1)) != 0;
            if next_used || pool_in_use(device, place) {
                return Err(StorageError::Corrupt(format!("catalog record {place}")));
            }
            break;
        }
        // Sizes are divided by, and added to offsets: they must be those of a table.
        if !matches!(definition(&record).to_record(segment_bytes), Ok(same) if same == record) {
            let what = format!("catalog record {place} describes no table that can be");
            return Err(StorageError::Corrupt(what));
        }
        tables.push(record);
    }
    Ok(tables)
}

/// Counts and charges reading both superblocks and the catalog, to the record after the last one.
pub(crate) fn count_reads<D: Device>(port: &mut Port<D>, tables: usize) {
    for copy in 0..2 {
        let at = SUPERBLOCKS_OFFSET + copy * SUPERBLOCK_STRIDE;
        port.count_load(at, size_of::<Superblock>() as u64);
    }
    let records = (tables + 1).min(TABLES_MAX);
    port.count_load(CATALOG_OFFSET, record_offset(records) - CATALOG_OFFSET);
}

fn pool_in_use<D: Device>(device: &D, table: usize) -> bool {
    (0..crate::format::SUB_POOLS).any(|sub_pool| {
        crate::pool::read_state(device, table as u16, sub_pool as u8)
            .sets
            .iter()
            .any(|s| s.bump != 0)
    })
}

/// Adds a table to the catalog; durable after the caller's fence.
pub(crate) fn write_table<D: Device>(port: &mut Port<D>, place: usize, record: &TableRecord) {
    // SAFETY: tables are added at open, when nobody else uses the device.
    unsafe { port.store_bytes(record_offset(place), record.as_bytes()) };
    port.flush(record_offset(place), size_of::<TableRecord>() as u64);
}

fn record_offset(place: usize) -> u64 {
    CATALOG_OFFSET + (place * size_of::<TableRecord>()) as u64
}

#[cfg(test)]
pub(crate) mod tests;
