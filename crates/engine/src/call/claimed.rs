//! The calls that workers have claimed. Who takes which is decided in `epoch/dispatch.rs`.

use pmem::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::call::batch::RUN_CALLS;
use crate::worker_id::{WORKERS_MAX, WorkerId};

/// What is claimed, for all workers.
#[derive(Debug, Default)]
pub(crate) struct ClaimedCalls {
    /// The next call, where calls are handed out one by one; in a line of its own.
    next: Next,
    /// A bit for each run of a worker's own calls.
    own: Vec<Vec<Bits>>,
    /// The worker that runs all calls from a position on, if one does.
    rest: RestOfCalls,
}

/// A position and a worker, in a line of its own: all workers look at it often.
#[derive(Debug)]
#[repr(align(128))]
struct RestOfCalls(AtomicU64);

impl RestOfCalls {
    const SHARED: u64 = u64::MAX;
    /// Bits of the worker, below the position.
    const WORKER_BITS: u32 = 8;
}

impl Default for RestOfCalls {
    fn default() -> Self {
        Self(AtomicU64::new(Self::SHARED))
    }
}

const _: () = assert!(WORKERS_MAX <= 1 << RestOfCalls::WORKER_BITS);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Next(AtomicUsize);

/// Bits of runs, in lines of their own: as a rule only their owner sets them.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Bits([AtomicU64; 16]);

impl Bits {
    const RUNS: usize = 16 * u64::BITS as usize;
}

impl ClaimedCalls {
    /// Before an epoch of so many calls, which so many workers run.
    pub(crate) fn reset(&mut self, calls: usize, workers: usize) {
        *self.next.0.get_mut() = 0;
        *self.rest.0.get_mut() = RestOfCalls::SHARED;
        let runs = calls.div_ceil(RUN_CALLS).div_ceil(workers);
        self.own.resize_with(workers, Vec::new);
        for own in &mut self.own {
            own.clear();
            own.resize_with(runs.div_ceil(Bits::RUNS), Bits::default);
        }
    }

    /// Takes the next call; its position, which may be behind the last one.
    #[inline]
    pub(crate) fn take_next(&self) -> usize {
        self.next.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Claims a run of a worker's calls, unless it is claimed.
    #[inline]
    pub(crate) fn take_run(&self, owner: usize, run: usize) -> bool {
        let words = &self.own[owner][run / Bits::RUNS].0;
        let (word, bit) = (&words[run / 64 % words.len()], 1 << (run % 64));
        word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// This worker takes all calls from a position on that no worker has claimed, and all others
    /// take none. Returns whether it does: only the first one that wants to.
    #[cold]
    pub(crate) fn take_rest(&self, worker: WorkerId, first: usize) -> bool {
        assert!(worker.index() < self.own.len(), "who takes the rest has a part in the epoch");
        let rest = (first as u64) << RestOfCalls::WORKER_BITS | u64::from(worker.0);
        let (before, order) = (RestOfCalls::SHARED, Ordering::Relaxed);
        self.rest.0.compare_exchange(before, rest, order, order).is_ok()
    }

    /// Whether another worker takes the calls from this position on.
    #[inline]
    pub(crate) fn is_left_to_another(&self, worker: WorkerId, first: usize) -> bool {
        let rest = self.rest.0.load(Ordering::Relaxed);
        let (from, taker) = (rest >> RestOfCalls::WORKER_BITS, rest as u8);
        from <= first as u64 && u32::from(taker) != worker.0
    }
}
