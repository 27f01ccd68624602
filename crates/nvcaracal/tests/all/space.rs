//! Space on the disk is given back: by itself, at the end, and by `compact`.

use std::path::Path;

use nvcaracal::{
    Database, Error, HashTable, Options, Stop, Table, Transaction, WriteSet, procedure,
};

use crate::common::directory;

const LONG: HashTable<u64, Vec<u8>> = Table::hash("long").with_value_bytes(20_000);
const ROWS: u64 = 2000;
const MIB: u64 = 1 << 20;

#[procedure(write_set = write_one)]
fn write(tx: &mut Transaction, key: u64, value: Vec<u8>) -> Result<(), Stop> {
    tx.insert(LONG, key, &value)
}

fn write_one(call: &Write, set: &mut WriteSet) {
    set.insert(LONG, call.key);
}

fn options() -> Options {
    Database::options().table(LONG).procedure::<Write>().workers(2).data_bytes_max(1 << 30)
}

/// Writes a value of all rows, with much log, and takes a checkpoint.
fn burst(db: &Database, byte: u8) -> Result<(), Error> {
    let value = vec![byte; 19_000];
    let calls = (0..ROWS).map(|key| db.submit(Write { key, value: value.clone() }));
    let tickets: Vec<_> = calls.collect::<Result<_, _>>()?;
    tickets.into_iter().try_for_each(|ticket| ticket.wait())?;
    db.checkpoint()
}

fn little(db: &Database, times: u64) -> Result<(), Error> {
    for time in 0..times {
        db.call(Write { key: time, value: vec![time as u8; 100] })?;
        db.checkpoint()?;
    }
    Ok(())
}

fn length(path: &Path, file: &str) -> u64 {
    std::fs::metadata(path.join(file)).unwrap().len()
}

/// O-23, S6: after a burst log and data become shorter while calls go on, and when the database is
/// closed; then the same rows are there.
#[test]
fn s_6_space_is_given_back_after_a_burst() -> Result<(), Error> {
    let dir = directory();
    let path = dir.path().join("store");
    let db = options().open(&path)?;
    for byte in 1..4 {
        burst(&db, byte)?;
    }
    let [log, data] = ["log", "data"].map(|file| length(&path, file));
    assert!(log > 30 * MIB, "{log} bytes of log after {} of arguments", ROWS * 19_000);
    little(&db, 60)?;
    let files = db.files()?.expect("a database in files");
    assert!(files.log_bytes <= 8 * MIB, "{} bytes of log", files.log_bytes);
    assert_eq!(files.log_bytes, length(&path, "log"));
    assert_eq!(files.data_bytes, length(&path, "data"));
    assert!(files.log_given_back_bytes >= log - files.log_bytes);
    assert!(files.pages_moved <= files.pages_written / 8 + 256 * 70, "{files:?}");
    assert_eq!(files.not_moved, None);
    println!("data: {data} bytes after the burst, then {files:?}");
    let (rows, hash) = (db.stats().rows, db.stats().state_hash);
    db.close()?;
    assert!(length(&path, "log") <= 4 * MIB, "{} bytes of log", length(&path, "log"));

    let compacted = Database::compact(&path)?;
    let used = compacted.bytes_used;
    assert!(compacted.bytes_after <= used + used / 100, "{compacted:?}");
    assert_eq!(compacted.bytes_after, length(&path, "data"));
    println!("{compacted:?}");
    let db = options().open(&path)?;
    assert_eq!((db.stats().rows, db.stats().state_hash), (rows, hash));
    assert!(Database::compact(&path).unwrap_err().is_locked());
    burst(&db, 9)?;
    let hash = db.stats().state_hash;
    drop(db);
    let db = options().open(&path)?;
    assert_eq!(db.stats().state_hash, hash);
    db.close()
}
