//! Which pages were stored to since the last snapshot, and what a snapshot saves of pages that are
//! stored to before they are saved.
//!
//! A page is in one of five states:
//!
//! | state | means | next |
//! |---|---|---|
//! | clean | as in the last snapshot | *changed*, by a store; *evicting* |
//! | changed | stored to since | *to save*, by a snapshot |
//! | to save | what it holds belongs to the snapshot | *copying*, by the writer or a store |
//! | copying | one thread copies it | *clean*, by the writer; *changed*, by a store |
//! | evicting | its memory is given back | *clean* |
//!
//! So a snapshot stops the workers only while it looks at the states. The writer copies page after
//! page; a store that comes before it copies its page aside. A store to a page that is being copied
//! or evicted waits for that.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::failure::lock;
use crate::memory::{Mapping, PAGE_BYTES};
use crate::sync::Patience;
use crate::sync::background::Mutex;

const CLEAN: u8 = 0;
const CHANGED: u8 = 1;
const TO_SAVE: u8 = 2;
const COPYING: u8 = 3;
const EVICTING: u8 = 4;

type Page = [u8; PAGE_BYTES as usize];

/// Pages that a snapshot saves.
#[derive(Debug)]
pub(crate) struct PagesToSave {
    /// Their numbers, in increasing order.
    pub(crate) pages: Vec<u64>,
    dirty: Arc<DirtyPages>,
}

impl PagesToSave {
    /// Copies what the snapshot has of one of them.
    pub(crate) fn copy(&self, page: u64, into: &mut [u8]) {
        self.dirty.save(page, into);
    }
}

/// The states of all pages of an image, up to its limit.
#[derive(Debug)]
pub(crate) struct DirtyPages {
    image: Arc<Mapping>,
    states: Box<[AtomicU8]>,
    /// How many were changed.
    count: AtomicU64,
    /// What the snapshot that is written has of pages that were stored to since.
    aside: Mutex<HashMap<u64, Box<Page>>>,
}

impl DirtyPages {
    pub(crate) fn new(image: Arc<Mapping>) -> Self {
        // Zeroed at once: of most states no memory is ever touched.
        let states = Box::<[AtomicU8]>::new_zeroed_slice((image.len() / PAGE_BYTES) as usize);
        // SAFETY: initialised: a zero byte is a valid atomic.
        let states = unsafe { states.assume_init() };
        Self { image, states, count: AtomicU64::new(0), aside: Mutex::default() }
    }

    /// How many pages were stored to since the last snapshot.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Begins to evict a page, if it was not stored to since the last snapshot, and that has it:
    /// stores to it wait until that [ends](DirtyPages::end_eviction). Whether it may be evicted.
    pub(crate) fn begin_eviction(&self, page: u64) -> bool {
        let state = &self.states[page as usize];
        // Acquires what `save` released: the page was copied before its memory goes.
        let (set, seen) = (Ordering::Acquire, Ordering::Relaxed);
        state.compare_exchange(CLEAN, EVICTING, set, seen).is_ok()
    }

    /// A page has no memory any more, or stays: stores may come.
    pub(crate) fn end_eviction(&self, page: u64) {
        self.states[page as usize].store(CLEAN, Ordering::Release);
    }

    /// The caller stores to a range next. Looks before it changes a state, so that a page that many
    /// workers store to is not fought over.
    #[inline]
    pub(crate) fn before_store(&self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        for page in offset / PAGE_BYTES..=(offset + len - 1) / PAGE_BYTES {
            // Acquires what `save` released: its copy was made before the store that follows.
            if self.states[page as usize].load(Ordering::Acquire) != CHANGED {
                self.first_store(page);
            }
        }
    }

    #[cold]
    fn first_store(&self, page: u64) {
        let state = &self.states[page as usize];
        let mut patience = Patience::new(COPY_POLLS);
        loop {
            let before = state.load(Ordering::Acquire);
            let during = match before {
                CHANGED => return,
                CLEAN => CHANGED,
                TO_SAVE => COPYING,
                _ => {
                    patience.wait();
                    continue;
                }
            };
            let (set, seen) = (Ordering::Acquire, Ordering::Relaxed);
            if state.compare_exchange(before, during, set, seen).is_err() {
                continue;
            }
            self.count.fetch_add(1, Ordering::Relaxed);
            if during == COPYING {
                let mut copy = Box::new([0; PAGE_BYTES as usize]);
                self.copy(page, &mut copy[..]);
                let before = lock(&self.aside).insert(page, copy);
                assert!(before.is_none(), "page {page} is saved once");
                state.store(CHANGED, Ordering::Release);
            }
            return;
        }
    }

    /// Lets a snapshot have the changed pages of some ranges, which come in increasing order: their
    /// numbers. No thread stores meanwhile, and the snapshot before is written.
    pub(crate) fn take(self: &Arc<Self>, ranges: impl Iterator<Item = Range<u64>>) -> PagesToSave {
        let mut pages = Vec::new();
        for range in ranges {
            let states = &self.states[range.start as usize..range.end as usize];
            for (state, page) in states.iter().zip(range) {
                match state.load(Ordering::Relaxed) {
                    CLEAN | EVICTING => {}
                    CHANGED => {
                        state.store(TO_SAVE, Ordering::Relaxed);
                        pages.push(page);
                    }
                    _ => unreachable!("page {page} is saved by the snapshot before"),
                }
            }
        }
        self.count.fetch_sub(pages.len() as u64, Ordering::Relaxed);
        PagesToSave { pages, dirty: Arc::clone(self) }
    }

    /// Copies a page of the image. The caller has set its state so that nothing stores to it.
    fn copy(&self, page: u64, into: &mut [u8]) {
        // SAFETY: nothing stores to a page that is being copied.
        into.copy_from_slice(unsafe { self.image.slice(page * PAGE_BYTES, PAGE_BYTES) });
    }

    /// Copies what the snapshot has of one of its pages.
    fn save(&self, page: u64, into: &mut [u8]) {
        let state = &self.states[page as usize];
        let mut patience = Patience::new(COPY_POLLS);
        loop {
            let (set, seen) = (Ordering::Acquire, Ordering::Acquire);
            match state.compare_exchange(TO_SAVE, COPYING, set, seen) {
                Ok(_) => {
                    self.copy(page, into);
                    return state.store(CLEAN, Ordering::Release);
                }
                Err(COPYING) => drop(patience.wait()),
                Err(_) => {
                    let copy = lock(&self.aside).remove(&page);
                    let copy = copy.expect("a page that was stored to was copied aside");
                    return into.copy_from_slice(&copy[..]);
                }
            }
        }
    }
}

/// Looks at a page that is being copied before the thread lets others run.
const COPY_POLLS: u32 = 1 << 12;

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u64 = 16;

    fn dirty_pages() -> Arc<DirtyPages> {
        let image = Mapping::reserve(PAGES * PAGE_BYTES).unwrap();
        Arc::new(DirtyPages::new(Arc::new(image)))
    }

    fn take(dirty: &Arc<DirtyPages>) -> Vec<u64> {
        dirty.take([0..5, 5..PAGES].into_iter()).pages
    }

    fn store(dirty: &DirtyPages, page: u64, value: u64) {
        dirty.before_store(page * PAGE_BYTES, 8);
        // SAFETY: each page has one thread that stores to it.
        unsafe { dirty.image.store_u64(page * PAGE_BYTES, value) };
    }

    fn saved(dirty: &DirtyPages, page: u64) -> u64 {
        let mut copy = [0; PAGE_BYTES as usize];
        dirty.save(page, &mut copy);
        word(&copy, 0)
    }

    fn word(page: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(*page[at..].first_chunk().unwrap())
    }

    #[test]
    fn a_snapshot_gets_what_was_stored_to_once() {
        let dirty = dirty_pages();
        dirty.before_store(PAGE_BYTES - 1, 2);
        store(&dirty, 5, 77);
        dirty.before_store(9 * PAGE_BYTES, 0);
        assert_eq!(dirty.count(), 3);
        assert_eq!(take(&dirty), [0, 1, 5]);
        assert_eq!(dirty.count(), 0);
        assert!(!dirty.begin_eviction(5), "it is not saved yet");
        assert_eq!([5, 0, 1].map(|page| saved(&dirty, page)), [77, 0, 0]);
        assert!(dirty.begin_eviction(5) && !dirty.begin_eviction(5));
        assert_eq!(take(&dirty), [], "a page that is evicted was not stored to");
        dirty.end_eviction(5);
        // The end of a store that ends with its page belongs to no other page.
        dirty.before_store(14 * PAGE_BYTES, 2 * PAGE_BYTES);
        dirty.before_store(7 * PAGE_BYTES, PAGE_BYTES);
        assert_eq!(take(&dirty), [7, 14, 15]);
    }

    /// What is stored behind a snapshot is not in it, whether its page was saved before or not.
    #[test]
    fn what_comes_behind_a_snapshot_is_in_the_next_one() {
        let dirty = dirty_pages();
        [2, 3].iter().for_each(|page| store(&dirty, *page, 10 + page));
        assert_eq!(take(&dirty), [2, 3]);
        assert_eq!(saved(&dirty, 2), 12);
        [2, 3, 4].iter().for_each(|page| store(&dirty, *page, 20 + page));
        store(&dirty, 3, 33);
        assert_eq!(saved(&dirty, 3), 13);
        assert_eq!(dirty.count(), 3);
        assert_eq!(take(&dirty), [2, 3, 4]);
        assert_eq!([2, 3, 4].map(|page| saved(&dirty, page)), [22, 33, 24]);
    }

    /// Two threads store to each page while a third one saves it.
    #[test]
    fn snapshots_beside_stores_have_one_moment() {
        const ROUNDS: u64 = 300;
        let dirty = dirty_pages();
        let half = |page: u64, second: bool| page * PAGE_BYTES + u64::from(second) * 2048;
        let store_all = |second: bool, value: u64| {
            for page in 0..PAGES {
                dirty.before_store(half(page, second), 8);
                // SAFETY: each half has one thread that stores to it.
                unsafe { dirty.image.store_u64(half(page, second), value) };
            }
        };
        for round in 1..=ROUNDS {
            [false, true].iter().for_each(|second| store_all(*second, round));
            let pages = take(&dirty);
            assert_eq!(pages.len() as u64, PAGES);
            std::thread::scope(|scope| {
                let store_all = &store_all;
                for second in [false, true] {
                    scope.spawn(move || store_all(second, u64::MAX));
                }
                for page in pages {
                    let mut copy = [0; PAGE_BYTES as usize];
                    dirty.save(page, &mut copy);
                    assert_eq!([0, 2048].map(|at| word(&copy, at)), [round; 2], "page {page}");
                }
            });
        }
    }

    /// S8: a thread stores to each page while another one evicts it.
    #[test]
    fn a_page_that_is_evicted_is_not_stored_to() {
        const ROUNDS: u64 = 20;
        let dirty = dirty_pages();
        let mut evicted = 0;
        for round in 1..=ROUNDS {
            std::thread::scope(|scope| {
                scope.spawn(|| (0..PAGES).for_each(|page| store(&dirty, page, round)));
                for page in (0..PAGES).filter(|page| dirty.begin_eviction(*page)) {
                    let value = || dirty.image.load_u64(page * PAGE_BYTES);
                    let before = value();
                    for _ in 0..10 {
                        std::thread::yield_now();
                        assert_eq!(value(), before, "page {page} in round {round}");
                    }
                    dirty.end_eviction(page);
                    evicted += 1;
                }
            });
            assert_eq!(take(&dirty).len() as u64, PAGES);
            (0..PAGES).for_each(|page| assert_eq!(saved(&dirty, page), round));
        }
        assert!(evicted > 0);
    }
}
