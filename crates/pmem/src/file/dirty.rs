//! Which pages were stored to since the last snapshot.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::failure::DeviceError;
use crate::memory::{Mapping, PAGE_BYTES, Pages};

/// Copies of at least this many bytes are made on large pages.
const LARGE_BYTES_MIN: u64 = 2 << 20;
/// How many times its bytes a large snapshot reserves: memory that is not touched costs nothing,
/// and the next one may be larger.
const ROOM: u64 = 4;
/// Room that was made for so many times as many bytes as a snapshot needs is given back by it, if
/// it is that large: a burst does not keep its memory.
const GIVEN_BACK: u64 = 8;
const GIVEN_BACK_BYTES_MIN: u64 = 32 << 20;

/// One mark for each page of the image, up to its limit.
#[derive(Debug)]
pub(super) struct DirtyPages {
    marks: Box<[AtomicU8]>,
    /// How many are set, at most: two workers may count one of them.
    count: AtomicU64,
}

impl DirtyPages {
    pub(super) fn new(pages_count: u64) -> Self {
        // Zeroed at once: of most marks no memory is ever touched.
        let marks = Box::<[AtomicU8]>::new_zeroed_slice(pages_count as usize);
        // SAFETY: initialised: a zero byte is a valid atomic.
        Self { marks: unsafe { marks.assume_init() }, count: AtomicU64::new(0) }
    }

    /// How many pages were stored to since the last snapshot, at most.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether a page was not stored to since the last snapshot.
    #[inline]
    pub(super) fn is_clean(&self, page: u64) -> bool {
        self.marks[page as usize].load(Ordering::Relaxed) == 0
    }

    /// A snapshot has taken all marks over.
    pub(super) fn reset_count(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    /// Marks the pages of a range. Relaxed, because snapshots and stores are in different phases,
    /// which a barrier separates; test before set, so that a page that many workers store to is not
    /// fought over.
    #[inline]
    pub(super) fn mark(&self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let first = offset / PAGE_BYTES;
        let last = (offset + len - 1) / PAGE_BYTES;
        for mark in &self.marks[first as usize..=last as usize] {
            if mark.load(Ordering::Relaxed) == 0 {
                mark.store(1, Ordering::Relaxed);
                self.count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Copies the marked pages of some ranges, which come in increasing order, aside and clears
    /// their marks.
    ///
    /// # Safety
    /// No thread stores to these pages meanwhile (phase rule of a snapshot).
    ///
    /// # Errors
    /// [`DeviceError::Io`] when there is no address space for the copy; nothing has changed then.
    // SAFETY: the contract is above: the pages are read while no thread stores to them.
    pub(super) unsafe fn take(
        &self,
        ranges: impl Iterator<Item = Range<u64>> + Clone,
        image: &Mapping,
        into: &mut CopiedPages,
    ) -> Result<(), DeviceError> {
        let marks = |pages: Range<u64>| {
            let marks = &self.marks[pages.start as usize..pages.end as usize];
            marks.iter().zip(pages).filter(|(mark, _)| mark.load(Ordering::Relaxed) != 0)
        };
        into.make_room(ranges.clone().map(|pages| marks(pages).count()).sum())?;
        for (mark, page) in ranges.flat_map(marks) {
            mark.store(0, Ordering::Relaxed);
            // SAFETY: not stored to in this phase.
            into.push(page, unsafe { image.slice(page * PAGE_BYTES, PAGE_BYTES) });
        }
        Ok(())
    }
}

/// Copied pages, in increasing order.
#[derive(Debug, Default)]
pub(super) struct CopiedPages {
    pub(super) pages: Vec<u64>,
    /// Their bytes, aligned to pages, so that they can be written with direct I/O.
    memory: Option<Mapping>,
}

impl CopiedPages {
    /// Makes room for so many pages; what it held is void.
    fn make_room(&mut self, count: usize) -> Result<(), DeviceError> {
        self.pages.clear();
        self.pages.reserve(count);
        let bytes = count as u64 * PAGE_BYTES;
        let room = self.memory.as_ref().map_or(0, Mapping::len);
        let was_touched = room / ROOM;
        if room < bytes || was_touched > GIVEN_BACK_BYTES_MIN.max(bytes * GIVEN_BACK) {
            self.memory = None;
            self.memory = Some(if bytes < LARGE_BYTES_MIN {
                Mapping::anonymous(bytes, Pages::Small)?
            } else {
                Mapping::reserve_up_to(bytes * ROOM, bytes)?
            });
        }
        let room = self.memory.as_ref().map_or(0, Mapping::len);
        assert!(room >= bytes, "there is room for {count} pages");
        Ok(())
    }

    fn push(&mut self, page: u64, bytes: &[u8]) {
        assert!(bytes.len() as u64 == PAGE_BYTES, "pages are copied whole");
        debug_assert!(self.pages.last().is_none_or(|last| *last < page), "pages come in order");
        let memory = self.memory.as_ref().expect("there is room for the pages that were counted");
        // SAFETY: this owns its memory, and a mutable borrow of it.
        unsafe { memory.store_bytes(self.pages.len() as u64 * PAGE_BYTES, bytes) };
        self.pages.push(page);
    }

    /// The bytes of all pages.
    pub(super) fn bytes(&self) -> &[u8] {
        let len = self.pages.len() as u64 * PAGE_BYTES;
        // SAFETY: stores need a mutable borrow of what is borrowed here.
        self.memory.as_ref().map_or(&[], |memory| unsafe { memory.slice(0, len) })
    }

    /// Forgets the content. The memory stays for the next snapshot: taking it anew costs the
    /// workers more than the copying.
    pub(super) fn recycle(mut self) -> Self {
        self.pages.clear();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_of_a_large_snapshot_is_given_back_by_a_small_one() {
        let mut copied = CopiedPages::default();
        let mut room_for = |bytes: u64| {
            copied.make_room((bytes / PAGE_BYTES) as usize).unwrap();
            copied.memory.as_ref().map_or(0, Mapping::len)
        };
        let large = room_for(64 << 20);
        assert!(large >= 64 << 20);
        assert_eq!(room_for(8 << 20), large, "the next one may be as large again");
        assert!(room_for(4 << 20) < 64 << 20);
        assert_eq!(room_for(PAGE_BYTES), room_for(4 << 20), "of little nothing is given back");
    }

    #[test]
    fn takes_what_was_marked_once() {
        let image = Mapping::reserve(16 * PAGE_BYTES).unwrap();
        let dirty = DirtyPages::new(16);
        dirty.mark(PAGE_BYTES - 1, 2);
        dirty.mark(5 * PAGE_BYTES, 8);
        dirty.mark(9 * PAGE_BYTES, 0);
        // SAFETY: this test owns the mapping.
        unsafe { image.store_u64(5 * PAGE_BYTES, 77) };
        let mut copied = CopiedPages::default();
        // SAFETY: no thread stores.
        unsafe { dirty.take([0..5, 5..16].into_iter(), &image, &mut copied) }.unwrap();
        assert_eq!(copied.pages, [0, 1, 5]);
        assert_eq!(dirty.count(), 3);
        assert_eq!(copied.bytes()[2 * 4096], 77);
        // The end of a store that ends with its page belongs to no other page.
        dirty.mark(14 * PAGE_BYTES, 2 * PAGE_BYTES);
        dirty.mark(7 * PAGE_BYTES, PAGE_BYTES);
        let mut whole = CopiedPages::default();
        // SAFETY: no thread stores.
        unsafe { dirty.take(std::iter::once(0..16), &image, &mut whole) }.unwrap();
        assert_eq!(whole.pages, [7, 14, 15]);
        let mut again = copied.recycle();
        // SAFETY: no thread stores.
        unsafe { dirty.take(std::iter::once(0..16), &image, &mut again) }.unwrap();
        assert!(again.pages.is_empty());
    }
}
