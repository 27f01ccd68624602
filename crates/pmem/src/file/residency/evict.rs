//! Pages go, when others come and there are more than the limit allows.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::server::Shared;
use crate::failure::lock;
use crate::file::dirty::DirtyPages;
use crate::memory::PAGE_BYTES;
use crate::system::advice;

/// So many neighbouring pages are looked at together.
const PART_PAGES: u64 = 128;

/// A snapshot is due when as much as this part of the pages in memory was stored to since the last
/// one. So much is needed for pages that are new, and so much for copies.
pub(super) const CHANGED_PART: u64 = 4;

/// Of what is left for pages this part stays free, so that not each small epoch lets pages go.
const FREE_PART: u64 = 8;

/// So many parts a thread looks at before it goes on with what it is for.
const LOOKS_MAX: u64 = 128;

/// After so many looks at all pages a turn of those that stay has lapsed.
const TURN_LOOKS: u64 = 16;

/// Of the pages that may be in memory this part does not stay; where more would, turns are shorter.
const PASSING_PART: u64 = 16;

/// Where pages are too many, so many more go, so that not each page that comes looks for one.
const MORE_PAGES: u64 = 64;

/// So many runs of neighbouring pages go at once.
const RUNS: usize = 64;

/// Which pages may go, and when.
#[derive(Debug)]
pub(super) struct Evictor {
    dirty: Arc<DirtyPages>,
    /// Pages of the image that may be used.
    pub(super) image_pages: AtomicU64,
    /// Pages of memory for those of the image, for new ones and for copies, and for what readers
    /// keep.
    pub(super) left_pages: AtomicU64,
    /// Bytes that readers keep.
    pub(super) kept_bytes: Arc<AtomicU64>,
    /// So many pages of the image may be in memory, whatever else needs.
    least_pages: u64,
    /// Pages to which the next epoch may store, or the running one.
    pub(super) promised: AtomicU64,
    /// Pages that a snapshot saves, and of which its writer has not told the slots.
    pub(super) saving: AtomicU64,
    hand: Mutex<Hand>,
}

#[derive(Debug, Default)]
struct Hand {
    /// The part that is looked at next.
    part: u64,
    /// How often all were looked at.
    rounds: u64,
    /// Pages whose eviction has begun, and not ended.
    going: Vec<Range<u64>>,
}

impl Evictor {
    pub(super) fn new(dirty: Arc<DirtyPages>, image_pages: u64, least_pages: u64) -> Self {
        Self {
            dirty,
            image_pages: AtomicU64::new(image_pages),
            left_pages: AtomicU64::new(u64::MAX),
            kept_bytes: Arc::default(),
            least_pages,
            promised: AtomicU64::new(0),
            saving: AtomicU64::new(0),
            hand: Mutex::default(),
        }
    }

    fn left(&self) -> u64 {
        let kept = self.kept_bytes.load(Ordering::Relaxed) / PAGE_BYTES;
        self.left_pages.load(Ordering::Relaxed).saturating_sub(kept)
    }

    /// Pages of the image that may be in memory, whatever is stored to.
    pub(super) fn always(&self) -> u64 {
        (self.left() / (CHANGED_PART + 2) * CHANGED_PART).max(self.least_pages)
    }

    /// Pages of the image that may be in memory now. Of those that are stored to each may be new,
    /// and is not counted among those in memory then, or is copied.
    pub(super) fn allowed(&self) -> u64 {
        let get = |pages: &AtomicU64| pages.load(Ordering::Relaxed);
        let stored_to = self.dirty.count() + get(&self.promised) + get(&self.saving);
        let left = self.left();
        left.saturating_sub(stored_to.max(left / FREE_PART)).max(self.always())
    }
}

impl Shared {
    /// Drops clean pages if more are in memory than may be: those that were not touched since the
    /// last look at them, which forgets that they were. One thread does at a time; others go on
    /// meanwhile, unless there are many too many: it may have lost its processor. How many; `None`
    /// if none had to.
    pub(super) fn make_room(&self) -> Option<u64> {
        let evictor = self.evictor.as_ref()?;
        let limit = evictor.allowed();
        let over = || self.states.present().saturating_sub(limit);
        let hand = match over() {
            0 => None,
            1..MORE_PAGES => evictor.hand.try_lock().ok(),
            _ => Some(lock(&evictor.hand)),
        };
        let mut hand = hand?;
        let wanted = match over() {
            // Another one has done it.
            0 => return None,
            over => over + MORE_PAGES.min(limit / 16),
        };
        let image_pages = evictor.image_pages.load(Ordering::Relaxed);
        let mut evicted = 0;
        for _ in 0..LOOKS_MAX {
            if evicted >= wanted {
                break;
            }
            let from = hand.part * PART_PAGES;
            let to = image_pages.min(from + PART_PAGES);
            hand.part = if to < image_pages { hand.part + 1 } else { 0 };
            hand.rounds += u64::from(hand.part == 0);
            let is_turn = hand.rounds.is_multiple_of(TURN_LOOKS)
                || self.states.staying() > limit - limit / PASSING_PART;
            evicted += self.begin_eviction(from..to, is_turn, &evictor.dirty, &mut hand.going);
            if hand.going.len() >= RUNS {
                self.end_eviction(&mut hand.going, &evictor.dirty);
            }
        }
        self.end_eviction(&mut hand.going, &evictor.dirty);
        self.counts.evicted.fetch_add(evicted, Ordering::Relaxed);
        Some(evicted)
    }

    /// Drops clean pages until no more are in memory than may be. Pages that were stored to may be
    /// more than that, and others may be touched all the time: then it ends when two looks at all
    /// pages have let none go.
    pub(super) fn make_all_room(&self) {
        let image_pages = |evictor: &Evictor| evictor.image_pages.load(Ordering::Relaxed);
        let looks = self.evictor.as_ref().map_or(0, image_pages) / (PART_PAGES * LOOKS_MAX) + 1;
        let mut left = 2 * looks;
        while left > 0
            && let Some(evicted) = self.make_room()
        {
            left = if evicted > 0 { 2 * looks } else { left - 1 };
        }
    }

    /// Begins to evict the pages of a range that may go; how many.
    fn begin_eviction(
        &self,
        pages: Range<u64>,
        is_turn: bool,
        dirty: &DirtyPages,
        going: &mut Vec<Range<u64>>,
    ) -> u64 {
        let mut begun = 0;
        for page in pages {
            if !self.states.may_go(page, is_turn) || !dirty.begin_eviction(page) {
                continue;
            }
            if !self.states.begin_eviction(page) {
                dirty.end_eviction(page);
                continue;
            }
            begun += 1;
            match going.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => going.push(page..page + 1),
            }
        }
        begun
    }

    /// Gives back the memory of pages that are being evicted, and ends that.
    fn end_eviction(&self, going: &mut Vec<Range<u64>>, dirty: &DirtyPages) {
        let range = |pages: &Range<u64>| self.address(pages.start)..self.address(pages.end);
        let ranges: Vec<_> = going.iter().map(range).collect();
        // SAFETY: pages of the image that are clean, and that no thread stores to before this
        // ends; what they hold is read again when they are touched.
        unsafe { advice::drop_ranges(&ranges) };
        for page in going.drain(..).flatten() {
            if self.states.end_eviction(page) && self.states.begin_awaited(page) {
                lock(&self.queue).pages.push_front(page);
                self.queued.notify_one();
            }
            dirty.end_eviction(page);
        }
    }
}
