//! Many seeds on many threads, until a stop is asked for.

use std::sync::{Mutex, PoisonError};

use super::explore::{Failure, explore};
use super::report::{Options, Report};
use crate::seeds::Seeds;

/// What a campaign explores.
pub struct Campaign<'c> {
    /// The first seed; the others follow.
    pub seed: u64,
    /// Number of seeds, if it is limited.
    pub histories: Option<u64>,
    /// Threads that explore.
    pub jobs: usize,
    /// How much of each history.
    pub options: Options,
    /// Asked before each: whether to stop.
    pub stop: &'c (dyn Fn() -> bool + Sync),
    /// Told what was tried, after each.
    pub progress: &'c (dyn Fn(&Report) + Sync),
}

/// Explores seed after seed until there were as many as asked for, one failed, or it is to stop.
pub fn campaign(campaign: &Campaign<'_>) -> (Report, Option<Failure>) {
    let Campaign { seed, histories, jobs, options, stop, progress } = campaign;
    let found = Mutex::new((Report::default(), None));
    Seeds::new(*seed, *histories).explore(*jobs, stop, &|seed| {
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
