//! Databases that are only read: no file changes, and all that was answered is seen.

use nvcaracal::{Database, DeviceSpec};

use crate::common::{ACCOUNTS, Deposit, bytes, copy, directory, fill, options, rows, sum};

/// What a kill left is replayed in memory, as often as it is opened.
#[test]
fn what_a_kill_leaves_is_read_without_a_change() {
    let dir = directory();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let db = options().checkpoint_every(1_000_000).open(&alive).unwrap();
    let hash = fill(&db, 100);
    copy(&alive, &killed);
    let before = bytes(&killed);
    for workers in [1, 3] {
        let reader = options().workers(workers).read_only(true).open(&killed).unwrap();
        let other = options().read_only(true).open(&killed).unwrap();
        for reader in [&reader, &other] {
            assert!(reader.recovery().epochs_replayed > 0);
            assert_eq!(reader.stats().state_hash, hash);
            assert_eq!(rows(reader, ..), rows(&db, ..));
            assert_eq!(reader.get(ACCOUNTS, 7).unwrap(), db.get(ACCOUNTS, 7).unwrap());
        }
        reader.close().unwrap();
        drop(other);
        assert!(bytes(&killed) == before, "a file has changed");
    }
    // And then it is opened as ever.
    let again = options().open(&killed).unwrap();
    assert_eq!(again.stats().state_hash, hash);
    assert_eq!(again.call(Deposit { account: 30, cents: 1 }).unwrap(), 31);
}

#[test]
fn a_closed_database_is_read() {
    let dir = directory();
    let db = options().open(dir.path()).unwrap();
    fill(&db, 100);
    db.close().unwrap();
    let before = bytes(dir.path());
    let reader = options().read_only(true).open(dir.path()).unwrap();
    assert_eq!(sum(&reader), (0..100).sum::<i64>());
    reader.check_indexes().unwrap();
    // A writer is kept out meanwhile, and keeps readers out.
    assert!(options().open(dir.path()).unwrap_err().is_locked());
    drop(reader);
    assert!(bytes(dir.path()) == before, "a file has changed");
    let db = options().open(dir.path()).unwrap();
    assert!(options().read_only(true).open(dir.path()).unwrap_err().is_locked());
    db.close().unwrap();
}

#[test]
fn whatever_would_change_it_is_refused() {
    let dir = directory();
    let missing = dir.path().join("missing");
    let error = options().read_only(true).open(&missing).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    assert!(!missing.exists(), "nothing is created");
    let path = dir.path().join("bank");
    options().open(&path).unwrap().close().unwrap();
    let db = options().read_only(true).open(&path).unwrap();
    let call = Deposit { account: 1, cents: 1 };
    let mut batch = db.batch();
    let _ = batch.add(&call).unwrap();
    for error in [
        db.call(Deposit { account: 1, cents: 1 }).unwrap_err(),
        db.submit(Deposit { account: 1, cents: 1 }).map(drop).unwrap_err(),
        db.try_submit(call).map(drop).unwrap_err(),
        batch.submit().map(drop).unwrap_err(),
        db.checkpoint().unwrap_err(),
        db.reserve(ACCOUNTS, 10).unwrap_err(),
    ] {
        assert!(error.is_mistake(), "{error}");
        assert_eq!(error.to_string(), "the database was opened for reading only");
    }
    let options = Database::options().table(ACCOUNTS).read_only(true);
    let error = options.open_device(DeviceSpec::Dram).unwrap_err();
    assert_eq!(error.to_string(), "dram cannot be opened for reading only, file:DIRECTORY can");
}
