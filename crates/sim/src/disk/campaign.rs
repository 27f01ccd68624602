//! Many seeds on many threads, until somebody says stop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::explore::{Failure, Options, Report, explore};

/// Explores seed after seed on `jobs` threads until there were `seeds` of them, one failed, or
/// `stop` says so, which is asked before each. `progress` is told what was tried, after each.
pub fn campaign(
    (first, seeds): (u64, Option<u64>),
    jobs: usize,
    options: &Options,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(&Report) + Sync),
) -> (Report, Option<Failure>) {
    let next = AtomicU64::new(0);
    let found = Mutex::new((Report::default(), None));
    let job = || {
        while !stop() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if seeds.is_some_and(|seeds| number >= seeds) {
                return;
            }
            let explored = explore(first.wrapping_add(number), options);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            match explored {
                Ok(report) => found.0.add(&report),
                Err(failure) => drop(found.1.get_or_insert(failure)),
            }
            progress(&found.0);
            if found.1.is_some() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        (1..jobs).for_each(|_| drop(scope.spawn(job)));
        job();
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
