//! What is known of each page of an image of which not all is in memory.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::device::Needed;
use crate::file::format::Entry;

/// In memory.
const PRESENT: u8 = 1;
/// Being read, or evicted: by one thread.
const LOADING: u8 = 2;
/// Touched since the last look for pages to evict.
const USED: u8 = 4;
/// Copied aside for a snapshot, whose writer has not told its slot yet.
const SAVING: u8 = 8;
/// Touched before it was in memory: a thread waits for it, and can have no error.
const AWAITED: u8 = 16;
/// How many looks that let a turn lapse it stays without being touched: a number of two bits.
const STAYS: u8 = TURN | TURN << 1;
const TURN: u8 = 64;

/// How long a page stays in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    /// A page that is said to be in memory may just have been evicted.
    UntilEvicted,
    Always,
}

/// A byte for each page, and where each page is in the file.
#[derive(Debug)]
pub(super) struct PageStates {
    states: Box<[AtomicU8]>,
    /// Slot and checksum; 0 where the page was never saved.
    places: Box<[AtomicU64]>,
    /// Pages in memory.
    present: AtomicU64,
    /// Pages that stay some turns.
    staying: AtomicU64,
    stay: Stay,
}

/// Slots have 32 bits: files of 16 TiB.
const SLOTS: u64 = 1 << 32;

impl PageStates {
    pub(super) fn new(pages: u64, stay: Stay) -> Self {
        // Zeroed at once: of most no memory is ever touched.
        let states = Box::<[AtomicU8]>::new_zeroed_slice(pages as usize);
        let places = Box::<[AtomicU64]>::new_zeroed_slice(pages as usize);
        // SAFETY: initialised: zero bytes are valid atomics.
        let (states, places) = unsafe { (states.assume_init(), places.assume_init()) };
        Self { states, places, present: AtomicU64::new(0), staying: AtomicU64::new(0), stay }
    }

    /// How many pages there are.
    pub(super) fn pages(&self) -> u64 {
        self.states.len() as u64
    }

    pub(super) fn present(&self) -> u64 {
        self.present.load(Ordering::Relaxed)
    }

    /// Pages that stay some turns.
    pub(super) fn staying(&self) -> u64 {
        self.staying.load(Ordering::Relaxed)
    }

    /// Where the newest content of a page is that was saved.
    pub(super) fn place(&self, page: u64) -> Option<Entry> {
        let word = self.places[page as usize].load(Ordering::Acquire);
        let (slot, crc) = (word >> 32, word as u32);
        (word != 0).then_some(Entry { page, slot, crc })
    }

    /// The places of all pages that were saved, in the order of the pages.
    pub(super) fn places(&self) -> impl Iterator<Item = Entry> + '_ {
        (0..self.pages()).filter_map(|page| self.place(page))
    }

    /// A page was saved: the entry is told before the slot that it had is given to another page
    /// (S6, S9). Pages that the image has grown by are not of these where all stay. Whether a
    /// snapshot was [saving](PageStates::saving) it; else it has moved.
    pub(super) fn saved(&self, entry: &Entry) -> bool {
        assert!(entry.slot < SLOTS, "slot {} has 32 bits", entry.slot);
        if entry.page >= self.pages() && self.stay == Stay::Always {
            return false;
        }
        let word = (entry.slot << 32) | u64::from(entry.crc);
        self.places[entry.page as usize].store(word, Ordering::Release);
        let state = &self.states[entry.page as usize];
        let was_saving = state.load(Ordering::Acquire) & SAVING != 0;
        if was_saving {
            // It was copied from memory, where it may have been since the image grew by it.
            self.installed(entry.page);
            state.fetch_and(!SAVING, Ordering::AcqRel);
        }
        was_saving
    }

    /// A snapshot saves a page.
    pub(super) fn saving(&self, page: u64) {
        self.states[page as usize].fetch_or(SAVING, Ordering::AcqRel);
    }

    /// A page is needed soon. Whether it is absent, and no thread reads it: then it is to be begun,
    /// unless a thread has touched it by then. One that is needed often stays some turns.
    #[inline]
    pub(super) fn want(&self, page: u64, needed: Needed) -> bool {
        let state = &self.states[page as usize];
        let found = state.load(Ordering::Relaxed);
        let bits = match needed {
            Needed::Seldom => USED,
            Needed::Often => USED | STAYS,
        };
        if found & (PRESENT | bits) == PRESENT | bits {
            return false;
        }
        let found = state.fetch_or(bits, Ordering::Relaxed);
        if needed == Needed::Often && found & STAYS == 0 {
            self.staying.fetch_add(1, Ordering::Relaxed);
        }
        found & (PRESENT | LOADING) == 0
    }

    /// A page was read for one reader: it goes with the next look, unless it is needed again. So
    /// what is read once does not displace what is read often.
    pub(super) fn read_once(&self, page: u64) {
        self.states[page as usize].fetch_and(!USED, Ordering::Relaxed);
    }

    /// Begins to read a page that was wanted, if it still is absent.
    pub(super) fn begin_wanted(&self, page: u64) -> bool {
        self.is_absent(page) && self.begin(page)
    }

    /// Begins to read a page that is likely to be touched, if it is absent. It goes with the next
    /// look, unless it is needed: wrong guesses displace nothing that is needed.
    pub(super) fn begin_guessed(&self, page: u64) -> bool {
        self.is_absent(page) && self.begin_with(page, LOADING)
    }

    /// Begins to read a page: one thread does (S11).
    pub(super) fn begin(&self, page: u64) -> bool {
        self.begin_with(page, LOADING | USED)
    }

    /// The same, of a page that a thread waits for.
    pub(super) fn begin_awaited(&self, page: u64) -> bool {
        self.begin_with(page, LOADING | USED | AWAITED)
    }

    fn begin_with(&self, page: u64, bits: u8) -> bool {
        let state = &self.states[page as usize];
        let found = state.fetch_or(bits, Ordering::AcqRel);
        if found & (PRESENT | LOADING) == PRESENT && self.stay == Stay::Always {
            state.fetch_and(!(LOADING | AWAITED), Ordering::AcqRel);
            return false;
        }
        found & LOADING == 0
    }

    /// A page that was begun cannot be read. Whether a thread waits for it.
    pub(super) fn give_up(&self, page: u64) -> bool {
        self.states[page as usize].fetch_and(!LOADING, Ordering::AcqRel) & AWAITED != 0
    }

    /// Whether a page is not in memory, and no thread reads it.
    #[inline]
    pub(super) fn is_absent(&self, page: u64) -> bool {
        self.states[page as usize].load(Ordering::Relaxed) & (PRESENT | LOADING) == 0
    }

    /// Whether a page is in memory.
    pub(super) fn is_present(&self, page: u64) -> bool {
        self.states[page as usize].load(Ordering::Acquire) & PRESENT != 0
    }

    /// A page was installed.
    pub(super) fn installed(&self, page: u64) {
        let state = &self.states[page as usize];
        if state.fetch_or(PRESENT, Ordering::AcqRel) & PRESENT == 0 {
            self.present.fetch_add(1, Ordering::Relaxed);
        }
        state.fetch_and(!(LOADING | AWAITED), Ordering::AcqRel);
    }

    /// Looks at a page, and whether it may go if it is clean: it is in memory, is not being read or
    /// written, was not touched since the last look, and does not stay. A turn lapses with this
    /// look, or not.
    pub(super) fn may_go(&self, page: u64, is_turn: bool) -> bool {
        let state = &self.states[page as usize];
        let found = state.load(Ordering::Relaxed);
        if found & (PRESENT | LOADING | SAVING) != PRESENT {
            return false;
        }
        if found & USED != 0 {
            state.fetch_and(!USED, Ordering::Relaxed);
            return false;
        }
        let relaxed = Ordering::Relaxed;
        let stays = found & STAYS;
        if stays != 0
            && is_turn
            && state.compare_exchange(found, found - TURN, relaxed, relaxed).is_ok()
            && stays == TURN
        {
            self.staying.fetch_sub(1, relaxed);
        }
        stays == 0
    }

    /// Begins to take such a page from memory, if it still may go. The caller drops it, and says
    /// when that has [ended](PageStates::end_eviction).
    pub(super) fn begin_eviction(&self, page: u64) -> bool {
        let state = &self.states[page as usize];
        let (set, seen) = (Ordering::AcqRel, Ordering::Relaxed);
        let is_mine = state.compare_exchange(PRESENT, LOADING, set, seen).is_ok();
        if is_mine {
            self.present.fetch_sub(1, Ordering::Relaxed);
        }
        is_mine
    }

    /// A page was evicted, or was begun and is not read. Whether a thread touched it meanwhile, and
    /// waits: then it is to be read.
    pub(super) fn leave_absent(&self, page: u64) -> bool {
        let state = &self.states[page as usize];
        state.fetch_and(!(LOADING | AWAITED), Ordering::AcqRel) & AWAITED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_evicted_if_it_was_not_touched_and_is_not_being_saved() {
        let states = PageStates::new(4, Stay::UntilEvicted);
        let goes = |page| states.may_go(page, true);
        assert!(
            states.want(2, Needed::Seldom) && states.want(2, Needed::Seldom),
            "who wants it need not be the one who reads it"
        );
        assert!(
            states.want(1, Needed::Seldom) && states.begin_awaited(1),
            "who wants it may touch it first"
        );
        assert!(!states.begin_wanted(1), "then it is read for that");
        states.installed(1);
        assert!(!goes(1) && goes(1) && states.begin_eviction(1));
        assert!(!states.begin_eviction(1) && !states.begin_awaited(1), "it is being evicted");
        assert!(states.leave_absent(1) && states.is_absent(1), "a thread waits for it");
        assert!(states.begin_wanted(2), "it is to be read");
        assert!(!states.begin_wanted(2) && !states.want(2, Needed::Seldom), "by one thread (S11)");
        assert!(!goes(2) && !states.begin_eviction(2), "it is being read");
        states.installed(2);
        assert_eq!(states.present(), 1);
        assert!(!states.want(2, Needed::Seldom) && !states.begin_wanted(2));
        assert!(!states.begin_eviction(2) && !goes(2) && goes(2), "it was touched");
        states.saving(2);
        assert!(!goes(2) && !states.begin_eviction(2), "it is being saved");
        let moved = Entry { page: 1, slot: 3, crc: 4 };
        states.saved(&moved);
        assert_eq!(states.present(), 1, "a page that moves in the file stays absent");
        let entry = Entry { page: 2, slot: 77, crc: 5 };
        states.saved(&entry);
        assert_eq!(states.place(2), Some(entry));
        assert!(states.begin_eviction(2) && !states.leave_absent(2));
        assert_eq!(states.present(), 0);
        assert!(!goes(2) && !states.begin_eviction(2));
        assert_eq!(states.place(0), None);
        states.saving(3);
        states.saved(&Entry { page: 3, ..entry });
        assert_eq!(states.present(), 1, "a new page was in memory when it was copied");
    }

    #[test]
    fn a_page_that_is_read_once_goes_with_the_next_look() {
        let states = PageStates::new(4, Stay::UntilEvicted);
        for page in [1, 2] {
            assert!(states.begin(page));
            states.installed(page);
        }
        states.read_once(1);
        assert!(states.may_go(1, false) && !states.may_go(2, false));
        assert!(states.is_present(1), "it stays until then");
        // Nothing else of it is forgotten.
        assert!(!states.want(2, Needed::Often));
        states.read_once(2);
        assert!(!states.may_go(2, false) && states.staying() == 1);
    }

    #[test]
    fn a_guess_goes_with_the_next_look_unless_it_is_needed() {
        let states = PageStates::new(4, Stay::UntilEvicted);
        assert!(states.begin_guessed(1) && states.begin_guessed(2) && states.begin_guessed(3));
        assert!(!states.begin_guessed(1), "by one thread (S11)");
        assert!(!states.begin_awaited(2), "it is being read");
        assert!(!states.leave_absent(1) && states.is_absent(1), "no thread waits");
        states.installed(2);
        states.installed(3);
        assert!(!states.begin_guessed(2), "it is there");
        assert!(!states.may_go(2, false) && states.may_go(3, false), "one of them was touched");
        assert!(states.begin_guessed(1) && !states.begin_awaited(1));
        assert!(states.leave_absent(1), "a thread waits");
    }

    #[test]
    fn a_page_that_is_needed_often_stays_some_turns() {
        let states = PageStates::new(4, Stay::UntilEvicted);
        assert!(states.want(1, Needed::Often) && states.begin_wanted(1));
        assert_eq!(states.staying(), 1, "it will be in memory");
        states.installed(1);
        let need_again = || assert!(!states.want(1, Needed::Often), "it is there");
        for _ in 0..2 {
            need_again();
            assert!(!states.may_go(1, true), "it was touched");
            for turn in 0..3 {
                assert_eq!(states.staying(), 1, "turn {turn}");
                assert!(!states.may_go(1, false) && !states.begin_eviction(1));
                assert!(!states.may_go(1, true), "it goes with the look behind the last turn");
            }
            assert_eq!(states.staying(), 0);
            assert!(states.may_go(1, false));
        }
        need_again();
        assert_eq!(states.staying(), 1, "it has all turns again");
        assert!((0..4).all(|_| !states.may_go(1, true)) && states.may_go(1, false));
        // What seldom needed pages need of it is no reason to stay.
        assert!(!states.want(1, Needed::Seldom));
        assert!(!states.may_go(1, false) && states.may_go(1, false));
        assert!(states.begin_eviction(1) && !states.leave_absent(1));
        assert_eq!((states.staying(), states.present()), (0, 0));
    }

    #[test]
    fn where_pages_stay_each_is_read_once_and_failures_know_who_waits() {
        let states = PageStates::new(4, Stay::Always);
        assert!(states.is_absent(1) && states.begin(1) && !states.is_absent(1));
        assert!(!states.begin_awaited(1), "it is being read");
        states.installed(1);
        assert!(states.is_present(1) && !states.begin(1) && !states.begin_awaited(1));
        assert!(!states.is_absent(1) && states.is_present(1));
        assert!(states.begin(2) && !states.give_up(2), "no thread waits");
        assert!(states.is_absent(2) && states.begin(2) && !states.begin_awaited(2));
        assert!(states.give_up(2), "a thread waits");
        assert!(states.begin_awaited(3) && states.give_up(3));
        states.saved(&Entry { page: 4, slot: 9, crc: 1 });
        states.saved(&Entry { page: 0, slot: 8, crc: 1 });
        assert_eq!(states.places().map(|entry| entry.page).collect::<Vec<_>>(), [0]);
    }
}
