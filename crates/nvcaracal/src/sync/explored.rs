//! Feature `shuttle`: words, locks, threads and channels of the schedule explorer. There is no time
//! in an exploration: what waits for a moment has waited long enough once others could run.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic, mpsc};
pub(crate) use shuttle::thread_local;

use atomic::{AtomicU32, Ordering};

/// Threads of the exploration.
pub(crate) mod thread {
    pub(crate) use std::thread::available_parallelism;

    pub(crate) use shuttle::thread::{Builder, JoinHandle, current};
}

/// No time passes.
pub(crate) const HAS_TIME: bool = false;

/// Waits until others could run: the time is over then.
pub(crate) fn wait_timeout<'g, T>(
    _: &Condvar,
    lock: &'g Mutex<T>,
    guard: MutexGuard<'g, T>,
    _: Duration,
) -> MutexGuard<'g, T> {
    drop(guard);
    shuttle::thread::yield_now();
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Threads that wait for a word to change, as the system has them: whether it has changed, and the
/// wait, are one step.
#[derive(Debug)]
pub(crate) struct Futex {
    lock: Mutex<()>,
    woken: Condvar,
}

impl Default for Futex {
    fn default() -> Self {
        Self { lock: Mutex::new(()), woken: Condvar::new() }
    }
}

impl Futex {
    /// Waits while the word has this value, until it is woken.
    pub(crate) fn wait(&self, word: &AtomicU32, value: u32, until: Option<Instant>) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if word.load(Ordering::SeqCst) != value {
            return;
        }
        if until.is_none() {
            drop(self.woken.wait(guard).unwrap_or_else(PoisonError::into_inner));
            return;
        }
        drop(guard);
        shuttle::thread::yield_now();
    }

    /// Wakes all threads that wait.
    pub(crate) fn wake_all(&self, _: &AtomicU32) {
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.woken.notify_all();
    }
}

/// The number of the calling thread.
pub(crate) fn thread_number() -> usize {
    shuttle::current::me().into()
}
