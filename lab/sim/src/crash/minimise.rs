//! Makes a failing case small: fewer epochs, calls and steps, plainer choices, fewer crashes, the
//! simplest adversary. The search ends when [`Options::go_on`] says so, with the smallest case so
//! far.

use std::cell::Cell;

use super::case::{Case, Size};
use super::choices::Choice;
use super::counts::Counts;
use super::explore::{Failure, Options, explore_case};
use crate::history::Setup;
use crate::history::shrink::{Step, shrink};

/// What the engine says of a call that does not commit although it said that it would.
const BROKEN_PROMISE: &str = "ended after its commit point without committing";

/// A log in which no small case runs out of space.
const LOG_BYTES_ROOMY: u64 = 1 << 20;

/// A smaller case that fails in the same way, if one is found; `images_max` bounds the search.
#[must_use]
pub fn minimise(failure: Box<Failure>, options: &Options<'_>, images_max: u64) -> Box<Failure> {
    let search = Search { images_left: Cell::new(images_max) };
    // With only as many crashes as the failure has, if that is enough.
    let deepest = failure.cuts.iter().map(|cut| cut.depth).max().unwrap_or(0);
    let runs_on = failure.cuts.iter().any(|cut| cut.depth > 0 && cut.epochs > 0)
        || failure.cuts.windows(2).any(|pair| pair[1].depth == 0);
    let run_on = if runs_on { options.run_on } else { 0 };
    let kills = failure.cuts.iter().any(|cut| cut.choice == Choice::Killed);
    let kills_max = if kills { options.kills_max } else { 0 };
    let Options { nest_one_in, run_on_one_in, .. } = *options;
    let fewer = |depth_max, run_on| Options {
        depth_max,
        run_on,
        kills_max,
        // A small case has few images: more of them have to go on.
        nest_one_in: nest_one_in.min(8),
        run_on_one_in: run_on_one_in.min(100),
        ..*options
    };
    let small = [fewer(0, 0), fewer(deepest, run_on), *options]
        .iter()
        .find_map(|options| search.with(&failure, options));
    small.unwrap_or(failure)
}

struct Search {
    images_left: Cell<u64>,
}

impl Search {
    fn with(&self, failure: &Failure, options: &Options<'_>) -> Option<Box<Failure>> {
        let fails = |case: &Case| self.fails(case, failure, options);
        let mut best = fails(&failure.case)?;
        for change in [as_made, roomy_log, with_state_hash, plain, one_worker, checkpoint_always] {
            let case = Case { size: Size::Tiny, ..change(&best.case) };
            if let Some(smaller) = fails(&case) {
                best = smaller;
            }
        }
        let history = best.case.batches.iter();
        let history = history.map(|calls| Step { calls: calls.clone(), after: None::<()> });
        let template = best.case.clone();
        let with = |steps: &[Step<()>]| {
            let batches = steps.iter().map(|step| step.calls.clone()).collect();
            Case { batches, ..template.clone() }
        };
        shrink(history.collect(), &mut |smaller| match fails(&with(smaller)) {
            Some(failure) => {
                best = failure;
                true
            }
            None => false,
        });
        Some(best)
    }

    /// The failure of a case, if it fails in the same way.
    fn fails(&self, case: &Case, like: &Failure, options: &Options<'_>) -> Option<Box<Failure>> {
        let images_max = options.images_max.min(self.images_left.get());
        if images_max == 0 || !(options.go_on)() {
            return None;
        }
        let mut counts = Counts::default();
        let explored = explore_case(case, &Options { images_max, ..*options }, &mut counts);
        self.images_left.set(self.images_left.get().saturating_sub(counts.images));
        explored.err().filter(|failure| is_like(failure, like))
    }
}

/// Whether a failure is of the same kind as another. A program that lost the step which makes it
/// commit, and so breaks its own promise, is a failure of the search.
fn is_like(failure: &Failure, like: &Failure) -> bool {
    let breaks_promise = |failure: &Failure| failure.violation.what.contains(BROKEN_PROMISE);
    failure.violation.kind == like.violation.kind
        && (!breaks_promise(failure) || breaks_promise(like))
}

fn as_made(case: &Case) -> Case {
    Case { grown: None, ..case.clone() }
}

fn roomy_log(case: &Case) -> Case {
    Case { log_limit_bytes: case.log_limit_bytes.max(LOG_BYTES_ROOMY), ..case.clone() }
}

fn with_state_hash(case: &Case) -> Case {
    Case { setup: Setup { state_hash: true, ..case.setup }, ..case.clone() }
}

/// But for the state hash and the checkpoint interval, which have steps of their own: a log fills
/// up only if the interval is long.
fn plain(case: &Case) -> Case {
    let setup = Setup {
        row_bytes: case.setup.row_bytes,
        shared_heap_bytes: case.setup.shared_heap_bytes,
        segment_bytes: case.setup.segment_bytes,
        checkpoint_every: case.setup.checkpoint_every,
        state_hash: case.setup.state_hash,
        ..Setup::default()
    };
    Case { setup, ..case.clone() }
}

fn one_worker(case: &Case) -> Case {
    Case { setup: Setup { workers: 1, ..case.setup }, ..case.clone() }
}

fn checkpoint_always(case: &Case) -> Case {
    Case { setup: Setup { checkpoint_every: 1, ..case.setup }, ..case.clone() }
}
