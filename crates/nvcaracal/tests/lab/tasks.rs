//! Futures without a runtime: they move from task to task, so that only the last waker counts, and
//! are dropped at any time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use nvcaracal::{Database, Error, Ticket};
use sim::history::Random;

use crate::program::{Act, Done, call_async, submit_async};
use crate::records::{Answer, Record};
use crate::world::{World, patience};

/// A task that was woken says so to the thread that runs it.
struct Signal {
    is_woken: AtomicBool,
    thread: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

struct Task {
    future: Pin<Box<dyn Future<Output = Result<Done, Error>> + Send>>,
    /// The last task that it was part of.
    signal: Option<Arc<Signal>>,
    record: usize,
}

/// The futures of a caller.
#[derive(Default)]
pub(crate) struct Tasks {
    tasks: Vec<Task>,
}

impl Tasks {
    /// A call that is submitted when it is polled.
    pub(crate) fn call(&mut self, db: Database, act: Act, record: usize, in_one: bool) {
        let future = async move {
            match in_one {
                true => call_async(&db, act).await,
                false => submit_async(&db, act).await?.await,
            }
        };
        self.tasks.push(Task { future: Box::pin(future), signal: None, record });
    }

    /// A call that was submitted.
    pub(crate) fn wait(&mut self, ticket: Ticket<Done>, record: usize) {
        self.tasks.push(Task { future: Box::pin(ticket), signal: None, record });
    }

    /// Polls those that were woken; of the others in a hundred, `moved` move to another task, and
    /// half as many are dropped. Whether the database is open.
    ///
    /// # Errors
    /// An answer that cannot be.
    pub(crate) fn run(
        &mut self,
        world: &World,
        (random, moved): (&mut Random, u64),
        records: &mut [Record],
    ) -> Result<bool, String> {
        let (mut at, mut goes_on) = (0, true);
        while at < self.tasks.len() {
            let task = &mut self.tasks[at];
            let is_woken = |signal: &Arc<Signal>| signal.is_woken.load(Ordering::SeqCst);
            let is_due = task.signal.as_ref().is_none_or(is_woken);
            if !is_due && random.percent(moved / 2) {
                drop(self.tasks.swap_remove(at));
            } else if !is_due && !random.percent(moved) {
                at += 1;
            } else if let Poll::Ready(answer) = task.poll() {
                let record = &mut records[task.record];
                let answer = record.read(answer)?;
                goes_on &= !matches!(answer, Answer::Unknown);
                record.answer = Some((answer, world.moment()));
                drop(self.tasks.swap_remove(at));
            } else {
                at += 1;
            }
        }
        Ok(goes_on)
    }

    /// Runs all to their ends; each must be woken.
    ///
    /// # Errors
    /// An answer that cannot be, or none.
    pub(crate) fn finish(
        &mut self,
        world: &World,
        random: &mut Random,
        records: &mut [Record],
    ) -> Result<(), String> {
        let until = Instant::now() + patience() / 2;
        while !self.tasks.is_empty() {
            self.run(world, (random, 0), records)?;
            let is_woken = |task: &Task| {
                task.signal.as_ref().is_none_or(|signal| signal.is_woken.load(Ordering::SeqCst))
            };
            while !self.tasks.is_empty() && !self.tasks.iter().any(is_woken) {
                if Instant::now() > until {
                    return Err("the last waker of a task was not woken".into());
                }
                thread::park_timeout(Duration::from_millis(100));
            }
        }
        Ok(())
    }
}

impl Task {
    /// Polls it as part of another task than before.
    fn poll(&mut self) -> Poll<Result<Done, Error>> {
        let signal = Signal { is_woken: AtomicBool::new(false), thread: thread::current() };
        let signal = Arc::new(signal);
        self.signal = Some(Arc::clone(&signal));
        let waker = Waker::from(signal);
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}
