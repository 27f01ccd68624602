//! The crash lab finds bugs that are planted on purpose; `nvcaracal sim --plant all` tries all.

use sim::crash::{Case, Choice, Failure, Options, Size, Tally, explore_case, minimise};
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

/// O-23, O-29, O-34, O-38, O-40: what a killed process left undurable comes undone at a later power
/// cut, if open does not make it durable.
#[test]
fn o_29_what_a_killed_process_left_undurable_is_found() {
    let bugs = [
        Plant::DirectoryNotSettled,
        Plant::CheckpointNotSettled,
        Plant::ClearedNotSettled,
        Plant::OffsetsNotSettled,
    ];
    for plant in bugs {
        let failure = found(Some(plant), (1..=400).map(Case::of_seed));
        let failure = failure.unwrap_or_else(|| panic!("{plant} is not found"));
        let killed = failure.cuts.iter().any(|cut| cut.choice == Choice::Killed);
        assert!(killed, "{plant} is found without a kill: {:#?}", failure.cuts);
    }
}

/// Making a failure small went on for minutes after the time was over, as long as cases failed
/// before their first image.
#[test]
fn a_failure_is_made_small_only_while_there_is_time() {
    let options = Options { plant: Some(Plant::CheckpointSlot), ..Options::default() };
    let each = (1..=30).filter_map(|seed| found(options.plant, [Case::of_seed(seed)]));
    let failure = each.into_iter().find(|failure| failure.cuts.is_empty());
    let failure = failure.expect("it is found without a crash");
    let calls = |failure: &Failure| failure.case.batches.iter().map(Vec::len).sum::<usize>();
    let over = Options { go_on: &|| false, ..options };
    let same = minimise(failure.clone(), &over, 10_000);
    assert_eq!(same.case.batches, failure.case.batches);
    assert!(calls(&minimise(failure.clone(), &options, 10_000)) < calls(&failure));
}

/// Without a bug the same cases are clean.
#[test]
fn o_29_the_same_cases_are_clean_without_a_bug() {
    let cases = (1..=3).map(Case::of_seed).chain((0..3).map(full_log));
    if let Some(failure) = found(None, cases) {
        panic!("seed {}: {}", failure.case.seed, failure.violation);
    }
}
