//! Locks for builds with the thread sanitizer (scripts/races.sh), compiled with its instructions.
//! Those of the standard library are not, so that it would see no order in what they protect, and
//! report all of it.

use std::sync::{LockResult, TryLockError, TryLockResult};

pub use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// As the standard library's, but never poisoned.
#[derive(Debug, Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock for a value.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// None.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        Ok(self.0.lock())
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// It is not.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        self.0.try_lock().ok_or(TryLockError::WouldBlock)
    }

    /// The value, for its only owner.
    ///
    /// # Errors
    /// None.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Ok(self.0.get_mut())
    }
}

/// As the standard library's.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// A condition without threads that wait.
    pub const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Waits until a thread notifies and `condition` does not hold of the value.
    ///
    /// # Errors
    /// None.
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait_while(&mut guard, condition);
        Ok(guard)
    }

    /// Wakes one thread that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// As the standard library's, but never poisoned.
#[derive(Debug, Default)]
pub struct RwLock<T>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock for a value.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::RwLock::new(value))
    }

    /// Waits until no thread writes.
    ///
    /// # Errors
    /// None.
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        Ok(self.0.read())
    }

    /// Waits until no other thread has the lock.
    ///
    /// # Errors
    /// None.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        Ok(self.0.write())
    }

    /// The value, for its only owner.
    ///
    /// # Errors
    /// None.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Ok(self.0.get_mut())
    }
}
