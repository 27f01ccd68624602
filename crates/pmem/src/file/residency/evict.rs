//! Pages go, when there are more than the limit allows.

use std::sync::atomic::Ordering;

use super::Residency;
use crate::failure::lock;
use crate::memory::PAGE_BYTES;
use crate::system::advice;

/// So many neighbouring pages are looked at by one of those who evict, the next ones by the next.
const PART_PAGES: u64 = 1024;

impl Residency {
    /// Drops clean pages of part `part` of `parts` until no more are in memory than may be, after
    /// at most two looks at each: the first one forgets that it was touched. `is_clean` says
    /// whether a page was not stored to since it was saved or read. All workers call it for their
    /// part.
    ///
    /// # Safety
    /// No thread stores to the image meanwhile.
    // SAFETY: the contract is above.
    pub(in crate::file) unsafe fn evict_part(
        &self,
        part: usize,
        parts: usize,
        is_clean: impl Fn(u64) -> bool,
    ) {
        let image_pages = self.image_pages.load(Ordering::Relaxed);
        let limit = self.limit_pages.load(Ordering::Relaxed);
        let over = self.shared.states.present().saturating_sub(limit).div_ceil(parts as u64);
        let chunks = image_pages.div_ceil(PART_PAGES);
        let mine = (chunks.saturating_sub(part as u64)).div_ceil(parts as u64);
        if over == 0 || mine == 0 {
            return;
        }
        let first = self.hand(part);
        let (mut evicted, mut looked) = (0, 0);
        while evicted < over && looked < 2 * mine {
            let chunk = (first + looked) % mine * parts as u64 + part as u64;
            let from = chunk * PART_PAGES;
            // SAFETY: promised.
            evicted += unsafe { self.evict(from..image_pages.min(from + PART_PAGES), &is_clean) };
            looked += 1;
        }
        lock(&self.hands)[part] = (first + looked) % mine;
        self.shared.counts.evicted.fetch_add(evicted, Ordering::Relaxed);
    }

    fn hand(&self, part: usize) -> u64 {
        let mut hands = lock(&self.hands);
        if hands.len() <= part {
            hands.resize(part + 1, 0);
        }
        hands[part]
    }

    /// Drops the pages of a range that may go; how many.
    ///
    /// # Safety
    /// No thread stores to the image meanwhile.
    // SAFETY: the contract is above.
    unsafe fn evict(&self, pages: std::ops::Range<u64>, is_clean: &impl Fn(u64) -> bool) -> u64 {
        let mut evicted = 0;
        let mut run = pages.start..pages.start;
        for page in pages {
            if !is_clean(page) || !self.shared.states.evict(page) {
                continue;
            }
            evicted += 1;
            if run.end != page {
                // SAFETY: promised; these pages are clean, and absent from now on.
                unsafe { self.drop_run(&run) };
                run.start = page;
            }
            run.end = page + 1;
        }
        // SAFETY: as above.
        unsafe { self.drop_run(&run) };
        evicted
    }

    /// # Safety
    /// The pages are clean, and no thread stores to them.
    // SAFETY: the contract is above.
    unsafe fn drop_run(&self, pages: &std::ops::Range<u64>) {
        let len = ((pages.end - pages.start) * PAGE_BYTES) as usize;
        if len > 0 {
            // SAFETY: pages of the image; what they hold is read again when they are touched.
            unsafe { advice::drop_pages(self.shared.address(pages.start).cast(), len) };
        }
    }
}
