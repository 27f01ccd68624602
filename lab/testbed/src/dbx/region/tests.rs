//! Regions are atomic, are aborted for what they are meant to be, and fall back.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use super::access::{Access, Body, Cause, Ended, Limits, RETRIES};
use super::hardware::{Hardware, Rtm};
use super::software::Software;
use crate::rival::RegionCounts;
use crate::rtm;

/// A body that is a function of its words.
struct Of<'w, F>(&'w [AtomicU64], F);

/// A part of a body, for each kind of access.
trait Part<'w> {
    fn run<A: Access<'w>>(&mut self, words: &'w [AtomicU64], access: &mut A) -> Result<u64, Cause>;
}

impl<'w, F: Part<'w>> Body<'w> for Of<'w, F> {
    type Output = u64;

    fn run<A: Access<'w>>(&mut self, access: &mut A) -> Result<u64, Cause> {
        self.1.run(self.0, access)
    }
}

fn words(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

fn software(limits: Limits) -> Software {
    Software::new(0, limits)
}

/// Takes one from a word, and adds it to another one.
struct Move(usize, usize);

impl<'w> Part<'w> for Move {
    fn run<A: Access<'w>>(&mut self, words: &'w [AtomicU64], a: &mut A) -> Result<u64, Cause> {
        let (from, to) = (a.load(&words[self.0])?, a.load(&words[self.1])?);
        if from == 0 {
            return Err(a.give_up());
        }
        a.store(&words[self.0], from - 1)?;
        if self.0 != self.1 {
            a.store(&words[self.1], to + 1)?;
        }
        Ok(from)
    }
}

/// Adds all words up.
struct Sum;

impl<'w> Part<'w> for Sum {
    fn run<A: Access<'w>>(&mut self, words: &'w [AtomicU64], a: &mut A) -> Result<u64, Cause> {
        words.iter().try_fold(0, |sum, word| Ok(sum + a.load(word)?))
    }
}

/// Stores to every word.
struct Fill;

impl<'w> Part<'w> for Fill {
    fn run<A: Access<'w>>(&mut self, words: &'w [AtomicU64], a: &mut A) -> Result<u64, Cause> {
        words.iter().try_for_each(|word| a.store(word, 7))?;
        Ok(0)
    }
}

/// Stores to a word, then leaves the cache.
struct Log;

impl<'w> Part<'w> for Log {
    fn run<A: Access<'w>>(&mut self, words: &'w [AtomicU64], a: &mut A) -> Result<u64, Cause> {
        a.store(&words[0], 1)?;
        a.leave_cache()?;
        Ok(0)
    }
}

#[test]
fn what_is_moved_is_never_seen_between() {
    let words: Vec<AtomicU64> = (0..40).map(|_| AtomicU64::new(100)).collect();
    let regions = software(Limits::default());
    let moves = |seed: usize| {
        let (mut counts, mut from) = (RegionCounts::default(), seed);
        for i in 0..20_000 {
            from = (from * 31 + 7 + i) % words.len();
            let to = (from * 17 + i) % words.len();
            if from != to {
                regions.run(&mut counts, &mut Of(&words, Move(from, to)));
            }
        }
        counts
    };
    let sums = || {
        let mut counts = RegionCounts::default();
        for _ in 0..3_000 {
            let sum = regions.run(&mut counts, &mut Of(&words, Sum)).unwrap().output;
            assert_eq!(sum, 4_000, "{counts:?}");
        }
        counts
    };
    let all = std::thread::scope(|scope| {
        let threads = [scope.spawn(|| moves(1)), scope.spawn(|| moves(2)), scope.spawn(sums)];
        let mut all = RegionCounts::default();
        threads.into_iter().for_each(|thread| all.add(&thread.join().unwrap()));
        all
    });
    assert!(all.ended > 10_000 && all.gave_up > 0, "{all:?}");
    let sum: u64 = words.iter().map(|word| word.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, 4_000);
}

#[test]
fn places_are_those_of_what_is_seen() {
    let (words, regions) = (words(8), software(Limits::default()));
    words[0].store(3, Ordering::Relaxed);
    let mut counts = RegionCounts::default();
    let first = regions.run(&mut counts, &mut Of(&words, Move(0, 1))).unwrap();
    assert_eq!(first, Ended { output: 3, place: 1 });
    assert_eq!(regions.run(&mut counts, &mut Of(&words, Sum)).unwrap().place, 1);
    assert_eq!(regions.run(&mut counts, &mut Of(&words, Move(0, 1))).unwrap().place, 2);
    assert!(regions.run(&mut counts, &mut Of(&words, Move(5, 1))).is_none(), "there is none");
    assert_eq!((counts.ended, counts.gave_up, counts.fallbacks), (3, 1, 0));
}

/// The aborts of a body, and whether it fell back.
fn aborts(count: usize, limits: Limits, fill: bool) -> RegionCounts {
    let (words, regions) = (words(count), software(limits));
    let mut counts = RegionCounts::default();
    let ended = match fill {
        true => regions.run(&mut counts, &mut Of(&words, Fill)),
        false => regions.run(&mut counts, &mut Of(&words, Sum)),
    };
    assert!(ended.is_some(), "it ends under the lock");
    if fill {
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 7));
    }
    counts
}

#[test]
fn sets_beyond_the_caches_abort() {
    let fell_back = RegionCounts { ended: 1, fallbacks: 1, ..RegionCounts::default() };
    let ended = RegionCounts { ended: 1, ..RegionCounts::default() };
    let limits = Limits::default();
    assert_eq!((limits.write_lines, limits.read_lines), (32 << 4, 1 << 14), "32 KiB, 1 MiB");
    // Eight words are a line; they may begin in the middle of one.
    assert_eq!(aborts(511 * 8, limits, true), ended);
    let beyond = RegionCounts { write_sets: 1, ..fell_back };
    assert_eq!(aborts(513 * 8, limits, true), beyond);
    assert_eq!(aborts(16_383 * 8, limits, false), ended);
    let beyond = RegionCounts { read_sets: 1, ..fell_back };
    assert_eq!(aborts(16_385 * 8, limits, false), beyond);
    // A write set of that many lines is no read set.
    assert_eq!(aborts(600 * 8, limits, false), ended);
}

#[test]
fn what_leaves_the_cache_aborts_always() {
    let (words, regions) = (words(8), software(Limits::default()));
    let mut counts = RegionCounts::default();
    regions.run(&mut counts, &mut Of(&words, Log)).unwrap();
    assert_eq!((counts.forbidden, counts.fallbacks, counts.ended), (1, 1, 1));
    assert_eq!(words[0].load(Ordering::Relaxed), 1);
}

/// Loads a word; then another thread stores to another word of its line.
struct Disturbed<'r>(&'r Software, Cell<u64>);

impl<'w> Part<'w> for Disturbed<'_> {
    fn run<A: Access<'w>>(&mut self, words: &'w [AtomicU64], a: &mut A) -> Result<u64, Cause> {
        let first = a.load(&words[0])?;
        let left = self.1.get();
        if left > 0 {
            self.1.set(left - 1);
            self.0.store_all([(&words[1], left)].into_iter());
        }
        a.store(&words[0], first + 1)?;
        Ok(0)
    }
}

/// Two words of one line are in each other's way; and after some aborts the lock helps.
#[test]
fn conflicts_are_by_line_and_end_at_the_lock() {
    for (disturbs, fallbacks) in [(1, 0), (RETRIES, 0), (RETRIES + 1, 1), (RETRIES + 3, 1)] {
        let room = words(16);
        let aligned =
            (0..8).find(|i| std::ptr::from_ref(&room[*i]).addr().is_multiple_of(64)).unwrap();
        let (words, regions) = (&room[aligned..], software(Limits::default()));
        let mut counts = RegionCounts::default();
        let body = Disturbed(&regions, Cell::new(disturbs));
        regions.run(&mut counts, &mut Of(words, body)).unwrap();
        assert_eq!(counts.fallbacks, fallbacks, "{disturbs}");
        assert_eq!(counts.conflicts, disturbs.min(RETRIES + 1));
        assert_eq!(words[0].load(Ordering::Relaxed), 1);
    }
}

/// Loads a word; then another thread stores to it and to the word that is loaded next.
struct Torn<'r>(&'r Software, Cell<bool>);

impl<'w> Part<'w> for Torn<'_> {
    fn run<A: Access<'w>>(&mut self, words: &'w [AtomicU64], a: &mut A) -> Result<u64, Cause> {
        let first = a.load(&words[0])?;
        if self.1.replace(false) {
            self.0.store_all([(&words[0], 1), (&words[64], 1)].into_iter());
        }
        Ok(first * 10 + a.load(&words[64])?)
    }
}

/// Not even a region that stores nothing sees two states, and not even while it runs.
#[test]
fn a_region_sees_one_state() {
    let (words, regions) = (words(72), software(Limits::default()));
    let mut counts = RegionCounts::default();
    let body = Torn(&regions, Cell::new(true));
    assert_eq!(regions.run(&mut counts, &mut Of(&words, body)).unwrap().output, 11);
    assert_eq!(counts.conflicts, 1);
}

/// Watches a word that another thread changes before the region ends.
struct Watching<'w>(&'w AtomicU64, Cell<bool>);

impl<'w> Part<'w> for Watching<'w> {
    fn run<A: Access<'w>>(&mut self, words: &'w [AtomicU64], a: &mut A) -> Result<u64, Cause> {
        let seen = a.watch(self.0)?;
        if self.1.replace(false) {
            self.0.store(seen + 1, Ordering::SeqCst);
        }
        a.store(&words[0], seen)?;
        Ok(seen)
    }
}

#[test]
fn a_watched_word_is_the_same_at_the_end() {
    let (room, regions) = (words(1), software(Limits::default()));
    let watched = AtomicU64::new(5);
    let mut counts = RegionCounts::default();
    let mut body = Of(&room, Watching(&watched, Cell::new(true)));
    assert_eq!(regions.run(&mut counts, &mut body).unwrap().output, 6);
    assert_eq!((counts.conflicts, room[0].load(Ordering::Relaxed)), (1, 6));
}

#[test]
fn with_locks_something_runs_inside() {
    let (words, regions) = (words(8), software(Limits::default()));
    words[0].store(2, Ordering::Relaxed);
    let seen = Cell::new(0);
    let ended = regions.run_locked(&mut Of(&words, Move(0, 1)), |place| {
        seen.set(place);
        assert_eq!(words[0].load(Ordering::Relaxed), 2, "nothing is stored yet");
        Ok::<(), ()>(())
    });
    assert_eq!(ended, Ok(Some(Ended { output: 2, place: seen.get() })));
    let failed = regions.run_locked(&mut Of(&words, Move(0, 1)), |_| Err("full"));
    assert_eq!(failed, Err("full"));
    assert_eq!(words[0].load(Ordering::Relaxed), 1, "and nothing of the one that failed");
    let mut counts = RegionCounts::default();
    assert!(regions.run(&mut counts, &mut Of(&words, Sum)).is_some(), "no lock is left");
}

/// A processor that aborts as often as it is told.
struct Mock {
    aborts: RefCell<Vec<u32>>,
    ended: Cell<u64>,
}

impl Rtm for Mock {
    fn begin(&self) -> u32 {
        self.aborts.borrow_mut().pop().unwrap_or(rtm::STARTED)
    }

    fn end(&self) {
        self.ended.set(self.ended.get() + 1);
    }

    fn abort(&self, code: u32) {
        panic!("no region gives up here: {code}");
    }

    fn clock(&self) -> u64 {
        9
    }
}

fn on_hardware(aborts: &[u32]) -> (RegionCounts, u64) {
    let mock = Mock { aborts: RefCell::new(aborts.to_vec()), ended: Cell::new(0) };
    let (words, regions) = (words(16), Hardware::new(mock));
    words[0].store(1, Ordering::Relaxed);
    let mut counts = RegionCounts::default();
    let ended = regions.run(&mut counts, &mut Of(&words, Move(0, 1))).unwrap();
    assert_eq!(ended, Ended { output: 1, place: 9 });
    assert_eq!(words[1].load(Ordering::Relaxed), 1);
    (counts, regions.instructions().ended.get())
}

#[test]
fn hardware_is_tried_again_and_then_locked() {
    const CONFLICT: u32 = 1 << 2 | 1 << 1;
    const CAPACITY: u32 = 1 << 3;
    let ended = RegionCounts { ended: 1, ..RegionCounts::default() };
    let fell_back = RegionCounts { fallbacks: 1, ..ended };
    assert_eq!(on_hardware(&[]), (ended, 1));
    let lock_held = rtm::LOCK_IS_HELD << 24 | 1;
    let counts = RegionCounts { conflicts: 2, unknown: 1, ..ended };
    assert_eq!(on_hardware(&[CONFLICT, 0, lock_held]), (counts, 1));
    let counts = RegionCounts { write_sets: 1, ..fell_back };
    assert_eq!(on_hardware(&[CAPACITY]), (counts, 0));
    let counts = RegionCounts { forbidden: 1, ..fell_back };
    assert_eq!(on_hardware(&[rtm::FORBIDDEN << 24 | 1]), (counts, 0));
    let counts = RegionCounts { conflicts: RETRIES + 1, ..fell_back };
    assert_eq!(on_hardware(&[CONFLICT; RETRIES as usize + 1]), (counts, 0));
}

#[test]
fn a_region_of_hardware_that_gives_up_has_not_happened() {
    let aborts = RefCell::new(vec![rtm::GAVE_UP << 24 | 1]);
    let regions = Hardware::new(Mock { aborts, ended: Cell::new(0) });
    let (words, mut counts) = (words(16), RegionCounts::default());
    assert!(regions.run(&mut counts, &mut Of(&words, Move(0, 1))).is_none());
    assert_eq!((counts.gave_up, counts.ended), (1, 0));
    let locked = regions.run_locked(&mut Of(&words, Move(0, 1)), |_| Ok::<(), ()>(()));
    assert_eq!(locked, Ok(None));
    assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
}
