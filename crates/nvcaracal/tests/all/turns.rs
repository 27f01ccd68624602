//! Readers of snapshots and writers alternate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::common::{ACCOUNTS, dram, options};
use nvcaracal::{Procedure, Stop, Transaction, plain};

const READERS: usize = 8;
/// More than a reader may come on with while a call waits, and small: a part of them is not limited
/// by its bytes.
const ROWS: u64 = 40_000;
/// Rows of a part, at most.
const PART_ROWS: u64 = 4096;
/// Parts that are read between two epochs while calls wait, at most.
const PARTS_MAX: u64 = 4;
const ROUNDS: usize = 40;

/// Rows that each reader has come on with.
static SEEN: [AtomicU64; READERS] = [const { AtomicU64::new(0) }; READERS];
/// Where each pauses, so that a call that is kept waiting for ever is so for a while only.
static LAST: [AtomicU64; READERS] = [const { AtomicU64::new(u64::MAX) }; READERS];
/// What [`SEEN`] was when [`Look`] ran last.
static LOOKED: [AtomicU64; READERS] = [const { AtomicU64::new(0) }; READERS];
/// Whether [`Hold`] runs, and may end.
static HOLDS: AtomicBool = AtomicBool::new(false);
static GOES_ON: AtomicBool = AtomicBool::new(false);

plain! {
    /// Inserts the rows of a range.
    struct Fill { from: u64, to: u64 }
    /// Holds its epoch until the test lets it go.
    struct Hold { of: u64 }
    /// Notes how far the readers are.
    struct Look { of: u64 }
}

impl Procedure for Fill {
    const NAME: &'static str = "fill";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        (self.from..self.to).try_for_each(|row| tx.insert(ACCOUNTS, row, &1))
    }
}

impl Procedure for Hold {
    const NAME: &'static str = "hold";
    type Output = ();

    fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
        HOLDS.store(true, Ordering::SeqCst);
        while !GOES_ON.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        Ok(())
    }
}

impl Procedure for Look {
    const NAME: &'static str = "look";
    type Output = ();

    fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
        for (seen, looked) in SEEN.iter().zip(&LOOKED) {
            looked.store(seen.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        Ok(())
    }
}

/// Ends the readers, also where the test fails.
struct EndReaders;

impl Drop for EndReaders {
    fn drop(&mut self) {
        GOES_ON.store(true, Ordering::SeqCst);
        LAST.iter().for_each(|last| last.store(0, Ordering::SeqCst));
    }
}

fn seen() -> [u64; READERS] {
    SEEN.each_ref().map(|seen| seen.load(Ordering::SeqCst))
}

/// O-87: a call that is submitted while an epoch runs waits for four parts of readers, however many
/// readers there are and however much they want: so each comes on with the rest of a part that it
/// had read before, and with one more. Counted in rows, because no clock can say this.
#[test]
fn o_87_a_call_waits_for_a_part_of_four_readers() {
    let db = dram(options().procedure::<Fill>().procedure::<Hold>().procedure::<Look>());
    for from in (0..ROWS).step_by(4000) {
        db.call(Fill { from, to: from + 4000 }).unwrap();
    }
    let snapshot = db.snapshot().unwrap();
    thread::scope(|scope| {
        let _end = EndReaders;
        for (seen, last) in SEEN.iter().zip(&LAST) {
            let snapshot = snapshot.clone();
            let goes_on = || seen.load(Ordering::SeqCst) < last.load(Ordering::SeqCst);
            scope.spawn(move || {
                while last.load(Ordering::SeqCst) != 0 {
                    for row in snapshot.range(ACCOUNTS, ..).take_while(|_| goes_on()) {
                        row.unwrap();
                        seen.fetch_add(1, Ordering::SeqCst);
                    }
                    thread::yield_now();
                }
            });
        }
        for round in 0..ROUNDS as u64 {
            GOES_ON.store(false, Ordering::SeqCst);
            let held = db.submit(Hold { of: round }).unwrap();
            while !HOLDS.swap(false, Ordering::SeqCst) {
                thread::yield_now();
            }
            let before = seen();
            for (last, before) in LAST.iter().zip(before) {
                last.store(before + 10 * PART_ROWS, Ordering::SeqCst);
            }
            let looked = db.submit(Look { of: round }).unwrap();
            // Mostly all readers have come to the end of what they had read then, and wait.
            while {
                let now = seen();
                (0..100).for_each(|_| thread::yield_now());
                seen() != now
            } {}
            GOES_ON.store(true, Ordering::SeqCst);
            held.wait().unwrap();
            looked.wait().unwrap();
            LAST.iter().for_each(|last| last.store(u64::MAX, Ordering::SeqCst));
            let after = LOOKED.each_ref().map(|looked| looked.load(Ordering::SeqCst));
            for (after, before) in after.iter().zip(before) {
                let rows = after - before;
                assert!(rows <= 2 * PART_ROWS, "round {round}: a reader came on with {rows} rows");
            }
            let rows = after.iter().sum::<u64>() - before.iter().sum::<u64>();
            let most = READERS as u64 * PART_ROWS + PARTS_MAX * PART_ROWS;
            assert!(rows <= most, "round {round}: readers came on with {rows} rows");
        }
    });
}
