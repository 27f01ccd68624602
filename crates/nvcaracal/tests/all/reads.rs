//! Reads from any thread, while epochs run: they wait for no call, see every call that was answered
//! before, whole, and never go back.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use nvcaracal::{
    Database, DeviceSpec, HashTable, Options, Stop, Table, Transaction, Tuning, WriteSet, procedure,
};

use crate::common::{ACCOUNTS, Deposit, directory, dram, options};
use crate::tasks::block_on;

/// A value that says in each of its bytes, and in their number, which one it is.
const VALUES: HashTable<u64, Vec<u8>> = Table::hash("values");
/// Rows that come and go, under keys that are no words.
const NAMES: Table<str, u64> = Table::ordered("names");

const ROWS: u64 = 6;

fn value(number: u64) -> Vec<u8> {
    vec![number as u8; (number * 37 % 900) as usize + 1]
}

/// Whether a value is one of those, whole.
fn is_whole(value: &[u8]) -> bool {
    value.iter().all(|&byte| byte == value[0])
}

fn row(call: &Advance, set: &mut WriteSet) {
    set.insert(VALUES, call.row);
}

/// Replaces a value by the next one; answers with its number, which its length and bytes repeat.
#[procedure(write_set = row)]
fn advance(tx: &mut Transaction, row: u64, number: u64) -> Result<(), Stop> {
    tx.insert(VALUES, row, &value(number))
}

fn name_of(number: u64) -> String {
    format!("{}{number}", "name".repeat(number as usize % 9))
}

fn name(call: &Toggle, set: &mut WriteSet) {
    set.insert(NAMES, name_of(call.number));
}

/// Inserts a row that is not there, deletes one that is.
#[procedure(write_set = name)]
fn toggle(tx: &mut Transaction, number: u64) -> Result<(), Stop> {
    let name = name_of(number);
    if !tx.delete(NAMES, name.as_str())? {
        tx.insert(NAMES, name, &number)?;
    }
    Ok(())
}

fn of_values() -> Options {
    Database::options()
        .table(VALUES)
        .table(NAMES)
        .procedure::<Advance>()
        .procedure::<Toggle>()
        .workers(2)
        .data_bytes_max(1 << 30)
        .log_bytes_max(1 << 30)
}

/// Reads rows again and again until it is over; how many it read.
fn read(db: &Database, answered: &[AtomicU64], is_over: &AtomicBool) -> u64 {
    let (mut reads, mut seen) = (0, [0; ROWS as usize]);
    while !is_over.load(Ordering::Relaxed) || reads == 0 {
        for row in 0..ROWS {
            let least = answered[row as usize].load(Ordering::Acquire);
            let Some(bytes) = db.get(VALUES, row).unwrap() else {
                assert_eq!((least, seen[row as usize]), (0, 0), "row {row} was there");
                continue;
            };
            assert!(is_whole(&bytes), "row {row}: a value that was never written");
            let least = least.max(seen[row as usize]);
            let number = (0..least + 20_000).find(|&n| value(n) == bytes).expect("a value");
            assert!(number >= least, "row {row} went back from {least} to {number}");
            seen[row as usize] = number;
            let toggled = reads % 200;
            let found = db.get(NAMES, name_of(toggled).as_str()).unwrap();
            assert!(found.is_none_or(|number| number == toggled), "{found:?}");
            reads += 1;
        }
    }
    reads
}

/// Runs epochs that rewrite a few rows, and make and delete others, beside three readers.
fn read_beside_epochs(db: &Database, batches: u64) {
    let answered: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> =
            (0..3).map(|_| scope.spawn(|| read(db, &answered, &is_over))).collect();
        let mut number = 0;
        for batch_number in 0..batches {
            let mut batch = db.batch();
            for _ in 0..20 {
                number += 1;
                (0..ROWS).for_each(|row| batch.add(&Advance { row, number }).map(drop).unwrap());
            }
            for toggled in 0..60 {
                batch.add(&Toggle { number: (batch_number * 41 + toggled) % 200 }).unwrap();
            }
            batch.submit().unwrap().wait();
            answered.iter().for_each(|row| row.store(number, Ordering::Release));
        }
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}

#[test]
fn o_106_reads_beside_epochs_see_whole_values_that_never_go_back() {
    for (cache, every) in [(0, 1), (1 << 20, 1), (1 << 14, 5)] {
        let options = of_values().cache_bytes(cache).checkpoint_every(every);
        let db = options.open_device(DeviceSpec::Dram).unwrap();
        read_beside_epochs(&db, 120);
    }
}

/// On a file a value is overwritten in its place between two checkpoints, and small epochs run on
/// one thread.
#[test]
fn o_106_reads_beside_epochs_on_a_file_see_whole_values_too() {
    let dir = directory();
    let db = of_values().checkpoint_every(7).open(dir.path()).unwrap();
    read_beside_epochs(&db, 60);
    db.close().unwrap();
    let serial = Tuning { serial_calls_max: 1000, ..Tuning::default() };
    let db = of_values().tuning(serial).open_device(DeviceSpec::Dram).unwrap();
    read_beside_epochs(&db, 120);
}

/// Where a slow call says that it runs, and waits for its end.
static SLOW: Mutex<Option<(Sender<()>, Receiver<()>)>> = Mutex::new(None);

/// One test at a time uses it.
fn one_slow_call() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slow_set(call: &Slow, set: &mut WriteSet) {
    set.insert(ACCOUNTS, call.account);
}

/// Writes a row, and then runs until it is told to end.
#[procedure(write_set = slow_set)]
fn slow(tx: &mut Transaction, account: u64) -> Result<(), Stop> {
    tx.insert(ACCOUNTS, account, &-1)?;
    let (runs, end) = SLOW.lock().unwrap().take().unwrap();
    runs.send(()).unwrap();
    let _ = end.recv();
    Ok(())
}

/// A procedure that runs for long holds up no read, not even of the row that it writes: in the
/// parallel part of an epoch and in the serial one.
#[test]
fn o_106_a_read_waits_for_no_procedure() {
    let _one = one_slow_call();
    for serial_calls_max in [0, 64] {
        let tuning = Tuning { serial_calls_max, ..Tuning::default() };
        let db = dram(options().procedure::<Slow>().tuning(tuning));
        db.call(Deposit { account: 1, cents: 5 }).unwrap();
        db.call(Deposit { account: 2, cents: 6 }).unwrap();
        let ((runs, is_running), (end, may_end)) = (channel(), channel());
        *SLOW.lock().unwrap() = Some((runs, may_end));
        let before = db.snapshot().unwrap();
        let ticket = db.submit(Slow { account: 1 }).unwrap();
        is_running.recv().unwrap();
        // These would wait for ever.
        assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(5));
        assert_eq!(db.get(ACCOUNTS, 2).unwrap(), Some(6));
        assert_eq!(db.get(ACCOUNTS, 3).unwrap(), None);
        assert_eq!(before.get(ACCOUNTS, 1).unwrap(), Some(5));
        assert_eq!(before.count(ACCOUNTS, ..).unwrap(), 2);
        let rows: Vec<_> = before.range(ACCOUNTS, ..).rev().map(Result::unwrap).collect();
        assert_eq!(rows, [(2, 6), (1, 5)]);
        // The snapshot before was asked for in the last second, so one stands.
        let beside = db.snapshot().unwrap();
        assert_eq!(beside.epoch(), before.epoch(), "the newest epoch that has ended");
        assert_eq!(beside.get(ACCOUNTS, 1).unwrap(), Some(5));
        let beside = block_on(db.snapshot_async()).unwrap();
        assert_eq!(beside.count(ACCOUNTS, ..).unwrap(), 2);
        assert!(ticket.try_get().is_none(), "the procedure still runs");
        end.send(()).unwrap();
        ticket.wait().unwrap();
        assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(-1));
        assert_eq!(before.get(ACCOUNTS, 1).unwrap(), Some(5));
        assert_eq!(db.snapshot().unwrap().get(ACCOUNTS, 1).unwrap(), Some(-1));
    }
}

/// Those who ask for a snapshot while an epoch runs have one as soon as it ends, however many they
/// are, and whatever else is to be done: they wait for no other epoch.
#[test]
fn o_106_all_who_wait_for_a_snapshot_get_it_when_the_epoch_ends() {
    const READERS: usize = 20;
    let _one = one_slow_call();
    let db = dram(options().procedure::<Slow>());
    db.call(Deposit { account: 1, cents: 5 }).unwrap();
    let slow = |account| {
        let ((runs, is_running), (end, may_end)) = (channel(), channel());
        *SLOW.lock().unwrap() = Some((runs, may_end));
        (db.submit(Slow { account }).unwrap(), is_running, end)
    };
    let (first, is_running, end) = slow(2);
    is_running.recv().unwrap();
    // No snapshot was asked for so far.
    let mut context = Context::from_waker(Waker::noop());
    let mut readers: Vec<_> = (0..READERS).map(|_| Box::pin(db.snapshot_async())).collect();
    for reader in &mut readers {
        assert!(reader.as_mut().poll(&mut context).is_pending(), "an epoch runs");
    }
    let other = db.clone();
    let thread = thread::spawn(move || other.snapshot().unwrap().count(ACCOUNTS, ..).unwrap());
    let (second, is_running, end_second) = slow(3);
    end.send(()).unwrap();
    first.wait().unwrap();
    is_running.recv().unwrap();
    // The second epoch stands still.
    for mut reader in readers {
        let Poll::Ready(made) = reader.as_mut().poll(&mut context) else {
            panic!("a reader waits for the second epoch");
        };
        let snapshot = made.unwrap();
        let rows: Vec<_> = snapshot.range(ACCOUNTS, ..).map(Result::unwrap).collect();
        assert_eq!(rows, [(1, 5), (2, -1)], "each has the call that was answered");
    }
    assert_eq!(thread.join().unwrap(), 2);
    assert!(second.try_get().is_none(), "the second call still runs");
    end_second.send(()).unwrap();
    second.wait().unwrap();
}

/// What a thread has read of a row, in a snapshot or without one, does not go back, and a snapshot
/// has every call that was answered before it was taken.
#[test]
fn o_84_snapshots_and_reads_of_one_thread_never_go_back() {
    for serial_calls_max in [0, 64] {
        let tuning = Tuning { serial_calls_max, ..Tuning::default() };
        let db = dram(options().tuning(tuning));
        db.call(Deposit { account: 1, cents: 1 }).unwrap();
        let (is_over, answered) = (AtomicBool::new(false), AtomicU64::new(1));
        thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let (mut seen, mut turns) = (0, 0);
                        let mut is_next = |what: &str, number: Option<i64>, least: u64| {
                            let number = number.expect("a row");
                            assert!(number >= seen, "{what} goes back from {seen} to {number}");
                            assert!(
                                number as u64 >= least,
                                "{what} has {number}, {least} was answered"
                            );
                            seen = number;
                        };
                        while !is_over.load(Ordering::Relaxed) || turns == 0 {
                            let least = answered.load(Ordering::Acquire);
                            is_next("a read", db.get(ACCOUNTS, 1).unwrap(), least);
                            let least = answered.load(Ordering::Acquire);
                            let snapshot = db.snapshot().unwrap();
                            let mut rows = snapshot.range(ACCOUNTS, ..);
                            is_next("a range", rows.next().map(|row| row.unwrap().1), least);
                            turns += 1;
                        }
                        turns
                    })
                })
                .collect();
            for _ in 0..2_000 {
                db.call(Deposit { account: 1, cents: 1 }).unwrap();
                answered.fetch_add(1, Ordering::Release);
            }
            is_over.store(true, Ordering::Relaxed);
            for reader in readers {
                assert!(reader.join().unwrap() > 0);
            }
        });
    }
}

/// What a handle says after another one has closed the database.
#[test]
fn a_read_of_a_closed_database_is_refused() {
    let db = dram(options());
    db.call(Deposit { account: 1, cents: 5 }).unwrap();
    let (other, snapshot) = (db.clone(), db.snapshot().unwrap());
    db.close().unwrap();
    assert!(other.get(ACCOUNTS, 1).unwrap_err().is_stopped());
    assert!(snapshot.get(ACCOUNTS, 1).unwrap_err().is_stopped());
    assert!(snapshot.count(ACCOUNTS, ..).unwrap_err().is_stopped());
}
