//! The crash explorer finds nothing in an engine that is right, and comes everywhere.

use sim::crash::{Case, Class, Counts, Options, Size, explore_case, run_as_told};
use sim::history::{Random, effort};

/// O-22 to O-31, O-33 to O-41, O-48, O-53: seeds as `nvcaracal-lab sim` explores them.
#[test]
fn o_29_seeds_of_the_lab() {
    let images = run_as_told().unwrap_or_else(|failure| panic!("{failure}"));
    assert!(images > 100, "{images} images");
}

/// O-22 to O-31, O-33 to O-41, O-48, O-53: cases of every size, with recoveries that are cut and
/// stores that run on.
#[test]
fn o_29_random_cases_recover_at_every_depth() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    let options = Options {
        images_max: effort("NVCARACAL_IMAGES", 200),
        nest_one_in: 12,
        run_on_one_in: 400,
        run_on: 40,
        ..Options::default()
    };
    let mut counts = Counts::default();
    for seed in first..first + effort("NVCARACAL_CASES", 10) {
        explore_case(&Case::of_seed(seed), &options, &mut counts).unwrap_or_else(|failure| {
            panic!("seed {seed}: {}\n{:#?}", failure.violation, failure.cuts)
        });
    }
    assert!(counts.images > 500, "{counts:?}");
    assert_eq!(counts.violations, 0);
}

/// O-29: more images of fewer cases.
#[test]
fn o_29_a_few_cases_are_explored_deeper() {
    let images_max = effort("NVCARACAL_IMAGES", 600);
    let options = Options { images_max, run_on: 0, nest_one_in: 20, ..Options::default() };
    let full_log = |seed| Case::of_full_log(seed, Size::Tiny, &mut Random::new(seed));
    for case in (1..=3).map(Case::of_seed).chain((0..3).map(full_log)) {
        explore_case(&case, &options, &mut Counts::default()).unwrap_or_else(|failure| {
            panic!("seed {}: {}\n{:#?}", case.seed, failure.violation, failure.cuts)
        });
    }
}

/// O-29: a few cases come to every row of the crash matrix, in runs and in recoveries.
#[test]
fn o_29_every_row_of_the_crash_matrix_is_hit() {
    let mut counts = Counts::default();
    let options = Options { images_max: 400, nest_one_in: 6, run_on: 0, ..Options::default() };
    for seed in 0..4 {
        let size = if seed % 2 == 0 { Size::Small } else { Size::Large };
        let case = Case::of_size(seed, size, &mut Random::new(seed));
        let case = Case { close: true, changes: true, ..case };
        let explored = explore_case(&case, &options, &mut counts);
        explored.unwrap_or_else(|failure| panic!("seed {seed}: {}", failure.violation));
    }
    fatal_cases(&Options { images_max: 100, ..options }, &mut counts);
    let missing: Vec<_> = counts.never_hit().into_iter().filter(|&(_, depth)| depth < 2).collect();
    assert!(missing.is_empty(), "never hit: {missing:?}");
    assert!(counts.points[Class::NumberStored as usize][0] > 0);
}

/// O-91, O-92: a table is dropped and made anew, with the power cut or the process killed in the
/// midst; what follows finds either table, as a whole, and every slot accounted for.
#[test]
fn o_91_changes_of_the_schema() {
    let mut counts = Counts::default();
    let images_max = effort("NVCARACAL_IMAGES", 800);
    let options = Options { images_max, nest_one_in: 20, run_on: 5, ..Options::default() };
    for seed in 0..effort("NVCARACAL_CASES", 6) {
        let mut case = Case::of_size(seed, Size::Small, &mut Random::new(seed ^ 0xc4a));
        // What comes before is explored elsewhere.
        case.batches.truncate(3);
        let case = Case { close: true, changes: true, ..case };
        explore_case(&case, &options, &mut counts).unwrap_or_else(|failure| {
            panic!("seed {seed}: {}\n{:#?}", failure.violation, failure.cuts)
        });
    }
    let changing: u64 = counts.points[Class::Changing as usize].iter().sum();
    assert!(changing > 20, "{changing} points while the schema changed");
}

/// O-49: a call that commits and fails then is left out, or its epoch is given up, across crashes,
/// and nothing of it comes back.
#[test]
fn o_49_epochs_that_a_call_has_ended() {
    let mut counts = Counts::default();
    let images_max = effort("NVCARACAL_IMAGES", 150);
    fatal_cases(&Options { images_max, ..Options::default() }, &mut counts);
    assert!(counts.ended > 2 && counts.seldom.decided > 20, "{counts:?}");
}

fn fatal_cases(options: &Options<'_>, counts: &mut Counts) {
    for seed in 4..4 + effort("NVCARACAL_CASES", 8) {
        let mut random = Random::new(seed);
        let case = Case::of_size(seed, Size::Tiny, &mut random).with_a_fatal_call(&mut random);
        explore_case(&case, options, counts).unwrap_or_else(|failure| {
            panic!("seed {seed}: {}\n{:#?}", failure.violation, failure.cuts)
        });
    }
}

/// O-43: where the log is nearly full, epochs are refused or run, and what ran is replayed, however
/// often checkpoints are taken then.
#[test]
fn o_43_nearly_full_logs_are_replayed() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    let options = Options {
        images_max: effort("NVCARACAL_IMAGES", 150),
        nest_one_in: 12,
        run_on_one_in: 100,
        run_on: 40,
        ..Options::default()
    };
    let mut counts = Counts::default();
    for seed in first..first + effort("NVCARACAL_CASES", 12) {
        let case = Case::of_full_log(seed, Size::Small, &mut Random::new(seed));
        explore_case(&case, &options, &mut counts).unwrap_or_else(|failure| {
            panic!("seed {seed}: {}\n{:#?}", failure.violation, failure.cuts)
        });
    }
    assert!(counts.images > 600, "{counts:?}");
    assert!(counts.refused_by_log > 20, "{counts:?}");
}

/// O-22: workers fence their own stores.
#[test]
fn o_22_cases_of_several_workers() {
    let options = Options { images_max: effort("NVCARACAL_IMAGES", 150), ..Options::default() };
    let mut counts = Counts::default();
    for seed in 0..effort("NVCARACAL_CASES", 4) {
        let mut case = Case::of_size(seed, Size::Small, &mut Random::new(seed));
        case.setup.workers = 2;
        let explored = explore_case(&case, &options, &mut counts);
        explored.unwrap_or_else(|failure| {
            panic!("seed {seed}: {}\n{:#?}", failure.violation, failure.cuts)
        });
    }
    assert!(counts.images > 100, "{counts:?}");
}

/// O-40: rows that are replaced epoch after epoch, so that segments of free lists are reused
/// for later entries, across crashes.
#[test]
fn o_40_segments_of_free_lists_are_used_again() {
    let options = Options { images_max: effort("NVCARACAL_IMAGES", 60), ..Options::default() };
    let mut counts = Counts::default();
    for seed in 0..effort("NVCARACAL_CASES", 4) {
        let case = Case::of_churn(seed, &mut Random::new(seed));
        explore_case(&case, &options, &mut counts).unwrap_or_else(|failure| {
            panic!("seed {seed}: {}\n{:#?}", failure.violation, failure.cuts)
        });
    }
    assert!(counts.images > 100 && counts.kills > 0, "{counts:?}");
}
