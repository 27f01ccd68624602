//! What counts as a store, a table, and a catalog.

use std::sync::Arc;

use pmem::Dram;

use super::*;

/// The superblock of a small store, without its checksum.
pub(crate) fn small_superblock() -> Superblock {
    Superblock {
        magic: SUPERBLOCK_MAGIC,
        version: FORMAT_VERSION,
        crc: 0,
        features_required: FEATURES_KNOWN,
        features_optional: 0,
        instance: 77,
        segment_bytes: 4096,
        segments_max: 8,
        log_segment_bytes: 4096,
    }
}

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
    let mut superblock = small_superblock();
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
        Superblock { version: FORMAT_VERSION - 1, ..superblock },
        Superblock { version: FORMAT_VERSION + 1, ..superblock },
        Superblock { features_required: FEATURES_KNOWN | 1 << 63, ..superblock },
    ] {
        let changed = Superblock { crc: superblock_crc(&changed), ..changed };
        let error = read_copies([changed.as_bytes(), &zeros], false).unwrap_err();
        assert!(matches!(error, StorageError::Foreign(_)), "{error}");
    }
}

/// O-53: both copies are written, each where it is looked for.
#[test]
fn o_53_either_copy_opens_a_new_store() {
    for lost in 0..2 {
        let device = Arc::new(Dram::new(1 << 20, 4096).unwrap());
        device.grow_image(1 << 20).unwrap();
        let mut port = Port::new(Arc::clone(&device), 0);
        write_superblocks(&mut port, small_superblock());
        let zeros = vec![0; SUPERBLOCK_STRIDE as usize];
        // SAFETY: this test owns the device.
        unsafe { port.store_bytes(SUPERBLOCKS_OFFSET + lost * SUPERBLOCK_STRIDE, &zeros) };
        let found = read_superblock(device.as_ref()).unwrap().expect("the other copy is whole");
        assert_eq!(found.instance, 77, "without copy {lost}");
    }
}

fn record() -> TableRecord {
    let definition = TableDefinition {
        name: "rows".into(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max: 8,
        row_bytes: 64,
    };
    definition.to_record(4096).unwrap()
}

/// A torn record, or one of zeros, is that of a table that nobody used yet; before another
/// one, or with slots allocated, it is damage.
#[test]
fn o_54_only_the_last_record_may_be_torn() {
    let good = record();
    let torn = TableRecord { crc: good.crc ^ 1, ..good };
    let zeros = TableRecord::read_from_bytes(&[0; size_of::<TableRecord>()]).unwrap();
    let cases =
        [(false, false, true), (true, false, false), (false, true, false), (true, true, false)];
    for (lost, (next, in_use, whole)) in
        [torn, zeros].into_iter().flat_map(|l| cases.map(|c| (l, c)))
    {
        let device = Arc::new(Dram::new(8 << 20, 4096).unwrap());
        device.grow_image(4 << 20).unwrap();
        let mut port = Port::new(Arc::clone(&device), 0);
        write_table(&mut port, 0, &good);
        write_table(&mut port, 1, &lost);
        if next {
            write_table(&mut port, 2, &good);
        }
        if in_use {
            let segments = crate::Segments::new(4096, 8);
            segments.reserve(device.as_ref(), 1).unwrap();
            let sub_pool = crate::SubPool::load(device.as_ref(), &segments, 1, 5, 64, 0);
            let mut sub_pool = sub_pool.unwrap();
            sub_pool.bump(&mut port, &segments).unwrap();
            sub_pool.save(&mut port, 1);
        }
        let found = read_catalog(device.as_ref(), 4096);
        match found {
            Ok(records) => assert!(whole && records == [good], "{next} {in_use}"),
            Err(error) => assert!(!whole && error.to_string().contains("catalog record 1")),
        }
    }
}

/// What lies behind the catalog is no record: a pool that is in use there says nothing of the last.
#[test]
fn o_54_the_last_record_of_a_full_catalog_may_be_torn() {
    let good = record();
    let device = Arc::new(Dram::new(8 << 20, 4096).unwrap());
    device.grow_image(4 << 20).unwrap();
    let mut port = Port::new(Arc::clone(&device), 0);
    for place in 0..TABLES_MAX {
        let crc = if place == TABLES_MAX - 1 { good.crc ^ 1 } else { good.crc };
        write_table(&mut port, place, &TableRecord { crc, ..good });
    }
    let segments = crate::Segments::new(4096, 8);
    segments.reserve(device.as_ref(), 1).unwrap();
    let mut sub_pool = crate::SubPool::load(device.as_ref(), &segments, 0, 0, 64, 0).unwrap();
    sub_pool.bump(&mut port, &segments).unwrap();
    sub_pool.save(&mut port, 2);
    assert_ne!(device.image().load_u64(record_offset(TABLES_MAX)), 0);
    assert_eq!(read_catalog(device.as_ref(), 4096).unwrap(), vec![good; TABLES_MAX - 1]);
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
