//! Threads of the store's own, with stack for any statement that the limits let through: they
//! parse, plan, read, and send what had to wait.

use super::options::StoreOptions;
use super::turns::Turns;
use super::{failure, panics};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use values::{Error, Result, SqlState};

/// Locks; a panic elsewhere leaves nothing half done under these locks.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that is done in parts, on any thread of the pool.
struct Task {
    work: Mutex<Option<Work>>,
    is_queued: AtomicBool,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Arc<Task>>,
    /// How many threads there are too many.
    surplus: usize,
    has_ended: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    more: Condvar,
}

/// How what computes for long goes on.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// How long until others come.
    pub(super) slice: Duration,
    /// Called between two slices.
    pub(super) call: fn(&dyn Fn() -> bool),
}

impl Pace {
    pub(super) fn of(options: &StoreOptions) -> Pace {
        Pace { slice: options.slice, call: options.pace }
    }
}

/// The most threads beside the fixed ones: as many statements may compute for long.
const LENT_MAX: usize = 10_000;

/// A fixed number of threads, and one more for each statement that computes for long.
pub(super) struct Pool {
    queue: Arc<Queue>,
    pub(super) turns: Arc<Turns>,
    pub(super) pace: Pace,
    /// How many threads stand in for others.
    lent: Arc<AtomicUsize>,
    /// The steps that statements have computed outside of calls.
    steps: AtomicU64,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Queue {
    /// Gives the task back at the end.
    fn push(&self, task: Arc<Task>) -> Option<Arc<Task>> {
        let mut waiting = lock(&self.waiting);
        if waiting.has_ended {
            return Some(task);
        }
        waiting.tasks.push_back(task);
        self.more.notify_one();
        None
    }

    /// The next task; `None` if the thread is one too many, or at the end.
    fn pop(&self) -> Option<Arc<Task>> {
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(left) = waiting.surplus.checked_sub(1) {
                waiting.surplus = left;
                return None;
            }
            if let Some(task) = waiting.tasks.pop_front() {
                return Some(task);
            }
            if waiting.has_ended {
                return None;
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            let queue = Arc::clone(&self.queue);
            drop(queue.push(self));
        }
    }
}

impl Task {
    fn run(self: &Arc<Task>) {
        // From here on a wake queues it again: what it tells is seen by a later poll.
        self.is_queued.store(false, Ordering::Release);
        let waker = Arc::clone(self).into();
        let mut slot = lock(&self.work);
        let Some(work) = slot.as_mut() else { return };
        let polled =
            catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(&waker))));
        match polled {
            Ok(Poll::Pending) => {}
            // What a panic leaves is dropped; those that wait for it are told so by the drop.
            Ok(Poll::Ready(())) | Err(_) => *slot = None,
        }
    }
}

impl Pool {
    /// So many threads; as many statements compute at a time as there are `turns`.
    pub(super) fn new(threads: usize, turns: usize, pace: Pace) -> std::io::Result<Pool> {
        let (queue, lent, steps) = Default::default();
        let turns = Turns::new(turns);
        let pool = Pool { queue, turns, pace, lent, steps, threads: Mutex::default() };
        for _ in 0..threads.max(1) {
            pool.start()?;
        }
        Ok(pool)
    }

    fn start(&self) -> std::io::Result<()> {
        let queue = Arc::clone(&self.queue);
        let thread = std::thread::Builder::new()
            .name("nvcaracal-sql".to_owned())
            .stack_size(sql::parse::STACK_BYTES)
            .spawn(move || {
                while let Some(task) = queue.pop() {
                    task.run();
                }
            })?;
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// A thread of the pool does something long: another one stands in for it until this is
    /// dropped.
    ///
    /// # Errors
    /// That there can be no more threads. Others would wait for a statement that goes on without.
    pub(super) fn lend(&self) -> Result<Lent> {
        let others = self.lent.fetch_add(1, Ordering::Relaxed);
        let started = match others {
            0..LENT_MAX => self.start().map_err(|error| error.to_string()),
            _ => Err(format!("there are {LENT_MAX}")),
        };
        if let Err(why) = started {
            self.lent.fetch_sub(1, Ordering::Relaxed);
            let message = format!("no thread for a statement that takes long: {why}");
            let error = Error::new(SqlState::OUT_OF_MEMORY, message);
            return Err(error.with_hint("Run it when fewer such statements run."));
        }
        Ok(Lent { queue: Arc::clone(&self.queue), count: Arc::clone(&self.lent) })
    }

    /// How many statements compute for long now.
    pub(super) fn lent(&self) -> usize {
        self.lent.load(Ordering::Relaxed)
    }

    /// Counts steps that a statement has computed.
    pub(super) fn computed(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// The steps that all have computed, as far as they were counted.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Whether what is not done will not be.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.queue.waiting).has_ended
    }

    /// Does the work sometime. After the end it is dropped undone.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.push(work));
    }

    /// Drops what may be too deep for this thread's stack.
    pub(super) fn drop_deep(&self, deep: impl Send + 'static) {
        if let Some(task) = self.push(async move { drop(deep) }) {
            sql::parse::with_stack(move || drop(task));
        }
    }

    fn push(&self, work: impl Future<Output = ()> + Send + 'static) -> Option<Arc<Task>> {
        let task = Task {
            work: Mutex::new(Some(Box::pin(work))),
            is_queued: AtomicBool::new(true),
            queue: Arc::clone(&self.queue),
        };
        self.queue.push(Arc::new(task))
    }

    /// Does the work on a thread of the pool, and waits for it; a panic is an error, and so is the
    /// end of the pool.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        self.spawn(async move {
            // Nothing waits for it any more if this fails.
            let _ = sender.send(panics::caught(work));
        });
        receiver.await.unwrap_or_else(|_| Err(failure::cut_off()))
    }

    /// Does what is queued, and ends the threads.
    pub(super) fn end(&self) {
        lock(&self.queue.waiting).has_ended = true;
        self.queue.more.notify_all();
        let own = std::thread::current().id();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // The last handle of a pool may go on one of its threads.
            if thread.thread().id() != own {
                let _ = thread.join();
            }
        }
    }
}

/// A thread that the pool has meanwhile.
pub(super) struct Lent {
    queue: Arc<Queue>,
    count: Arc<AtomicUsize>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        lock(&self.queue.waiting).surplus += 1;
        self.queue.more.notify_one();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::block_on;
    use super::*;

    fn pace() -> Pace {
        Pace::of(&StoreOptions::memory())
    }

    #[test]
    fn work_is_done_and_a_panic_ends_only_its_own() {
        let pool = Pool::new(2, 1, pace()).unwrap();
        let run = |work: fn() -> u8| block_on(pool.run(move || Ok(work())));
        let code = |done: Result<u8>| done.unwrap_err().state().code().to_owned();
        assert_eq!(run(|| 1 + 1).unwrap(), 2);
        assert_eq!(code(run(|| panic!("for the test"))), "XX000");
        assert_eq!(run(|| 3).unwrap(), 3);
        pool.end();
        assert_eq!(code(run(|| 4)), "57P01");
    }

    #[test]
    fn what_takes_long_does_not_hold_up_the_rest() {
        let pool = Arc::new(Pool::new(1, 1, pace()).unwrap());
        let own = Arc::clone(&pool);
        let outer = pool.run(move || {
            let lent = own.lend();
            // The only thread is this one.
            let inner = block_on(own.run(|| Ok(1)));
            drop(lent);
            inner
        });
        assert_eq!(block_on(outer).unwrap(), 1);
        assert_eq!(block_on(pool.run(|| Ok(2))).unwrap(), 2);
        assert_eq!(block_on(pool.run(|| Ok(3))).unwrap(), 3);
    }

    /// Threads are kept track of until they end, and no longer.
    #[test]
    fn threads_that_stood_in_are_forgotten_and_others_are_not() {
        let pool = Pool::new(2, 1, pace()).unwrap();
        let at_first = lock(&pool.threads).len();
        for _ in 0..50 {
            drop(pool.lend().unwrap());
            // The thread that gave way has ended, or is about to.
            let is_running = |threads: &[JoinHandle<()>]| {
                threads.iter().filter(|thread| !thread.is_finished()).count()
            };
            while is_running(&lock(&pool.threads)) > at_first {
                std::thread::yield_now();
            }
            assert_eq!(is_running(&lock(&pool.threads)), at_first);
        }
        let kept = lock(&pool.threads).len();
        assert!(kept <= at_first + 2, "{kept} threads, {at_first} at first");
    }
}
