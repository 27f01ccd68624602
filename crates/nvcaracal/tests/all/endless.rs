//! Procedures that do not end: `close` and `drop` come back and name the call, the rest of the
//! process goes on. A deploy hung for ever before, without a word. Calls that run long are told
//! while they do (`observe.rs`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nvcaracal::{
    Database, HashTable, Options, Stop, Table, Transaction, Tuning, WriteSet, procedure,
};

const ENDED: HashTable<u64, u64> = Table::hash("ended");

/// Calls by their numbers, one for each test: whether it runs, and whether it may end.
static RUNS: [AtomicBool; 5] = [const { AtomicBool::new(false) }; 5];
static MAY_END: [AtomicBool; 5] = [const { AtomicBool::new(false) }; 5];

fn spin_until_it_may_end(number: u64) {
    RUNS[number as usize].store(true, Ordering::SeqCst);
    while !MAY_END[number as usize].load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

fn end(number: usize) {
    MAY_END[number].store(true, Ordering::SeqCst);
}

fn wait_until_it_runs(number: usize) {
    while !RUNS[number].load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

#[procedure]
fn spin(tx: &mut Transaction, number: u64) -> Result<(), Stop> {
    spin_until_it_may_end(number);
    tx.insert(ENDED, number, &1)
}

fn declare_slowly(call: &SpinFirst, set: &mut WriteSet) {
    spin_until_it_may_end(call.number);
    set.insert(ENDED, call.number);
}

#[procedure(write_set = declare_slowly)]
fn spin_first(tx: &mut Transaction, number: u64) -> Result<(), Stop> {
    tx.insert(ENDED, number, &1)
}

fn options() -> Options {
    let procedures = Database::options().table(ENDED).procedure::<Spin>().procedure::<SpinFirst>();
    let close_wait_max = Duration::from_millis(100);
    let tuning = Tuning { close_wait_max, serial_calls_max: 0, ..Tuning::default() };
    procedures.workers(2).checkpoint_every(1_000_000).tuning(tuning)
}

/// Opened again, once the thread that was left has closed it.
fn reopened(dir: &std::path::Path) -> Database {
    loop {
        match options().open(dir) {
            Err(error) if error.is_locked() => thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

#[test]
fn closing_names_the_call_and_gives_up_what_waits_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path()).unwrap();
    let first = db.submit(Spin { number: 0 }).unwrap();
    wait_until_it_runs(0);
    let behind = db.submit(Spin { number: 0 }).unwrap();
    let (other, waiting) = (db.clone(), thread::spawn(move || behind.wait().unwrap_err()));
    let error = db.close().unwrap_err();
    assert!(error.is_stopped(), "{error}");
    let text = error.to_string();
    assert!(text.contains("call 0 of epoch 1 (spin) has run for "), "{text}");
    assert_eq!(waiting.join().unwrap().to_string(), text);
    assert_eq!(other.call(Spin { number: 0 }).unwrap_err().to_string(), text);
    assert!(options().open(dir.path()).unwrap_err().is_locked());
    end(0);
    first.wait().unwrap();
    drop(other);
    assert_eq!(reopened(dir.path()).get(ENDED, 0).unwrap(), Some(1));
}

/// The call runs on the thread that made it.
#[test]
fn closing_comes_back_where_another_thread_is_within_its_call() {
    let dir = tempfile::tempdir().unwrap();
    let at_once = Tuning { close_wait_max: Duration::from_millis(100), ..Tuning::default() };
    let db = options().tuning(at_once).open(dir.path()).unwrap();
    let caller = db.clone();
    let caller = thread::spawn(move || caller.call(Spin { number: 1 }));
    wait_until_it_runs(1);
    let text = db.close().unwrap_err().to_string();
    assert!(text.contains("(spin)"), "{text}");
    end(1);
    caller.join().unwrap().unwrap();
    assert_eq!(reopened(dir.path()).get(ENDED, 1).unwrap(), Some(1));
}

#[test]
fn closing_waits_for_a_call_that_ends_in_time() {
    let patient = Tuning { close_wait_max: Duration::from_secs(3600), ..Tuning::default() };
    let dir = tempfile::tempdir().unwrap();
    let db = options().tuning(patient).open(dir.path()).unwrap();
    let ticket = db.submit(Spin { number: 4 }).unwrap();
    wait_until_it_runs(4);
    let other = db.clone();
    let ending = thread::spawn(move || {
        // What is submitted is refused as soon as the database is being closed.
        while other.submit(Spin { number: 4 }).is_ok() {
            thread::yield_now();
        }
        end(4);
    });
    db.close().unwrap();
    ending.join().unwrap();
    ticket.wait().unwrap();
}

#[test]
fn dropping_the_last_handle_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path()).unwrap();
    let ticket = db.submit(Spin { number: 2 }).unwrap();
    wait_until_it_runs(2);
    drop(db);
    end(2);
    ticket.wait().unwrap();
    assert_eq!(reopened(dir.path()).get(ENDED, 2).unwrap(), Some(1));
}

#[test]
fn a_write_set_that_does_not_end_is_named_as_its_procedure() {
    let db = options().open_device(nvcaracal::DeviceSpec::Dram).unwrap();
    let ticket = db.submit(SpinFirst { number: 3 }).unwrap();
    wait_until_it_runs(3);
    let text = db.close().unwrap_err().to_string();
    assert!(text.contains("(spin_first)"), "{text}");
    end(3);
    ticket.wait().unwrap();
}
