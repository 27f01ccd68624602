//! Asking for what the next calls need, a little at a time.

use std::collections::VecDeque;

use crate::version::{LINE, ValueWord, prefetch};

/// Lines that are asked for in one step. A core has about a dozen lines on their way at once, and
/// stands still when it wants more; with this many some are left for the running call.
const LINES_A_STEP: usize = 8;

/// Lines that the calls claimed ahead will need, in the order of these calls. What is short is
/// asked for at once. Long values wait, and the running call asks for some of their lines with each
/// row that it reads or writes, so that they come while it works (decision 9).
#[derive(Debug, Default)]
pub(crate) struct PrefetchPolicy {
    /// Addresses, and how many lines from there.
    queue: VecDeque<(usize, usize)>,
    /// How many were ever put into the queue.
    wanted: u64,
}

impl PrefetchPolicy {
    /// Wants a value; of how many lines, about.
    #[inline]
    pub(crate) fn want(&mut self, word: ValueWord) -> usize {
        if !word.is_value() {
            return 0;
        }
        let (address, len) = (word.address(), word.len());
        if len <= LINE {
            // Most are of one line, and asking for one twice costs less than counting.
            prefetch(address);
            prefetch(address + len.saturating_sub(1));
            return 1;
        }
        self.want_lines(address, word.lines_to_fetch())
    }

    #[inline(never)]
    fn want_lines(&mut self, address: usize, lines: usize) -> usize {
        if lines <= LINES_A_STEP {
            ask(address, lines);
        } else {
            self.queue.push_back((address, lines));
            self.wanted += 1;
        }
        lines
    }

    /// How many were put into the queue until now; see [`PrefetchPolicy::up_to`].
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Asks for some lines.
    #[inline]
    pub(crate) fn step(&mut self) {
        if !self.queue.is_empty() {
            self.ask_some();
        }
    }

    #[inline(never)]
    fn ask_some(&mut self) {
        let Some((address, lines)) = self.queue.front_mut() else { return };
        let (from, left) = (*address, lines.saturating_sub(LINES_A_STEP));
        if left == 0 {
            ask(from, *lines);
            self.queue.pop_front();
        } else {
            (*address, *lines) = (from + LINES_A_STEP * LINE, left);
            ask(from, LINES_A_STEP);
        }
    }

    /// Asks for all that was wanted when so many had been put into the queue: the call that it is
    /// for begins.
    pub(crate) fn up_to(&mut self, wanted: u64) {
        while self.wanted - (self.queue.len() as u64) < wanted
            && let Some((address, lines)) = self.queue.pop_front()
        {
            ask(address, lines);
        }
    }
}

#[inline]
fn ask(address: usize, lines: usize) {
    if lines == LINES_A_STEP {
        // Most are so many, which needs no loop.
        (0..LINES_A_STEP).for_each(|line| prefetch(address + line * LINE));
    } else {
        (0..lines).for_each(|line| prefetch(address + line * LINE));
    }
}
