//! Which calls a worker runs next (decision 33).
//!
//! Each worker takes what it takes in serial order, and its own calls without passing any of them
//! over. So the smallest unfinished call is the next one of the worker that claimed it, or of its
//! owner: it can always run (O-11).
//!
//! Where calls all extend the same rows and a worker has lost its processor, the others wait for
//! it at every version, and an epoch may take a hundred times as long. A worker that has lost so
//! much of its time that all of them do less than one would alone takes the *rest*: all calls that
//! it has not passed yet and that no worker has claimed. The others take only what comes before.

use std::ops::Range;

use pmem::sync::polls;

use crate::call::batch::{RUN_CALLS, owner};
use crate::call::claimed::ClaimedCalls;
use crate::contention::lost;
use crate::worker::Progress;
use crate::worker_id::{WORKERS_MAX, WorkerId};

/// Where calls declare at least one row and at most so many, on average, a worker runs the calls
/// that it declared ...
const ROWS_SMALL: usize = 6;
/// ... if every worker gets so many runs of them.
const RUNS_MIN: usize = polls(8) as usize;
/// A worker that is so many calls behind for each worker that there is, is late: a worker that
/// notices runs its calls, too, as far as they are still to come.
const LATE_CALLS: usize = polls(32) as usize;
/// Runs that a worker takes before it looks again who is late.
const RUNS_BEFORE_LOOK: u32 = polls(8);

/// Hands out the positions of calls to one worker, in serial order.
pub(super) struct Dispatch<'a> {
    claimed: &'a ClaimedCalls,
    /// How far all workers are.
    progress: &'a [Progress],
    worker: WorkerId,
    calls: usize,
    /// Whether a worker runs the calls that it declared: they, and what it wrote for them in the
    /// initialization phase, are in its cache. Else a worker that is free takes the next call,
    /// because others would wait behind a long one.
    by_owner: bool,
    /// The next run to look at.
    run: usize,
    /// Who was late when the worker looked; after so many runs it looks again.
    late: u64,
    look_in: u32,
    /// Whether this worker takes the rest of the epoch.
    takes_rest: bool,
}

const _: () = assert!(WORKERS_MAX <= u64::BITS as usize);

impl<'a> Dispatch<'a> {
    /// To a worker, in an epoch of so many calls, which declared so many rows.
    pub(super) fn new(
        claimed: &'a ClaimedCalls,
        progress: &'a [Progress],
        worker: WorkerId,
        calls: usize,
        declared: usize,
    ) -> Self {
        assert!(worker.index() < progress.len(), "a worker that runs calls says how far it is");
        let are_small = (calls..=calls * ROWS_SMALL).contains(&declared);
        let are_many = calls >= progress.len() * RUN_CALLS * RUNS_MIN;
        let by_owner = are_small && are_many;
        let look_in = RUNS_BEFORE_LOOK;
        let (run, late, takes_rest) = (0, 0, false);
        Self { claimed, progress, worker, calls, by_owner, run, late, look_in, takes_rest }
    }

    /// A worker that is free takes the next call, however small calls are. All workers do so in an
    /// epoch, or none does.
    pub(super) fn hand_out_one_by_one(&mut self) {
        assert!(self.run == 0, "no call was handed out");
        self.by_owner = false;
    }

    /// Whether this worker has claimed the rest of the epoch.
    pub(super) fn takes_rest(&self) -> bool {
        self.takes_rest
    }

    /// How many calls are handed out at once.
    pub(super) fn run_calls(&self) -> usize {
        if self.by_owner { RUN_CALLS } else { 1 }
    }

    /// The positions of the next calls, unless there are none left.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Range<usize>> {
        if !self.by_owner {
            if self.progress.len() > 1 && self.is_left_to_another(0) {
                return None;
            }
            let next = self.claimed.take_next();
            return (next < self.calls).then(|| next..next + 1);
        }
        loop {
            let (run, first) = (self.run, self.run * RUN_CALLS);
            if first >= self.calls {
                return None;
            }
            self.run += 1;
            if self.is_for_me(run) {
                return Some(first..self.calls.min(first + RUN_CALLS));
            }
        }
    }

    /// Whether this worker runs a run: its own, or a late worker's that is not claimed yet.
    #[inline]
    fn is_for_me(&mut self, run: usize) -> bool {
        let workers = self.progress.len();
        let (owner, index) = owner(run * RUN_CALLS, workers);
        if workers == 1 {
            return true;
        }
        if owner == self.worker {
            self.look_in -= 1;
            if self.look_in == 0 {
                self.look(run);
            }
        } else if self.late >> owner.0 & 1 == 0 {
            return false;
        }
        !self.is_left_to_another(run * RUN_CALLS)
            && self.claimed.take_run(owner.index(), index / RUN_CALLS)
    }

    /// Whether another worker runs the calls from a position on. Takes them itself if it has lost
    /// too much to them.
    #[inline]
    fn is_left_to_another(&mut self, first: usize) -> bool {
        if !self.takes_rest && lost::is_most(self.progress.len()) {
            self.take_rest(first);
        }
        self.claimed.is_left_to_another(self.worker, first)
    }

    /// Takes all calls from a position on, unless another worker does.
    #[cold]
    fn take_rest(&mut self, first: usize) {
        self.takes_rest = self.claimed.take_rest(self.worker, first);
        if self.takes_rest {
            // All are late, and stay so.
            (self.late, self.look_in) = (u64::MAX, u32::MAX);
        }
    }

    /// Looks who is late.
    #[cold]
    fn look(&mut self, run: usize) {
        let at = (run * RUN_CALLS).saturating_sub(LATE_CALLS * self.progress.len());
        let is_late = |progress: &Progress| progress.unfinished().index() < at;
        let late = self.progress.iter().enumerate().filter(|(_, progress)| is_late(progress));
        self.late = late.map(|(worker, _)| 1 << worker).sum();
        self.look_in = RUNS_BEFORE_LOOK;
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use storage::Position;

    use super::*;

    /// So many small calls, and workers that have run none.
    fn epoch(calls: usize, workers: usize) -> (ClaimedCalls, Vec<Progress>) {
        let mut claimed = ClaimedCalls::default();
        claimed.reset(calls, workers);
        (claimed, (0..workers).map(|_| Progress::default()).collect())
    }

    /// Takes all that there is for a worker, and says how far it is.
    fn take_all(
        (claimed, progress): &(ClaimedCalls, Vec<Progress>),
        worker: usize,
        calls: usize,
    ) -> Vec<usize> {
        let mut turns =
            Dispatch::new(claimed, progress, WorkerId::from_index(worker), calls, 2 * calls);
        let mut all = Vec::new();
        while let Some(positions) = turns.take() {
            progress[worker].note(Position::from_index(positions.start));
            all.extend(positions);
        }
        progress[worker].note(Position::END);
        assert!(all.is_sorted(), "worker {worker} takes calls in serial order");
        all
    }

    #[test]
    fn o_11_every_call_is_taken_once_and_in_serial_order() {
        for (calls, workers) in [(0, 1), (1, 2), (70, 2), (1000, 1), (20_001, 2), (30_002, 5)] {
            let epoch = epoch(calls, workers);
            let start = Barrier::new(workers);
            let claimed: Vec<Vec<usize>> = thread::scope(|scope| {
                let work = |worker| {
                    start.wait();
                    take_all(&epoch, worker, calls)
                };
                let all: Vec<_> = (0..workers).map(|w| scope.spawn(move || work(w))).collect();
                all.into_iter().map(|worker| worker.join().unwrap()).collect()
            });
            let mut all = claimed.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..calls), "{calls} calls, {workers} workers");
        }
    }

    #[test]
    fn calls_of_a_worker_that_is_late_are_run_by_others() {
        let (calls, workers) = (10_000, 2);
        let epoch = epoch(calls, workers);
        // The other one has not even begun.
        let first = take_all(&epoch, 0, calls);
        let late = take_all(&epoch, 1, calls);
        assert!(late.len() < 2 * LATE_CALLS * workers, "{} are left", late.len());
        assert!(late.iter().all(|&position| owner(position, workers).0 == WorkerId(1)));
        assert_eq!(first.len() + late.len(), calls);
    }

    /// Two workers in turns, small calls and large ones: one of them takes the rest after so many
    /// turns, and from then on it runs all calls, but for what the other one had taken.
    #[test]
    fn o_11_the_rest_of_an_epoch_is_run_by_the_worker_that_takes_it() {
        let workers = 2;
        for (calls, declared, turns) in
            [(10_000, 20_000, 100), (10_000, 90_000, 7), (10_000, 20_000, 0)]
        {
            let (claimed, progress) = epoch(calls, workers);
            let dispatch = |worker| Dispatch::new(&claimed, &progress, worker, calls, declared);
            let mut both = [WorkerId(0), WorkerId(1)].map(dispatch);
            let mut taken = [Vec::new(), Vec::new()];
            for _ in 0..turns {
                for (dispatch, taken) in both.iter_mut().zip(&mut taken) {
                    taken.extend(dispatch.take().into_iter().flatten());
                }
            }
            let first = taken[1].last().map_or(0, |last| last + 1);
            both[1].take_rest(if both[1].by_owner { first } else { 0 });
            both[0].take_rest(0);
            assert!(both[1].takes_rest() && !both[0].takes_rest(), "the first one takes it");
            let before = taken[0].len();
            for (dispatch, taken) in both.iter_mut().zip(&mut taken) {
                taken.extend(std::iter::from_fn(|| dispatch.take()).flatten());
                assert!(taken.is_sorted(), "in serial order");
            }
            assert!(taken[0].len() <= before + RUN_CALLS, "the other one leaves them");
            let mut all = taken.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..calls), "{calls} calls that declare {declared} rows");
        }
    }

    #[test]
    fn a_worker_runs_its_own_calls_while_nobody_is_late() {
        let (calls, workers) = (10_000, 4);
        let epoch = epoch(calls, workers);
        epoch.1.iter().for_each(|progress| progress.note(Position::END));
        for worker in 0..workers {
            let own = take_all(&epoch, worker, calls);
            assert!(own.iter().all(|&position| owner(position, workers).0.index() == worker));
            assert_eq!(own.len(), calls / workers);
        }
    }
}
