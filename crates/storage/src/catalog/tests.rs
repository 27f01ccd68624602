//! What counts as a catalog and as a table, and what may change.

use std::sync::Arc;

use pmem::{AnyDevice, Device, Dram, Port};

use super::change::{CatalogChange, CatalogRequest, TypesMark};
use super::definition::{INLINE_BYTES_DEFAULT, ROW_BYTES_EXTERNAL};
use super::stored::{copy_offset, record_offset};
use super::*;
use crate::error::{Result, StorageError};
use crate::format::{
    CATALOG_STRIDE, HEAP_IN_HEADER, KEY_BYTES_MAX, NAME_BYTES, TABLES_MAX, TableRecord,
    VALUE_BYTES_MAX,
};
use crate::ids::TableId;
use crate::row::RowLayout;

const SEGMENT_BYTES: u64 = 4096;

fn numbers<const N: usize>(of: [u16; N]) -> Vec<TableId> {
    of.map(TableId).into()
}

fn table(name: &str) -> TableDefinition {
    TableDefinition {
        name: name.into(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max: 100,
        row_bytes: 0,
        shared_heap_bytes: 0,
    }
}

fn record(name: &str) -> TableRecord {
    table(name).to_record(SEGMENT_BYTES).unwrap()
}

fn port() -> Port {
    let device = AnyDevice::new(Dram::new(4 << 20, 4096).unwrap());
    device.grow_image(4 << 20).unwrap();
    Port::new(device, 0)
}

/// Found by fuzzing: a record with a right checksum and rows of no bytes was divided by.
#[test]
fn o_54_a_record_that_describes_no_table_is_corrupt() {
    let good = record("rows");
    let bad = [
        TableRecord { row_bytes: 0, ..good },
        TableRecord { row_bytes: 8192, ..good },
        TableRecord { key_bytes_max: 1 << 31, ..good },
        TableRecord { index_kind: 7, ..good },
        TableRecord { name: [0xff; NAME_BYTES], ..good },
        TableRecord { inline_heap: HEAP_IN_HEADER, ..good },
        TableRecord { inline_heap: 2, ..good },
        TableRecord { inline_heap: 12, ..good },
        TableRecord { inline_heap: 4096, ..good },
    ];
    let good = [good, UNUSED, TableRecord { types: 5, type_versions: 2, ..good }];
    let cases = bad.into_iter().map(|r| (r, false)).chain(good.into_iter().map(|r| (r, true)));
    for (record, works) in cases {
        let mut port = port();
        write(&mut port, 6, &[record]);
        let read = read(port.device().as_ref(), 6, SEGMENT_BYTES);
        assert_eq!(read.is_ok(), works, "{record:?}");
        assert!(read.is_ok() || read.unwrap_err().to_string().contains("catalog record 0"));
    }
}

/// O-91: the generation that the checkpoint names says which copy counts, and writing the next one
/// leaves it as it was.
#[test]
fn o_91_the_named_generation_counts() {
    let mut port = port();
    let (old, new) = ([record("a"), UNUSED, record("c")], [record("a")]);
    write(&mut port, 4, &old);
    write(&mut port, 5, &new);
    let device = Arc::clone(port.device());
    let read = |generation| read(device.as_ref(), generation, SEGMENT_BYTES);
    assert_eq!((read(4).unwrap(), read(5).unwrap()), (old.to_vec(), new.to_vec()));
    let other = read(6).unwrap_err().to_string();
    assert!(other.contains("names catalog 6, in its place is catalog 4"), "{other}");
}

/// O-54: a bit of any word of the catalog is enough to refuse it.
#[test]
fn o_54_a_damaged_catalog_is_corrupt() {
    let mut port = port();
    write(&mut port, 1, &vec![record("a"); TABLES_MAX]);
    let device = Arc::clone(port.device());
    let (first, last) = (copy_offset(1), record_offset(1, TABLES_MAX));
    assert!(last <= copy_offset(0) + 2 * CATALOG_STRIDE);
    for at in (first..last).step_by(8) {
        let word = device.image().load_u64(at);
        // SAFETY: no other thread uses the device.
        unsafe { port.store_u64(at, word ^ 1 << 33) };
        assert!(read(device.as_ref(), 1, SEGMENT_BYTES).unwrap_err().is_corrupt(), "{at}");
        // SAFETY: as above.
        unsafe { port.store_u64(at, word) };
    }
    assert!(read(device.as_ref(), 1, SEGMENT_BYTES).is_ok());
}

fn request(tables: &[&str], renamed: &[(&str, &str)], dropped: &[&str]) -> CatalogRequest {
    let pair = |&(from, to): &(&str, &str)| (from.to_string(), to.to_string());
    CatalogRequest {
        tables: tables.iter().map(|name| table(name).into()).collect(),
        renamed: renamed.iter().map(pair).collect(),
        dropped: dropped.iter().map(ToString::to_string).collect(),
    }
}

fn plan(stored: &[TableRecord], request: &CatalogRequest) -> Result<CatalogChange> {
    let store = StoreOf { segment_bytes: SEGMENT_BYTES, snapshots: false };
    CatalogChange::plan(stored, request, store)
}

/// O-92: a table keeps its number, a new one gets the smallest that none has.
#[test]
fn o_92_numbers_follow_names() {
    let stored = [record("a"), record("b"), record("c")];
    let same = plan(&stored, &request(&["c", "a"], &[], &[])).unwrap();
    assert_eq!(
        (&same.numbers[..], &same.records[..]),
        (&[TableId(2), TableId(0)][..], &stored[..])
    );
    assert!(same.differences.is_empty() && same.dropped.is_empty());

    let more = plan(&stored, &request(&["d", "b", "d"], &[], &[])).unwrap();
    assert_eq!((more.numbers, more.differences), (numbers([3, 1, 3]), vec![]));

    let changed = request(&["new", "d", "e"], &[("c", "d")], &["b", "lost"]);
    let change = plan(&stored, &changed).unwrap();
    assert_eq!((change.numbers, change.dropped), (numbers([1, 2, 3]), numbers([1])));
    assert_eq!(change.differences.len(), 2, "{:?}", change.differences);
    assert_eq!(change.records, [record("a"), record("new"), record("d"), record("e")]);
    // Asked for again there is nothing left to do.
    let again = plan(&change.records, &changed).unwrap();
    assert_eq!((again.numbers, again.differences.len()), (numbers([1, 2, 3]), 0));

    let anew = plan(&stored, &request(&["b"], &[], &["b"])).unwrap();
    assert_eq!((&anew.records[..], anew.dropped), (&stored[..], numbers([1])));
    assert!(anew.is_change && !same.is_change && more.is_change);

    let left = plan(&stored, &request(&[], &[], &["a", "c"])).unwrap();
    assert_eq!(left.records, [UNUSED, record("b"), UNUSED]);
    let full: Vec<_> = (0..TABLES_MAX).map(|n| record(&format!("t{n}"))).collect();
    assert!(plan(&full, &request(&["t5"], &[], &[])).is_ok());
    assert!(plan(&full, &request(&["u"], &[], &["t5"])).is_ok());
    assert!(matches!(plan(&full, &request(&["u"], &[], &[])), Err(StorageError::Limit(_))));
    let allocated = plan(&stored, &request(&[], &[("a", "b")], &[])).unwrap_err().to_string();
    assert!(allocated.contains("\"a\" cannot be renamed to \"b\""), "{allocated}");
}

/// O-95: what would move bytes in a row is refused, with both definitions; values may get longer.
#[test]
fn o_95_only_the_longest_value_may_grow() {
    let stored = [record("a")];
    let row_bytes = stored[0].row_bytes;
    let ask = |definition: TableDefinition| {
        let tables = vec![definition.into()];
        plan(&stored, &CatalogRequest { tables, ..CatalogRequest::default() })
    };
    assert!(ask(TableDefinition { row_bytes, ..table("a") }).unwrap().differences.is_empty());
    let longer = ask(TableDefinition { value_bytes_max: 4000, ..table("a") }).unwrap();
    assert_eq!(longer.records[0], TableRecord { value_bytes_max: 4000, ..stored[0] });
    assert!(longer.differences[0].contains("from 100 to 4000 bytes"));
    for changed in [
        TableDefinition { row_bytes: row_bytes + 64, ..table("a") },
        TableDefinition { shared_heap_bytes: 64, ..table("a") },
        TableDefinition { index: IndexKind::Ordered, ..table("a") },
        TableDefinition { key_bytes_max: 9, ..table("a") },
        TableDefinition { key_bytes_max: 7, ..table("a") },
        TableDefinition { value_bytes_max: 99, ..table("a") },
        TableDefinition { value_bytes_max: 4097, ..table("a") },
    ] {
        let error = ask(changed.clone()).unwrap_err();
        let is_other = matches!(error, StorageError::OtherTable(_));
        assert!(is_other || error.is_limit() && changed.value_bytes_max > 4096, "{changed:?}");
        let text = error.to_string();
        let (was, is) = (format!("value_bytes_max: {}", 100), format!("{changed:?}"));
        let is = is.split("row_bytes").next().unwrap();
        let names_both = text.contains(&was) && text.contains(is);
        assert!(names_both || text.contains("must be 0 to 4096"), "{text}");
    }
}

/// O-95: a shared heap is kept by who leaves the rows open, and refused by who names others.
#[test]
fn o_95_a_shared_heap_stays_as_it_is() {
    let geometry = |row_bytes, shared_heap_bytes| {
        vec![TableDefinition { row_bytes, shared_heap_bytes, ..table("a") }.into()]
    };
    let ask = |stored: &[TableRecord], tables| {
        plan(stored, &CatalogRequest { tables, ..CatalogRequest::default() })
    };
    let stored = ask(&[], geometry(256, 168)).unwrap().records;
    assert_eq!((stored[0].row_bytes, stored[0].inline_heap), (256, 168));
    for (row_bytes, shared_heap_bytes, is_same) in
        [(256, 168, true), (0, 0, true), (0, 168, true), (256, 0, false), (0, 160, false)]
    {
        let asked = ask(&stored, geometry(row_bytes, shared_heap_bytes));
        assert_eq!(asked.is_ok(), is_same, "{row_bytes} {shared_heap_bytes}");
        assert!(asked.map_or(true, |change| change.records == stored));
    }
}

/// What is known of types is kept; asked for without, a table keeps what it has.
#[test]
fn types_are_kept_until_others_are_known() {
    let marked = |hash, versions| {
        let types = TypesMark { hash, versions };
        let tables = vec![TableRequest { types, ..table("a").into() }];
        CatalogRequest { tables, ..CatalogRequest::default() }
    };
    let mut records = vec![record("a")];
    for (hash, versions, differs) in [(7, 1, false), (0, 0, false), (8, 2, true), (8, 2, false)] {
        let change = plan(&records, &marked(hash, versions)).unwrap();
        assert_eq!(!change.differences.is_empty(), differs, "{hash}");
        records = change.records;
    }
    assert_eq!((records[0].types, records[0].type_versions), (8, 2));
    let sized = TableRequest { row_bytes_if_new: 256, ..table("b").into() };
    let tables = vec![sized.clone(), TableRequest { row_bytes_if_new: 512, ..sized }];
    let change = plan(&[], &CatalogRequest { tables, ..CatalogRequest::default() }).unwrap();
    assert_eq!(change.records[0].row_bytes, 256);
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
        shared_heap_bytes: 0,
    };
    let shared = |key: u32, row: u32, shared_heap_bytes: u32| TableDefinition {
        shared_heap_bytes,
        ..table(1, key, 8, row)
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
        (shared(8, 256, 168), 4096, true),
        (shared(8, 256, 192), 4096, true),
        (shared(8, 256, 200), 4096, false),
        (shared(8, 256, 164), 4096, false),
        (shared(25, 256, 176), 4096, true),
        (shared(25, 256, 184), 4096, false),
        (shared(8, 0, 4096 - 64), 4096, true),
        (shared(8, 0, 4096), 4096, false),
        (shared(8, 0, u32::MAX - 7), 4096, false),
        (TableDefinition { index: IndexKind::Sequence, ..shared(8, 128, 8) }, 4096, false),
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
    for (heap, row) in [(8, 128), (64, 128), (72, 192), (168, 256), (192, 256)] {
        assert_eq!(shared(8, 0, heap).to_record(4096).unwrap().row_bytes, row, "{heap}");
    }
}
