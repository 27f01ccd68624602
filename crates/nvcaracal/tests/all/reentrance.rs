//! Code of users that a database runs, and that uses the database. A procedure that waited for a
//! ticket hung, and with it everybody; a waker that called, one that panicked, and wakers that were
//! dropped or cloned under a lock could do the same.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::common::{ACCOUNTS, Deposit, Hold, dram, hold, options, sum};
use nvcaracal::{Database, Procedure, Stop, Submitted, Ticket, Transaction, Tuning, plain};

plain! {
    /// Waits for what another call will come to, in one of several ways.
    struct WaitFor { how: u64 }
}

static TICKETS: Mutex<Vec<(Ticket<i64>, Submitted, Database)>> = Mutex::new(Vec::new());

impl Procedure for WaitFor {
    const NAME: &'static str = "wait for";
    type Output = String;

    fn run(&self, _: &mut Transaction) -> Result<String, Stop> {
        let (ticket, submitted, db) = TICKETS.lock().unwrap().pop().expect("one for each call");
        let mut context = Context::from_waker(Waker::noop());
        let error = match self.how {
            0 => ticket.wait(),
            1 => ticket.wait_timeout(Duration::from_secs(60)).expect("an error at once"),
            2 => ticket.try_get().expect("an error at once"),
            3 => match pin!(ticket).poll(&mut context) {
                Poll::Ready(result) => result,
                Poll::Pending => Ok(0),
            },
            4 => db.close().map(|()| 0),
            _ => (submitted.wait(), Ok(0)).1,
        };
        Ok(error.unwrap_err().to_string())
    }
}

#[test]
fn a_procedure_that_waits_for_an_answer_is_told_so() {
    for serial_calls_max in [64, 0] {
        let options = options().procedure::<Hold>().procedure::<WaitFor>();
        let db = dram(options.tuning(Tuning { serial_calls_max, ..Tuning::default() }));
        for how in 0..6 {
            let (end, holder) = hold(&db);
            let waits = db.submit(WaitFor { how }).unwrap();
            let mut batch = db.batch();
            let added = batch.add(&Deposit { account: 1, cents: 1 }).unwrap();
            batch.add(&Deposit { account: 1, cents: 1 }).unwrap();
            let submitted = batch.submit().unwrap();
            let ticket = submitted.ticket(added);
            TICKETS.lock().unwrap().push((ticket, submitted, db.clone()));
            end.send(()).unwrap();
            holder.join().unwrap();
            let text = match waits.wait() {
                Ok(text) => text,
                Err(error) if how == 5 && error.is_failed() => error.to_string(),
                Err(error) => panic!("{error}"),
            };
            assert!(text.contains("which waits for it"), "{how}: {text}");
        }
        assert_eq!(sum(&db), 12);
    }
}

/// Something that is done when a task is woken.
struct OnWake<F>(F);

impl<F: Fn() + Send + Sync> Wake for OnWake<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Has a waker run by the sequencer's thread, when a call has its answer.
fn wake_by_sequencer(db: &Database, on_wake: impl Fn() + Send + Sync + 'static) {
    let (end, holder) = hold(db);
    let mut ticket = pin!(db.submit(Deposit { account: 2, cents: 0 }).unwrap());
    let waker = Waker::from(Arc::new(OnWake(on_wake)));
    assert!(ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    end.send(()).unwrap();
    holder.join().unwrap();
}

/// A waker may leave calls and look for answers. It is told that it must not wait.
#[test]
fn a_waker_uses_the_database_and_must_not_wait() {
    let db = dram(options().procedure::<Hold>());
    let (sender, heard) = mpsc::channel();
    let handle = db.clone();
    wake_by_sequencer(&db, move || {
        let deposit = || Deposit { account: 1, cents: 1 };
        let errors = [
            handle.call(deposit()).unwrap_err(),
            handle.submit(deposit()).unwrap_err(),
            handle.get(ACCOUNTS, 1).unwrap_err(),
            handle.checkpoint().unwrap_err(),
            handle.clone().close().unwrap_err(),
        ];
        let ticket = handle.try_submit(deposit()).unwrap();
        let waits = ticket.wait_timeout(Duration::from_secs(60)).map(Result::unwrap_err);
        let texts = errors.into_iter().chain(waits).map(|error| error.to_string());
        let is_answered = ticket.try_get().is_some();
        let _ = handle.stats();
        sender.send((texts.collect::<Vec<_>>(), is_answered, ticket)).unwrap();
    });
    let (texts, is_answered, ticket) = heard.recv().unwrap();
    assert!(texts.len() == 6 && !is_answered);
    for text in texts {
        assert!(text.contains("would wait for a database"), "{text}");
    }
    assert_eq!(ticket.wait().unwrap(), 1);
}

/// A waker that panics is not the database's affair, and the tasks after it are woken.
#[test]
fn a_waker_that_panics_stops_nobody() {
    let db = dram(options().procedure::<Hold>());
    let (sender, woken) = mpsc::channel();
    let (end, holder) = hold(&db);
    let mut tickets = Vec::new();
    for number in 0..10 {
        let mut ticket = Box::pin(db.submit(Deposit { account: 1, cents: 1 }).unwrap());
        let sender = sender.clone();
        let waker = Waker::from(Arc::new(OnWake(move || {
            sender.send(number).unwrap();
            assert!(number % 2 == 0, "a waker that panics");
        })));
        assert!(ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        tickets.push(ticket);
    }
    end.send(()).unwrap();
    holder.join().unwrap();
    drop(sender);
    let mut woken: Vec<_> = woken.iter().take(10).collect();
    woken.sort_unstable();
    assert_eq!(woken, (0..10).collect::<Vec<_>>());
    assert_eq!(db.call(Deposit { account: 1, cents: 0 }).unwrap(), 10);
    db.close().unwrap();
}

/// No lock is held while a waker is cloned or dropped: both are code of whoever runs the task.
#[test]
fn wakers_are_cloned_and_dropped_without_a_lock() {
    static USED: Mutex<Option<Database>> = Mutex::new(None);
    static IS_USING: AtomicBool = AtomicBool::new(false);
    fn use_it() {
        if IS_USING.swap(true, Ordering::Relaxed) {
            return;
        }
        let db = USED.lock().unwrap().clone();
        if let Some(db) = db {
            assert!(db.try_submit(Deposit { account: 3, cents: 1 }).is_err(), "the queue is full");
            assert_eq!(db.stats().queued_calls, 1);
        }
        IS_USING.store(false, Ordering::Relaxed);
    }
    struct Uses(Arc<()>);
    impl Wake for Uses {
        fn wake(self: Arc<Self>) {
            let _ = &self.0;
        }
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            use_it();
        }
    }
    let waker = || Waker::from(Arc::new(Uses(Arc::default())));
    let db = dram(
        options().procedure::<Hold>().tuning(Tuning { queue_calls_max: 1, ..Tuning::default() }),
    );
    let (end, holder) = hold(&db);
    let mut answer = Box::pin(db.submit(Deposit { account: 1, cents: 1 }).unwrap());
    let mut room = Box::pin(db.submit_async(Deposit { account: 2, cents: 1 }));
    *USED.lock().unwrap() = Some(db.clone());
    // Each poll drops the last handle of the waker before it.
    for _ in 0..3 {
        let waker = waker();
        let mut context = Context::from_waker(&waker);
        assert!(answer.as_mut().poll(&mut context).is_pending());
        assert!(room.as_mut().poll(&mut context).is_pending());
    }
    drop(room);
    *USED.lock().unwrap() = None;
    end.send(()).unwrap();
    holder.join().unwrap();
    assert_eq!(db.call(Deposit { account: 1, cents: 0 }).unwrap(), 1);
    drop(answer);
    assert_eq!(sum(&db), 1);
}

/// Tasks that waited for room and were dropped, as after a timeout, were counted and kept until
/// there was room.
#[test]
fn nothing_is_kept_of_tasks_that_gave_up_waiting_for_room() {
    let db = dram(
        options().procedure::<Hold>().tuning(Tuning { queue_calls_max: 1, ..Tuning::default() }),
    );
    let (end, holder) = hold(&db);
    let waiting = db.submit(Deposit { account: 1, cents: 1 }).unwrap();
    let counted = Arc::new(());
    for _ in 0..100 {
        let kept = Arc::clone(&counted);
        let waker = Waker::from(Arc::new(OnWake(move || drop(Arc::clone(&kept)))));
        let mut late = Box::pin(db.submit_async(Deposit { account: 1, cents: 2 }));
        assert!(late.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(db.stats().blocked_submitters, 1);
    }
    assert_eq!((db.stats().blocked_submitters, Arc::strong_count(&counted)), (0, 1));
    end.send(()).unwrap();
    holder.join().unwrap();
    assert_eq!(waiting.wait().unwrap(), 1);
}
