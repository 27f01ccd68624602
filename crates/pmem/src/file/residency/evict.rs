//! Eviction of clean pages of the image while more are in memory than the limit allows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::server::Shared;
use crate::failure::lock;
use crate::memory::{DirtyPages, PAGE_BYTES};
use crate::sync::background::Mutex;
use crate::system::advice;

/// Neighbouring pages that one look of the clock hand visits: a part.
const PART_PAGES: u64 = 128;

/// Divisor of the pages in memory: a snapshot is due when this fraction was stored to since the
/// last one. New pages take up to one such fraction of memory, and copies of pages another.
pub(super) const CHANGED_PART: u64 = 4;

/// Divisor of the memory for pages: this fraction stays free, so that small epochs evict nothing.
const FREE_PART: u64 = 8;

/// Most parts that a thread visits in one call, before it returns to its own work.
const LOOKS_MAX: u64 = 128;

/// Rounds over all pages after which staying pages lose one turn.
const TURN_LOOKS: u64 = 16;

/// Divisor of the allowed pages: this fraction must not be staying pages. Where it is exceeded, a
/// turn lapses with each part.
const PASSING_PART: u64 = 16;

/// Pages evicted beyond the excess, so that a thread does not evict for each page that it reads.
const MORE_PAGES: u64 = 64;

/// Runs of neighbouring pages whose memory is given back by one call.
const RUNS: usize = 64;

/// The limits of pages in memory, and the clock hand that finds pages to evict.
#[derive(Debug)]
pub(super) struct Evictor {
    dirty: Arc<DirtyPages>,
    /// Pages of the image that may be used.
    pub(super) image_pages: AtomicU64,
    /// Pages of memory for the image, for new pages, for copies, and for rows that readers cache.
    pub(super) left_pages: AtomicU64,
    /// Bytes of rows that readers cache.
    pub(super) kept_bytes: Arc<AtomicU64>,
    /// Pages of the image that may be in memory in any case.
    least_pages: u64,
    /// Pages to which the running epoch or the next one may store.
    pub(super) promised: AtomicU64,
    /// Pages that a snapshot is saving, until its writer reports their slots.
    pub(super) saving: AtomicU64,
    hand: Mutex<Hand>,
}

#[derive(Debug, Default)]
struct Hand {
    /// The next part to visit.
    part: u64,
    /// Rounds over all pages.
    rounds: u64,
    /// Runs of pages whose eviction has begun and has not ended.
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

    /// Returns how many pages of the image may be in memory, however many were stored to.
    pub(super) fn always(&self) -> u64 {
        (self.left() / (CHANGED_PART + 2) * CHANGED_PART).max(self.least_pages)
    }

    /// Returns how many pages of the image may be in memory now. Each page that is stored to takes
    /// memory once more: as a new page, which does not count as in memory, or as a copy.
    pub(super) fn allowed(&self) -> u64 {
        let get = |pages: &AtomicU64| pages.load(Ordering::Relaxed);
        let stored_to = self.dirty.count() + get(&self.promised) + get(&self.saving);
        let left = self.left();
        left.saturating_sub(stored_to.max(left / FREE_PART)).max(self.always())
    }
}

impl Shared {
    /// Evicts clean pages if more are in memory than [`Evictor::allowed`], and returns how many;
    /// `None` if that was not necessary. A page is evicted if it was not touched since the last
    /// visit, which clears its mark. One thread evicts at a time. Others return at once while the
    /// excess is below [`MORE_PAGES`]; above, they wait, because the evicting thread may have lost
    /// its processor.
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
            // Another thread has made room meanwhile.
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

    /// Returns whether too many pages are in memory although [`Shared::make_room`] was called: they
    /// are dirty, or being saved.
    pub(super) fn is_crowded(&self) -> bool {
        let over = |evictor: &Evictor| self.states.present().saturating_sub(evictor.allowed());
        self.evictor.as_ref().is_some_and(|evictor| over(evictor) >= MORE_PAGES)
    }

    /// Leaves a page absent that was evicted, or begun and not read, unless a thread waits for it.
    pub(super) fn leave_absent(&self, page: u64) {
        if self.states.leave_absent(page) && self.states.begin_awaited(page) {
            lock(&self.queue).push_awaited(page);
            self.queued.notify_one();
        }
    }

    /// Evicts clean pages until no more are in memory than [`Evictor::allowed`]. Dirty pages alone
    /// may exceed that, and clean ones may be touched all the time, so it also returns after two
    /// rounds that evicted nothing.
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

    /// Begins to evict the pages of `pages` that may be evicted, appends them to `going`, and
    /// returns their number. `is_turn` takes a turn from staying pages.
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

    /// Gives back the memory of the pages in `going` and ends their eviction.
    fn end_eviction(&self, going: &mut Vec<Range<u64>>, dirty: &DirtyPages) {
        let range = |pages: &Range<u64>| self.address(pages.start)..self.address(pages.end);
        let ranges: Vec<_> = going.iter().map(range).collect();
        // SAFETY: pages of the image that are clean, and that no thread stores to before this
        // ends; what they hold is read again when they are touched.
        unsafe { advice::drop_ranges(&ranges) };
        for page in going.drain(..).flatten() {
            self.leave_absent(page);
            dirty.end_eviction(page);
        }
    }
}
