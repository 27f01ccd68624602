//! Feature `shuttle`: the standard library's words and locks, with a scheduling point before each
//! operation. Only one thread runs at a time, so the words themselves need nothing else.
//!
//! Outside of an exploration everything is as in ordinary builds, but for `thread`.

use std::cell::Cell;

use shuttle::current::{TaskId, try_get_current_task};

/// Threads of the exploration.
pub mod thread {
    pub use shuttle::thread::{JoinHandle, scope, spawn};

    pub use super::spin_loop as yield_now;
}

/// How often to poll before the processor is yielded: at once, because every poll is a step.
#[must_use]
pub const fn polls(_: u32) -> u32 {
    1
}

std::thread_local! {
    // A load of it is a scheduling point and nothing else.
    static POINT: shuttle::sync::atomic::AtomicBool =
        const { shuttle::sync::atomic::AtomicBool::new(false) };
    // The thread that dies, and after how many points.
    static DEATH: Cell<Option<(TaskId, u64)>> = const { Cell::new(None) };
}

/// The thread of an exploration that runs now. Not while it unwinds: the standard library counts
/// panics by system thread, and all threads of an exploration are one of those.
fn explored() -> Option<TaskId> {
    if std::thread::panicking() { None } else { try_get_current_task() }
}

/// Another thread may run here.
pub fn point() {
    let Some(task) = explored() else { return };
    if let Some((victim, left)) = DEATH.get()
        && victim == task
    {
        if left == 0 {
            DEATH.set(None);
            std::panic::resume_unwind(Box::new("killed by the exploration"));
        }
        DEATH.set(Some((victim, left - 1)));
    }
    switch();
}

/// As [`point`], but the thread does not die here: destructors that give a lock back must not
/// panic.
fn switch() {
    if explored().is_none() {
        return;
    }
    POINT.with(|point| point.load(std::sync::atomic::Ordering::SeqCst));
}

/// The calling thread panics at its `points`-th point from now; `None`: it lives on. Returns how
/// many points were left.
pub fn die_after(points: Option<u64>) -> Option<u64> {
    let task = explored().expect("inside of an exploration");
    let left = DEATH.take().map(|(_, left)| left);
    DEATH.set(points.map(|points| (task, points)));
    left
}

/// Others must run before the caller can go on.
pub fn spin_loop() {
    if explored().is_some() {
        point();
        shuttle::thread::yield_now();
    } else {
        std::thread::yield_now();
    }
}

/// Others must run before the caller can go on: there is no time in an exploration.
pub fn rest(_: std::time::Duration) {
    spin_loop();
}

/// Plain memory that others wrote is about to be read.
pub fn reads<T>(_: *const T) {
    point();
}

/// Plain memory that others will read is about to be written.
pub fn writes<T>(_: *const T) {
    point();
}

/// Shared words begin to exist, with what is in memory now.
pub fn begin_words(_: &[u64]) {}

/// As in the standard library.
pub mod atomic {
    pub use std::sync::atomic::Ordering;

    use super::{point, switch};

    macro_rules! word {
        ($name:ident, $value:ty $(, $parameter:ident)?) => {
            /// As in the standard library; a scheduling point before each operation.
            #[repr(transparent)]
            #[derive(Debug, Default)]
            pub struct $name$(<$parameter>)?(std::sync::atomic::$name$(<$parameter>)?);

            impl$(<$parameter>)? $name$(<$parameter>)? {
                /// As in the standard library.
                pub const fn new(value: $value) -> Self {
                    Self(std::sync::atomic::$name::new(value))
                }

                /// As in the standard library.
                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }

                /// As in the standard library.
                pub fn load(&self, order: Ordering) -> $value {
                    point();
                    self.0.load(order)
                }

                /// As in the standard library.
                pub fn store(&self, value: $value, order: Ordering) {
                    if order == Ordering::Release { switch() } else { point() }
                    self.0.store(value, order);
                }

                /// As in the standard library.
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.swap(value, order)
                }

                /// As in the standard library.
                ///
                /// # Errors
                /// The value, if it was another.
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    point();
                    self.0.compare_exchange(current, new, success, failure)
                }

                /// As in the standard library, but it does not fail by chance.
                ///
                /// # Errors
                /// The value, if it was another.
                pub fn compare_exchange_weak(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(current, new, success, failure)
                }
            }
        };
    }

    macro_rules! number {
        ($name:ident, $value:ty) => {
            word!($name, $value);

            impl $name {
                /// As in the standard library.
                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_add(value, order)
                }

                /// As in the standard library.
                pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_sub(value, order)
                }

                /// As in the standard library.
                pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_or(value, order)
                }

                /// As in the standard library.
                pub fn fetch_min(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_min(value, order)
                }

                /// As in the standard library.
                ///
                /// # Errors
                /// The value, if `change` says so.
                pub fn fetch_update(
                    &self,
                    set: Ordering,
                    fetch: Ordering,
                    change: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    point();
                    self.0.fetch_update(set, fetch, change)
                }
            }
        };
    }

    word!(AtomicBool, bool);
    word!(AtomicPtr, *mut T, T);
    number!(AtomicU32, u32);
    number!(AtomicU64, u64);
    number!(AtomicUsize, usize);
    number!(AtomicIsize, isize);
}

use std::sync::{LockResult, TryLockError};
pub use std::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// Takes a lock when it is free; others run meanwhile.
fn acquire<G>(mut try_lock: impl FnMut() -> Result<G, TryLockError<G>>) -> LockResult<G> {
    point();
    loop {
        match try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
            Err(TryLockError::WouldBlock) => spin_loop(),
        }
    }
}

/// As in the standard library; waiting is spinning, so that the explorer's step limit finds a
/// deadlock.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// As in the standard library.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// As in the standard library.
    ///
    /// # Errors
    /// If a thread panicked while it held the lock.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        acquire(|| self.0.try_lock())
    }

    /// As in the standard library.
    ///
    /// # Errors
    /// If a thread panicked while it held the lock.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}

/// As in the standard library; waiting is spinning, as for [`Mutex`].
#[derive(Debug, Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// As in the standard library.
    pub const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }

    /// As in the standard library.
    ///
    /// # Errors
    /// If a thread panicked while it held the lock to write.
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        acquire(|| self.0.try_read())
    }

    /// As in the standard library.
    ///
    /// # Errors
    /// If a thread panicked while it held the lock to write.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        acquire(|| self.0.try_write())
    }

    /// As in the standard library.
    ///
    /// # Errors
    /// If a thread panicked while it held the lock to write.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}
