//! Many seeds on many threads, until a stop is asked for.

use std::sync::{Mutex, PoisonError};

use super::explore::{Failure, explore};
use super::report::{Options, Report};
use crate::seeds::Seeds;

/// Explores seed after seed on `jobs` threads until there were `seeds` of them, one failed, or
/// `stop` says so, which is asked before each. `progress` is told what was tried, after each.
pub fn campaign(
    (first, seeds): (u64, Option<u64>),
    jobs: usize,
    options: &Options,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(&Report) + Sync),
) -> (Report, Option<Failure>) {
    let found = Mutex::new((Report::default(), None));
    Seeds::new(first, seeds).explore(jobs, stop, &|seed| {
        let explored = explore(seed, options);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        match explored {
            Ok(report) => found.0.add(&report),
            Err(failure) => drop(found.1.get_or_insert(failure)),
        }
        progress(&found.0);
        found.1.is_none()
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
