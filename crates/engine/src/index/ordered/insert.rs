//! Adding keys: the second sub-step of the insert step.

use pmem::sync::atomic::Ordering;

use super::chunk::{Chunk, ENTRIES_MAX, merge_into};
use super::directory::{Edit, EditKind};
use super::index::OrderedIndex;
use super::order::{Entry, KeyOrder};
use super::share::{Share, divide};

/// How many chunks ahead of the one that changes is asked for.
const PREFETCH_DISTANCE: usize = 2;

impl OrderedIndex {
    /// Second sub-step of a round: adds those keys of all sorted lists that fall into the share
    /// of worker `part` of `parts`. Every worker calls it, with the same lists.
    ///
    /// # Panics
    ///
    /// If `part` is not less than `parts`, and in debug builds if a list is not sorted or a
    /// key comes twice.
    pub fn merge_part<O: KeyOrder>(
        &self,
        part: usize,
        parts: usize,
        lists: &[&[Entry]],
        order: &O,
    ) {
        let _inside = self.phase.change();
        let share = Share { part, parts, lists };
        let mut merger = Merger { index: self, part, order, edits: Vec::new(), merged: Vec::new() };
        let count =
            if self.directory().has_entries { merger.merge(share) } else { merger.load(share) };
        // Their order among the workers does not matter: they are sorted at the end.
        self.edits().append(&mut merger.edits);
        self.len.fetch_add(count, Ordering::Relaxed);
    }
}

/// One worker at work.
struct Merger<'i, O> {
    index: &'i OrderedIndex,
    part: usize,
    order: &'i O,
    edits: Vec<Edit>,
    /// A chunk's entries with new ones, when they are too many.
    merged: Vec<Entry>,
}

impl<O: KeyOrder> Merger<'_, O> {
    /// Fills an index without entries: all workers add chunks of their own.
    fn load(&mut self, share: Share<'_>) -> usize {
        if share.lists.iter().all(|list| list.is_empty()) {
            return 0;
        }
        assert!(self.index.directory().len() == 1, "an index without entries has one chunk");
        // The one empty chunk has served.
        if self.part == 0 {
            self.edit(0, EditKind::Drop);
        }
        let (low, high) = share.cuts(self.order);
        let run = share.gather(low, high, self.order);
        let mut rest = &*run;
        for nth in 0.. {
            if rest.is_empty() {
                break;
            }
            let entries;
            (entries, rest) = rest.split_at(load_entries(nth).min(rest.len()));
            self.add(0, entries, entries.len());
        }
        run.len()
    }

    /// Merges this worker's share into its chunks.
    fn merge(&mut self, share: Share<'_>) -> usize {
        let directory = self.index.directory();
        let chunks = share.chunks(directory, self.order);
        if chunks.is_empty() {
            return 0;
        }
        let low = (chunks.start > 0).then(|| directory.first(chunks.start));
        let high = (chunks.end < directory.len()).then(|| directory.first(chunks.end));
        let run = share.gather(low, high, self.order);
        let targets = divide(directory, &run, chunks, self.order);
        for (nth, target) in targets.iter().enumerate() {
            if let Some(next) = targets.get(nth + PREFETCH_DISTANCE) {
                Chunk::prefetch_all(directory.chunk(next.at).as_ptr());
            }
            self.merge_chunk(target.at, &run[target.run.clone()]);
        }
        run.len()
    }

    /// Merges a run into one chunk, or into that and new ones.
    fn merge_chunk(&mut self, at: usize, run: &[Entry]) {
        // SAFETY: the chunk is in this worker's share, and so owned by it in this phase; no
        // other reference to it is in use.
        let chunk = unsafe { self.index.chunk_mut(at) };
        let first = chunk.first();
        let gap = chunk.gap_for(run, self.order);
        self.index.pool.before_store(chunk);
        if chunk.len() + run.len() <= ENTRIES_MAX {
            chunk.insert_run(run, gap, self.order);
        } else if chunk.is_sequence(gap, run.len()) {
            self.split_sequence(at, chunk, run, gap.first);
        } else {
            self.split_evenly(at, chunk, run, gap.last);
        }
        if chunk.first() != first {
            self.edit(at, EditKind::First);
        }
    }

    /// Splits at the end of an ascending sequence, which leaves its chunks full behind it: the
    /// next keys go to the end of the last one. What came after gets a chunk of its own.
    fn split_sequence(&mut self, at: usize, chunk: &mut Chunk, run: &[Entry], gap: usize) {
        assert!(gap <= chunk.len(), "a sequence ends among the entries of its chunk");
        let mut after = std::mem::take(&mut self.merged);
        after.clear();
        after.extend(chunk.entries().skip(gap));
        let (kept, added) = run.split_at(run.len().min(ENTRIES_MAX - gap));
        chunk.cut_and_add(gap, kept);
        for entries in added.chunks(ENTRIES_MAX) {
            self.add(at, entries, entries.len());
        }
        if !after.is_empty() {
            self.add(at, &after, 0);
        }
        self.merged = after;
    }

    /// Splits into equal chunks that have room for more of the kind.
    fn split_evenly(&mut self, at: usize, chunk: &mut Chunk, run: &[Entry], gap_last: usize) {
        let mut merged = std::mem::take(&mut self.merged);
        merge_into(&mut merged, chunk, run, self.order);
        assert!(merged.len() == chunk.len() + run.len(), "no entry is lost, and none comes twice");
        let chunks_count = merged.len().div_ceil(ENTRIES_MAX / 4 * 3);
        let size = merged.len().div_ceil(chunks_count);
        // Where the last new key ended up, should the next ones follow it.
        let end = gap_last + run.len();
        for (nth, entries) in merged.chunks(size).enumerate() {
            let hint = end.checked_sub(nth * size).filter(|&hint| hint <= entries.len());
            if nth == 0 {
                chunk.fill(entries, hint.unwrap_or(0));
            } else {
                self.add(at, entries, hint.unwrap_or(0));
            }
        }
        self.merged = merged;
    }

    /// Adds a chunk after the one at `at` and those already added there.
    fn add(&mut self, at: usize, entries: &[Entry], hint: usize) {
        assert!(!entries.is_empty(), "a chunk that is added has entries");
        let chunk = self.index.pool.take();
        assert!(entries.len() <= ENTRIES_MAX, "a chunk has {ENTRIES_MAX} entries at most");
        // SAFETY: the chunk is initialised and, fresh from the pool, owned by this worker.
        unsafe { &mut *chunk.as_ptr() }.fill(entries, hint);
        self.edit(at, EditKind::Add(chunk));
    }

    fn edit(&mut self, at: usize, kind: EditKind) {
        self.edits.push(Edit { at, part: self.part, kind });
    }
}

/// Entries in the `nth` chunk that is loaded: some room, so that the next keys do not split it,
/// and not the same in all, or random keys would split all chunks in one and the same epoch.
fn load_entries(nth: usize) -> usize {
    const LEAST: usize = ENTRIES_MAX / 4 * 3;
    LEAST + nth * 11 % (ENTRIES_MAX - LEAST)
}
