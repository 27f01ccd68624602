//! The crash lab finds bugs that are planted on purpose; `nvcaracal sim --plant all` tries all.

use sim::crash::{Case, Failure, Options, Size, Tally, explore_case};
use sim::history::Random;
use storage::plant::Plant;

/// The first failure with a bug planted, in some cases.
fn found(plant: Option<Plant>, cases: impl IntoIterator<Item = Case>) -> Option<Box<Failure>> {
    let options =
        Options { images_max: 600, run_on: 0, nest_one_in: 20, plant, ..Options::default() };
    let explore = |case| explore_case(&case, &options, &mut Tally::default()).err();
    cases.into_iter().find_map(explore)
}

fn check(plant: Plant, cases: u64) {
    let failure = found(Some(plant), (1..=cases).map(Case::of_seed));
    let failure = failure.unwrap_or_else(|| panic!("{plant} is not found in {cases} cases"));
    assert!(failure.case.seed <= cases, "{}", failure.violation);
}

fn full_log(seed: u64) -> Case {
    Case::of_full_log(seed, Size::Tiny, &mut Random::new(seed))
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

/// O-43: replay that needs more log than the run did is found, where the log is nearly full.
#[test]
fn o_43_replay_that_needs_more_log_is_found() {
    for plant in [Plant::CarryNeedsRoom, Plant::CheckpointInReplay] {
        let failure = found(Some(plant), (0..30).map(full_log));
        let failure = failure.unwrap_or_else(|| panic!("{plant} is not found"));
        assert!(failure.violation.what.contains("input log is full"), "{}", failure.violation);
    }
}

/// Without a bug the same cases are clean.
#[test]
fn o_29_the_same_cases_are_clean_without_a_bug() {
    let cases = (1..=3).map(Case::of_seed).chain((0..3).map(full_log));
    if let Some(failure) = found(None, cases) {
        panic!("seed {}: {}", failure.case.seed, failure.violation);
    }
}
