//! Data that is larger than the memory of the database: answers and states are those of one that
//! has all in memory.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nvcaracal::{
    Database, HashTable, Options, Procedure, Stop, Table, Transaction, Tuning, WriteSet, procedure,
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

fn rows_apart() -> impl Iterator<Item = u64> {
    (0..ROWS).step_by(16)
}

fn spread_rows(_: &Spread, set: &mut WriteSet) {
    rows_apart().for_each(|row| set.insert(SMALL, row));
}

/// Writes rows whose entries are in different pages.
#[procedure(write_set = spread_rows)]
fn spread(tx: &mut Transaction) -> Result<(), Stop> {
    rows_apart().try_for_each(|row| tx.insert(SMALL, row, &value(row, 1, 390)))
}

fn noted_row(call: &Note, set: &mut WriteSet) {
    match call.number % 3 {
        2 => set.update_range(SMALL, call.row..call.row + 1),
        _ => set.insert(SMALL, call.row),
    }
}

/// Writes a row that says which call did.
#[procedure(write_set = noted_row)]
fn note(tx: &mut Transaction, row: u64, number: u64) -> Result<u64, Stop> {
    let value = value(row, number, 390);
    match number % 3 {
        2 => drop(tx.update(SMALL, row, &value)?),
        _ => tx.insert(SMALL, row, &value)?,
    }
    Ok(number)
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
        .procedure::<Spread>()
        .procedure::<Note>()
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

/// Whether there is nothing to test.
fn is_impossible() -> bool {
    let is_impossible = !pmem::memory_can_be_limited();
    if is_impossible {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
    }
    is_impossible
}

/// Calls that are submitted at once; what they answered.
fn together<P: Procedure>(db: &Database, calls: impl Iterator<Item = P>) -> Vec<P::Output> {
    let mut batch = db.batch();
    let added: Vec<_> = calls.map(|call| batch.add(&call).unwrap()).collect();
    let submitted = batch.submit().unwrap();
    added.into_iter().map(|place| submitted.ticket(place).wait().unwrap()).collect()
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
    if is_impossible() {
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
            answers.extend(run(&db, part * 6_000..(part + 1) * 6_000));
            let pages = db.memory().unwrap().pages;
            assert_eq!(pages.is_some(), limit.is_some());
            if let Some(pages) = pages {
                assert!(pages.faults > 0 && pages.resident_bytes > 0, "{pages:?}");
                // What was read of rows and not evicted yet is of the last epoch.
                assert!(part == 0 || pages.evicted > 0, "{pages:?}");
                assert!(part == 0 || pages.fetched > 0, "{pages:?}");
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
/// after a call of a few rows there are few. Readers from outside make none.
#[test]
fn entries_of_rows_go_when_they_are_many() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), 2, Some(LIMIT));
    run(&db, 0..18_000);
    db.call(Spread {}).unwrap();
    let before = db.memory().unwrap().row_entries;
    assert!(before > LIMIT / 32, "{before} bytes of entries");
    for (row, value) in contents(&db) {
        assert_eq!(db.get(SMALL, row).unwrap(), Some(value));
    }
    assert_eq!(db.memory().unwrap().row_entries, before);
    db.call(Look { row: 1 }).unwrap();
    let after = db.memory().unwrap().row_entries;
    assert!(after <= 8 * 4096, "{after} bytes of entries are left of {before}");
}

/// What the database keeps beside pages, and what is known of pages, is no memory for pages.
#[test]
fn other_memory_is_left_out_of_what_pages_may_have() {
    const LIMIT: u64 = 32 << 20;
    const MORE: u64 = 1 << 20;
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), 2, Some(LIMIT));
    run(&db, 0..9_000);
    db.call(Spread {}).unwrap();
    let memory = db.memory().unwrap();
    assert!(memory.row_entries > 512 << 10, "{memory:?}");
    let other =
        memory.index + memory.row_entries + memory.transient_pool + memory.cache + memory.snapshots;
    let known = (memory.persistent_rows + memory.persistent_values) / 4096 * 24;
    let left = LIMIT - other - known;
    let pages = memory.pages.unwrap().pages_bytes;
    assert!(pages <= left / 3 * 2, "{pages} of {left}: {memory:?}");
    assert!(pages + MORE >= left / 3 * 2, "{pages} of {left}: {memory:?}");
}

/// Readers need no epoch, and the limit holds all the same.
#[test]
fn reads_alone_let_pages_go() {
    const MORE: u64 = 1 << 20;
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), 2, Some(LIMIT));
    run(&db, 0..9_000);
    let epochs = db.stats().epochs;
    let rows = contents(&db);
    for (row, value) in rows {
        assert_eq!(db.get(SMALL, row).unwrap(), Some(value));
        let _large = db.get(LARGE, row % LARGE_ROWS).unwrap();
        let pages = db.memory().unwrap().pages.unwrap();
        assert!(pages.resident_bytes <= pages.pages_bytes_now + MORE, "{pages:?}");
    }
    assert_eq!(db.stats().epochs, epochs);
}

/// Epochs of few calls run these one after the other: what all of them declared is read before the
/// first of them waits for its own.
#[test]
fn calls_of_a_small_epoch_ask_for_their_pages_together() {
    const CALLS: u64 = 32;
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), 2, Some(LIMIT));
    run(&db, 0..9_000);
    let pages = || db.memory().unwrap().pages.unwrap();
    let before = pages();
    for round in 0..50 {
        let first = 9_000 + round * CALLS;
        let _answers = run(&db, first..first + CALLS);
    }
    let after = pages();
    let (asked, touched) = (after.fetched - before.fetched, after.faults - before.faults);
    assert!(asked > 2 * touched, "{asked} pages were asked for, {touched} touched while absent");
}

/// O-106: small rows that were read need no page, until they are written: readers see what is
/// answered, and never go back, whatever they have kept.
#[test]
fn small_rows_that_are_read_often_need_no_page() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), 2, Some(LIMIT));
    run(&db, 0..9_000);
    let hot = || (0..ROWS).step_by(40);
    let read_hot = || hot().filter(|&row| db.get(SMALL, row).unwrap().is_some()).count() as u64;
    let read_large = || (0..LARGE_ROWS).for_each(|row| drop(db.get(LARGE, row).unwrap()));
    let fetched = || db.memory().unwrap().pages.unwrap().fetched;
    let found = read_hot();
    read_hot();
    read_large();
    let before = fetched();
    assert_eq!(read_hot(), found);
    let more = fetched() - before;
    assert!(more < found / 10, "{more} pages for {found} rows");
    let before = fetched();
    read_large();
    assert!(fetched() > before, "the pages of rows had to go");
}

#[test]
fn o_106_rows_that_readers_keep_are_those_of_the_last_epoch() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), 2, Some(LIMIT));
    let mut rows = vec![None; 1_999];
    let number = |value: Vec<u8>| u64::from_le_bytes(value[..8].try_into().unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = SetOnDrop(&is_over);
        scope.spawn(|| {
            let mut seen = vec![0; 1_999];
            while !is_over.load(Ordering::Relaxed) {
                for (row, seen) in (0..).zip(&mut seen).step_by(13) {
                    let Some(value) = db.get(SMALL, row * 10).unwrap() else { continue };
                    let found = number(value);
                    assert!(found >= *seen, "row {row}: {found} after {seen}");
                    *seen = found;
                }
            }
        });
        for round in 0..12 {
            let calls = round * 1_900..(round + 1) * 1_900;
            let row_of = |number: u64| number * 7_919 % 1_999;
            together(&db, calls.clone().map(|number| Note { row: row_of(number) * 10, number }));
            for number in calls {
                let row = row_of(number);
                let now = &mut rows[row as usize];
                if number % 3 != 2 || now.is_some() {
                    *now = Some(value(row * 10, number, 390));
                }
            }
            let snapshot = db.snapshot().unwrap();
            for (row, expected) in (0..).step_by(10).zip(&rows) {
                assert_eq!(db.get(SMALL, row).unwrap(), *expected, "row {row}");
                assert_eq!(snapshot.get(SMALL, row).unwrap(), *expected, "row {row}");
            }
        }
    });
}

/// Ends what another thread does, also where a test fails.
struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls that together write more than a limit has room for run in several epochs; without a limit
/// they run in one.
#[test]
fn epochs_that_write_too_many_pages_are_cut() {
    if is_impossible() {
        return;
    }
    let epochs_of = |limit| {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), 2, limit);
        db.call(Look { row: 0 }).unwrap();
        let before = db.stats().epochs;
        let answers = together(&db, (0..600).map(|number| Change { row: number * 33, number }));
        (db.stats().epochs - before, answers, db.stats().state_hash)
    };
    let (whole, cut) = (epochs_of(None), epochs_of(Some(LIMIT)));
    assert_eq!(whole.0, 1);
    assert!(cut.0 >= 4, "{} epochs", cut.0);
    assert_eq!((whole.1, whole.2), (cut.1, cut.2));
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
