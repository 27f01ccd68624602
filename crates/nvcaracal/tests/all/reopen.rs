//! Opening again: after a close, a drop, a kill; with other options; in the wrong place.

use crate::common::{ACCOUNTS, Deposit, Transfer, copy, directory, fill, options, rows, sum};
use nvcaracal::{
    Database, HashTable, Procedure, Stop, Table, Transaction, Tuning, WriteSet, plain,
};

#[test]
fn a_dropped_database_recovers_everything_that_was_answered() {
    let dir = directory();
    let db = options().open(dir.path().join("bank")).unwrap();
    assert!(db.recovery().created);
    let hash = fill(&db, 500);
    drop(db);
    let db = options().open(dir.path().join("bank")).unwrap();
    assert!(!db.recovery().created);
    assert_eq!(db.stats().state_hash, hash);
    assert_eq!(sum(&db), (0..500).sum::<i64>());
    assert_eq!(db.recovery().epochs_replayed, 0, "dropping closes");
}

#[test]
fn what_a_kill_leaves_has_everything_that_was_answered() {
    let dir = directory();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let db = options().checkpoint_every(1_000_000).open(&alive).unwrap();
    let hash = fill(&db, 100);
    copy(&alive, &killed);
    let again = options().workers(3).open(&killed).unwrap();
    assert!(again.recovery().epochs_replayed > 0);
    assert_eq!(again.stats().state_hash, hash);
    assert_eq!(rows(&again, ..), rows(&db, ..));
    // Both go on, the same way.
    for db in [&db, &again] {
        db.call(Deposit { account: 3, cents: 30 }).unwrap();
        db.checkpoint().unwrap();
        assert_eq!(db.stats().checkpoint_epoch, db.stats().epoch);
    }
    assert_eq!(db.stats().state_hash, again.stats().state_hash);
}

#[test]
fn the_number_of_workers_may_change() {
    let dir = directory();
    let mut last = 0;
    for (round, workers) in [1, 4, 2, 3].into_iter().enumerate() {
        let db = options().workers(workers).open(dir.path()).unwrap();
        assert_eq!(db.stats().state_hash, last);
        assert_eq!(sum(&db), (0..200).sum::<i64>() * round as i64);
        last = fill(&db, 200);
        db.close().unwrap();
    }
}

#[test]
fn a_second_open_is_refused() {
    let dir = directory();
    let db = options().open(dir.path()).unwrap();
    let error = options().open(dir.path()).unwrap_err();
    assert!(error.is_locked() && !error.is_corrupt(), "{error}");
    db.close().unwrap();
    options().open(dir.path()).unwrap();
}

#[test]
fn a_place_that_is_not_there_is_named() {
    let dir = directory();
    let error = options().open(dir.path().join("no/bank")).unwrap_err();
    assert!(error.is_mistake(), "{error}");
    assert!(error.to_string().contains("/no to create a database in"), "{error}");
    assert!(options().create(false).open(dir.path().join("bank")).is_err());
    assert!(!dir.path().join("bank").exists());
}

#[test]
fn opening_and_closing_often_loses_nothing() {
    let dir = directory();
    for round in 1..=50 {
        let db = options().data_bytes_max(64 << 20).open(dir.path()).unwrap();
        assert_eq!(db.call(Deposit { account: 1, cents: 1 }).unwrap(), round);
        if round % 2 == 0 {
            db.close().unwrap();
        }
    }
}

const NAMES: HashTable<str, String> = Table::hash("names");

plain! {
    struct Name { number: u64 }
}

impl Procedure for Name {
    const NAME: &'static str = "name";
    type Output = String;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(NAMES, format!("n{}", self.number));
    }

    fn run(&self, tx: &mut Transaction) -> Result<String, Stop> {
        let name = format!("number {} of epoch time {}", self.number, tx.timestamp_ns() > 0);
        tx.insert(NAMES, format!("n{}", self.number), &name)?;
        Ok(name)
    }
}

#[test]
fn tables_and_procedures_may_be_added_and_tables_reordered() {
    let dir = directory();
    let db = options().open(dir.path()).unwrap();
    db.call(Deposit { account: 1, cents: 5 }).unwrap();
    db.close().unwrap();
    // The new table comes first here, and second in the catalog.
    let more = Database::options()
        .table(NAMES)
        .table(ACCOUNTS)
        .procedure::<Deposit>()
        .procedure::<Transfer>()
        .procedure::<Name>()
        .data_bytes_max(1 << 30);
    let db = more.open(dir.path()).unwrap();
    assert_eq!(db.call(Name { number: 7 }).unwrap(), "number 7 of epoch time true");
    assert_eq!(db.get(NAMES, "n7").unwrap().as_deref(), Some("number 7 of epoch time true"));
    assert_eq!(db.call(Deposit { account: 1, cents: 5 }).unwrap(), 10);
    db.close().unwrap();
    const OTHER: Table<u64, [u64; 2]> = Table::ordered("accounts");
    let error = Database::options().table(OTHER).open(dir.path()).unwrap_err();
    assert!(error.is_schema(), "{error}");
}

/// The clock was set back between two runs, and timestamps went back with it: what an open finds is
/// the last one that was logged, after a close as after a kill, of small epochs and of large ones.
#[test]
fn an_open_knows_the_last_timestamp() {
    plain! { struct Now { number: u64 } }
    impl Procedure for Now {
        const NAME: &'static str = "now";
        type Output = u64;
        fn write_set(&self, set: &mut WriteSet) {
            set.insert(ACCOUNTS, self.number);
        }
        fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
            tx.insert(ACCOUNTS, self.number, &1)?;
            Ok(tx.timestamp_ns())
        }
    }
    let directory = directory();
    for (name, serial_calls_max, calls, epochs) in
        [("small", 64, 1, 100), ("large", 0, 100, 100), ("checkpoints", 64, 1, 1)]
    {
        let options = || {
            options().procedure::<Now>().tuning(Tuning { serial_calls_max, ..Tuning::default() })
        };
        let options = || options().checkpoint_every(epochs);
        let (path, killed) =
            (directory.path().join(name), directory.path().join(format!("{name} killed")));
        let db = options().open(&path).unwrap();
        let mut last = 0;
        for _ in 0..3 {
            let mut batch = db.batch();
            let added: Vec<_> =
                (0..calls).map(|number| batch.add(&Now { number }).unwrap()).collect();
            let submitted = batch.submit().unwrap();
            last = added
                .into_iter()
                .map(|added| submitted.ticket(added).wait().unwrap())
                .max()
                .unwrap();
        }
        // A copy of a store that snapshots its image meanwhile is none.
        let is_whole = epochs > 1;
        if is_whole {
            copy(&path, &killed);
        }
        db.close().unwrap();
        for path in [&path, if is_whole { &killed } else { &path }, &path] {
            let db = options().open(path).unwrap();
            assert_eq!(db.recovery().timestamp_ns, last, "{}", path.display());
            db.close().unwrap();
        }
    }
}
