//! Lists through which lock managers and the threads that run calls talk.
//!
//! A call goes once into the list of ready calls, and once into the list of ended calls of the
//! thread that ran it, which every lock manager reads for itself.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::super::ended::Ended;
use crate::grace::Padded;

/// See the module's documentation.
pub(in super::super) struct Lists {
    pub(super) managers: usize,
    /// Lock managers that have not granted a call everything yet.
    missing: Box<[AtomicU32]>,
    /// Ready calls, one more than their numbers; 0 where there is none yet.
    ready: Box<[AtomicU32]>,
    ready_end: Padded<AtomicUsize>,
    /// The next place of the ready list that no thread has claimed.
    next: Padded<AtomicUsize>,
    pub(super) ended: Ended,
}

impl Lists {
    /// Lists for so many calls.
    pub(in super::super) fn new(calls: usize, workers: usize, managers: usize) -> Self {
        let numbers = |value: u32| (0..calls).map(|_| AtomicU32::new(value)).collect();
        Self {
            managers,
            missing: numbers(managers as u32),
            ready: numbers(0),
            ready_end: Padded::default(),
            next: Padded::default(),
            ended: Ended::new(calls, workers),
        }
    }

    /// Threads that do nothing but run calls.
    pub(super) fn executors(&self) -> usize {
        self.ended.workers() - self.managers
    }

    /// A lock manager has granted a call all that is its to grant.
    pub(super) fn grant(&self, call: usize) {
        if self.missing[call].fetch_sub(1, Ordering::AcqRel) == 1 {
            self.push(call);
        }
    }

    /// A call is ready.
    pub(super) fn push(&self, call: usize) {
        let place = self.ready_end.0.fetch_add(1, Ordering::Relaxed);
        self.ready[place].store(call as u32 + 1, Ordering::Release);
    }

    /// The next place of the ready list; `None` when all are claimed.
    pub(super) fn ticket(&self) -> Option<usize> {
        let place = self.next.0.fetch_add(1, Ordering::Relaxed);
        (place < self.ready.len()).then_some(place)
    }

    /// The call at a place of the ready list, once it is there.
    pub(super) fn ready(&self, place: usize) -> Option<usize> {
        self.ready[place].load(Ordering::Acquire).checked_sub(1).map(|call| call as usize)
    }

    /// The next ready call, if there is one now, for a thread that is the only one.
    pub(super) fn try_next(&self) -> Option<usize> {
        let call = self.ready(self.next.0.load(Ordering::Relaxed).min(self.ready.len() - 1))?;
        self.ticket().map(|_| call)
    }
}
