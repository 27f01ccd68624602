//! The index itself and what one thread may do with it alone.

use std::cell::UnsafeCell;
use std::ops::Bound;
use std::sync::Arc;

use pmem::sync::atomic::{AtomicUsize, Ordering};
use pmem::sync::{Mutex, MutexGuard};

use super::super::phase::PhaseCheck;
use super::super::space::IndexSpace;
use super::chunk::{Chunk, ENTRIES_MAX};
use super::directory::{Directory, Edit};
use super::order::{Entry, KeyOrder, SearchKey, compare};
use super::pool::{ChunkPool, KeptSlab, SLAB_CHUNKS_MIN};
use super::range::Range;
use super::sort::{SortRoom, sort_by_words};

/// Where an ordered index is in the image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptOrder {
    /// Entries.
    pub len: u64,
    /// Slabs of chunks: where each is, and how many it has.
    pub slabs: Vec<KeptSlab>,
    /// The chunks in order: word and id of the first entry, and where it is.
    pub chunks: Vec<[u64; 3]>,
}

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
    /// Bytes of the first block that an index takes, in the image.
    pub const FIRST_BYTES: u64 = (SLAB_CHUNKS_MIN * size_of::<Chunk>()) as u64;

    /// Bytes of a chunk, all of them in one page.
    pub const CHUNK_BYTES: u64 = size_of::<Chunk>() as u64;

    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::new_in(None)
    }

    /// An empty index with its memory in the image, if there is room.
    #[must_use]
    pub fn new_in(space: Option<Arc<IndexSpace>>) -> Self {
        let pool = ChunkPool::over(space);
        Self {
            directory: UnsafeCell::new(Directory::new(&pool)),
            pool,
            edits: Mutex::default(),
            len: AtomicUsize::new(0),
            phase: PhaseCheck::default(),
        }
    }

    /// The index of chunks that were kept. `None` if they are not where that says.
    #[must_use]
    pub fn attach(space: Arc<IndexSpace>, kept: &KeptOrder) -> Option<Self> {
        let KeptOrder { len, slabs, chunks } = kept;
        let pool = ChunkPool::over(Some(space));
        let offsets: Vec<u64> = chunks.iter().map(|[.., offset]| *offset).collect();
        let firsts: Vec<_> = chunks.iter().map(|[word, id, _]| [*word, *id]).collect();
        let attached = pool.attach(slabs, &offsets)?;
        if attached.is_empty() {
            return None;
        }
        Some(Self {
            directory: UnsafeCell::new(Directory::of_kept(&firsts, attached, *len > 0)),
            pool,
            edits: Mutex::default(),
            len: AtomicUsize::new(*len as usize),
            phase: PhaseCheck::default(),
        })
    }

    /// Whether attached chunks hold what they can: they come from a file.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let _inside = self.phase.read();
        let directory = self.directory();
        // SAFETY: chunks of the directory are mapped; nothing changes them in this phase.
        let count = |at| unsafe { directory.chunk(at).as_ref() }.count();
        let mut counts = (0..directory.len()).map(count);
        counts.try_fold(0, |sum, count| Some(sum + count?)) == Some(self.len())
    }

    /// Where the chunks are; `None` if not all are in the image. Not while keys are added or
    /// removed.
    #[must_use]
    pub fn kept(&self) -> Option<KeptOrder> {
        let _inside = self.phase.read();
        let directory = self.directory();
        let chunk = |at: usize| {
            let (word, id) = directory.first(at);
            Some([word, u64::from(id.0), self.pool.offset_of(directory.chunk(at))?])
        };
        let chunks = (0..directory.len()).map(chunk).collect::<Option<Vec<_>>>()?;
        Some(KeptOrder { len: self.len() as u64, slabs: self.pool.kept()?, chunks })
    }

    /// The number of chunks. Not while keys are added or removed.
    #[must_use]
    pub fn chunks_count(&self) -> usize {
        let _inside = self.phase.read();
        self.directory().len()
    }

    /// Adds the sizes of the blocks that so many new keys take, unless they split more chunks than
    /// random keys do. Not while keys are added or removed.
    pub fn growth(&self, keys_count: usize, blocks: &mut Vec<u64>) {
        if keys_count == 0 {
            return;
        }
        let _inside = self.phase.read();
        self.pool.growth(self.chunks_of_random(keys_count), blocks);
    }

    /// Chunks that so many new keys take, unless they split more than random ones do.
    fn chunks_of_random(&self, keys_count: usize) -> usize {
        let split_count = (keys_count / 8 + 4).min(keys_count).min(self.directory().len());
        keys_count.div_ceil(ENTRIES_MAX / 2) + split_count + 1
    }

    /// Visits the chunks where keys from one up to another belong: where each is, of which nothing
    /// is read. Not while keys are added or removed.
    pub fn visit_places<O: KeyOrder>(
        &self,
        first: SearchKey<'_>,
        last: SearchKey<'_>,
        order: &O,
        mut visit: impl FnMut(usize),
    ) {
        let _inside = self.phase.read();
        let directory = self.directory();
        let chunks = directory.locate_key(first, order)..=directory.locate_key(last, order);
        chunks.for_each(|at| visit(directory.chunk(at).addr().get()));
    }

    /// Visits the chunks that so many new keys take, about. Not while keys are added or removed.
    pub fn visit_next(&self, keys_count: usize, mut visit: impl FnMut(usize)) {
        let count = keys_count.div_ceil(ENTRIES_MAX / 2);
        self.pool.visit_next(count, |chunk| visit(chunk.addr().get()));
    }

    /// Makes room for the chunks that so many new keys need at most, wherever they go; in the image
    /// for those that [`OrderedIndex::growth`] counts. Not while keys are added or removed.
    ///
    /// Every new chunk comes of one that was split since it was full, and what it is split into
    /// is half full at least: another split takes that many keys more, except of chunks that were
    /// there before. Only an ascending sequence leaves less behind, a full chunk and its end, but
    /// then it fills whole chunks.
    pub fn reserve(&self, keys_count: usize) {
        let _inside = self.phase.read();
        if self.pool.is_in_image() {
            return self.pool.reserve(self.chunks_of_random(keys_count));
        }
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

    /// What of it is a part of the image. Not while keys are added or removed.
    #[must_use]
    pub fn image_bytes(&self) -> usize {
        self.pool.image_bytes()
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
