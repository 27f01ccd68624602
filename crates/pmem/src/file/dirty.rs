//! Which pages were stored to since the last capture.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::{Mapping, PAGE_BYTES};

/// One mark for each page of the image, up to its limit.
#[derive(Debug)]
pub(super) struct DirtyPages {
    marks: Box<[AtomicU8]>,
}

impl DirtyPages {
    pub(super) fn new(pages_count: u64) -> Self {
        Self { marks: (0..pages_count).map(|_| AtomicU8::new(0)).collect() }
    }

    /// Marks the pages of a range. Relaxed, because captures and stores are in different phases,
    /// which a barrier separates; test before set, so that a page that many workers store to is not
    /// fought over.
    #[inline(always)]
    pub(super) fn mark(&self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let first = offset / PAGE_BYTES;
        let last = (offset + len - 1) / PAGE_BYTES;
        for mark in &self.marks[first as usize..=last as usize] {
            if mark.load(Ordering::Relaxed) == 0 {
                mark.store(1, Ordering::Relaxed);
            }
        }
    }

    /// Copies the marked pages of a range aside and clears their marks.
    ///
    /// # Safety
    /// Nobody stores to these pages meanwhile (phase rule of a capture).
    pub(super) unsafe fn take(&self, pages: Range<u64>, image: &Mapping, into: &mut Staged) {
        let marks = &self.marks[pages.start as usize..pages.end as usize];
        let count = marks.iter().filter(|mark| mark.load(Ordering::Relaxed) != 0).count();
        into.pages.reserve(count);
        into.bytes.reserve(count * PAGE_BYTES as usize);
        for (mark, page) in marks.iter().zip(pages) {
            if mark.load(Ordering::Relaxed) != 0 {
                mark.store(0, Ordering::Relaxed);
                // SAFETY: not stored to in this phase.
                let bytes = unsafe { image.slice(page * PAGE_BYTES, PAGE_BYTES) };
                into.pages.push(page);
                into.bytes.extend_from_slice(bytes);
            }
        }
    }
}

/// Copied pages, in increasing order.
#[derive(Debug, Default)]
pub(super) struct Staged {
    pub(super) pages: Vec<u64>,
    pub(super) bytes: Vec<u8>,
}

impl Staged {
    /// Runs of neighbouring pages: number of the first, and the bytes of all.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let page_bytes = PAGE_BYTES as usize;
        let mut at = 0;
        self.pages.chunk_by(|a, b| a + 1 == *b).map(move |run| {
            let bytes = &self.bytes[at..at + run.len() * page_bytes];
            at += bytes.len();
            (run[0], bytes)
        })
    }

    /// Forgets the content and keeps the memory, unless that is more than `keep_bytes`.
    pub(super) fn recycle(mut self, keep_bytes: usize) -> Option<Self> {
        self.pages.clear();
        self.bytes.clear();
        (1..=keep_bytes).contains(&self.bytes.capacity()).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_was_marked_once() {
        let image = Mapping::reserve(16 * PAGE_BYTES).unwrap();
        let dirty = DirtyPages::new(16);
        dirty.mark(PAGE_BYTES - 1, 2);
        dirty.mark(5 * PAGE_BYTES, 8);
        dirty.mark(9 * PAGE_BYTES, 0);
        // SAFETY: this test owns the mapping.
        unsafe { image.store_u64(5 * PAGE_BYTES, 77) };
        let mut staged = Staged::default();
        // SAFETY: nobody stores.
        unsafe { dirty.take(0..16, &image, &mut staged) };
        assert_eq!(staged.pages, [0, 1, 5]);
        let runs: Vec<_> = staged.runs().map(|(page, bytes)| (page, bytes.len())).collect();
        assert_eq!(runs, [(0, 8192), (5, 4096)]);
        assert_eq!(staged.bytes[2 * 4096], 77);
        let mut again = Staged::default();
        // SAFETY: nobody stores.
        unsafe { dirty.take(0..16, &image, &mut again) };
        assert!(again.pages.is_empty());
    }
}
