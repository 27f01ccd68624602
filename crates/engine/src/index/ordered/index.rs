//! The index itself and what one thread may do with it alone.

use std::cell::UnsafeCell;
use std::ops::Bound;

use pmem::sync::atomic::{AtomicUsize, Ordering};
use pmem::sync::{Mutex, MutexGuard};

use super::super::phase::PhaseCheck;
use super::chunk::{Chunk, ENTRIES_MAX};
use super::directory::{Directory, Edit};
use super::order::{Entry, KeyOrder, SearchKey, compare};
use super::pool::ChunkPool;
use super::range::Range;
use super::sort::{SortRoom, sort_by_words};

/// An index from keys in order to entries, for scans. A key may be in it once.
///
/// Keys come in rounds of three sub-steps: [`OrderedIndex::sort_part`] by each worker,
/// [`OrderedIndex::merge_part`] by each worker, and [`OrderedIndex::finish_merge`] by one, with
/// barriers around each. They go the same way, with [`OrderedIndex::remove_part`] in between.
/// See [the index module](super::super) for words and for when what may be called.
#[derive(Debug)]
pub struct OrderedIndex {
    directory: UnsafeCell<Directory>,
    pub(super) pool: ChunkPool,
    /// What the workers did since the directory was last brought up to date.
    pub(super) edits: Mutex<Vec<Edit>>,
    pub(super) len: AtomicUsize,
    pub(super) phase: PhaseCheck,
}

// SAFETY: the chunks that the directory points to belong to the index.
unsafe impl Send for OrderedIndex {}
// SAFETY: the directory and the chunks change only by the rule of phases: `finish_merge` runs
// alone, and of a chunk that changes the worker that owns it in that phase has the only
// reference.
unsafe impl Sync for OrderedIndex {}

impl Default for OrderedIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl OrderedIndex {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        let pool = ChunkPool::default();
        Self {
            directory: UnsafeCell::new(Directory::new(&pool)),
            pool,
            edits: Mutex::default(),
            len: AtomicUsize::new(0),
            phase: PhaseCheck::default(),
        }
    }

    /// Makes room for the chunks that so many new keys need at most, wherever they go. Not while
    /// keys are added or removed.
    ///
    /// Every new chunk comes of one that was split since it was full, and what it is split into
    /// is half full at least: another split takes that many keys more, except of chunks that were
    /// there before. Only an ascending sequence leaves less behind, a full chunk and its end, but
    /// then it fills whole chunks.
    pub fn reserve(&self, keys_count: usize) {
        let _inside = self.phase.read();
        let split_count = keys_count.min(self.directory().len());
        self.pool.reserve(keys_count.div_ceil(ENTRIES_MAX / 2) + split_count);
    }

    /// First sub-step of a round: sorts a worker's list, with memory of that worker. It reads
    /// nothing of the index.
    pub fn sort_part<O: KeyOrder>(&self, list: &mut [Entry], room: &mut SortRoom, order: &O) {
        if O::EXACT {
            sort_by_words(list, room);
        } else {
            list.sort_unstable_by(|&a, &b| compare(a, b, order));
        }
    }

    /// Third sub-step of a round of merging or of removing: brings the directory up to date.
    /// One worker calls it, between barriers.
    pub fn finish_merge(&self) {
        let _inside = self.phase.change_alone();
        let mut edits = self.edits();
        if edits.is_empty() {
            return;
        }
        // Stable, because a worker's additions after one chunk come in order.
        edits.sort_by_key(|edit| (edit.at, edit.part));
        // SAFETY: between the barriers around this sub-step the directory and all chunks are
        // owned by this worker alone.
        unsafe { (*self.directory.get()).apply(&edits, &self.pool) };
        edits.clear();
        let has_entries = self.directory().has_entries;
        assert!(has_entries != self.is_empty(), "the directory has chunks where there are entries");
    }

    /// Adds all keys of some lists, in any order, on this thread alone.
    pub fn apply_inserts<O: KeyOrder>(&self, lists: &mut [Vec<Entry>], order: &O) {
        let sorted = self.sort_all(lists, order);
        self.merge_part(0, 1, &sorted, order);
        self.finish_merge();
    }

    /// Removes all keys of some lists, in any order, on this thread alone; returns how many
    /// were there.
    pub fn apply_removals<O: KeyOrder>(&self, lists: &mut [Vec<Entry>], order: &O) -> usize {
        let sorted = self.sort_all(lists, order);
        let keys_count = sorted.iter().map(|list| list.len()).sum::<usize>();
        let removed_count = self.remove_part(0, 1, &sorted, order);
        assert!(removed_count <= keys_count, "only keys of the lists are removed");
        self.finish_merge();
        removed_count
    }

    /// Fills an empty index from sorted runs on this thread alone. Several threads do the same
    /// with the sub-steps of any round.
    ///
    /// # Panics
    ///
    /// If the index is not empty.
    pub fn bulk_load<O: KeyOrder>(&self, runs: &[&[Entry]], order: &O) {
        assert!(self.is_empty(), "an index is loaded before anything else");
        self.merge_part(0, 1, runs, order);
        self.finish_merge();
    }

    /// The entries between two bounds, ascending. Not while keys are added or removed.
    pub fn range<O: KeyOrder>(
        &self,
        low: Bound<SearchKey<'_>>,
        high: Bound<SearchKey<'_>>,
        order: &O,
    ) -> Range<'_> {
        let inside = self.phase.read();
        Range::new(self.directory(), low, high, order, inside)
    }

    /// The entries between two bounds, descending. Not while keys are added or removed.
    pub fn range_descending<O: KeyOrder>(
        &self,
        low: Bound<SearchKey<'_>>,
        high: Bound<SearchKey<'_>>,
        order: &O,
    ) -> std::iter::Rev<Range<'_>> {
        self.range(low, high, order).rev()
    }

    /// The number of entries; settled once a round is finished.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory of chunks, in use or not.
    #[cfg(test)]
    pub(super) fn chunk_bytes(&self) -> usize {
        self.pool.memory_bytes()
    }

    /// The memory that the index takes. Not while keys are added or removed.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let _inside = self.phase.read();
        size_of::<Self>() + self.directory().memory_bytes() + self.pool.memory_bytes()
    }

    /// The directory as of the last finished round.
    pub(super) fn directory(&self) -> &Directory {
        // SAFETY: only `finish_merge` changes it, alone, and every reference made here ends
        // before the barrier to that sub-step.
        unsafe { &*self.directory.get() }
    }

    /// A chunk to change.
    ///
    /// # Safety
    ///
    /// The chunk must be owned by this worker in this phase, and the caller must have no other
    /// reference to it.
    #[expect(clippy::mut_from_ref, reason = "chunks are owned by workers, not by the index")]
    // SAFETY: the caller owns the chunk, see above.
    pub(super) unsafe fn chunk_mut(&self, at: usize) -> &mut Chunk {
        // SAFETY: the chunk is mapped and initialised as long as the directory names it; the
        // rest is the caller's promise.
        unsafe { &mut *self.directory().chunk(at).as_ptr() }
    }

    pub(super) fn edits(&self) -> MutexGuard<'_, Vec<Edit>> {
        self.edits.lock().expect("nothing panics while it holds the edits")
    }

    fn sort_all<'l, O: KeyOrder>(
        &self,
        lists: &'l mut [Vec<Entry>],
        order: &O,
    ) -> Vec<&'l [Entry]> {
        let mut room = SortRoom::default();
        lists
            .iter_mut()
            .map(|list| {
                self.sort_part(list, &mut room, order);
                &**list
            })
            .collect()
    }
}
