//! How far the pieces of calls are.

use pmem::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How far a piece is: 0 as long as it is not known whether its call commits.
const COMMITTED: u32 = 1;
const ABORTED: u32 = 2;
const DONE: u32 = 3;

/// A piece of a call: the update of one row, which may run apart from the rest (CA 3.4).
#[derive(Debug)]
pub(crate) struct PieceState {
    /// Its key, among all that the worker's calls declared.
    pub(crate) declared: u32,
    /// An estimate of its work.
    pub(crate) weight: u32,
    /// The row is contended: the piece is in the queue of a worker, not part of its call.
    pub(crate) is_split: bool,
    progress: AtomicU32,
    result: AtomicU64,
}

impl PieceState {
    pub(crate) fn new(declared: u32, weight: u32) -> Self {
        let (progress, result) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { declared, weight, is_split: false, progress, result }
    }

    /// Whether the call commits, if that is known.
    pub(crate) fn commits(&self) -> Option<bool> {
        match self.progress.load(Ordering::Acquire) {
            0 => None,
            progress => Some(progress != ABORTED),
        }
    }

    /// The call tells whether it commits. It may say so again.
    pub(crate) fn decide(&self, commits: bool) {
        debug_assert!(self.commits() != Some(!commits), "whether a call commits is decided once");
        if self.commits().is_none() {
            let progress = if commits { COMMITTED } else { ABORTED };
            self.progress.store(progress, Ordering::Release);
        }
    }

    /// It was run, with this result.
    pub(crate) fn finish(&self, result: u64) {
        self.result.store(result, Ordering::Relaxed);
        self.progress.store(DONE, Ordering::Release);
    }

    /// What it came to, if it was run.
    pub(crate) fn result(&self) -> Option<u64> {
        let is_done = self.progress.load(Ordering::Acquire) == DONE;
        is_done.then(|| self.result.load(Ordering::Relaxed))
    }
}
