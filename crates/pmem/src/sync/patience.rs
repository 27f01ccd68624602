//! Waiting for another thread that may have lost its processor.

use std::time::Duration;

use super::{polls, rest, spin_loop, thread};

/// How often a thread gives its processor up before it sleeps.
const YIELDS: u32 = 32;
/// How long it sleeps first; then twice as long each time ...
const REST_FIRST: Duration = Duration::from_micros(20);
/// ... up to so many times.
const DOUBLINGS_MAX: u32 = 5;

/// How a thread waits: it polls, then gives its processor up, then sleeps, longer and longer, so
/// that the thread it waits for gets a processor.
#[derive(Debug)]
pub struct Patience {
    /// Polls before a thread does anything else.
    polls_max: u32,
    polls: u32,
    turns: u32,
}

impl Patience {
    /// Of a thread that polls so often first, and between any two other things.
    #[must_use]
    pub const fn new(polls_max: u32) -> Self {
        Self { polls_max: polls(polls_max), polls: 0, turns: 0 }
    }

    /// Waits a little. Returns whether it has polled enough, and it is time to look at what seldom
    /// changes.
    #[inline]
    pub fn wait(&mut self) -> bool {
        self.polls += 1;
        if self.polls < self.polls_max {
            spin_loop();
            return false;
        }
        self.polls = 0;
        self.wait_long();
        true
    }

    #[cold]
    fn wait_long(&mut self) {
        self.turns = self.turns.saturating_add(1);
        match self.turns.checked_sub(YIELDS + 1) {
            None => thread::yield_now(),
            Some(rests) => rest(REST_FIRST * (1 << rests.min(DOUBLINGS_MAX))),
        }
    }
}
