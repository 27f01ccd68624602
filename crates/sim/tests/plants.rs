//! The crash lab finds bugs that are planted on purpose; `nvcaracal sim --plant all` tries all.

use sim::crash::{Case, Failure, Options, Tally, explore_case};
use storage::plant::Plant;

/// The first failure with a bug planted, in so many cases.
fn found(plant: Option<Plant>, cases: u64) -> Option<Box<Failure>> {
    let options =
        Options { images_max: 600, run_on: 0, nest_one_in: 20, plant, ..Options::default() };
    let explore = |seed| explore_case(&Case::of_seed(seed), &options, &mut Tally::default()).err();
    (1..=cases).find_map(explore)
}

fn check(plant: Plant, cases: u64) {
    let failure = found(Some(plant), cases);
    let failure = failure.unwrap_or_else(|| panic!("{plant} is not found in {cases} cases"));
    assert!(failure.case.seed <= cases, "{}", failure.violation);
}

/// O-22, O-36, O-38, O-41: a few of those that are found soonest.
#[test]
fn o_22_planted_bugs_are_found() {
    let soon = [Plant::SkipFence, Plant::ForgetDedupe, Plant::WrongParity, Plant::ScanFreeRows];
    soon.into_iter().for_each(|plant| check(plant, 6));
}

/// O-13.
#[test]
fn o_13_an_answer_before_the_seal_is_found() {
    check(Plant::AckBeforeSeal, 6);
}

/// Without a bug the same cases are clean.
#[test]
fn o_29_the_same_cases_are_clean_without_a_bug() {
    if let Some(failure) = found(None, 3) {
        panic!("seed {}: {}", failure.case.seed, failure.violation);
    }
}
