//! A child of `fork` has its parent's handles, files and lock, and none of its threads. Both wrote
//! one log, and answered calls of the parent were lost without an error. Now a child is refused at
//! its first call, and waits for nobody.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::{ACCOUNTS, Deposit, Hold, bytes, copy, directory, hold, options, rows};
use nvcaracal::{Database, DeviceSpec, Error, Stats};

/// Fails in a child unless it is refused for being one.
fn refused<T>(result: Result<T, Error>) {
    let error = result.err().expect("a child is refused");
    assert!(error.is_mistake() && error.to_string().contains("fork"), "{error}");
}

/// Every way to use a database.
fn is_refused(db: &Database) {
    let deposit = || Deposit { account: 100, cents: 1 };
    refused(db.call(deposit()));
    refused(db.submit(deposit()));
    refused(db.try_submit(deposit()));
    let mut context = Context::from_waker(Waker::noop());
    match pin!(db.call_async(deposit())).poll(&mut context) {
        Poll::Ready(result) => refused(result),
        Poll::Pending => panic!("it waits"),
    }
    let mut batch = db.batch();
    batch.add(&deposit()).unwrap();
    refused(batch.submit());
    refused(db.get(ACCOUNTS, 1));
    refused(db.snapshot());
    refused(db.checkpoint());
    refused(db.reserve(ACCOUNTS, 10));
    refused(db.check_indexes());
    refused(db.memory());
    assert_eq!(db.stats().committed, Stats::default().committed);
    assert!(db.contention(1).rows.is_empty());
    refused(db.clone().close());
}

#[test]
fn o_52_a_child_of_fork_is_refused_and_changes_nothing() {
    let directory = directory();
    let path = directory.path().join("bank");
    let db = options().procedure::<Hold>().contention_epochs(1).open(&path).unwrap();
    assert_eq!(db.call(Deposit { account: 1, cents: 1 }).unwrap(), 1);
    let snapshot = db.snapshot().unwrap();
    let (end, holder) = hold(&db);
    let (mut ticket, mut db) =
        (Some(db.submit(Deposit { account: 1, cents: 1 }).unwrap()), Some(db));
    let mut snapshot = Some(snapshot);
    let before = bytes(&path);
    let child = || {
        is_refused(db.as_ref().unwrap());
        let waiting = ticket.take().unwrap();
        refused(waiting.try_get().expect("an error"));
        refused(waiting.wait_timeout(Duration::from_secs(60)).expect("an error"));
        println!("{waiting:?}");
        refused(waiting.wait());
        refused(snapshot.as_ref().unwrap().get(ACCOUNTS, 1));
        refused(snapshot.as_ref().unwrap().range(ACCOUNTS, ..).next().expect("an error"));
        drop((snapshot.take(), db.take()));
        // It is the parent's still.
        u8::from(!options().open(&path).is_err_and(|error| error.is_locked()))
    };
    assert_eq!(pmem::in_fork(child).unwrap(), 0);
    assert!(bytes(&path) == before, "the child has written");
    let other = || u8::from(!options().open(&path).is_err_and(|error| error.is_locked()));
    assert_eq!(pmem::in_fork(other).unwrap(), 0, "the child has unlocked the database");

    let db = db.unwrap();
    end.send(()).unwrap();
    holder.join().unwrap();
    assert_eq!(ticket.unwrap().wait().unwrap(), 2);
    assert_eq!(snapshot.unwrap().get(ACCOUNTS, 1).unwrap(), Some(1));
    // The call that was held is not for a replay.
    db.checkpoint().unwrap();
    for cents in 3..=4 {
        assert_eq!(db.call(Deposit { account: 1, cents: 1 }).unwrap(), cents);
    }
    // As a kill leaves it.
    let killed = directory.path().join("killed");
    copy(&path, &killed);
    let after = options().procedure::<Hold>().open(&killed).unwrap();
    assert_eq!(rows(&after, ..), [(1, 4)]);
    db.close().unwrap();
}

/// What a child opens is its own.
#[test]
fn a_child_of_fork_opens_another_database() {
    let directory = directory();
    let parents = options().open(directory.path().join("parents")).unwrap();
    let child = || {
        let db = options().open(directory.path().join("childs")).unwrap();
        let answer = db.call(Deposit { account: 1, cents: 7 }).unwrap();
        assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(answer));
        is_refused(&parents);
        db.close().unwrap();
        answer as u8
    };
    assert_eq!(pmem::in_fork(child).unwrap(), 7);
    let childs = options().open(directory.path().join("childs")).unwrap();
    assert_eq!(rows(&childs, ..), [(1, 7)]);
    // In memory there is no lock, but there are threads.
    let memory = options().open_device(DeviceSpec::Dram).unwrap();
    assert_eq!(pmem::in_fork(|| (is_refused(&memory), 0).1).unwrap(), 0);
    assert_eq!(memory.call(Deposit { account: 1, cents: 1 }).unwrap(), 1);
}
