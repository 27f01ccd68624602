//! The pages that are to be read, and which of them comes next.
//!
//! 1. A page that a thread waits for comes before all others.
//! 2. Then those that are known to be needed, in the order in which they were asked for.
//! 3. Then those that are guessed. A guess that a thread waits for is none any more.

use std::collections::VecDeque;
use std::ops::Range;

use crate::file::disk::RUN_PAGES;

/// Guesses that wait at once, at most.
pub(super) const GUESSES_MAX: usize = 128;

/// Why a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It is needed.
    Needed,
    /// A thread that has touched pages before it is likely to touch it.
    Guessed,
}

/// Pages that were begun and that no thread reads yet.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Threads wait for these; the last one comes first.
    awaited: VecDeque<u64>,
    /// Needed soon.
    wanted: VecDeque<u64>,
    guessed: VecDeque<u64>,
    /// How many runs of pages have left the queue and are being read, and threads that read others.
    pub(super) reading: u64,
}

impl Queue {
    /// A thread waits for a page.
    pub(super) fn push_awaited(&mut self, page: u64) {
        self.awaited.push_front(page);
    }

    /// Pages are needed soon; how many.
    pub(super) fn push_wanted(&mut self, pages: impl Iterator<Item = u64>) -> usize {
        let before = self.wanted.len();
        self.wanted.extend(pages);
        self.wanted.len() - before
    }

    /// A page is guessed to be needed soon, and there [is room](Queue::guesses_left) for it.
    pub(super) fn push_guessed(&mut self, page: u64) {
        assert!(self.guesses_left() > 0, "{GUESSES_MAX} guesses wait");
        self.guessed.push_back(page);
    }

    /// How many guesses it takes.
    pub(super) fn guesses_left(&self) -> usize {
        GUESSES_MAX - self.guessed.len()
    }

    /// A thread waits for a page that was begun. If it waits here as a guess it comes next; whether
    /// that is so.
    pub(super) fn is_awaited_now(&mut self, page: u64) -> bool {
        let Some(at) = self.guessed.iter().position(|guessed| *guessed == page) else {
            return false;
        };
        self.guessed.remove(at);
        self.push_awaited(page);
        true
    }

    /// Takes the next pages, which are neighbours.
    pub(super) fn pop(&mut self) -> Option<(Range<u64>, Why)> {
        let needed = run(&mut self.awaited).or_else(|| run(&mut self.wanted));
        let needed = needed.map(|pages| (pages, Why::Needed));
        needed.or_else(|| Some((run(&mut self.guessed)?, Why::Guessed)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.awaited.is_empty() && self.wanted.is_empty() && self.guessed.is_empty()
    }

    /// Whether it is empty, and all that has left it was read.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.reading == 0
    }

    /// Forgets all pages.
    pub(super) fn clear(&mut self) {
        let Self { awaited, wanted, guessed, reading: _ } = self;
        [awaited, wanted, guessed].into_iter().for_each(VecDeque::clear);
    }
}

/// The first pages of a list that are neighbours.
fn run(pages: &mut VecDeque<u64>) -> Option<Range<u64>> {
    let first = pages.pop_front()?;
    let mut end = first + 1;
    while end - first < RUN_PAGES as u64 && pages.front() == Some(&end) {
        pages.pop_front();
        end += 1;
    }
    Some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(queue: &mut Queue) -> Vec<(Range<u64>, Why)> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn no_page_that_is_needed_waits_for_a_guess() {
        use Why::{Guessed, Needed};
        let mut queue = Queue::default();
        (10..16).for_each(|page| queue.push_guessed(page));
        assert_eq!(queue.push_wanted([30, 31, 40].into_iter()), 3);
        queue.push_awaited(50);
        queue.push_awaited(9);
        let expected = [
            (9..10, Needed),
            (50..51, Needed),
            (30..32, Needed),
            (40..41, Needed),
            (10..14, Guessed),
            (14..16, Guessed),
        ];
        assert_eq!(taken(&mut queue), expected);
        assert!(queue.is_idle());
    }

    #[test]
    fn a_guess_that_a_thread_waits_for_comes_first() {
        let mut queue = Queue::default();
        (10..20).for_each(|page| queue.push_guessed(page));
        queue.push_wanted(30..31);
        assert!(queue.is_awaited_now(17));
        assert!(!queue.is_awaited_now(17) && !queue.is_awaited_now(30), "they are no guesses");
        let needed = [(17..18, Why::Needed), (30..31, Why::Needed)];
        let guessed = [10..14, 14..17, 18..20].map(|pages| (pages, Why::Guessed));
        assert_eq!(taken(&mut queue), [&needed[..], &guessed].concat());
    }

    #[test]
    fn guesses_are_bounded() {
        let mut queue = Queue::default();
        (0..GUESSES_MAX as u64).for_each(|page| queue.push_guessed(page));
        assert_eq!(queue.guesses_left(), 0);
        queue.pop();
        assert_eq!(queue.guesses_left(), RUN_PAGES);
        queue.reading += 1;
        queue.clear();
        assert!(queue.is_empty() && !queue.is_idle(), "some are being read");
    }
}
