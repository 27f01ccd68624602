//! Threads that wait for a word to change, where the system has no call for that.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Threads that wait for a word to change.
#[derive(Debug, Default)]
pub(crate) struct Futex {
    lock: Mutex<()>,
    woken: Condvar,
}

impl Futex {
    /// Waits while the word has this value, until it is woken, or `until` has come. May return
    /// early.
    pub(crate) fn wait(&self, word: &AtomicU32, value: u32, until: Option<Instant>) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Between this look and the wait no thread wakes: that takes the lock.
        if word.load(Ordering::SeqCst) != value {
            return;
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        match left {
            None => drop(self.woken.wait(guard).unwrap_or_else(PoisonError::into_inner)),
            Some(left) => drop(self.woken.wait_timeout(guard, left)),
        }
    }

    /// Wakes all threads that wait.
    pub(crate) fn wake_all(&self, _: &AtomicU32) {
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.woken.notify_all();
    }
}
