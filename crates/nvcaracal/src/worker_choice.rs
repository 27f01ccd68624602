//! How many workers run the next epoch.
//!
//! More workers are not always faster. Calls that all write one row run one after the other,
//! on any worker, and each hand-over of the row costs a transfer between caches; on a busy
//! machine a worker that has lost its processor holds up the others at every barrier. What an epoch
//! comes to is the same for any number of workers (O-11), so the sequencer measures and chooses:
//!
//! 1. Epochs run with the *chosen* number. From time to time a *trial* runs epochs with the next
//!    smaller or larger number and with the chosen one interleaved, and compares nanoseconds a
//!    call.
//! 2. The larger number is chosen if it makes calls cheaper by at least a third of what it would
//!    at best: twice as many workers must be 4/3 times as fast, so that they take at most 1.5 times
//!    the processor time.
//! 3. Trials may cost one part in [`TRIAL_SHARE`] of the time: what one lost is saved up before the
//!    next. One that loses much ends early, and each of several such in a row is followed by a
//!    pause twice as long.
//! 4. The first epochs run on one worker, which is never much worse than any other number.
//!
//! This module knows no engine and reads no clock; the sequencer tells it how long epochs took.

use std::time::Duration;

/// Epochs with the other number in a trial; as many run with the chosen one, interleaved.
const TRIAL_EPOCHS: u32 = 3;
/// One part in so many of the time may be lost in trials.
const TRIAL_SHARE: u64 = 32;
/// A trial that loses nothing is paid for as if it had lost one part in so many of its time.
const TRIAL_PRICE: u64 = 8;
/// A trial ends when an epoch takes so many times as long a call as those with the chosen number.
const HOPELESS: u64 = 4;
/// A pause is doubled so often at most.
const DOUBLINGS_MAX: u32 = 5;

/// Time and calls of some epochs.
#[derive(Debug, Default, Clone, Copy)]
struct Cost {
    ns: u64,
    calls: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.calls += other.calls;
    }

    /// Whether it is less than `numerator / denominator` of another, by call.
    fn is_below(self, other: Self, (numerator, denominator): (u64, u64)) -> bool {
        let product = |a: u64, b: u64, c: u64| u128::from(a) * u128::from(b) * u128::from(c);
        product(self.ns, other.calls, denominator) < product(other.ns, self.calls, numerator)
    }

    /// How long so many calls would take.
    fn of_calls(self, calls: u64) -> u64 {
        let ns = u128::from(self.ns) * u128::from(calls) / u128::from(self.calls.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// A comparison of the chosen number of workers with another one.
#[derive(Debug)]
struct Trial {
    /// The other number, as an index.
    other: usize,
    with_other: Cost,
    with_chosen: Cost,
    /// Epochs that are still to run.
    left: u32,
}

impl Trial {
    /// Whether the next epoch runs with the other number.
    fn other_is_next(&self) -> bool {
        self.left.is_multiple_of(2)
    }
}

/// Chooses the number of workers for each epoch.
#[derive(Debug)]
pub(crate) struct WorkerChoice {
    /// What there is to choose from: powers of two, and all workers.
    numbers: Vec<usize>,
    /// Index of the chosen number.
    chosen: usize,
    trial: Option<Trial>,
    /// Whether the last trial was of a smaller number.
    was_smaller: bool,
    /// Nanoseconds that trials may lose by now, and what the next one needs.
    savings: u64,
    price: u64,
    /// Trials in a row that ended early.
    hopeless: u32,
}

impl WorkerChoice {
    /// Of so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let powers = std::iter::successors(Some(1), |number| Some(number * 2));
        let mut numbers: Vec<usize> = powers.take_while(|&number| number < workers).collect();
        numbers.push(workers.max(1));
        Self {
            chosen: 0,
            numbers,
            trial: None,
            was_smaller: false,
            savings: 0,
            // The first trial comes after an epoch or more.
            price: 1,
            hopeless: 0,
        }
    }

    /// Workers for the next epoch.
    pub(crate) fn next(&mut self) -> usize {
        if self.trial.is_none() && self.savings >= self.price {
            self.trial = self.begin_trial();
        }
        let other = self.trial.as_ref().filter(|trial| trial.other_is_next());
        self.numbers[other.map_or(self.chosen, |trial| trial.other)]
    }

    /// Smaller and larger numbers are tried interleaved, where there are both.
    fn begin_trial(&mut self) -> Option<Trial> {
        let smaller = self.chosen.checked_sub(1);
        let larger = Some(self.chosen + 1).filter(|&larger| larger < self.numbers.len());
        self.was_smaller = smaller.is_some() && (!self.was_smaller || larger.is_none());
        let other = if self.was_smaller { smaller } else { larger }?;
        let (with_other, with_chosen) = (Cost::default(), Cost::default());
        Some(Trial { other, with_other, with_chosen, left: 2 * TRIAL_EPOCHS })
    }

    /// The epoch that [`WorkerChoice::next`] was asked for took so long, for so many calls.
    pub(crate) fn ran(&mut self, calls: usize, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let epoch = Cost { ns, calls: calls as u64 };
        self.savings = self.savings.saturating_add(ns / TRIAL_SHARE);
        let Some(trial) = &mut self.trial else { return };
        if trial.other_is_next() {
            trial.with_other.add(epoch);
        } else {
            trial.with_chosen.add(epoch);
        }
        trial.left -= 1;
        let is_hopeless = trial.with_chosen.is_below(trial.with_other, (1, HOPELESS));
        let is_hopeless = trial.with_chosen.calls > 0 && is_hopeless;
        if trial.left == 0 || is_hopeless {
            self.hopeless = if is_hopeless { self.hopeless + 1 } else { 0 };
            self.end_trial();
        }
    }

    fn end_trial(&mut self) {
        let Some(trial) = self.trial.take() else { return };
        let Trial { other, with_other, with_chosen, .. } = trial;
        let lost = with_other.ns.saturating_sub(with_chosen.of_calls(with_other.calls));
        self.savings = 0;
        let price = lost.max((with_other.ns + with_chosen.ns) / TRIAL_PRICE);
        let doublings = self.hopeless.saturating_sub(1).min(DOUBLINGS_MAX);
        self.price = price.saturating_mul(1 << doublings);
        let is_larger = other > self.chosen;
        let (larger, smaller) =
            if is_larger { (with_other, with_chosen) } else { (with_chosen, with_other) };
        let (fewer, more) = (self.chosen.min(other), self.chosen.max(other));
        let (fewer, more) = (self.numbers[fewer] as u64, self.numbers[more] as u64);
        // 1 + (more / fewer - 1) / 3 times as fast.
        let is_larger_better = larger.is_below(smaller, (3 * fewer, more + 2 * fewer));
        if is_larger_better == is_larger {
            self.chosen = other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs epochs of 1,000 calls, which take as long a call as `ns` says of a number of workers;
    /// how long all took, and how many epochs ran with each number.
    fn run(
        choice: &mut WorkerChoice,
        epochs: usize,
        ns: impl Fn(usize) -> u64,
    ) -> (u64, Vec<usize>) {
        let (mut total, mut with) = (0, vec![0; 65]);
        for _ in 0..epochs {
            let workers = choice.next();
            let took = ns(workers) * 1000;
            choice.ran(1000, Duration::from_nanos(took));
            total += took;
            with[workers] += 1;
        }
        (total, with)
    }

    /// Where more workers share the work, all run it.
    #[test]
    fn work_that_is_shared_is_run_by_all() {
        for workers in [1, 2, 3, 8, 64] {
            let mut choice = WorkerChoice::new(workers);
            let (_, with) = run(&mut choice, 10_000, |number| 100_000 / number as u64);
            assert!(with[workers] > 8000, "{workers} workers: {with:?}");
        }
    }

    /// Where they only stand in each other's way, one does, and what the trials of two lose is a
    /// small share of the time, however much slower two are.
    #[test]
    fn work_that_is_not_shared_is_run_by_one_and_trials_cost_little() {
        for slower in [1, 2, 5, 50, 1000] {
            let mut choice = WorkerChoice::new(2);
            run(&mut choice, 100, |number| if number == 1 { 400 } else { 400 * slower });
            let (total, with) =
                run(&mut choice, 100_000, |number| if number == 1 { 400 } else { 400 * slower });
            assert!(total < 100_000 * 400_000 * 17 / 16, "{slower} times: {total}");
            assert!(with[1] > 70_000 && with[2] > 0, "{slower} times: {with:?}");
        }
    }

    /// The best number of workers may be in between.
    #[test]
    fn a_number_in_between_is_found() {
        let ns = |number: usize| 1_000_000 / number.min(4) as u64 + 20_000 * number as u64;
        let mut choice = WorkerChoice::new(16);
        run(&mut choice, 1000, ns);
        let (_, with) = run(&mut choice, 10_000, ns);
        assert!(with[4] > 6000, "{with:?}");
    }

    /// A gain of less than a third of the best is not worth a second processor.
    #[test]
    fn a_small_gain_is_left() {
        let mut choice = WorkerChoice::new(2);
        let (_, with) = run(&mut choice, 1000, |number| if number == 1 { 400 } else { 330 });
        assert!(with[1] > 600, "{with:?}");
        let mut choice = WorkerChoice::new(2);
        let (_, with) = run(&mut choice, 1000, |number| if number == 1 { 400 } else { 280 });
        assert!(with[2] > 600, "{with:?}");
    }

    /// A machine that becomes busy is noticed within a few epochs, one that becomes quiet later.
    #[test]
    fn a_change_is_noticed() {
        let mut choice = WorkerChoice::new(2);
        let quiet = |number: usize| 400 / number as u64;
        let busy = |number: usize| if number == 1 { 600 } else { 20_000 };
        run(&mut choice, 1000, quiet);
        for _ in 0..3 {
            let (total, _) = run(&mut choice, 1000, busy);
            assert!(total < 1000 * 600_000 * 5 / 4, "{total}");
            // What the trials lost is saved up first.
            run(&mut choice, 50_000, quiet);
            let (total, _) = run(&mut choice, 1000, quiet);
            assert!(total < 1000 * 200_000 * 5 / 4, "{total}");
        }
    }

    /// Empty epochs and a clock that stands still decide nothing.
    #[test]
    fn nothing_is_divided_by_nothing() {
        let mut choice = WorkerChoice::new(4);
        for _ in 0..100 {
            assert!((1..=4).contains(&choice.next()));
            choice.ran(0, Duration::ZERO);
        }
    }
}
