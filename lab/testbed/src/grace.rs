//! When something that was moved out of sight may be reused: once every transaction that ran at
//! that time has ended.
//!
//! Invariant: a worker announces the time at which its transaction began before the transaction
//! looks anything up, so whatever was moved out of sight at an earlier time is unknown to it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// A value on cache lines of its own, so that those who write it do not disturb others.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// What a worker announces that runs nothing.
const IDLE: u64 = u64::MAX;

/// The time, and since when each worker's transaction has been running.
#[derive(Debug)]
pub struct Grace {
    now: Padded<AtomicU64>,
    running: Box<[Padded<AtomicU64>]>,
}

impl Grace {
    pub(crate) fn new(workers: usize) -> Self {
        let running = (0..workers).map(|_| Padded(AtomicU64::new(IDLE))).collect();
        Self { now: Padded(AtomicU64::new(1)), running }
    }

    /// A worker's transaction begins.
    pub(crate) fn enter(&self, worker: usize) {
        let now = self.now.0.load(Ordering::SeqCst);
        self.running[worker].0.store(now, Ordering::SeqCst);
    }

    /// A worker's transaction ended.
    pub(crate) fn leave(&self, worker: usize) {
        self.running[worker].0.store(IDLE, Ordering::Release);
    }

    /// Time goes on.
    pub(crate) fn tick(&self) {
        self.now.0.fetch_add(1, Ordering::SeqCst);
    }

    /// The time for something that is out of sight now.
    pub(crate) fn now(&self) -> u64 {
        self.now.0.load(Ordering::SeqCst)
    }

    /// What went out of sight before this time is known to no transaction.
    pub(crate) fn unknown_before(&self) -> u64 {
        let now = self.now();
        let running = self.running.iter().map(|since| since.0.load(Ordering::SeqCst));
        running.fold(now, u64::min)
    }
}

/// Things out of sight, in the order in which they went.
#[derive(Debug)]
pub(crate) struct Limbo<T>(VecDeque<(u64, T)>);

impl<T> Default for Limbo<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Limbo<T> {
    /// Something is out of sight now.
    pub(crate) fn push(&mut self, grace: &Grace, thing: T) {
        self.0.push_back((grace.now(), thing));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The next thing that went out of sight before a time.
    pub(crate) fn pop_before(&mut self, time: u64) -> Option<T> {
        self.0.pop_front_if(|(went, _)| *went < time).map(|(_, thing)| thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_reused_before_those_who_may_know_it_have_ended() {
        let (grace, mut limbo) = (Grace::new(2), Limbo::default());
        grace.enter(1);
        limbo.push(&grace, "row");
        grace.tick();
        grace.enter(0);
        assert_eq!(limbo.pop_before(grace.unknown_before()), None);
        grace.leave(1);
        assert_eq!(limbo.pop_before(grace.unknown_before()), Some("row"));
    }

    #[test]
    fn one_that_began_in_the_same_instant_may_know_it() {
        let (grace, mut limbo) = (Grace::new(1), Limbo::default());
        grace.enter(0);
        limbo.push(&grace, 7);
        grace.leave(0);
        assert_eq!(limbo.pop_before(grace.unknown_before()), None);
        grace.tick();
        assert_eq!(limbo.pop_before(grace.unknown_before()), Some(7));
    }
}
