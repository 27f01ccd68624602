//! Turns: how many statements compute at a time once they have computed for longer than a slice.
//! Each is on a thread of its own. Behind each slice it gives its turn to the one that has waited
//! longest, so all come on alike, and what is new waits for none of them: its first slice needs no
//! turn. Those that are young come more often, so that they are soon done.

use super::pool::lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;

/// Slices after which a statement is old.
const YOUNG_SLICES: u32 = 64;
/// After so many turns of young ones, an old one comes, if one waits.
const YOUNG_TURNS: u32 = 3;

/// A thread that waits for its turn.
struct Seat {
    thread: Thread,
    has_turn: AtomicBool,
}

#[derive(Default)]
struct State {
    free: usize,
    young: VecDeque<Arc<Seat>>,
    old: VecDeque<Arc<Seat>>,
    /// Turns of young ones since the last one of an old one.
    young_turns: u32,
}

impl State {
    fn next(&mut self) -> Option<Arc<Seat>> {
        let takes_old = self.young_turns >= YOUNG_TURNS && !self.old.is_empty();
        if !takes_old && let Some(seat) = self.young.pop_front() {
            self.young_turns = self.young_turns.saturating_add(1);
            return Some(seat);
        }
        self.young_turns = 0;
        self.old.pop_front()
    }
}

/// The turns of a store.
pub(super) struct Turns(Mutex<State>);

/// A turn, until it is dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
}

impl Turns {
    pub(super) fn new(count: usize) -> Arc<Turns> {
        Arc::new(Turns(Mutex::new(State { free: count.max(1), ..State::default() })))
    }

    /// Waits for a turn on this thread; for a statement that has computed for so many slices.
    pub(super) fn take(self: &Arc<Turns>, slices: u32) -> Turn {
        if let Some(seat) = self.sit(slices) {
            while !seat.has_turn.load(Ordering::Acquire) {
                std::thread::park();
            }
        }
        Turn { turns: Arc::clone(self) }
    }

    /// `None` if there is a turn at once.
    fn sit(&self, slices: u32) -> Option<Arc<Seat>> {
        let mut state = lock(&self.0);
        if let Some(left) = state.free.checked_sub(1) {
            state.free = left;
            return None;
        }
        let thread = std::thread::current();
        let seat = Arc::new(Seat { thread, has_turn: AtomicBool::new(false) });
        let waiting = if slices < YOUNG_SLICES { &mut state.young } else { &mut state.old };
        waiting.push_back(Arc::clone(&seat));
        Some(seat)
    }

    /// Whether a thread waits for a turn.
    pub(super) fn are_wanted(&self) -> bool {
        let state = lock(&self.0);
        !state.young.is_empty() || !state.old.is_empty()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = lock(&self.turns.0);
        match state.next() {
            Some(seat) => {
                drop(state);
                seat.has_turn.store(true, Ordering::Release);
                seat.thread.unpark();
            }
            None => state.free += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn that another thread waits for, which says its name when it has it.
    fn wait(turns: &Arc<Turns>, slices: u32, name: u32, said: &Arc<Mutex<Vec<u32>>>) {
        let (own, said) = (Arc::clone(turns), Arc::clone(said));
        let count = || {
            let state = lock(&turns.0);
            state.young.len() + state.old.len()
        };
        let before = count();
        std::thread::spawn(move || {
            let _turn = own.take(slices);
            lock(&said).push(name);
        });
        while count() == before {
            std::thread::yield_now();
        }
    }

    #[test]
    fn turns_go_to_who_waits_longest_and_to_the_young_more_often() {
        let turns = Turns::new(1);
        let said = Arc::<Mutex<Vec<u32>>>::default();
        let first = turns.take(0);
        assert!(!turns.are_wanted());
        for name in [1, 2] {
            wait(&turns, YOUNG_SLICES, name, &said);
        }
        for name in [11, 12, 13, 14, 15] {
            wait(&turns, 0, name, &said);
        }
        assert!(turns.are_wanted() && lock(&said).is_empty(), "one turn is all there is");
        drop(first);
        while lock(&said).len() < 7 {
            std::thread::yield_now();
        }
        assert_eq!(*lock(&said), [11, 12, 13, 1, 14, 15, 2]);
        drop(turns.take(0));
    }

    #[test]
    fn as_many_compute_as_there_are_turns() {
        let turns = Turns::new(2);
        let (first, second) = (turns.take(0), turns.take(0));
        assert!(turns.sit(0).is_some());
        drop((first, second));
        assert_eq!(lock(&turns.0).free, 1, "one went to the seat");
    }
}
