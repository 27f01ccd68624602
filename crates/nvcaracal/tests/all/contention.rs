//! Which rows calls contend for, as the library says it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nvcaracal::{
    Contention, Database, DeviceSpec, HashTable, Key, Options, Stop, Table, Transaction, Tuning,
    WriteSet, procedure,
};

use crate::common::{ACCOUNTS, Deposit, dram, options};

const NAMES: HashTable<str, u64> = Table::hash("names");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Key)]
struct SeatKey {
    event: u32,
    seat: u16,
}

const SEATS: Table<SeatKey, u64> = Table::ordered("seats");

fn of_name(call: &Count, set: &mut WriteSet) {
    set.insert(NAMES, call.name.as_str());
    set.insert(SEATS, SeatKey { event: call.event, seat: 3 });
}

/// Counts a name, and takes a seat and gives it back.
#[procedure(write_set = of_name)]
fn count(tx: &mut Transaction, name: &str, event: u32) -> Result<(), Stop> {
    let next = tx.get(NAMES, name)?.unwrap_or(0) + 1;
    tx.insert(NAMES, name, &next)?;
    let seat = SeatKey { event, seat: 3 };
    tx.insert(SEATS, seat, &next)?;
    tx.delete(SEATS, seat)?;
    Ok(())
}

fn all(workers: usize, serial_calls_max: usize) -> Options {
    let options = options().table(NAMES).table(SEATS).procedure::<Count>().workers(workers);
    options.tuning(Tuning { serial_calls_max, ..Tuning::default() }).contention_epochs(3)
}

fn shown(contention: &Contention) -> Vec<String> {
    let row = |row: &nvcaracal::ContendedRow| {
        format!("{} {} {} {}", row.table, row.key, row.writers, row.epochs)
    };
    contention.rows.iter().filter(|row| row.writers > 0).map(row).collect()
}

fn deposits(db: &Database, counts: &[(u64, usize)]) {
    let mut batch = db.batch();
    for &(account, count) in counts {
        for _ in 0..count {
            batch.add(&Deposit { account, cents: 1 }).unwrap();
        }
    }
    batch.submit().unwrap().wait();
}

#[test]
fn the_last_epochs_are_added_up_and_rows_have_names() {
    // All epochs are parallel; or all are serial parts, which are small or large.
    for (workers, serial_calls_max) in [(1, 0), (2, 0), (4, 0), (2, 1000), (2, 10_000)] {
        let db = dram(all(workers, serial_calls_max));
        // From then on it is known that they predict what they write.
        db.call(Count { name: "Eve".into(), event: 9 }).unwrap();
        deposits(&db, &[(5, 900)]);
        for _ in 0..2 {
            deposits(&db, &[(7, 100), (8, 10), (9, 1)]);
        }
        let mut batch = db.batch();
        for call in 0..1005 {
            let name = if call % 3 == 0 { "Ada" } else { "a name longer than a word" };
            batch.add(&Count { name: name.into(), event: call / 1000 }).unwrap();
        }
        batch.submit().unwrap().wait();
        let found = db.contention(10);
        let expected = [
            r#"seats {"event":0,"seat":3} 1000 1"#,
            r#"names "a name longer than a word" 670 1"#,
            r#"names "Ada" 335 1"#,
            "accounts 7 200 2",
            "accounts 8 20 2",
            r#"seats {"event":1,"seat":3} 5 1"#,
        ];
        assert_eq!(shown(&found), expected, "{workers} workers, {serial_calls_max} in serial");
        assert_eq!((found.epochs, found.last_epoch), (3, db.stats().epoch));
        let rows = &found.rows;
        assert_eq!(rows[0].key_as::<SeatKey>(), Some(SeatKey { event: 0, seat: 3 }));
        assert_eq!(rows[1].key_as::<str>().as_deref(), Some("a name longer than a word"));
        assert_eq!((rows[3].key_as::<u64>(), rows[3].key_as::<(u64, u64)>()), (Some(7), None));
        let few = db.contention(2);
        assert_eq!(shown(&few), expected[..2], "the first ones");
        let text = few.to_string();
        assert!(text.starts_with("most contended rows of 3 epochs up to"), "{text}");
        assert!(text.contains("1000") && text.ends_with("longer than a word\"\n"), "{text}");
    }
}

#[test]
fn nothing_is_kept_unless_it_was_asked_for() {
    let db = dram(options());
    deposits(&db, &[(7, 100)]);
    assert_eq!((db.contention(10).epochs, db.contention(10).rows.len()), (0, 0));
    let error = options().contention_epochs(100_001).open_device(DeviceSpec::Dram).unwrap_err();
    let expected = "contention_epochs is 100001, must be from 0 to 100000";
    assert!(error.is_limit() && error.to_string() == expected, "{error}");
}

static IS_HELD: AtomicBool = AtomicBool::new(false);

fn of_slow(_: &Slow, set: &mut WriteSet) {
    set.insert(ACCOUNTS, 1);
}

/// Writes when it is let go.
#[procedure(write_set = of_slow)]
fn slow(tx: &mut Transaction) -> Result<(), Stop> {
    while IS_HELD.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    tx.insert(ACCOUNTS, 1, &1)
}

fn of_reader(_: &Reader, _: &mut WriteSet) {}

#[procedure(write_set = of_reader)]
fn reader(tx: &mut Transaction) -> Result<i64, Stop> {
    Ok(tx.get(ACCOUNTS, 1)?.unwrap_or(0))
}

/// Runs a writer that is held, and readers of its row; whether a reader waited for it: with one
/// worker none does.
fn hold_a_writer(db: &Database) -> bool {
    IS_HELD.store(true, Ordering::Relaxed);
    let mut batch = db.batch();
    batch.add(&Slow {}).unwrap();
    let readers: Vec<_> = (0..40).map(|_| batch.add(&Reader {}).unwrap()).collect();
    let submitted = batch.submit().unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(200) {
        thread::yield_now();
    }
    IS_HELD.store(false, Ordering::Relaxed);
    for reader in readers {
        assert_eq!(submitted.ticket(reader).wait().unwrap(), 1);
    }
    !db.contention(10).rows.is_empty()
}

/// That a reader that has begun waits nobody can see from outside, so the writer is held for a time
/// in which it certainly comes to that; and that until an epoch runs on several workers.
#[test]
fn calls_that_wait_for_a_slow_writer_say_for_which_row_and_how_long() {
    let options = options().procedure::<Slow>().procedure::<Reader>().workers(2);
    let db = dram(
        options.tuning(Tuning { serial_calls_max: 0, ..Tuning::default() }).contention_epochs(10),
    );
    // From now on it is known that they predict what they write.
    db.call(Slow {}).unwrap();
    db.call(Reader {}).unwrap();
    assert!((0..10).any(|_| hold_a_writer(&db)), "no epoch ran on two workers");
    let found = db.contention(10);
    let [row] = &found.rows[..] else { panic!("one row was waited for: {found}") };
    assert_eq!((row.table, row.key_as::<u64>(), row.writers), ("accounts", Some(1), 0));
    assert!(row.waits >= 1 && row.waited >= Duration::from_millis(1), "{found}");
}
