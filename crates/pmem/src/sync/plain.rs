//! Ordinary builds: the standard library, and hooks that do nothing.

pub use std::hint::spin_loop;
#[cfg(not(feature = "races"))]
pub use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::{sync::atomic, thread};

#[cfg(feature = "races")]
pub use super::watched::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How often to do what is cheap before what is dear, as polling before the processor is yielded:
/// `turns`, unless an explorer counts them.
#[must_use]
pub const fn polls(turns: u32) -> u32 {
    turns
}

/// Another thread may run here.
#[inline]
pub fn point() {}

/// Plain memory that others wrote is about to be read.
#[inline]
pub fn reads<T>(_: *const T) {}

/// Plain memory that others will read is about to be written.
#[inline]
pub fn writes<T>(_: *const T) {}

/// Shared words begin to exist, with what is in memory now.
#[inline]
pub fn begin_words(_: &[u64]) {}

/// Others may have the processor for a while.
pub fn rest(time: std::time::Duration) {
    thread::sleep(time);
}
