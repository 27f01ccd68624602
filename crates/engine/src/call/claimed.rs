//! The calls that workers have taken to run. Who takes which is decided in `epoch/dispatch.rs`.

use pmem::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::call::batch::RUN_CALLS;

/// What is taken, for all workers.
#[derive(Debug, Default)]
pub(crate) struct ClaimedCalls {
    /// The next call, where calls are handed out one by one; in a line of its own.
    next: Next,
    /// A bit for each run of a worker's own calls.
    own: Vec<Vec<Bits>>,
}

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

    /// Takes a run of a worker's calls, unless it is taken.
    #[inline]
    pub(crate) fn take_run(&self, owner: usize, run: usize) -> bool {
        let words = &self.own[owner][run / Bits::RUNS].0;
        let (word, bit) = (&words[run / 64 % words.len()], 1 << (run % 64));
        word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}
