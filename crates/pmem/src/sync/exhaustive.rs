//! Feature `loom`: every shared word that a model touches has a shadow, an atomic of `loom`, and
//! all operations go to the shadow. Plain memory that is declared with [`reads`] and [`writes`] has
//! a shadow cell that knows whether the accesses are ordered.
//!
//! A word must begin in a thread that the others are ordered after: it is touched before they are
//! spawned, or made known by [`begin_words`]. Locks of the standard library are left as they are:
//! a model must not wait for one. Outside of a model everything is as in ordinary builds.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Counter;
use std::sync::atomic::Ordering::Relaxed;

pub use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64 as Word;

/// Threads; those of a model are spawned with [`spawn`].
pub mod thread {
    pub use std::thread::{JoinHandle, scope, spawn};

    pub use super::spin_loop as yield_now;
}

/// Spawns a thread of a model.
pub use loom::thread::spawn;

/// How often to poll before the processor is yielded: at once, because every poll is a step.
#[must_use]
pub const fn polls(_: u32) -> u32 {
    1
}

#[derive(Default)]
struct Shadows {
    words: HashMap<usize, Rc<Word>>,
    plain: HashMap<usize, Rc<UnsafeCell<()>>>,
}

std::thread_local! {
    static IN_MODEL: Cell<bool> = const { Cell::new(false) };
    static SHADOWS: RefCell<Shadows> = RefCell::default();
}

/// Runs a model under all schedules, with at most `preemptions` each if that is given. Returns how
/// many there were.
pub fn model(preemptions: Option<usize>, run: impl Fn() + Send + Sync + 'static) -> u64 {
    let schedules = Arc::new(Counter::new(0));
    let counted = Arc::clone(&schedules);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    let failure = Failure(Arc::clone(&schedules));
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        SHADOWS.with_borrow_mut(|shadows| *shadows = Shadows::default());
        IN_MODEL.set(true);
        run();
        // `loom` ends the other threads before the next schedule begins.
        IN_MODEL.set(false);
    });
    std::mem::forget(failure);
    schedules.load(Relaxed)
}

/// Says which schedule failed.
struct Failure(Arc<Counter>);

impl Drop for Failure {
    fn drop(&mut self) {
        IN_MODEL.set(false);
        eprintln!("schedule {} failed", self.0.load(Relaxed));
    }
}

fn in_model() -> bool {
    IN_MODEL.get() && !std::thread::panicking()
}

/// The shadow of the word at an address, which begins with `value` if it has none.
fn shadow(address: usize, value: impl FnOnce() -> u64) -> Option<Rc<Word>> {
    if !in_model() {
        return None;
    }
    let known = SHADOWS.with_borrow(|shadows| shadows.words.get(&address).cloned());
    Some(known.unwrap_or_else(|| begin(address, value())))
}

fn begin(address: usize, value: u64) -> Rc<Word> {
    let word = Rc::new(Word::new(value));
    SHADOWS.with_borrow_mut(|shadows| shadows.words.insert(address, Rc::clone(&word)));
    word
}

/// Shared words begin to exist, with what is in memory now.
pub fn begin_words(words: &[u64]) {
    if in_model() {
        for word in words {
            begin(std::ptr::from_ref(word).addr(), *word);
        }
    }
}

fn plain<T>(memory: *const T) -> Option<Rc<UnsafeCell<()>>> {
    let new = || Rc::new(UnsafeCell::new(()));
    in_model().then(|| {
        SHADOWS.with_borrow_mut(|shadows| {
            Rc::clone(shadows.plain.entry(memory.addr()).or_insert_with(new))
        })
    })
}

/// Others must run before the caller can go on: there is no time in an exploration.
pub fn rest(_: std::time::Duration) {
    spin_loop();
}

/// Plain memory that others wrote is about to be read.
#[track_caller]
pub fn reads<T>(memory: *const T) {
    if let Some(cell) = plain(memory) {
        cell.with(|_| ());
    }
}

/// Plain memory that others will read is about to be written.
#[track_caller]
pub fn writes<T>(memory: *const T) {
    if let Some(cell) = plain(memory) {
        cell.with_mut(|_| ());
    }
}

/// Another thread may run here. Here it may run at every shared word anyway.
pub fn point() {}

/// Others must run before the caller can go on.
pub fn spin_loop() {
    if in_model() {
        loom::thread::yield_now();
    } else {
        std::thread::yield_now();
    }
}

/// As in the standard library.
pub mod atomic {
    pub use std::sync::atomic::Ordering;

    use super::shadow;

    macro_rules! word {
        ($name:ident, $value:ty, $to:expr, $from:expr $(, $parameter:ident)?) => {
            /// As in the standard library; in a model, all operations go to the shadow.
            #[repr(transparent)]
            #[derive(Default)]
            pub struct $name$(<$parameter>)?(std::sync::atomic::$name$(<$parameter>)?);

            impl$(<$parameter>)? $name$(<$parameter>)? {
                /// As in the standard library.
                pub const fn new(value: $value) -> Self {
                    Self(std::sync::atomic::$name::new(value))
                }

                /// As in the standard library; not in a model.
                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }

                fn shadow(&self) -> Option<std::rc::Rc<super::Word>> {
                    let address = std::ptr::from_ref(self).addr();
                    shadow(address, || ($to)(self.0.load(Ordering::Relaxed)))
                }

                /// As in the standard library.
                #[track_caller]
                pub fn load(&self, order: Ordering) -> $value {
                    match self.shadow() {
                        Some(word) => ($from)(word.load(order)),
                        None => self.0.load(order),
                    }
                }

                /// As in the standard library.
                #[track_caller]
                pub fn store(&self, value: $value, order: Ordering) {
                    match self.shadow() {
                        Some(word) => word.store(($to)(value), order),
                        None => self.0.store(value, order),
                    }
                }

                /// As in the standard library.
                ///
                /// # Errors
                /// The value, if it was another.
                #[track_caller]
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    match self.shadow() {
                        Some(word) => word
                            .compare_exchange(($to)(current), ($to)(new), success, failure)
                            .map($from)
                            .map_err($from),
                        None => self.0.compare_exchange(current, new, success, failure),
                    }
                }

                /// As in the standard library, but it does not fail by chance.
                ///
                /// # Errors
                /// The value, if it was another.
                #[track_caller]
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

            // Through the shadow, so that printing a structure makes all its words begin.
            impl$(<$parameter>)? std::fmt::Debug for $name$(<$parameter>)? {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    self.load(Ordering::Relaxed).fmt(f)
                }
            }
        };
    }

    macro_rules! number {
        ($name:ident, $value:ty) => {
            word!($name, $value, |value: $value| value as u64, |word: u64| word as $value);

            impl $name {
                /// As in the standard library.
                #[track_caller]
                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    match self.shadow() {
                        Some(word) => word.fetch_add(value as u64, order) as $value,
                        None => self.0.fetch_add(value, order),
                    }
                }

                /// As in the standard library.
                #[track_caller]
                pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    match self.shadow() {
                        Some(word) => word.fetch_sub(value as u64, order) as $value,
                        None => self.0.fetch_sub(value, order),
                    }
                }

                /// As in the standard library.
                #[track_caller]
                pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                    match self.shadow() {
                        Some(word) => word.fetch_or(value as u64, order) as $value,
                        None => self.0.fetch_or(value, order),
                    }
                }

                /// As in the standard library.
                #[track_caller]
                pub fn fetch_min(&self, value: $value, order: Ordering) -> $value {
                    match self.shadow() {
                        Some(word) => word.fetch_min(value as u64, order) as $value,
                        None => self.0.fetch_min(value, order),
                    }
                }

                /// As in the standard library.
                ///
                /// # Errors
                /// The value, if `change` says so.
                #[track_caller]
                pub fn fetch_update(
                    &self,
                    set: Ordering,
                    fetch: Ordering,
                    mut change: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    match self.shadow() {
                        Some(word) => word
                            .fetch_update(set, fetch, |word| {
                                change(word as $value).map(|v| v as u64)
                            })
                            .map(|word| word as $value)
                            .map_err(|word| word as $value),
                        None => self.0.fetch_update(set, fetch, change),
                    }
                }
            }
        };
    }

    word!(AtomicBool, bool, u64::from, |word: u64| word != 0);
    impl AtomicBool {
        /// As in the standard library. In a model, a swap that changes nothing is a load: `loom`
        /// lets a thread that spins in such swaps see its own store for ever, and not the release
        /// that it waits for.
        #[track_caller]
        pub fn swap(&self, value: bool, order: Ordering) -> bool {
            match self.shadow() {
                Some(word) => {
                    let (other, value) = (u64::from(!value), u64::from(value));
                    let before = word.compare_exchange(other, value, order, Ordering::Relaxed);
                    before.unwrap_or_else(|same| same) != 0
                }
                None => self.0.swap(value, order),
            }
        }
    }

    word!(AtomicPtr, *mut T, |at: *mut T| at as u64, |word: u64| word as *mut T, T);
    number!(AtomicU32, u32);
    number!(AtomicU64, u64);
    number!(AtomicUsize, usize);
    number!(AtomicIsize, isize);
}
