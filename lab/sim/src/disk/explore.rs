//! One seed: a history, cuts of it, a fault in it, bad reads of it.

use std::fmt;

use super::cuts::{explore_cuts, explore_snapshots};
use super::faults::{FAULTS, sweep_story};
use super::misread::explore_reads;
use super::report::{Options, Report};
use super::story::Story;
use crate::history::Random;

/// A seed that found something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// It finds the same again.
    pub seed: u64,
    /// What was wrong, and when.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk, seed {}: {}", self.seed, self.what)
    }
}

impl std::error::Error for Failure {}

/// Explores one seed.
///
/// # Errors
/// The first thing that was wrong.
pub fn explore(seed: u64, options: &Options) -> Result<Report, Failure> {
    let failed = |what| Failure { seed, what };
    let mut random = Random::new(seed);
    let story = Story::random(&mut random, options.epochs);
    let recording = story.record().map_err(failed)?;
    let call_kinds = recording.kinds.clone();
    let mut report =
        Report { histories: 1, call_kinds, overlaps: recording.overlaps, ..Report::default() };
    explore_cuts(&story, &recording, &mut random, options, &mut report).map_err(failed)?;
    explore_reads(&story, &recording, &mut random, options, &mut report).map_err(failed)?;
    if options.fault_stride > 0 {
        let fault = random.pick(&FAULTS);
        sweep_story(&story, fault, options.fault_stride, &mut random, &mut report)
            .map_err(failed)?;
    }
    Ok(report)
}

/// Explores snapshots of thousands of pages, by a seed.
///
/// # Errors
/// The first thing that was wrong.
pub fn explore_large_snapshots(seed: u64, options: &Options) -> Result<Report, Failure> {
    let failed = |what| Failure { seed, what };
    let mut random = Random::new(seed);
    let story = Story::of_large_snapshots(&mut random);
    let recording = story.record().map_err(failed)?;
    let mut report = Report { histories: 1, ..Report::default() };
    explore_snapshots(&story, &recording, &mut random, options, &mut report).map_err(failed)?;
    Ok(report)
}
