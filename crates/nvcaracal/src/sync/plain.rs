//! Ordinary builds.

use std::cell::Cell;
use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic, mpsc};
use std::time::Duration;
pub(crate) use std::{thread, thread_local};

use atomic::{AtomicUsize, Ordering};

#[cfg(not(target_os = "linux"))]
pub(crate) use super::futex_elsewhere::Futex;
#[cfg(target_os = "linux")]
pub(crate) use super::futex_linux::Futex;

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
