//! Readers of snapshots beside writers: none holds up the others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::common::{ACCOUNTS, Deposit, dram, options};
use nvcaracal::{Database, Procedure, Snapshot, Stop, Transaction, plain};

/// Some tens of the parts in which rows are read.
const ROWS: u64 = 40_000;
const READERS: usize = 4;

plain! {
    /// Inserts the rows of a range.
    struct Fill { from: u64, to: u64 }
}

impl Procedure for Fill {
    const NAME: &'static str = "fill";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        (self.from..self.to).try_for_each(|row| tx.insert(ACCOUNTS, row, &1))
    }
}

fn filled() -> (Database, Snapshot) {
    let db = dram(options().procedure::<Fill>());
    for from in (0..ROWS).step_by(4000) {
        db.call(Fill { from, to: from + 4000 }).unwrap();
    }
    let snapshot = db.snapshot().unwrap();
    (db, snapshot)
}

/// O-87: nothing is held between two rows, wherever a reader stands.
#[test]
fn o_87_a_reader_that_stands_still_holds_up_no_call() {
    let (db, snapshot) = filled();
    let mut rows = snapshot.range(ACCOUNTS, ..);
    for row in 0..2500 {
        assert_eq!(rows.next().unwrap().unwrap(), (row, 1));
        if row % 50 == 0 {
            db.call(Deposit { account: row + 1, cents: 5 }).unwrap();
            db.call(Deposit { account: ROWS + row, cents: 5 }).unwrap();
        }
    }
    assert_eq!(rows.count() as u64, ROWS - 2500);
}

/// O-87: calls come to their ends beside readers that never pause, and readers beside calls.
#[test]
fn o_87_calls_and_readers_that_never_pause_come_on() {
    let (db, snapshot) = filled();
    let (calls_are_over, scans) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; READERS]);
    thread::scope(|scope| {
        for scans in &scans {
            let (snapshot, calls_are_over) = (&snapshot, &calls_are_over);
            scope.spawn(move || {
                while !calls_are_over.load(Ordering::Relaxed) {
                    let rows = snapshot.range(ACCOUNTS, ..).map(|row| row.unwrap().1);
                    assert_eq!(rows.sum::<i64>(), ROWS as i64);
                    assert_eq!(snapshot.count(ACCOUNTS, ..).unwrap(), ROWS);
                    scans.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut calls = 0;
        while calls < 300 || scans.iter().any(|scans| scans.load(Ordering::Relaxed) == 0) {
            db.call(Deposit { account: calls * 37 % (2 * ROWS), cents: 5 }).unwrap();
            calls += 1;
        }
        calls_are_over.store(true, Ordering::Relaxed);
    });
}
