//! A file system without room, as an application meets it: what was answered stays, rows can be
//! deleted, and the space of these serves what comes next.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nvcaracal::{
    Database, Error, HashTable, Options, Stop, Table, Transaction, Tuning, WriteSet, procedure,
};
use pmem::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};

use crate::common::copy;

const ENOSPC: i32 = 28;
const LONG: HashTable<u64, Vec<u8>> = Table::hash("long").with_value_bytes(20_000);

/// A disk of so many bytes, for all files of a database.
#[derive(Debug)]
struct SmallDisk {
    bytes: u64,
    lengths: Mutex<HashMap<DiskFile, u64>>,
}

impl DiskHook for SmallDisk {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let end = match call.operation {
            DiskOperation::Write { offset, bytes } => offset + bytes.len() as u64,
            DiskOperation::Allocate { len } => len,
            DiskOperation::Truncate { len } => {
                self.lengths.lock().unwrap().insert(call.file, len);
                return Outcome::Proceed;
            }
            _ => return Outcome::Proceed,
        };
        let mut lengths = self.lengths.lock().unwrap();
        let length = lengths.get(&call.file).copied().unwrap_or(0);
        let all: u64 = lengths.values().sum();
        if end > length && all + end - length > self.bytes {
            return Outcome::Fail(ENOSPC);
        }
        lengths.insert(call.file, length.max(end));
        Outcome::Proceed
    }
}

#[procedure(write_set = put_one)]
fn put(tx: &mut Transaction, key: u64, bytes: u64) -> Result<(), Stop> {
    tx.insert(LONG, key, &vec![1; bytes as usize])
}

fn put_one(call: &Put, set: &mut WriteSet) {
    set.insert(LONG, call.key);
}

#[procedure(write_set = cut_one)]
fn cut(tx: &mut Transaction, key: u64) -> Result<bool, Stop> {
    tx.delete(LONG, key)
}

fn cut_one(call: &Cut, set: &mut WriteSet) {
    set.delete(LONG, call.key);
}

fn open(path: &Path, disk: &Arc<SmallDisk>) -> Result<Database, Error> {
    let hook = Arc::clone(disk) as Arc<dyn DiskHook>;
    options().disk_hook(hook).open(path)
}

fn options() -> Options {
    let options = Database::options().workers(2).table(LONG);
    let options = options
        .tuning(Tuning { segment_bytes: 64 << 10, ..Tuning::default() })
        .data_bytes_max(256 << 20);
    options.procedure::<Put>().procedure::<Cut>()
}

/// Inserts rows until there is no room for one, and returns their number.
fn fill(db: &Database, from: u64) -> u64 {
    let mut rows = from;
    loop {
        match db.call(Put { key: rows, bytes: 20_000 }) {
            Ok(()) => rows += 1,
            Err(full) => {
                assert!(full.is_full(), "{full}");
                return rows;
            }
        }
    }
}

/// O-43, O-74: on a disk that has no room any more.
#[test]
fn o_43_a_store_on_a_full_disk_can_be_emptied() -> Result<(), Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let disk = Arc::new(SmallDisk { bytes: 24 << 20, lengths: Mutex::default() });
    let db = open(&path, &disk)?;
    let rows = fill(&db, 0);
    let lengths = disk.lengths.lock().unwrap().clone();
    println!("{rows} rows of 20,000 bytes on a disk of {} bytes: {lengths:?}", disk.bytes);
    assert!(rows > 50, "{rows}");
    assert!(db.call(Cut { key: 0 })?);
    db.call(Put { key: 1, bytes: 1000 })?;
    db.checkpoint()?;
    assert!(db.call(Cut { key: 2 })?);
    db.close()?;

    let db = open(&path, &disk)?;
    assert_eq!(db.stats().rows, rows - 2);
    let mut batch = db.batch();
    let added: Vec<_> = (0..rows).map(|key| batch.add(&Cut { key })).collect::<Result<_, _>>()?;
    let submitted = batch.submit()?;
    for (key, added) in added.into_iter().enumerate() {
        assert_eq!(submitted.ticket(added).wait()?, ![0, 2].contains(&key));
    }
    assert_eq!(db.stats().rows, 0);
    let again = fill(&db, 0);
    println!("{again} when all of these were deleted");
    assert!(again >= rows - rows / 10, "{again} rows instead of {rows}");
    drop(db);
    let db = open(&path, &disk)?;
    assert_eq!(db.stats().rows, again);
    db.close()
}

/// A disk that is full when a database is opened on it again: no file is made, and none grows.
#[derive(Debug)]
struct FullDisk {
    /// The files as they are.
    directory: PathBuf,
}

impl DiskHook for FullDisk {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let there = self.directory.join(call.file.name());
        let end = match call.operation {
            DiskOperation::Write { offset, bytes } => offset + bytes.len() as u64,
            DiskOperation::Allocate { len } => len,
            DiskOperation::Open { create: true, .. } => 0,
            _ => return Outcome::Proceed,
        };
        match there.metadata() {
            Ok(found) if end <= found.len() => Outcome::Proceed,
            _ => Outcome::Fail(ENOSPC),
        }
    }
}

/// O-49: a process that was killed on a disk that is full now: its log is replayed without the file
/// that names calls which end the process, and the report says so.
#[test]
fn o_49_a_killed_store_on_a_full_disk_opens() -> Result<(), Error> {
    let directory = tempfile::tempdir().unwrap();
    let (path, killed) = (directory.path().join("store"), directory.path().join("killed"));
    let db = options().checkpoint_every(1_000_000).open(&path)?;
    for key in 0..10 {
        db.call(Put { key, bytes: 1000 })?;
    }
    copy(&path, &killed);
    db.close()?;

    let hook = Arc::new(FullDisk { directory: killed.clone() });
    let db = options().disk_hook(hook).open(&killed)?;
    let report = db.recovery();
    assert!(report.calls_replayed > 0 && report.deaths_unnoted, "{report}");
    assert!(report.to_string().contains("without marks   a full disk"), "{report}");
    assert_eq!(db.stats().rows, 10);
    assert!(db.call(Cut { key: 0 })?);
    db.close()?;
    // With room it is as ever.
    let db = options().open(&killed)?;
    assert!(!db.recovery().deaths_unnoted);
    assert_eq!(db.stats().rows, 9);
    db.close()
}
