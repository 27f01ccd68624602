//! Ordinary builds.

use std::cell::Cell;
use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic, mpsc};
use std::time::{Duration, Instant};
pub(crate) use std::{thread, thread_local};

use atomic::{AtomicU32, AtomicUsize, Ordering};
use rustix::fs::Timespec;
use rustix::thread::futex::{self, Flags};

/// Time passes while a thread waits.
pub(crate) const HAS_TIME: bool = true;

/// Waits until it is told, or for some time.
pub(crate) fn wait_timeout<'g, T>(
    told: &Condvar,
    _: &'g Mutex<T>,
    guard: MutexGuard<'g, T>,
    time: Duration,
) -> MutexGuard<'g, T> {
    told.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

/// Threads that wait for a word to change.
#[derive(Debug, Default)]
pub(crate) struct Futex;

impl Futex {
    /// Waits while the word has this value, until it is woken, or `until` has come. May return
    /// early.
    pub(crate) fn wait(&self, word: &AtomicU32, value: u32, until: Option<Instant>) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // It fails where the value is another one by now, the time is over, or a signal came.
        let _ = futex::wait(word, Flags::PRIVATE, value, left.as_ref());
    }

    /// Wakes all threads that wait, with one system call.
    pub(crate) fn wake_all(&self, word: &AtomicU32) {
        let all = i32::MAX as u32;
        futex::wake(word, Flags::PRIVATE, all).expect("the address is right");
    }
}

/// The number of the calling thread, counted over all threads of the process.
pub(crate) fn thread_number() -> usize {
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    if NUMBER.get() == usize::MAX {
        NUMBER.set(THREADS.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}
