//! The memory of a device's first failure.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::DeviceError;
use crate::sync::background::{Mutex, MutexGuard};

/// Locks even if a thread panicked while it held the lock: every value guarded here is valid at any
/// time, and the panic is reported by other means.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers the first failure (O-57).
#[derive(Debug, Default)]
pub(crate) struct Health {
    broken: AtomicBool,
    first: Mutex<Option<String>>,
}

impl Health {
    /// Fails if something failed before.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        if self.broken.load(Ordering::Acquire) { Err(self.sticky()) } else { Ok(()) }
    }

    /// Passes a result on, and remembers the first error. That there is no room is a failure here,
    /// and must not look like a refusal after which the caller may go on: a file system that copies
    /// on write may say so in the middle of an epoch.
    pub(crate) fn note<T>(&self, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        let Err(error) = result else { return result };
        lock(&self.first).get_or_insert_with(|| error.to_string());
        self.broken.store(true, Ordering::Release);
        Err(if error.is_limit() { self.sticky() } else { error })
    }

    /// The same for growth: an error that only says that there is no room is not a failure, because
    /// the bytes that may have been written are not in use yet.
    pub(crate) fn note_growth<T>(&self, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        match result {
            Err(error) if error.is_limit() => Err(error),
            other => self.note(other),
        }
    }

    #[cold]
    fn sticky(&self) -> DeviceError {
        let first = lock(&self.first).clone().unwrap_or_default();
        DeviceError::Sticky { first }
    }
}
