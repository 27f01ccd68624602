//! How many workers run the next epoch.
//!
//! More workers are not always faster. Calls that all write one row run one after the other,
//! on any worker, and each hand-over of the row costs a transfer between caches; on a busy
//! machine a worker that has lost its processor holds up the others at every barrier. What an epoch
//! comes to is the same for any number of workers (O-11), so who runs epochs measures and chooses:
//!
//! 1. Epochs run with the *chosen* number. From time to time a *trial* runs some epochs with the
//!    next smaller or larger number, one after the other, and compares nanoseconds a call with
//!    those of the epochs before.
//! 2. The larger number is chosen if it makes calls cheaper by at least a third of what it would
//!    at best: twice as many workers must be 4/3 times as fast, so that they take at most 1.5 times
//!    the processor time.
//! 3. A new choice is on *probation* until it has run as long as what is known of the old one: then
//!    the two are compared again. A thread that has slept gets a processor at once and keeps it for
//!    some milliseconds, so that on a busy machine a trial of more workers looks better than they
//!    are. For the same reason a trial lasts [`TRIAL_NS`] at least, and is not interleaved with
//!    epochs of the other number.
//! 4. Trials may cost one part in [`TRIAL_SHARE`] of the time: what one lost is saved up before the
//!    next. One that loses much ends early. Each of several failures in a row (trials that ended
//!    early, probations that were not passed) is followed by a pause twice as long.
//! 5. An epoch that suddenly takes several times as long a call as those before it says that the
//!    machine has changed, and what was known is forgotten. A new choice that is on probation is
//!    given up at once. Else smaller numbers are tried with the next epochs, one after the other,
//!    until one is worse.
//! 6. The first epochs run on one worker, which is never much worse than any other number, until a
//!    window of time has shown what that costs: the very first one meets cold caches.
//!
//! A replay begins with all workers instead, and comes to smaller numbers by the same trials.
//!
//! This module knows no engine and reads no clock; it is told how long epochs took.

use std::time::Duration;

/// Epochs of a trial, at least, unless more workers are slower.
const TRIAL_EPOCHS: u32 = 3;
/// Nanoseconds of a trial, at least: some slices of the operating system's scheduler.
const TRIAL_NS: u64 = 8_000_000;
/// Of the epochs with the chosen number about so many nanoseconds count, the newest most.
const WINDOW_NS: u64 = 64_000_000;
/// One part in so many of the time may be lost in trials.
const TRIAL_SHARE: u64 = 32;
/// A trial that loses nothing is paid for as if it had lost one part in so many of its time.
const TRIAL_PRICE: u64 = 8;
/// A trial ends when an epoch takes so many times as long a call as those with the chosen number;
/// an epoch with the chosen number that does so, and is as long as a trial, ends the choice.
const HOPELESS: u64 = 4;
/// A pause is doubled so often at most.
const DOUBLINGS_MAX: u32 = 5;

/// Time and calls of some epochs.
#[derive(Debug, Default, Clone, Copy)]
struct Cost {
    ns: u64,
    calls: u64,
}

/// A part of a whole.
#[derive(Debug, Clone, Copy)]
struct Share {
    numerator: u64,
    denominator: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.calls += other.calls;
    }

    /// Adds an epoch to a window: what is older counts less and less.
    fn slide(&mut self, epoch: Self) {
        self.add(epoch);
        if self.ns > WINDOW_NS && self.calls > epoch.calls {
            (self.ns, self.calls) = (self.ns / 2, self.calls / 2);
        }
    }

    /// Whether it is less than a share of another, by call.
    fn is_below(self, other: Self, share: Share) -> bool {
        let product = |a: u64, b: u64, c: u64| u128::from(a) * u128::from(b) * u128::from(c);
        product(self.ns, other.calls, share.denominator)
            < product(other.ns, self.calls, share.numerator)
    }

    /// How long so many calls would take.
    fn of_calls(self, calls: u64) -> u64 {
        let ns = u128::from(self.ns) * u128::from(calls) / u128::from(self.calls.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// A number of workers, as an index, and what epochs with it cost.
#[derive(Debug, Clone, Copy)]
struct Measured {
    number: usize,
    cost: Cost,
}

/// Chooses the number of workers for each epoch.
#[derive(Debug)]
pub struct WorkerChoice {
    /// What there is to choose from: powers of two, and all workers.
    numbers: Vec<usize>,
    /// What is chosen, with a window of its epochs.
    chosen: Measured,
    /// The number that is tried, with all epochs of the trial, and how many those are.
    trial: Option<(Measured, u32)>,
    /// What was chosen before, while the new choice is on probation.
    before: Option<Measured>,
    /// Whether the last trial was of a smaller number.
    was_smaller: bool,
    /// Whether smaller numbers are tried one after the other, without saving up.
    is_falling: bool,
    /// Nanoseconds that trials may lose by now, and what the next one needs.
    savings: u64,
    price: u64,
    /// Failures in a row.
    failures: u32,
}

impl WorkerChoice {
    /// Chooses from 1 to `workers`, and begins with all of them.
    pub fn beginning_with_all(workers: usize) -> Self {
        let mut choice = Self::new(workers);
        choice.chosen.number = choice.numbers.len() - 1;
        choice
    }

    /// Chooses from 1 to `workers`, and begins with one.
    pub fn new(workers: usize) -> Self {
        let powers = std::iter::successors(Some(1), |number| Some(number * 2));
        let mut numbers: Vec<usize> = powers.take_while(|&number| number < workers).collect();
        numbers.push(workers.max(1));
        Self {
            chosen: Measured { number: 0, cost: Cost::default() },
            numbers,
            trial: None,
            before: None,
            was_smaller: false,
            is_falling: false,
            savings: 0,
            // The first trial comes after a window.
            price: WINDOW_NS / TRIAL_SHARE,
            failures: 0,
        }
    }

    /// Workers for the next epoch.
    pub fn next_number(&mut self) -> usize {
        let is_due = self.is_falling || self.before.is_none() && self.savings >= self.price;
        if self.trial.is_none() && is_due {
            self.trial = self.begin_trial().map(|trial| (trial, 0));
        }
        let number = self.trial.map_or(self.chosen.number, |(trial, _)| trial.number);
        let is_a_step = number.abs_diff(self.chosen.number) == usize::from(self.trial.is_some());
        assert!(is_a_step, "a trial is of the next number, {number} is not");
        self.numbers[number]
    }

    /// Smaller and larger numbers are tried in alternation, where there are both.
    fn begin_trial(&mut self) -> Option<Measured> {
        let smaller = self.chosen.number.checked_sub(1);
        let larger = Some(self.chosen.number + 1).filter(|&larger| larger < self.numbers.len());
        self.was_smaller = smaller.is_some() && (!self.was_smaller || larger.is_none());
        let number = if self.was_smaller { smaller } else { larger }?;
        Some(Measured { number, cost: Cost::default() })
    }

    /// The epoch that [`WorkerChoice::next_number`] was asked for took so long, for so many calls.
    pub fn ran(&mut self, calls: usize, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let epoch = Cost { ns, calls: calls as u64 };
        self.savings = self.savings.saturating_add(ns / TRIAL_SHARE);
        if let Some((mut trial, epochs)) = self.trial.take() {
            trial.cost.add(epoch);
            self.go_on_with_trial(trial, epochs + 1);
        } else if self.chosen.number > 0 && ns >= TRIAL_NS && self.is_hopeless(epoch) {
            self.begin_anew(epoch);
        } else {
            self.chosen.cost.slide(epoch);
            self.end_probation();
        }
    }

    /// Whether a cost is several times that of epochs with the chosen number.
    fn is_hopeless(&self, cost: Cost) -> bool {
        self.chosen.cost.is_below(cost, Share { numerator: 1, denominator: HOPELESS })
    }

    /// The chosen number has become much worse, with this epoch: the one before is chosen again, or
    /// a smaller one is tried.
    fn begin_anew(&mut self, epoch: Cost) {
        self.chosen.cost = epoch;
        if let Some(before) = self.before.take() {
            self.give_up(before);
        } else {
            (self.is_falling, self.was_smaller) = (true, false);
        }
    }

    /// A new choice was not better than the one before.
    fn give_up(&mut self, before: Measured) {
        let chosen = std::mem::replace(&mut self.chosen, before);
        let lost = chosen.cost.ns.saturating_sub(before.cost.of_calls(chosen.cost.calls));
        self.failures += 1;
        self.pay(lost.max(chosen.cost.ns / TRIAL_PRICE));
    }

    /// Ends a trial that has run for long enough, or is hopeless.
    fn go_on_with_trial(&mut self, trial: Measured, epochs: u32) {
        let is_hopeless = self.is_hopeless(trial.cost);
        let is_slower = trial.number > self.chosen.number
            && self.chosen.cost.is_below(trial.cost, Share { numerator: 1, denominator: 1 });
        let are_enough = epochs >= TRIAL_EPOCHS || self.is_falling || is_slower;
        let is_long = are_enough && trial.cost.ns >= TRIAL_NS;
        if !is_long && !is_hopeless {
            self.trial = Some((trial, epochs));
            return;
        }
        let chosen = self.chosen.cost;
        let lost = trial.cost.ns.saturating_sub(chosen.of_calls(trial.cost.calls));
        self.failures = if is_hopeless { self.failures + 1 } else { self.failures };
        self.pay(lost.max(trial.cost.ns / TRIAL_PRICE));
        if self.is_better(trial, self.chosen) {
            self.is_falling &= trial.number > 0;
            self.before = Some(self.chosen).filter(|_| !self.is_falling);
            self.chosen = trial;
            self.was_smaller &= !self.is_falling;
            return;
        }
        self.is_falling = false;
        if !is_hopeless {
            self.failures = 0;
        }
    }

    /// Compares a new choice with the old one, when as much is known of both.
    fn end_probation(&mut self) {
        let Some(before) = self.before.filter(|before| self.chosen.cost.ns >= before.cost.ns)
        else {
            return;
        };
        self.before = None;
        assert!(before.number != self.chosen.number, "a choice on probation is another one");
        if self.is_better(self.chosen, before) {
            self.failures = 0;
            return;
        }
        self.give_up(before);
    }

    /// So much has to be saved up before the next trial.
    fn pay(&mut self, lost: u64) {
        let doublings = self.failures.saturating_sub(1).min(DOUBLINGS_MAX);
        self.savings = 0;
        self.price = lost.saturating_mul(1 << doublings);
    }

    /// Whether one of two numbers should be chosen instead of the other: the larger one if it is
    /// faster by a third of what it could be.
    fn is_better(&self, one: Measured, other: Measured) -> bool {
        let is_larger = one.number > other.number;
        let (larger, smaller) = if is_larger { (one, other) } else { (other, one) };
        let fewer = self.numbers[smaller.number] as u64;
        let more = self.numbers[larger.number] as u64;
        // 1 + (more / fewer - 1) / 3 times as fast.
        let share = Share { numerator: 3 * fewer, denominator: more + 2 * fewer };
        larger.cost.is_below(smaller.cost, share) == is_larger
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
            let workers = choice.next_number();
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

    /// A choice that begins with all workers comes to one where they stand in each other's way,
    /// within a share of a second, and stays with all where they share the work, or where no time
    /// passes.
    #[test]
    fn a_choice_that_begins_with_all_falls_to_one() {
        for workers in [1, 2, 3, 64] {
            let mut choice = WorkerChoice::beginning_with_all(workers);
            assert_eq!(choice.next_number(), workers);
            run(&mut choice, 2000, |number| 100 * number as u64);
            let (_, with) = run(&mut choice, 10_000, |number| 100 * number as u64);
            assert!(with[1] > 8000, "{workers} workers: {with:?}");
            for ns in [100_000, 0] {
                let mut choice = WorkerChoice::beginning_with_all(workers);
                let (_, with) = run(&mut choice, 10_000, |number| ns / number as u64);
                assert!(with[workers] > 8000, "{workers} workers, {ns} ns: {with:?}");
            }
        }
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

    /// One that becomes so busy that more workers are a hundred times slower costs an epoch for
    /// each number on the way down, the trials apart.
    #[test]
    fn a_collapse_costs_an_epoch() {
        for workers in [2, 8] {
            let mut choice = WorkerChoice::new(workers);
            run(&mut choice, 2000, |number| 800 / number as u64);
            let busy = |number: usize| if number == 1 { 1000 } else { 80_000 };
            let (total, with) = run(&mut choice, 1000, busy);
            let bad: usize = with[2..].iter().sum();
            assert!(bad <= 2 + 4 * workers.ilog2() as usize, "{workers} workers: {with:?}");
            assert!(total < 1000 * 1_000_000 * 2, "{workers} workers: {total}");
        }
    }

    /// On a busy machine a worker that slept has its processor for as long as it slept, some
    /// milliseconds at most, and then loses it: what two of them show at first does not last.
    #[test]
    fn a_worker_that_slept_looks_better_than_it_is() {
        const CREDIT_MAX: u64 = 6_000_000;
        let mut choice = WorkerChoice::new(2);
        let (mut credit, mut total) = (CREDIT_MAX, 0);
        for _ in 0..20_000 {
            let took = match (choice.next_number(), credit > 0) {
                (1, _) => 400_000,
                (_, true) => 200_000,
                (_, false) => 1_600_000,
            };
            let is_alone = took == 400_000;
            credit = if is_alone { credit + took } else { credit.saturating_sub(took) };
            credit = credit.min(CREDIT_MAX);
            choice.ran(1000, Duration::from_nanos(took));
            total += took;
        }
        assert!(total < 20_000 * 400_000 * 9 / 8, "{total}");
    }

    /// Of what a trial costs only what the chosen number would not have cost is lost.
    #[test]
    fn a_cost_is_known_for_other_numbers_of_calls() {
        let cost = Cost { ns: 1000, calls: 10 };
        assert_eq!([0, 1, 10, 25].map(|calls| cost.of_calls(calls)), [0, 100, 1000, 2500]);
        let most = Cost { ns: u64::MAX, calls: 1 };
        assert_eq!((most.of_calls(2), Cost::default().of_calls(5)), (u64::MAX, 0));
    }

    /// Empty epochs and a clock that stands still decide nothing.
    #[test]
    fn nothing_is_divided_by_nothing() {
        let mut choice = WorkerChoice::new(4);
        for _ in 0..100 {
            assert!((1..=4).contains(&choice.next_number()));
            choice.ran(0, Duration::ZERO);
        }
    }
}
