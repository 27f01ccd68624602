//! Asynchronous callers: tickets are futures, and waiting for room keeps no thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use nvcaracal::Tuning;

use crate::common::{ACCOUNTS, Deposit, Hold, Transfer, dram, hold, options, sum};

/// Runs a future on this thread, without any runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_ticket_is_a_future_that_needs_no_runtime() {
    let db = dram(options());
    block_on(async {
        assert_eq!(db.call_async(Deposit { account: 1, cents: 5 }).await.unwrap(), 5);
        let error = db.call_async(Transfer { from: 1, to: 2, cents: 3 }).await.unwrap_err();
        assert!(error.is_user_abort(), "{error}");
        let first = db.submit_async(Deposit { account: 2, cents: 1 }).await.unwrap();
        let second = db.submit(Deposit { account: 2, cents: 1 }).unwrap();
        assert_eq!((second.await.unwrap(), first.await.unwrap()), (2, 1));
    });
    let after = db.clone();
    db.close().unwrap();
    let late = block_on(after.call_async(Deposit { account: 1, cents: 1 }));
    assert!(late.unwrap_err().is_stopped());
}

/// A snapshot is waited for without keeping a thread; one that no task wants any more is released.
#[test]
fn a_task_waits_for_a_snapshot_while_an_epoch_runs() {
    let db = dram(options().procedure::<Hold>());
    assert_eq!(db.call(Deposit { account: 1, cents: 5 }).unwrap(), 5);
    let (end, holder) = hold(&db);
    let mut context = Context::from_waker(Waker::noop());
    let mut waits = Box::pin(db.snapshot_async());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    let mut dropped = Box::pin(db.snapshot_async());
    assert!(dropped.as_mut().poll(&mut context).is_pending());
    drop(dropped);
    end.send(()).unwrap();
    holder.join().unwrap();
    let snapshot = block_on(waits).unwrap();
    db.call(Deposit { account: 1, cents: 5 }).unwrap();
    assert_eq!(snapshot.get(ACCOUNTS, 1).unwrap(), Some(5));
    let now = block_on(db.snapshot_async()).unwrap();
    assert_eq!(now.get(ACCOUNTS, 1).unwrap(), Some(10));
    drop((snapshot, now));
    let after = db.clone();
    db.close().unwrap();
    assert!(block_on(after.snapshot_async()).unwrap_err().is_stopped());
}

/// A snapshot stands while readers ask for one, and for a second after that.
#[test]
fn o_84_a_snapshot_stands_as_long_as_readers_ask() {
    let db = dram(options().procedure::<Hold>());
    db.call(Deposit { account: 1, cents: 5 }).unwrap();
    drop(db.snapshot().unwrap());
    let mut context = Context::from_waker(Waker::noop());
    for (after, stands) in [(Duration::ZERO, true), (Duration::from_millis(1_100), false)] {
        thread::sleep(after);
        db.call(Deposit { account: 1, cents: 5 }).unwrap();
        let (end, holder) = hold(&db);
        let is_ready = Box::pin(db.snapshot_async()).as_mut().poll(&mut context).is_ready();
        end.send(()).unwrap();
        holder.join().unwrap();
        assert_eq!(is_ready, stands, "{after:?} after the last snapshot");
    }
    assert_eq!(db.memory().unwrap().snapshots, 0, "images are freed with their epoch");
}

/// Thousands of tasks on one thread, in a queue with room for few: all are answered, in the end.
#[test]
fn tasks_wait_for_room_and_for_answers_in_a_runtime() {
    const TASKS: i64 = 3000;
    let db = dram(options().tuning(Tuning { queue_calls_max: 7, ..Tuning::default() }));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for cents in 1..=TASKS {
            let db = db.clone();
            tasks.spawn(async move {
                let account = cents as u64 % 10;
                db.call_async(Deposit { account, cents }).await.unwrap();
                // Who gives up waiting leaves nothing behind; the call may take place.
                let mut late =
                    Box::pin(db.call_async(Transfer { from: account, to: 11, cents: 1 }));
                let mut context = Context::from_waker(Waker::noop());
                let _ = late.as_mut().poll(&mut context);
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
    });
    assert_eq!(sum(&db), TASKS * (TASKS + 1) / 2);
}

/// A task that waits for room hears of a close, and one that was dropped is forgotten.
#[test]
fn tasks_that_wait_for_room_hear_of_a_close() {
    let db = dram(
        options().procedure::<Hold>().tuning(Tuning { queue_calls_max: 1, ..Tuning::default() }),
    );
    let (sender, holder) = hold(&db);
    let waiting = db.submit(Deposit { account: 1, cents: 1 }).unwrap();
    let waker = Waker::noop();
    let mut full = Box::pin(db.submit_async(Deposit { account: 1, cents: 2 }));
    let mut dropped = Box::pin(db.submit_async(Deposit { account: 1, cents: 4 }));
    let mut context = Context::from_waker(waker);
    assert!(full.as_mut().poll(&mut context).is_pending());
    assert!(dropped.as_mut().poll(&mut context).is_pending());
    assert_eq!(db.stats().blocked_submitters, 2);
    drop(dropped);
    let other = db.clone();
    let closing = thread::spawn(move || other.close());
    assert!(block_on(full).unwrap_err().is_stopped());
    sender.send(()).unwrap();
    assert_eq!(waiting.wait().unwrap(), 1);
    holder.join().unwrap();
    closing.join().unwrap().unwrap();
}
