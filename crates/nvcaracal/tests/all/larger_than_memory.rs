//! Data that is larger than the memory of the database: answers and states are those of one that
//! has all in memory.

use std::path::Path;

use nvcaracal::{
    Database, HashTable, Options, Stop, Table, Transaction, Tuning, WriteSet, procedure,
};

/// Rows with their values inside.
const SMALL: Table<u64, Vec<u8>> = Table::ordered("small").with_value_bytes(400);
/// Rows whose values lie in pools.
const LARGE: HashTable<u64, Vec<u8>> = Table::hash("large").with_value_bytes(6_000);

const ROWS: u64 = 20_000;
const LARGE_ROWS: u64 = 6_000;
/// Of which half at least holds pages: a part of the data.
const LIMIT: u64 = 16 << 20;

fn value(row: u64, number: u64, most: u64) -> Vec<u8> {
    let mut value =
        vec![(row + number) as u8; (row * 31 + number * 7) as usize % most as usize + 8];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn rows(call: &Change, set: &mut WriteSet) {
    set.insert(SMALL, call.row % ROWS);
    set.update(SMALL, (call.row * 7 + 1) % ROWS);
    set.insert(LARGE, call.row % LARGE_ROWS);
    set.will_read(LARGE, (call.row + 5) % LARGE_ROWS);
}

/// Changes a few rows, by what it reads of others, which it did not declare all.
#[procedure(write_set = rows)]
fn change(tx: &mut Transaction, row: u64, number: u64) -> Result<u64, Stop> {
    let near = tx.get(LARGE, (row + 5) % LARGE_ROWS)?.map_or(0, |value| value.len() as u64);
    let far = tx.get(SMALL, (row * 13) % ROWS)?.map_or(0, |value| value.len() as u64);
    tx.insert(SMALL, row % ROWS, &value(row, number + near + far, 390))?;
    let other = (row * 7 + 1) % ROWS;
    if number % 11 == 3 {
        tx.delete(SMALL, other)?;
    } else if tx.get(SMALL, other)?.is_some() {
        tx.update(SMALL, other, &value(other, number, 390))?;
    }
    tx.insert(LARGE, row % LARGE_ROWS, &value(row, number + far, 5_900))?;
    Ok(near * 10_000 + far)
}

#[procedure]
fn look(tx: &mut Transaction, row: u64) -> Result<bool, Stop> {
    Ok(tx.get(SMALL, row)?.is_some())
}

fn options(workers: usize) -> Options {
    Database::options()
        .workers(workers)
        .table(SMALL)
        .table(LARGE)
        .procedure::<Change>()
        .procedure::<Look>()
        .tuning(Tuning { segment_bytes: 64 << 10, epoch_calls_max: 700, ..Tuning::default() })
        .checkpoint_every(7)
        .data_bytes_max(1 << 30)
        .log_bytes_max(256 << 20)
}

/// Calls in a stream; what they answered.
fn run(db: &Database, calls: std::ops::Range<u64>) -> Vec<u64> {
    let tickets: Vec<_> =
        calls.map(|i| db.submit(Change { row: i * 7_919 % ROWS, number: i }).unwrap()).collect();
    tickets.into_iter().map(|ticket| ticket.wait().unwrap()).collect()
}

fn open(path: &Path, workers: usize, limit: Option<u64>) -> Database {
    let options = options(workers);
    let options = match limit {
        Some(bytes) => options.memory_limit(bytes),
        None => options,
    };
    options.open(path).unwrap()
}

fn contents(db: &Database) -> Vec<(u64, Vec<u8>)> {
    db.snapshot().unwrap().range(SMALL, ..).map(Result::unwrap).collect()
}

/// S8, S9, S15: with and without a limit, with one worker and two, over opens: the same answers,
/// rows and state.
#[test]
fn s_15_answers_do_not_depend_on_memory() {
    if !pmem::memory_can_be_limited() {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
        return;
    }
    let mut all = Vec::new();
    for (workers, limit) in [(2, None), (1, Some(LIMIT)), (2, Some(LIMIT))] {
        let dir = tempfile::tempdir().unwrap();
        let mut answers = Vec::new();
        for part in 0..4 {
            // Each store is opened with a limit and without, but the first one.
            let limit = limit.filter(|_| part != 2);
            let db = open(dir.path(), workers, limit);
            assert_eq!(db.recovery().indexes_kept, part > 0, "each open takes the indexes over");
            answers.extend(run(&db, part * 9_000..(part + 1) * 9_000));
            let pages = db.memory().unwrap().pages;
            assert_eq!(pages.is_some(), limit.is_some());
            if let Some(pages) = pages {
                assert!(pages.faults > 0 && pages.resident_bytes > 0, "{pages:?}");
                // What was read of rows and not evicted yet is of the last epoch.
                assert!(part == 0 || pages.evicted > 0, "{pages:?}");
                assert!(part == 0 || pages.fetched > 0, "{pages:?}");
                assert_entries_go(&db);
            }
            db.close().unwrap();
        }
        let db = open(dir.path(), workers, limit);
        let hash = db.stats().state_hash;
        all.push((answers, contents(&db), hash));
        let checked = db.memory().unwrap();
        assert!(checked.persistent_rows + checked.persistent_values > 2 * LIMIT, "{checked:?}");
        db.close().unwrap();
    }
    assert!(all.windows(2).all(|two| two[0] == two[1]), "answers, rows or states differ");
}

/// Row entries that can be filled again go when they are more than a part of the limit, so that
/// after a call of a few rows there are few.
fn assert_entries_go(db: &Database) {
    let _all = contents(db);
    let before = db.memory().unwrap().row_entries;
    assert!(before > LIMIT / 32, "all rows had {before} bytes of entries");
    let value = db.get(SMALL, 1).unwrap();
    db.call(Look { row: 1 }).unwrap();
    let after = db.memory().unwrap().row_entries;
    assert!(after <= 8 * 4096, "{after} bytes of entries are left of {before}");
    assert_eq!(db.get(SMALL, 1).unwrap(), value);
}

/// A limit is for files, and no smaller than what works.
#[test]
fn a_limit_that_makes_no_sense_is_refused() {
    let error =
        options(1).memory_limit(LIMIT).open_device(nvcaracal::DeviceSpec::Dram).unwrap_err();
    assert!(error.to_string().contains("a limit of memory is for file:DIRECTORY"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let error = options(1).memory_limit(1 << 20).open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("memory_limit"), "{error}");
}
