//! Scans: the entries between two places, from either end.

use std::ops::Bound;

use super::super::EntryId;
use super::super::phase::Inside;
use super::chunk::Chunk;
use super::directory::Directory;
use super::order::{Entry, KeyOrder, SearchKey};

/// The entries between two bounds, ascending; from the back, descending. It allocates nothing
/// and compares nothing: both ends are found when it is made.
#[derive(Debug)]
pub struct Range<'i> {
    directory: &'i Directory,
    front: Cursor,
    back: Cursor,
    _inside: Inside<'i>,
}

/// A place between two entries: before the one in `slot`, or after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cursor {
    chunk: usize,
    slot: usize,
}

impl<'i> Range<'i> {
    /// Finds both ends. No entries change as long as `inside` lives.
    pub(super) fn new<O: KeyOrder>(
        directory: &'i Directory,
        low: Bound<SearchKey<'_>>,
        high: Bound<SearchKey<'_>>,
        order: &O,
        inside: Inside<'i>,
    ) -> Self {
        let zero = Cursor { chunk: 0, slot: 0 };
        let mut range = Self { directory, front: zero, back: zero, _inside: inside };
        range.front = match low {
            Bound::Unbounded => zero,
            Bound::Included(key) => range.place(range.locate(key, order), key, false, order),
            Bound::Excluded(key) => range.place(range.locate(key, order), key, true, order),
        };
        range.back = match high {
            Bound::Unbounded => range.end_of(directory.len() - 1),
            Bound::Included(key) => range.place(range.locate_near(key, order), key, true, order),
            Bound::Excluded(key) => range.place(range.locate_near(key, order), key, false, order),
        };
        range.prefetch(range.front.chunk + 1);
        range
    }

    fn locate<O: KeyOrder>(&self, key: SearchKey<'_>, order: &O) -> usize {
        self.directory.locate_key(key, order)
    }

    /// Like `locate`, for the upper end, which often lies in the chunk of the lower one.
    fn locate_near<O: KeyOrder>(&self, key: SearchKey<'_>, order: &O) -> usize {
        let next = self.front.chunk + 1;
        let is_near = next < self.directory.len() && key.word < self.directory.first(next).0;
        if is_near { self.front.chunk } else { self.locate(key, order) }
    }

    fn place<O: KeyOrder>(
        &self,
        chunk: usize,
        key: SearchKey<'_>,
        with_equal: bool,
        order: &O,
    ) -> Cursor {
        Chunk::prefetch_words(self.directory.chunk(chunk).as_ptr());
        Cursor { chunk, slot: self.chunk(chunk).count_before_key(key, with_equal, order) }
    }

    #[inline]
    fn end_of(&self, chunk: usize) -> Cursor {
        Cursor { chunk, slot: self.chunk(chunk).len() }
    }

    #[inline]
    fn chunk(&self, at: usize) -> &'i Chunk {
        // SAFETY: the directory was published with its chunks, which are initialised and in
        // this phase, as the check asserts in debug builds, do not change.
        unsafe { self.directory.chunk(at).as_ref() }
    }

    /// Asks for a chunk that the range extends to.
    #[inline]
    fn prefetch(&self, chunk: usize) {
        if self.front.chunk <= chunk && chunk <= self.back.chunk {
            Chunk::prefetch_ends(self.directory.chunk(chunk).as_ptr());
        }
    }
}

impl Range<'_> {
    /// Visits all entries in runs, with their words and ids apart.
    #[inline]
    pub fn for_each_run(self, mut each: impl FnMut(&[u64], &[EntryId])) {
        for at in self.front.chunk..=self.back.chunk {
            let chunk = self.chunk(at);
            let first = if at == self.front.chunk { self.front.slot } else { 0 };
            let end = if at == self.back.chunk { self.back.slot } else { chunk.len() };
            if at > self.front.chunk {
                self.prefetch(at + 1);
            }
            if first < end {
                each(&chunk.words()[first..end], &chunk.ids()[first..end]);
            }
        }
    }
}

impl Iterator for Range<'_> {
    type Item = Entry;

    #[inline(always)]
    fn next(&mut self) -> Option<Entry> {
        while self.front < self.back {
            if let Some(entry) = self.chunk(self.front.chunk).get(self.front.slot) {
                self.front.slot += 1;
                return Some(entry);
            }
            self.front = Cursor { chunk: self.front.chunk + 1, slot: 0 };
            self.prefetch(self.front.chunk + 1);
        }
        None
    }
}

impl DoubleEndedIterator for Range<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Entry> {
        while self.front < self.back {
            if let Some(slot) = self.back.slot.checked_sub(1) {
                self.back.slot = slot;
                return self.chunk(self.back.chunk).get(slot);
            }
            self.back = self.end_of(self.back.chunk - 1);
            if let Some(before) = self.back.chunk.checked_sub(1) {
                self.prefetch(before);
            }
        }
        None
    }
}

impl std::iter::FusedIterator for Range<'_> {}
