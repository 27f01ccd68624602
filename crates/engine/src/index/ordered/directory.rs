//! The directory: which chunk an entry or a key belongs to.

use std::ptr::NonNull;

use super::super::EntryId;
use super::chunk::Chunk;
use super::order::{Entry, KeyOrder, SearchKey, count_before};
use super::pool::ChunkPool;

/// The chunks in order and, apart, the first entry of each. There is always one chunk, and
/// only a lone one may be empty.
#[derive(Debug)]
pub(super) struct Directory {
    words: Vec<u64>,
    ids: Vec<EntryId>,
    chunks: Vec<NonNull<Chunk>>,
    /// Whether there is any entry. Unlike the chunks it does not change as workers merge.
    pub(super) has_entries: bool,
}

/// What a worker did to its chunks, for the directory to follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    /// Which chunk it concerns.
    pub(super) at: usize,
    /// Which worker says so: orders the additions to an index that was empty.
    pub(super) part: usize,
    /// What it is.
    pub(super) kind: EditKind,
}

/// The kinds of [`Edit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditKind {
    /// The chunk begins with another entry.
    First,
    /// A new chunk follows it.
    Add(NonNull<Chunk>),
    /// It is empty.
    Drop,
}

// SAFETY: an added chunk is owned by the edit until the directory takes it over.
unsafe impl Send for Edit {}

impl Directory {
    /// A directory of one empty chunk.
    pub(super) fn new(pool: &ChunkPool) -> Self {
        Self {
            words: vec![0],
            ids: vec![EntryId(0)],
            chunks: vec![pool.take()],
            has_entries: false,
        }
    }

    /// The directory of chunks that were kept, with the first entry of each: at least one chunk,
    /// and if entries are there.
    pub(super) fn of_kept(
        firsts: &[[u64; 2]],
        chunks: Vec<NonNull<Chunk>>,
        has_entries: bool,
    ) -> Self {
        assert!(
            !chunks.is_empty() && chunks.len() == firsts.len(),
            "each chunk has its first entry"
        );
        Self {
            words: firsts.iter().map(|[word, _]| *word).collect(),
            ids: firsts.iter().map(|[_, id]| EntryId(*id as u32)).collect(),
            chunks,
            has_entries,
        }
    }

    /// The number of chunks.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// The memory of the directory itself.
    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
            + self.ids.capacity() * size_of::<EntryId>()
            + self.chunks.capacity() * size_of::<NonNull<Chunk>>()
    }

    /// The address of a chunk.
    pub(super) fn chunk(&self, at: usize) -> NonNull<Chunk> {
        self.chunks[at]
    }

    /// The entry with which a chunk began when the directory was last brought up to date.
    pub(super) fn first(&self, at: usize) -> Entry {
        (self.words[at], self.ids[at])
    }

    /// The chunk where an entry belongs.
    pub(super) fn locate_entry<O: KeyOrder>(&self, entry: Entry, order: &O) -> usize {
        self.locate::<O>(entry.0, |id| order.compare(id, entry.1).is_le())
    }

    /// The chunk where a key belongs.
    pub(super) fn locate_key<O: KeyOrder>(&self, key: SearchKey<'_>, order: &O) -> usize {
        self.locate::<O>(key.word, |id| order.compare_key(id, key.key).is_le())
    }

    /// The last chunk that begins before or at the place, or the first chunk, which has no
    /// lower bound.
    #[inline(always)]
    fn locate<O: KeyOrder>(&self, word: u64, is_before: impl Fn(EntryId) -> bool) -> usize {
        let is_before = |id| O::EXACT || is_before(id);
        count_before::<O>(&self.words[1..], &self.ids[1..], word, is_before)
    }

    /// Follows the edits of all workers, sorted by chunk and worker. Dropped chunks go back to
    /// the pool.
    ///
    /// # Safety
    ///
    /// Nothing else may use the chunks.
    pub(super) unsafe fn apply(&mut self, edits: &[Edit], pool: &ChunkPool) {
        let in_order = |edits: &[Edit]| edits.is_sorted_by_key(|edit| (edit.at, edit.part));
        debug_assert!(in_order(edits), "edits come in the order of chunks and workers");
        let firsts = edits.iter().filter(|edit| edit.kind == EditKind::First);
        firsts.for_each(|edit| {
            // SAFETY: the caller owns all chunks, which are initialised.
            let first = unsafe { self.chunks[edit.at].as_ref() }.first();
            (self.words[edit.at], self.ids[edit.at]) = first.expect("an empty chunk is dropped");
        });
        if edits.iter().any(|edit| edit.kind != EditKind::First) {
            // SAFETY: passed on.
            *self = unsafe { self.rebuild(edits, pool) };
        }
    }

    /// Copies the directory with chunks added and dropped.
    ///
    /// # Safety
    ///
    /// As for `apply`.
    unsafe fn rebuild(&self, edits: &[Edit], pool: &ChunkPool) -> Self {
        let room = self.len() + edits.len();
        let mut new = Self {
            words: Vec::with_capacity(room),
            ids: Vec::with_capacity(room),
            chunks: Vec::with_capacity(room),
            has_entries: true,
        };
        let mut next = 0;
        for edit in edits {
            match edit.kind {
                EditKind::First => {}
                EditKind::Add(chunk) => {
                    next = new.copy(self, next, edit.at + 1);
                    // SAFETY: the chunk is initialised and owned by the edit.
                    let first = unsafe { chunk.as_ref() }.first();
                    new.push(first.expect("an added chunk has entries"), chunk);
                }
                EditKind::Drop => {
                    next = new.copy(self, next, edit.at).max(edit.at + 1);
                    pool.give(self.chunks[edit.at]);
                }
            }
        }
        new.copy(self, next, self.len());
        let of = |is: fn(&EditKind) -> bool| edits.iter().filter(|edit| is(&edit.kind)).count();
        let added_count = of(|kind| matches!(kind, EditKind::Add(_)));
        let dropped_count = of(|kind| *kind == EditKind::Drop);
        assert!(
            new.len() + dropped_count == self.len() + added_count,
            "no other chunk comes or goes"
        );
        debug_assert!(
            new.words.is_empty() || new.words[1..].is_sorted(),
            "chunks begin in the order of their keys"
        );
        if new.chunks.is_empty() { Self::new(pool) } else { new }
    }

    /// Appends chunks `from` to `to` of another directory; returns which is next.
    fn copy(&mut self, other: &Self, from: usize, to: usize) -> usize {
        if from >= to {
            return from;
        }
        self.words.extend_from_slice(&other.words[from..to]);
        self.ids.extend_from_slice(&other.ids[from..to]);
        self.chunks.extend_from_slice(&other.chunks[from..to]);
        to
    }

    fn push(&mut self, first: Entry, chunk: NonNull<Chunk>) {
        self.words.push(first.0);
        self.ids.push(first.1);
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word, an id and a pointer for each chunk.
    #[test]
    fn the_memory_of_a_directory_is_that_of_its_lists() {
        let directory = Directory {
            words: vec![0; 100],
            ids: vec![EntryId(0); 100],
            chunks: vec![NonNull::dangling(); 100],
            has_entries: true,
        };
        assert_eq!((directory.len(), directory.memory_bytes()), (100, 100 * (8 + 4 + 8)));
    }
}
