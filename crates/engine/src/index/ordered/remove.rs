//! Removing keys after execution: the second sub-step of that round.

use std::ops::Range;

use pmem::sync::atomic::Ordering;

use super::chunk::{Chunk, ENTRIES_MAX};
use super::directory::{Edit, EditKind};
use super::index::OrderedIndex;
use super::order::{Entry, KeyOrder};
use super::share::{Share, divide};

/// A chunk with fewer entries looks for a neighbour to join.
const ENTRIES_FEW: usize = ENTRIES_MAX / 4;

/// A chunk that two are joined in leaves room, so that the next keys do not split it again.
const JOINED_ENTRIES_MAX: usize = ENTRIES_MAX / 4 * 3;

impl OrderedIndex {
    /// Second sub-step of a round: removes those entries of all sorted lists that fall into
    /// the share of worker `part` of `parts`; returns how many were there. Every worker calls
    /// it, with the same lists, and calls [`OrderedIndex::sort_part`] before and one of them
    /// [`OrderedIndex::finish_merge`] after it, as with additions.
    ///
    /// The removed entries must compare until the round is finished.
    ///
    /// # Panics
    ///
    /// If `part` is not less than `parts`, and in debug builds if a list is not sorted or a
    /// key comes twice.
    pub fn remove_part<O: KeyOrder>(
        &self,
        part: usize,
        parts: usize,
        lists: &[&[Entry]],
        order: &O,
    ) -> usize {
        let _inside = self.phase.change();
        let directory = self.directory();
        let share = Share { part, parts, lists };
        let chunks = share.chunks(directory, order);
        if chunks.is_empty() {
            return 0;
        }
        let low = (chunks.start > 0).then(|| directory.first(chunks.start));
        let high = (chunks.end < directory.len()).then(|| directory.first(chunks.end));
        let run = share.gather(low, high, order);
        assert!(chunks.end <= directory.len(), "a share is of chunks that are there");
        let (touched, removed_count) = self.remove_run(&run, chunks.clone(), order);
        let mut tidier = Tidier { index: self, part, chunks, edits: Vec::new(), dropped: None };
        touched.into_iter().for_each(|at| tidier.tidy(at));
        self.edits().append(&mut tidier.edits);
        let before = self.len.fetch_sub(removed_count, Ordering::Relaxed);
        assert!(before >= removed_count, "an entry that is removed was counted");
        removed_count
    }

    /// Removes a run from this worker's chunks; returns the chunks that changed, ascending,
    /// and how many entries were there.
    fn remove_run<O: KeyOrder>(
        &self,
        run: &[Entry],
        chunks: Range<usize>,
        order: &O,
    ) -> (Vec<usize>, usize) {
        let targets = divide(self.directory(), run, chunks, order);
        let mut touched = Vec::with_capacity(targets.len());
        let mut removed_count = 0;
        for (nth, target) in targets.iter().enumerate() {
            if let Some(next) = targets.get(nth + 2) {
                Chunk::prefetch_all(self.directory().chunk(next.at).as_ptr());
            }
            // SAFETY: the chunk is in this worker's share, and so owned by it in this phase;
            // no other reference to it is in use.
            let chunk = unsafe { self.chunk_mut(target.at) };
            let before = chunk.len();
            self.pool.before_store(chunk);
            let here_count = chunk.remove_run(&run[target.run.clone()], order);
            debug_assert!(chunk.len() + here_count == before, "a chunk loses what is removed");
            if here_count > 0 {
                touched.push(target.at);
            }
            removed_count += here_count;
        }
        (touched, removed_count)
    }
}

/// One worker, once its entries are removed: drops empty chunks and joins small ones.
struct Tidier<'i> {
    index: &'i OrderedIndex,
    part: usize,
    /// This worker's share; neighbours beyond it are another's.
    chunks: Range<usize>,
    edits: Vec<Edit>,
    /// The last chunk dropped and the nearest one before it that is still there.
    dropped: Option<(usize, Option<usize>)>,
}

impl Tidier<'_> {
    /// Tidies one chunk that lost entries; chunks come in ascending order.
    fn tidy(&mut self, at: usize) {
        let chunk = self.chunk(at);
        if chunk.len() == 0 {
            return self.drop(at);
        }
        if chunk.len() < ENTRIES_FEW && self.join(at) {
            return self.drop(at);
        }
        self.edit_first(at);
    }

    /// Moves the entries of a chunk to a neighbour, if that has room.
    fn join(&mut self, at: usize) -> bool {
        let len = self.chunk(at).len();
        let fits = |other: usize| (1..=JOINED_ENTRIES_MAX - len).contains(&self.chunk(other).len());
        if let Some(left) = self.left_of(at).filter(|&left| fits(left)) {
            // SAFETY: as in `chunk`; they are two different chunks.
            let (chunk, left) = unsafe { (self.index.chunk_mut(at), self.index.chunk_mut(left)) };
            self.index.pool.before_store(left);
            left.append(chunk);
            return true;
        }
        debug_assert!(len < ENTRIES_FEW, "only a small chunk joins another");
        let right = Some(at + 1).filter(|right| self.chunks.contains(right));
        let Some(right) = right.filter(|&right| fits(right)) else { return false };
        // SAFETY: as above.
        let (chunk, kept) = unsafe { (self.index.chunk_mut(at), self.index.chunk_mut(right)) };
        self.index.pool.before_store(kept);
        kept.prepend(chunk);
        self.edit_first(right);
        true
    }

    fn drop(&mut self, at: usize) {
        let is_next = self.dropped.is_none_or(|(before, _)| before < at);
        assert!(is_next, "a chunk is dropped once");
        self.dropped = Some((at, self.left_of(at)));
        self.edits.push(Edit { at, part: self.part, kind: EditKind::Drop });
    }

    /// The nearest chunk before this one that is in the share and not dropped.
    fn left_of(&self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1).filter(|before| self.chunks.contains(before))?;
        match self.dropped {
            Some((dropped, left)) if dropped == before => left,
            _ => Some(before),
        }
    }

    fn edit_first(&mut self, at: usize) {
        let first = self.chunk(at).first();
        if first != Some(self.index.directory().first(at)) {
            self.edits.push(Edit { at, part: self.part, kind: EditKind::First });
        }
    }

    fn chunk(&self, at: usize) -> &Chunk {
        assert!(self.chunks.contains(&at), "a worker keeps to its chunks");
        // SAFETY: the chunk is in this worker's share, and so owned by it in this phase; no
        // reference through which it changes is in use.
        unsafe { self.index.directory().chunk(at).as_ref() }
    }
}
