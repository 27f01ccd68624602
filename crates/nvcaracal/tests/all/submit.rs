//! Submitting: from many threads, with a full queue, in batches, and without taking the answers.

use std::thread;
use std::time::Duration;

use crate::common::{
    ACCOUNTS, Deposit, Hold, Transfer, dram, hold, options, sum, wait_until_blocked,
};
use nvcaracal::{Database, Tuning};

#[test]
fn many_threads_conserve_the_sum() {
    let db = dram(options().tuning(Tuning {
        epoch_calls_max: 100,
        queue_calls_max: 300,
        ..Tuning::default()
    }));
    let accounts = 20;
    for account in 0..accounts {
        assert_eq!(db.call(Deposit { account, cents: 50 }).unwrap(), 50);
    }
    thread::scope(|scope| {
        for t in 0..8u64 {
            let db = db.clone();
            scope.spawn(move || {
                for round in 0..20 {
                    let transfer = |i: u64| {
                        let n = t + 31 * round + 7 * i;
                        Transfer { from: n % accounts, to: n * n % accounts, cents: n as i64 % 9 }
                    };
                    let tickets: Vec<_> =
                        (0..50).map(|i| db.submit(transfer(i)).unwrap()).collect();
                    for ticket in tickets {
                        if let Err(error) = ticket.wait() {
                            assert_eq!(error.abort().map(|a| a.code), Some(7), "{error}");
                        }
                    }
                }
            });
        }
    });
    assert_eq!(sum(&db), 50 * accounts as i64);
    let stats = db.stats();
    assert_eq!(stats.committed + stats.aborted, accounts + 8 * 20 * 50);
    assert_eq!((stats.failed, stats.deferred, stats.refused), (0, 0, 0));
    assert_eq!(stats.queued_calls, 0);
    assert_eq!(stats.rows, accounts);
    assert!(stats.latency_p50 > Duration::ZERO && stats.latency_p50 <= stats.latency_p99);
    let [deposit, transfer] = stats.procedures.as_slice() else { panic!("{stats:?}") };
    assert_eq!((deposit.name, transfer.name), ("deposit", "transfer"));
    assert_eq!((deposit.committed, deposit.aborted), (accounts, 0));
    assert_eq!(transfer.committed + transfer.aborted, 8 * 20 * 50);
    assert_eq!(transfer.aborted, stats.aborted);
    assert!(transfer.latency_p50 > Duration::ZERO);
    assert!(transfer.latency_p50 <= transfer.latency_p99);
    assert!(transfer.latency_p99 <= transfer.latency_p999);
    db.close().unwrap();
}

#[test]
fn calls_of_one_thread_keep_their_order() {
    let db = dram(options().tuning(Tuning { epoch_calls_max: 7, ..Tuning::default() }));
    let tickets: Vec<_> =
        (0..100).map(|_| db.submit(Deposit { account: 1, cents: 1 }).unwrap()).collect();
    let balances: Vec<i64> = tickets.into_iter().map(|t| t.wait().unwrap()).collect();
    assert_eq!(balances, (1..=100).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_pushes_back() {
    let db = dram(
        options().procedure::<Hold>().tuning(Tuning { queue_calls_max: 10, ..Tuning::default() }),
    );
    let (sender, holder) = hold(&db);
    let deposit = Deposit { account: 1, cents: 1 };
    let tickets: Vec<_> = (0..10).map(|_| db.try_submit(deposit).unwrap()).collect();
    assert_eq!(db.stats().queued_calls, 10);
    let error = db.try_submit(deposit).unwrap_err();
    assert!(error.is_queue_full() && error.is_limit(), "{error}");
    assert_eq!(error.to_string(), "the queue is full: 10 calls with 160 bytes are waiting");

    let other = db.clone();
    let blocked = thread::spawn(move || other.submit(deposit).unwrap().wait().unwrap());
    wait_until_blocked(&db);
    assert!(tickets[0].wait_timeout(Duration::from_millis(5)).is_none());

    sender.send(()).unwrap();
    assert_eq!(blocked.join().unwrap(), 11);
    for (ticket, balance) in tickets.into_iter().zip(1..) {
        assert_eq!(ticket.wait().unwrap(), balance);
    }
    holder.join().unwrap();

    let mut batch = db.batch();
    for _ in 0..11 {
        batch.add(&deposit).unwrap();
    }
    let error = batch.submit().unwrap_err();
    assert!(error.is_limit() && !error.is_queue_full(), "{error}");
}

#[test]
fn blocked_callers_hear_of_a_close() {
    let db = dram(
        options().procedure::<Hold>().tuning(Tuning { queue_calls_max: 1, ..Tuning::default() }),
    );
    let (sender, holder) = hold(&db);
    let first = db.submit(Deposit { account: 1, cents: 1 }).unwrap();
    let other = db.clone();
    let blocked = thread::spawn(move || other.submit(Deposit { account: 2, cents: 1 }).map(drop));
    wait_until_blocked(&db);
    let closer = db.clone();
    let closing = thread::spawn(move || closer.close());
    assert!(blocked.join().unwrap().unwrap_err().is_stopped());
    sender.send(()).unwrap();
    closing.join().unwrap().unwrap();
    assert_eq!(first.wait().unwrap(), 1, "what was submitted before the close is answered");
    assert!(db.get(ACCOUNTS, 1).unwrap_err().is_stopped());
    assert!(db.call(Deposit { account: 1, cents: 1 }).unwrap_err().is_stopped());
    holder.join().unwrap();
}

#[test]
fn dropped_tickets_do_not_stop_their_calls() {
    let db = dram(options());
    for account in 0..1000 {
        drop(db.submit(Deposit { account, cents: 2 }).unwrap());
    }
    db.call(Deposit { account: 0, cents: 0 }).unwrap();
    assert_eq!(sum(&db), 2000);
}

#[test]
fn a_batch_stays_together() {
    let db = dram(options().tuning(Tuning { epoch_calls_max: 64, ..Tuning::default() }));
    let one_batch = |db: &Database| {
        let mut batch = db.batch();
        let added: Vec<_> =
            (0..40).map(|_| batch.add(&Deposit { account: 1, cents: 1 }).unwrap()).collect();
        assert_eq!(batch.len(), 40);
        let submitted = batch.submit().unwrap();
        submitted.wait();
        let balances = added.into_iter().map(|a| submitted.ticket(a).try_get().unwrap().unwrap());
        balances.collect::<Vec<i64>>()
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let balances = one_batch(&db);
                    assert!(balances.windows(2).all(|w| w[0] + 1 == w[1]), "{balances:?}");
                    db.call(Deposit { account: 1, cents: 1 }).unwrap();
                }
            });
        }
    });
    assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(4 * 10 * 41));
    db.batch().submit().unwrap().wait();
}
