//! Many cases on many threads, until a stop is asked for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::budget::is_deep;
use super::case::Case;
use super::counts::Counts;
use super::explore::{Failure, Options, explore_case};
use super::minimise::minimise;
use crate::history::effort;
use crate::seeds::Seeds;

/// What to run.
pub struct Campaign<'c> {
    /// The first case; the others follow.
    pub seed: u64,
    /// Number of cases, if it is limited.
    pub cases: Option<u64>,
    /// Threads that explore.
    pub jobs: usize,
    /// How much of each case.
    pub options: Options<'c>,
    /// Asked before each image, beside the options' own question: whether to stop.
    pub stop: &'c (dyn Fn() -> bool + Sync),
    /// Told the number of images now and then.
    pub progress: &'c (dyn Fn(u64, u64) + Sync),
}

/// What came of it.
pub struct Outcome {
    /// Counts over all threads.
    pub counts: Counts,
    /// The first failure that was found, if any.
    pub failure: Option<Box<Failure>>,
}

/// How many images lie between two calls of [`Campaign::progress`].
const IMAGES_PER_PROGRESS: u64 = 64;

/// Runs cases until the last one, a failure, or a stop.
pub fn run(campaign: &Campaign<'_>) -> Outcome {
    let (seeds, images) = (Seeds::new(campaign.seed, campaign.cases), AtomicU64::new(0));
    let outcome = Mutex::new(Outcome { counts: Counts::default(), failure: None });
    let go_on = || {
        let count = images.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_multiple_of(IMAGES_PER_PROGRESS) {
            (campaign.progress)(count, seeds.begun());
        }
        !seeds.ended() && !(campaign.stop)() && (campaign.options.go_on)()
    };
    let options = Options { go_on: &go_on, ..campaign.options };
    seeds.explore(campaign.jobs, campaign.stop, &|seed| {
        let cases_deep = u64::from(!options.mixed || is_deep(seed));
        let mut counts = Counts { cases_deep, ..Counts::default() };
        let case = Case::of_seed(seed);
        let explored = explore_case(&case, &options.for_seed(seed), &mut counts);
        let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.counts.add(&counts);
        let clean = explored.is_ok();
        if let Err(failure) = explored {
            outcome.failure.get_or_insert(failure);
        }
        clean
    });
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Images that the search for a smaller failing case may take.
const MINIMISE_IMAGES: u64 = 20_000;

/// Explores so many seeds as the environment says, each as much as it says, by default a few:
/// `NVCARACAL_FIRST_SEED`, `NVCARACAL_CASES`, `NVCARACAL_IMAGES` and `NVCARACAL_JOBS`. With
/// `NVCARACAL_SHRINK=1` a failing case is made smaller. Returns the number of images.
///
/// # Errors
/// The violation, in words that begin with its seed.
pub fn run_as_told() -> Result<u64, String> {
    let options = Options { images_max: effort("NVCARACAL_IMAGES", 60), ..Options::default() };
    let Outcome { counts, failure } = run(&Campaign {
        seed: effort("NVCARACAL_FIRST_SEED", 0),
        cases: Some(effort("NVCARACAL_CASES", 8)),
        jobs: effort("NVCARACAL_JOBS", 1) as usize,
        options,
        stop: &|| false,
        progress: &|_, _| {},
    });
    println!("{} images", counts.images);
    let Some(mut failure) = failure else { return Ok(counts.images) };
    if effort("NVCARACAL_SHRINK", 0) == 1 {
        failure = minimise(failure, &options, MINIMISE_IMAGES);
    }
    let Failure { case, violation, cuts } = &*failure;
    let cuts = cuts.iter().map(|cut| format!("\n  {cut}")).collect::<String>();
    Err(format!("seed {}: {violation}{cuts}\n{case:?}", case.seed))
}
