//! Lists of the calls that each worker has run, which all others read for themselves.
//!
//! A store with release order behind what a call did, and a load with acquire order before it is
//! used, hand over the rows of the call.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::grace::Padded;

/// Calls that one worker has run, in that order.
struct List {
    calls: Box<[AtomicU32]>,
    len: AtomicUsize,
}

/// See the module's documentation.
pub(super) struct Ended(Box<[Padded<List>]>);

impl Ended {
    /// Lists for so many calls and workers.
    pub(super) fn new(calls: usize, workers: usize) -> Self {
        let calls = || (0..calls).map(|_| AtomicU32::new(0)).collect();
        let list = || List { calls: calls(), len: AtomicUsize::new(0) };
        Self((0..workers).map(|_| Padded(list())).collect())
    }

    /// Workers.
    pub(super) fn workers(&self) -> usize {
        self.0.len()
    }

    /// A worker has run a call.
    pub(super) fn end(&self, worker: usize, call: usize) {
        let List { calls, len } = &self.0[worker].0;
        let at = len.load(Ordering::Relaxed);
        calls[at].store(call as u32, Ordering::Relaxed);
        len.store(at + 1, Ordering::Release);
    }

    /// Visits what a worker has run since another one looked last; `seen` is how much it knows.
    pub(super) fn since(&self, worker: usize, seen: &mut usize, mut each: impl FnMut(usize)) {
        let List { calls, len } = &self.0[worker].0;
        let end = len.load(Ordering::Acquire);
        for call in &calls[*seen..end] {
            each(call.load(Ordering::Relaxed) as usize);
        }
        *seen = end;
    }
}
