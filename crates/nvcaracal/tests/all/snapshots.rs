//! Snapshots: what they see while others write, and what becomes of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::{ACCOUNTS, Deposit, Transfer, dram, options, rows, sum};
use nvcaracal::{
    Data, Database, HashTable, Key, Procedure, Snapshot, Stop, Table, Transaction, Tuning,
};

const COUNTS: HashTable<u64, u64> = Table::hash("counts");
const NAMES: Table<str, String> = Table::ordered("names");

/// Writes rows of all kinds of tables.
#[derive(Debug, Clone, PartialEq, Data)]
struct Fill {
    from: u64,
    to: u64,
    salt: u64,
}

/// Deletes what is in a range.
#[derive(Debug, Clone, PartialEq, Data)]
struct Clear {
    from: u64,
    to: u64,
}

fn name(of: u64) -> String {
    format!("{}{of}", "n".repeat(of as usize % 20))
}

impl Procedure for Fill {
    const NAME: &'static str = "fill";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        for of in self.from..self.to {
            tx.insert(ACCOUNTS, of, &((of + self.salt) as i64))?;
            tx.insert(COUNTS, of, &(of ^ self.salt))?;
            tx.insert(NAMES, name(of), &format!("{of} {}", self.salt))?;
        }
        Ok(())
    }
}

impl Procedure for Clear {
    const NAME: &'static str = "clear";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        for of in self.from..self.to {
            tx.delete(ACCOUNTS, of)?;
            tx.delete(COUNTS, of)?;
            tx.delete(NAMES, name(of))?;
        }
        Ok(())
    }
}

fn open() -> Database {
    let options = options().table(COUNTS).table(NAMES).procedure::<Fill>().procedure::<Clear>();
    dram(options)
}

fn all<K: Key + ?Sized, V: Data>(
    rows: impl Iterator<Item = nvcaracal::Result<(K::Owned, V)>>,
) -> Vec<(K::Owned, V)> {
    rows.collect::<Result<_, _>>().unwrap()
}

/// What `Fill` wrote.
fn check(snapshot: &Snapshot, salt: u64) {
    let expected: Vec<_> = (0..500).map(|of| (of, (of + salt) as i64)).collect();
    assert_eq!(all::<u64, i64>(snapshot.range(ACCOUNTS, ..)), expected);
    let mut back = all::<u64, i64>(snapshot.range(ACCOUNTS, ..).rev());
    back.reverse();
    assert_eq!(back, expected);
    assert_eq!(snapshot.count(ACCOUNTS, 100..).unwrap(), 400);
    let mut counts = all::<u64, u64>(snapshot.all(COUNTS));
    counts.sort_unstable();
    assert!(counts.into_iter().eq((0..500).map(|of| (of, of ^ salt))));
    let mut names: Vec<_> = (0..500).map(|of| (name(of), format!("{of} {salt}"))).collect();
    names.sort_unstable();
    assert_eq!(all::<str, String>(snapshot.range(NAMES, ..)), names);
    assert_eq!(snapshot.get(NAMES, name(77).as_str()).unwrap(), Some(format!("77 {salt}")));
    assert_eq!(snapshot.get(COUNTS, 500).unwrap(), None);
}

/// O-84: everything that was answered before, nothing that came after, as long as it lives.
#[test]
fn o_84_a_snapshot_stays_what_it_was() {
    let db = open();
    let empty = db.snapshot().unwrap();
    db.call(Fill { from: 0, to: 500, salt: 1000 }).unwrap();
    let first = db.snapshot().unwrap();
    db.call(Fill { from: 0, to: 500, salt: 2000 }).unwrap();
    let second = db.snapshot().unwrap();
    db.call(Clear { from: 0, to: 400 }).unwrap();
    db.call(Fill { from: 300, to: 700, salt: 3000 }).unwrap();
    assert_eq!(empty.range(ACCOUNTS, ..).count(), 0);
    assert_eq!(empty.all(COUNTS).count(), 0);
    check(&second, 2000);
    check(&first, 1000);
    assert!(first.epoch() < second.epoch());
    drop(first.clone());
    check(&first, 1000);
    drop(second);
    check(&first, 1000);
    assert_eq!(db.snapshot().unwrap().count(ACCOUNTS, ..).unwrap(), 400);
}

/// O-88: from both ends, with epochs between the parts, each key comes once.
#[test]
fn o_88_rows_from_both_ends_meet_once() {
    let db = open();
    db.call(Fill { from: 0, to: 1000, salt: 0 }).unwrap();
    db.call(Deposit { account: u64::MAX, cents: 5 }).unwrap();
    let snapshot = db.snapshot().unwrap();
    for turn in [1, 2, 7] {
        let mut rows = snapshot.range(ACCOUNTS, ..);
        let (mut front, mut back) = (Vec::new(), Vec::new());
        for number in 0.. {
            let next = if number % (turn + 1) == 0 { rows.next() } else { rows.next_back() };
            let Some(row) = next else { break };
            let (key, _) = row.unwrap();
            if number % (turn + 1) == 0 {
                front.push(key)
            } else {
                back.push(key)
            }
            if number % 100 == 0 {
                db.call(Clear { from: number, to: number + 50 }).unwrap();
                db.call(Fill { from: number + 25, to: number + 75, salt: number }).unwrap();
            }
        }
        back.reverse();
        front.extend(back);
        assert!(front.into_iter().eq((0..1000).chain([u64::MAX])), "{turn}");
        assert!(rows.next().is_none() && rows.next_back().is_none());
    }
}

/// O-84: while money moves, every snapshot has all of it.
#[test]
fn o_84_snapshots_beside_writers_are_whole() {
    let db = dram(options().tuning(Tuning { serial_calls_max: 2, ..Tuning::default() }));
    for account in 0..300 {
        db.call(Deposit { account, cents: 100 }).unwrap();
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..6u64 {
            let (db, is_over) = (db.clone(), &is_over);
            scope.spawn(move || {
                let mut number = thread;
                while !is_over.load(Ordering::Relaxed) {
                    number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (from, to) = (number >> 33 & 255, number >> 43 & 255);
                    let _ = db.call(Transfer { from, to, cents: 1 });
                }
            });
        }
        for _ in 0..20 {
            let snapshots: Vec<Snapshot> = (0..3).map(|_| db.snapshot().unwrap()).collect();
            for snapshot in snapshots.iter().rev() {
                let rows = all::<u64, i64>(snapshot.range(ACCOUNTS, ..));
                assert_eq!(rows.iter().map(|row| row.1).sum::<i64>(), 30_000);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(sum(&db), 30_000);
}

/// O-89, O-90: beyond its limit a snapshot is an error, and so it is when the database is closed.
#[test]
fn o_89_a_snapshot_that_ended_says_so() {
    let db = dram(options().snapshot_bytes_max(1000));
    for account in 0..100 {
        db.call(Deposit { account, cents: 1 }).unwrap();
    }
    let snapshot = db.snapshot().unwrap();
    let mut open_rows = snapshot.range(ACCOUNTS, ..);
    assert_eq!(open_rows.next().unwrap().unwrap(), (0, 1));
    for account in 0..100 {
        db.call(Deposit { account, cents: 1 }).unwrap();
    }
    let error = snapshot.get(ACCOUNTS, 1).unwrap_err();
    assert!(error.is_limit() && error.to_string().contains("snapshot_bytes_max"), "{error}");
    let last = open_rows.by_ref().last().unwrap();
    assert!(last.unwrap_err().is_limit());
    assert!(open_rows.next().is_none());
    assert_eq!(rows(&db, ..).len(), 100);

    let snapshot = db.snapshot().unwrap();
    db.close().unwrap();
    assert!(snapshot.get(ACCOUNTS, 1).unwrap_err().is_stopped());
}

/// A table that the database does not have, and a value of another type.
#[test]
fn reading_what_is_not_there_is_a_mistake() {
    const OTHER: Table<u64, u64> = Table::ordered("other");
    const AS_TEXT: Table<u64, String> = Table::ordered("accounts");
    let db = dram(options());
    db.call(Deposit { account: 1, cents: 1 }).unwrap();
    let snapshot = db.snapshot().unwrap();
    assert!(snapshot.get(OTHER, 1).unwrap_err().is_mistake());
    assert!(snapshot.count(OTHER, ..).unwrap_err().is_mistake());
    let mut rows = snapshot.range(OTHER, ..);
    assert!(rows.next().unwrap().unwrap_err().is_mistake());
    assert!(rows.next().is_none());
    let error = snapshot.range(AS_TEXT, ..).next().unwrap().unwrap_err();
    assert!(error.is_mistake() && error.to_string().contains("accounts"), "{error}");
}
