//! Copies of a database that goes on, and databases made of them.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use nvcaracal::{Database, HashTable, Procedure, Stop, Table, Transaction, WriteSet, plain};

use crate::common::{ACCOUNTS, Deposit, bytes, directory, dram, fill, options, rows};

const TOTAL: HashTable<u64, i64> = Table::hash("total");

plain! {
    /// Adds to an account, and to the total: by one of two ways, in the serial part or before it.
    struct Add { account: u64, is_declared: u64 }
}

impl Procedure for Add {
    const NAME: &'static str = "add";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        if self.is_declared == 1 {
            set.insert(ACCOUNTS, self.account);
            set.insert(TOTAL, 0);
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        let cents = tx.get(ACCOUNTS, self.account)?.unwrap_or(0);
        tx.insert(ACCOUNTS, self.account, &(cents + 1))?;
        let total = tx.get(TOTAL, 0)?.unwrap_or(0);
        tx.insert(TOTAL, 0, &(total + 1))
    }
}

/// The database with the total in it.
fn open(path: &std::path::Path) -> Database {
    let options = options().table(TOTAL).procedure::<Add>();
    options.checkpoint_every(3).open(path).unwrap()
}

/// Ends the writers, also where an assertion fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// O-59, S6, S22, O-13: copies of a database that four threads write to, with a checkpoint every
/// three epochs, have each call that was answered before, and of the others whole ones.
#[test]
fn o_59_a_backup_has_every_answered_call() {
    let dir = directory();
    let (store, copy) = (dir.path().join("store"), dir.path().join("copy"));
    let db = open(&store);
    fill(&db, 2_000);
    let balances = rows(&db, ..);
    let is_over = AtomicBool::new(false);
    let answered: [AtomicI64; 4] = Default::default();
    thread::scope(|scope| {
        for (account, answered) in (0..).zip(&answered) {
            let (db, is_over) = (&db, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    db.call(Add { account, is_declared: account % 2 }).unwrap();
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let _ends = Ends(&is_over);
        for _ in 0..12 {
            let all = || answered.each_ref().map(|count| count.load(Ordering::SeqCst));
            let start = all().map(|count| count + 3);
            while all().iter().zip(&start).any(|(now, start)| now < start) {
                thread::yield_now();
            }
            let before = all();
            let backup = db.backup(&copy).unwrap();
            let after = all();
            assert!(backup.checkpoint_epoch <= backup.epoch);
            let copied = open(&copy);
            assert_eq!(copied.recovery().epoch.0, backup.epoch);
            let snapshot = copied.snapshot().unwrap();
            let mut total = 0;
            for account in 0..4 {
                let found = snapshot.get(ACCOUNTS, account as u64).unwrap().unwrap_or(0);
                let added = found - balances[account].1;
                let (least, most) = (before[account], after[account] + 1);
                assert!((least..=most).contains(&added), "{added} of {least} to {most}");
                total += added;
            }
            assert_eq!(snapshot.get(TOTAL, 0).unwrap(), Some(total));
            drop(snapshot);
            assert_eq!(rows(&copied, 4..), balances[4..]);
            copied.close().unwrap();
            fs::remove_dir_all(&copy).unwrap();
        }
    });
    db.close().unwrap();
}

/// A copy becomes the database that there was at the end of any epoch since its checkpoint, and
/// each of these goes on by itself.
#[test]
fn a_copy_is_restored_to_any_of_its_epochs() {
    let dir = directory();
    let (store, copy) = (dir.path().join("store"), dir.path().join("copy"));
    let db = options().checkpoint_every(1_000_000).open(&store).unwrap();
    fill(&db, 100);
    db.checkpoint().unwrap();
    let mut states = vec![(db.stats().epoch, db.stats().state_hash)];
    for cents in 1..20 {
        db.call(Deposit { account: cents % 3, cents: cents as i64 }).unwrap();
        states.push((db.stats().epoch, db.stats().state_hash));
    }
    let backup = db.backup(&copy).unwrap();
    let (first, last) = (states[0].0, states.last().unwrap().0);
    assert_eq!((backup.checkpoint_epoch, backup.epoch), (first, last));
    db.call(Deposit { account: 3, cents: 1 }).unwrap();
    let before = bytes(&copy);
    for (epoch, hash) in states {
        let target = dir.path().join(format!("at-{epoch}"));
        assert_eq!(Database::restore(&copy, &target, Some(epoch)).unwrap().epoch, epoch);
        let restored = options().open(&target).unwrap();
        assert_eq!((restored.stats().epoch, restored.stats().state_hash), (epoch, hash));
        restored.call(Deposit { account: 50, cents: 7 }).unwrap();
        let gone_on = restored.stats().state_hash;
        drop(restored);
        assert_eq!(options().open(&target).unwrap().stats().state_hash, gone_on);
    }
    for epoch in [first - 1, last + 1] {
        let target = dir.path().join("outside");
        let error = Database::restore(&copy, &target, Some(epoch)).unwrap_err();
        assert!(error.is_limit(), "{error}");
        assert!(error.to_string().contains(&format!("epoch {epoch} ")), "{error}");
        assert!(!target.exists());
    }
    assert!(bytes(&copy) == before, "a copy stays as it is");
}

/// What cannot be copied is refused, and nothing is left.
#[test]
fn a_backup_that_cannot_be_made_leaves_nothing() {
    let dir = directory();
    let error = dram(options()).backup(dir.path().join("copy")).unwrap_err();
    assert!(error.is_mistake(), "{error}");
    let store = dir.path().join("store");
    let db = options().open(&store).unwrap();
    fill(&db, 100);
    let error = db.backup(&store).unwrap_err();
    assert!(error.is_mistake() && error.to_string().contains("is the database itself"), "{error}");
    let error = Database::restore(dir.path(), dir.path().join("copy"), None).unwrap_err();
    assert!(error.is_mistake() && error.to_string().contains("holds no database"), "{error}");
    // A page that is damaged is found before it is a part of a backup.
    db.checkpoint().unwrap();
    let data = store.join("data");
    let mut damaged = fs::read(&data).unwrap();
    damaged[4096..].iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(&data, damaged).unwrap();
    let error = db.backup(dir.path().join("copy")).unwrap_err();
    assert!(error.is_corrupt(), "{error}");
    let names = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, 1, "the store is all there is");
}
