//! Space that was freed serves what comes next, whatever table or size of values it was for.

use std::path::Path;

use nvcaracal::{
    Database, DeviceSpec, Error, HashTable, Options, Stop, Table, Transaction, Tuning, procedure,
};

const SIZES: HashTable<u64, Vec<u8>> = Table::hash("sizes").with_value_bytes(40_000);
const BEFORE: Table<u64, [u64; 8]> = Table::ordered("before");
const AFTER: Table<u64, [u64; 8]> = Table::ordered("after");

/// Rows of one value each.
const VALUES: u64 = 200;
/// Rows that a table gets in a call.
const ROWS: u64 = 10_000;

#[procedure]
fn put(tx: &mut Transaction, key: u64, bytes: u64) -> Result<(), Stop> {
    tx.insert(SIZES, key, &vec![7; bytes as usize])
}

#[procedure]
fn come(tx: &mut Transaction, first: u64, is_after: bool) -> Result<(), Stop> {
    let table = if is_after { AFTER } else { BEFORE };
    (first..first + ROWS).try_for_each(|key| tx.insert(table, key, &[key; 8]))
}

#[procedure]
fn go(tx: &mut Transaction, first: u64) -> Result<(), Stop> {
    (first..first + ROWS).try_for_each(|key| tx.delete(BEFORE, key).map(drop))
}

fn put_all(db: &Database, bytes: u64) -> Result<(), Error> {
    let mut batch = db.batch();
    let added = (0..VALUES).map(|key| batch.add(&Put { key, bytes }));
    let added: Vec<_> = added.collect::<Result<_, _>>()?;
    let submitted = batch.submit()?;
    added.into_iter().try_for_each(|added| submitted.ticket(added).wait())?;
    db.checkpoint()
}

fn value_bytes(db: &Database) -> Result<u64, Error> {
    db.memory().map(|memory| memory.persistent_values)
}

/// Values that become longer again and again, in each class, take what those of the last size take
/// in a store where they were written as often.
#[test]
fn values_of_a_class_get_the_space_of_others() -> Result<(), Error> {
    for workers in [1, 2] {
        let open = || {
            let options = Database::options().workers(workers).table(SIZES);
            options
                .tuning(Tuning { segment_bytes: 64 << 10, ..Tuning::default() })
                .procedure::<Put>()
                .open_device(DeviceSpec::Dram)
        };
        let db = open()?;
        let mut bytes = 200;
        while bytes < 20_000 {
            put_all(&db, bytes)?;
            put_all(&db, bytes)?;
            bytes *= 2;
        }
        let new = open()?;
        (0..4).try_for_each(|_| {
            put_all(&db, bytes)?;
            put_all(&new, bytes)
        })?;
        let (grown, new) = (value_bytes(&db)?, value_bytes(&new)?);
        println!("{workers} workers: {grown} bytes of values, {new} in a new store");
        assert!(grown <= new + new / 10, "{workers} workers: {grown} bytes, {new} in a new store");
    }
    Ok(())
}

fn options() -> Options {
    Database::options().workers(2).procedure::<Come>().procedure::<Go>()
}

fn image_bytes(path: &Path) -> u64 {
    super::common::image_bytes(path)
}

/// Rows of another table take the space of those that were deleted, and of a table that was dropped
/// with its rows.
#[test]
fn a_table_gets_the_space_of_another() -> Result<(), Error> {
    const CALLS: u64 = 5;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let firsts = || (0..CALLS).map(|call| call * ROWS);
    let come = |db: &Database, first, is_after| db.call(Come { first, is_after });
    let db = options().table(BEFORE).table(AFTER).open(&path)?;
    firsts().try_for_each(|first| come(&db, first, false))?;
    let filled = db.memory()?.persistent_rows;
    firsts().try_for_each(|first| db.call(Go { first }))?;
    db.checkpoint()?;
    firsts().try_for_each(|first| come(&db, first, true))?;
    let rows = db.memory()?.persistent_rows;
    assert!(rows <= filled + filled / 4, "{filled} bytes of one table, then {rows}");

    // The segments are the same after an open.
    db.close()?;
    let db = options().table(BEFORE).table(AFTER).open(&path)?;
    assert!(db.memory()?.persistent_rows <= rows);
    firsts().try_for_each(|first| come(&db, first, false))?;
    db.close()?;
    let before = image_bytes(&path);
    let db = options().table(AFTER).drop_table("before").open(&path)?;
    firsts().try_for_each(|first| come(&db, first + CALLS * ROWS, true))?;
    db.checkpoint()?;
    assert_eq!(db.stats().rows, 2 * CALLS * ROWS);
    db.close()?;
    assert_eq!(image_bytes(&path), before, "a dropped table leaves its space");
    Ok(())
}
