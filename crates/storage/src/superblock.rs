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
        if record.as_bytes().iter().all(|&b| b == 0) {
            break;
        }
        if crc32fast::hash(TableRecord { crc: 0, ..record }.as_bytes()) != record.crc {
            // A crash while the table was added leaves a torn record that nothing refers to;
            // anything after it proves damage instead.
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
    (0..crate::format::LANES).any(|lane| {
        crate::pool::read_state(device, table as u16, lane as u8).sets.iter().any(|s| s.bump != 0)
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
mod tests {
    use std::sync::Arc;

    use pmem::Dram;

    use super::*;

    /// Found by fuzzing: a record with a right checksum and rows of no bytes was divided by.
    #[test]
    fn o_54_a_record_that_describes_no_table_is_corrupt() {
        let definition = TableDefinition {
            name: "rows".into(),
            index: IndexKind::Hash,
            key_bytes_max: 8,
            value_bytes_max: 100,
            row_bytes: 0,
        };
        let good = definition.to_record(4096).unwrap();
        let bad = [
            TableRecord { row_bytes: 0, ..good },
            TableRecord { row_bytes: 8192, ..good },
            TableRecord { key_bytes_max: 1 << 31, ..good },
            TableRecord { index_kind: 7, ..good },
            TableRecord { name: [0xff; NAME_BYTES], ..good },
        ];
        for (record, works) in bad.into_iter().map(|r| (r, false)).chain([(good, true)]) {
            let crc = crc32fast::hash(TableRecord { crc: 0, ..record }.as_bytes());
            let device = Arc::new(Dram::new(4 << 20, 4096).unwrap());
            device.grow_image(4 << 20).unwrap();
            let mut port = Port::new(Arc::clone(&device), 0);
            write_table(&mut port, 0, &TableRecord { crc, ..record });
            let read = read_catalog(device.as_ref(), 4096);
            assert_eq!(read.is_ok(), works, "{record:?}");
            assert!(read.is_ok() || read.unwrap_err().to_string().contains("catalog record 0"));
        }
    }
    /// A superblock of a device that has room for both copies and nothing else, and what is read.
    fn read_copies(copies: [&[u8]; 2], checkpointed: bool) -> Result<Option<Superblock>> {
        let device = Arc::new(Dram::new(1 << 20, 4096).unwrap());
        let bytes = SUPERBLOCKS_OFFSET + 2 * SUPERBLOCK_STRIDE;
        device.grow_image(if checkpointed { 1 << 20 } else { bytes }).unwrap();
        let mut port = Port::new(Arc::clone(&device), 0);
        for (copy, bytes) in (0..).zip(copies) {
            // SAFETY: this test owns the device.
            unsafe { port.store_bytes(SUPERBLOCKS_OFFSET + copy * SUPERBLOCK_STRIDE, bytes) };
        }
        if checkpointed {
            let record = crate::format::CheckpointRecord::new(1, 1, None, 0, 0);
            crate::checkpoint::write(&mut port, record);
        }
        read_superblock(device.as_ref())
    }

    /// O-53: one intact copy opens the store. Without one the device is empty only if a creation
    /// that was torn explains what is there; everything else is somebody's data.
    #[test]
    fn o_53_only_a_torn_creation_counts_as_empty() {
        let mut superblock = Superblock {
            magic: SUPERBLOCK_MAGIC,
            version: FORMAT_VERSION,
            crc: 0,
            features_required: FEATURES_KNOWN,
            features_optional: 0,
            instance: 77,
            segment_bytes: 4096,
            segments_max: 8,
            log_segment_bytes: 4096,
        };
        superblock.crc = superblock_crc(&superblock);
        let whole = superblock.as_bytes();
        let zeros = vec![0; whole.len()];
        let torn = [&whole[..16], &zeros[16..]].concat();
        let without_magic = [&zeros[..8], &whole[8..]].concat();
        let other = [b"SQLite f", &whole[8..]].concat();
        for copies in [[whole, &zeros], [&zeros, whole], [whole, whole], [&other, whole]] {
            assert_eq!(read_copies(copies, false).unwrap(), Some(superblock));
        }
        for copies in [[&zeros, &zeros], [&torn, &zeros], [&without_magic, &zeros]] {
            assert_eq!(read_copies(copies.map(Vec::as_slice), false).unwrap(), None);
        }
        for (copies, checkpointed, foreign) in [
            ([&torn, &zeros], true, false),
            ([&torn, &torn], false, false),
            ([&zeros, &torn], false, false),
            ([&other, &zeros], false, true),
            ([&without_magic, &other], false, true),
        ] {
            let error = read_copies(copies.map(Vec::as_slice), checkpointed).unwrap_err();
            assert_eq!(matches!(error, StorageError::Foreign(_)), foreign, "{error}");
            assert_eq!(error.is_corrupt(), !foreign, "{error}");
        }
        for changed in [
            Superblock { version: FORMAT_VERSION + 1, ..superblock },
            Superblock { features_required: FEATURES_KNOWN | 1 << 63, ..superblock },
        ] {
            let changed = Superblock { crc: superblock_crc(&changed), ..changed };
            let error = read_copies([changed.as_bytes(), &zeros], false).unwrap_err();
            assert!(matches!(error, StorageError::Foreign(_)), "{error}");
        }
    }

    /// Every limit of a definition, on both sides.
    #[test]
    fn definitions_have_limits() {
        let table = |name: usize, key: u32, value: u32, row: u32| TableDefinition {
            name: "n".repeat(name),
            index: IndexKind::Hash,
            key_bytes_max: key,
            value_bytes_max: value,
            row_bytes: row,
        };
        for (definition, segment_bytes, fits) in [
            (table(1, 8, 8, 0), 4096, true),
            (table(0, 8, 8, 0), 4096, false),
            (table(NAME_BYTES, 8, 8, 0), 4096, true),
            (table(NAME_BYTES + 1, 8, 8, 0), 4096, false),
            (table(1, 1, 0, 0), 4096, true),
            (table(1, 0, 8, 0), 4096, false),
            (table(1, KEY_BYTES_MAX, 8, 0), 4096, true),
            (table(1, KEY_BYTES_MAX + 1, 8, 0), 4096, false),
            (table(1, 8, 4096, 0), 4096, true),
            (table(1, 8, 4097, 0), 4096, false),
            (table(1, 8, VALUE_BYTES_MAX, 0), 1 << 20, true),
            (table(1, 8, VALUE_BYTES_MAX + 1, 0), 1 << 20, false),
            (table(1, 8, 8, 64), 4096, true),
            (table(1, 8, 8, 96), 4096, false),
            (table(1, 8, 8, 4096), 4096, true),
            (table(1, 8, 8, 4096 + 64), 4096, false),
            (table(1, KEY_BYTES_MAX, 8, 64), 4096, false),
            (TableDefinition { index: IndexKind::Sequence, ..table(1, 8, 8, 0) }, 4096, true),
            (TableDefinition { index: IndexKind::Sequence, ..table(1, 9, 8, 0) }, 4096, false),
            (TableDefinition { index: IndexKind::Sequence, ..table(1, 8, 9, 0) }, 4096, false),
            (TableDefinition { name: "a\0b".into(), ..table(1, 8, 8, 0) }, 4096, false),
        ] {
            let record = definition.to_record(segment_bytes);
            assert_eq!(record.is_ok(), fits, "{definition:?}: {record:?}");
            let Ok(record) = record else { continue };
            let stored = super::definition(&record);
            assert_eq!(TableDefinition { row_bytes: definition.row_bytes, ..stored }, definition);
            assert!(definition.row_bytes == 0 || record.row_bytes == definition.row_bytes);
        }
        let row_bytes = |value| table(1, 8, value, 0).to_record(1 << 20).unwrap().row_bytes;
        let inline = RowLayout::row_bytes_all_inline(8, INLINE_BYTES_DEFAULT);
        assert_eq!(row_bytes(INLINE_BYTES_DEFAULT), inline);
        assert_eq!(row_bytes(INLINE_BYTES_DEFAULT + 1), ROW_BYTES_EXTERNAL);
    }
}
