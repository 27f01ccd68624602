//! One seed after another, on many threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether to stop.
pub(crate) type Asked<'a> = &'a (dyn Fn() -> bool + Sync);
/// Explores a seed: whether to go on.
pub(crate) type Explored<'a> = &'a (dyn Fn(u64) -> bool + Sync);

/// Seeds to go through, and how far that has come.
pub(crate) struct Seeds {
    first: u64,
    /// Number of seeds, if it is limited.
    count: Option<u64>,
    begun: AtomicU64,
    ended: AtomicBool,
}

impl Seeds {
    pub(crate) fn new(first: u64, count: Option<u64>) -> Self {
        Self { first, count, begun: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }

    /// Seeds that were begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether a seed has ended the rest.
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Explores them on `jobs` threads until there are no more, `stop` says so, which is asked
    /// before each, or `explore` returns false, which ends all threads.
    pub(crate) fn explore(&self, jobs: usize, stop: Asked<'_>, explore: Explored<'_>) {
        let job = || {
            while !self.ended() && !stop() {
                let number = self.begun.fetch_add(1, Ordering::Relaxed);
                if self.count.is_some_and(|count| number >= count) {
                    return;
                }
                if !explore(self.first.wrapping_add(number)) {
                    self.ended.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            (1..jobs).for_each(|_| drop(scope.spawn(job)));
            job();
        });
    }
}
