//! A failure is made small, and no longer than there is time.

use std::sync::atomic::{AtomicU64, Ordering};

use sim::crash::{Case, Counts, Failure, Options, explore_case, minimise};
use sim::history::{HASHED, Op, Program, Step};

/// Images that the search may recover.
const IMAGES: u64 = 10_000;

/// A failure without a crash: a call of the case commits and aborts then, which the lab expects of
/// no call that does it by a look at a row. The engine stops.
fn failure() -> Box<Failure> {
    let body =
        vec![Step::new(Op::CommitPoint, HASHED, 0), Step::new(Op::AbortIfAbsent, HASHED, 99)];
    let broken = Program { body, ..Program::default() }.encode();
    let mut case = Case { log_limit_bytes: 4 << 20, ..Case::of_seed(1) };
    case.batches.last_mut().expect("it has epochs").push(broken);
    let explored = explore_case(&case, &Options::default(), &mut Counts::default());
    let failure = explored.expect_err("a broken promise is a violation");
    assert!(failure.cuts.is_empty(), "it is found without a crash: {:#?}", failure.cuts);
    assert!(calls(&failure) > 1, "there is something to leave out");
    failure
}

fn calls(failure: &Failure) -> usize {
    failure.case.batches.iter().map(Vec::len).sum()
}

#[test]
fn a_failure_is_made_small() {
    let failure = failure();
    let kind = failure.violation.kind;
    let small = minimise(failure, &Options::default(), IMAGES);
    assert_eq!((calls(&small), small.case.setup.workers), (1, 1), "{:?}", small.case);
    assert_eq!(small.violation.kind, kind, "{}", small.violation);
}

/// Making a failure small went on for minutes after the time was over, as long as cases failed
/// before their first image.
#[test]
fn a_failure_is_made_small_only_while_there_is_time() {
    let failure = failure();
    let over = Options { go_on: &|| false, ..Options::default() };
    let same = minimise(failure.clone(), &over, IMAGES);
    assert_eq!(same.case.batches, failure.case.batches);

    let asked = AtomicU64::new(0);
    let soon = || asked.fetch_add(1, Ordering::Relaxed) < 20;
    let smaller = minimise(failure.clone(), &Options { go_on: &soon, ..over }, IMAGES);
    assert!(calls(&smaller) > 1, "the search went on");
}
