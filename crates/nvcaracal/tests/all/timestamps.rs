//! Keys that follow from a timestamp: write sets know it, so such calls need not be deferred.

use std::sync::atomic::{AtomicU64, Ordering};

use nvcaracal::{
    Database, HashTable, Options, Stop, Table, Transaction, Tuning, WriteSet, procedure,
};

use crate::common::copy;

/// Requests by minute.
const REQUESTS: HashTable<u64, u64> = Table::hash("requests");
const MINUTE_NS: u64 = 60_000_000_000;

fn declare_count(_: &Count, set: &mut WriteSet) {
    set.insert(REQUESTS, set.timestamp_ns() / MINUTE_NS);
}

#[procedure(write_set = declare_count)]
fn count(tx: &mut Transaction, by: u64) -> Result<u64, Stop> {
    let minute = tx.timestamp_ns() / MINUTE_NS;
    let count = tx.get(REQUESTS, minute)?.unwrap_or(0) + by;
    tx.insert(REQUESTS, minute, &count)?;
    Ok(minute)
}

/// Each look is half a minute after the one before.
fn now_ns() -> u64 {
    static HALVES: AtomicU64 = AtomicU64::new(1000);
    HALVES.fetch_add(1, Ordering::Relaxed) * (MINUTE_NS / 2)
}

fn options() -> Options {
    let tuning = Tuning { serial_calls_max: 0, ..Tuning::default() };
    let options = Database::options().table(REQUESTS).procedure::<Count>().tuning(tuning);
    options.wall_clock(now_ns).checkpoint_every(1_000_000).workers(2).learns(false)
}

#[test]
fn a_write_set_has_the_timestamp_of_its_call() {
    let dir = tempfile::tempdir().unwrap();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let db = options().open(&alive).unwrap();
    let minutes: Vec<u64> =
        (0..8).map(|_| db.submit(Count { by: 1 }).unwrap().wait().unwrap()).collect();
    assert!(minutes.is_sorted() && minutes.first() < minutes.last(), "{minutes:?}");
    assert_eq!(db.stats().deferred, 0);
    copy(&alive, &killed);
    let again = options().open(&killed).unwrap();
    assert_eq!(again.recovery().calls_replayed, 8);
    for minute in &minutes {
        let count = minutes.iter().filter(|other| *other == minute).count() as u64;
        assert_eq!(again.get(REQUESTS, *minute).unwrap(), Some(count));
    }
}
