//! The hash index: where the entry of one key is.
//!
//! The high bits of a mixed word choose one of [`SHARDS_COUNT`] shards and the low bits one of
//! its buckets, each a cache line of entries. A search reads the bucket and, where it is
//! full, the next ones; a caller with many keys asks for a group of lines with
//! [`HashIndex::prefetch`], 16 to 32 at a time, before it finds each. In the insert step and
//! after execution a shard changes only under its lock; in between nothing takes a lock.
//!
//! A slot has the word, or half of the mixed word, its tag ([`Slots`]). With tags an index is a
//! third as large; but the key of the row that a tag leads to has to be compared with the one that
//! is looked for, so that rows need their keys before the index leads to them.

mod bucket;
mod shard;
mod shards;
mod tags;
mod words;

use std::sync::Arc;

use super::EntryId;
use super::space::IndexSpace;
use bucket::{Mixed, SHARDS_COUNT};
pub use shards::{Home, KeptShard};
use shards::{Shards, Vacant};
use tags::Tags;
use words::Words;

/// What a slot has of the word of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// All of it.
    Words,
    /// Half of the mixed word.
    Tags,
}

/// An index from words to entries for point lookups.
///
/// See the [module](super) for words and for when what may be called.
#[derive(Debug)]
pub enum HashIndex {
    /// See [`Slots::Words`].
    Words(Shards<Words>),
    /// See [`Slots::Tags`].
    Tags(Shards<Tags>),
}

/// What is the same for both kinds.
macro_rules! of_either {
    ($index:expr, $shards:ident => $what:expr) => {
        match $index {
            HashIndex::Words($shards) => $what,
            HashIndex::Tags($shards) => $what,
        }
    };
}

impl HashIndex {
    /// Number of shards.
    pub const SHARDS: usize = SHARDS_COUNT;

    /// An empty index with room for `capacity_hint` entries; it grows beyond as needed.
    #[must_use]
    pub fn new(capacity_hint: usize) -> Self {
        let index = Self::Words(Shards::new_in(None));
        index.reserve(capacity_hint);
        index
    }

    /// An empty index with its memory in the image, if there is room.
    #[must_use]
    pub fn new_in(space: Arc<IndexSpace>, slots: Slots) -> Self {
        match slots {
            Slots::Words => Self::Words(Shards::new_in(Some(space))),
            Slots::Tags => Self::Tags(Shards::new_in(Some(space))),
        }
    }

    /// What its slots have.
    #[must_use]
    pub fn slots(&self) -> Slots {
        match self {
            Self::Words(_) => Slots::Words,
            Self::Tags(_) => Slots::Tags,
        }
    }

    /// Takes over the arrays of an index that was kept, which has no entry yet. False if they are
    /// not where that says; the index is of no use then.
    #[must_use]
    pub fn attach(&self, shards: &[KeptShard]) -> bool {
        of_either!(self, index => index.attach(shards))
    }

    /// Where the arrays are; `None` if not all are in the image.
    #[must_use]
    pub fn kept(&self) -> Option<Vec<KeptShard>> {
        of_either!(self, index => index.kept())
    }

    /// Whether attached arrays hold what they can, so that searches end: they come from
    /// a file.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        of_either!(self, index => index.is_sound())
    }

    /// Whether an entry that is found under a word has that word.
    #[must_use]
    pub fn has_words(&self) -> bool {
        matches!(self, Self::Words(_))
    }

    /// Adds the sizes of the blocks that so many new entries take, unless by an unlikely chance one
    /// shard gets much more than its share.
    pub fn growth(&self, additional: usize, blocks: &mut Vec<u64>) {
        of_either!(self, index => index.growth(additional, blocks));
    }

    /// Visits the arrays of more than a page that so many new entries may outgrow: where each is,
    /// and its bytes. The insert step reads all of them. Not while entries are added or removed.
    pub fn visit_outgrown(&self, additional: usize, visit: impl FnMut(usize, usize)) {
        of_either!(self, index => index.visit_outgrown(additional, visit));
    }

    /// Asks for the cache line where the search for `word` begins: a pure hint, in any phase.
    #[inline]
    pub fn prefetch(&self, word: u64) {
        of_either!(self, index => index.prefetch(word));
    }

    /// Asks for the lines that adding `word` begins with: a pure hint, in any phase.
    #[inline]
    pub fn prefetch_to_add(&self, word: u64) {
        of_either!(self, index => index.prefetch_to_add(word));
    }

    /// Address of the line where the search for `word` begins, of which nothing is read. Not for
    /// the insert step.
    #[must_use]
    pub fn address_of(&self, word: u64) -> usize {
        of_either!(self, index => index.address_of(word))
    }

    /// Where the search for `word` begins, and asks for its line. Not for the insert step.
    #[inline]
    pub fn home(&self, word: u64) -> Home<'_> {
        match self {
            Self::Words(index) => index.home(word),
            Self::Tags(index) => {
                index.prefetch(word);
                Home::ELSEWHERE
            }
        }
    }

    /// Finds the entry whose word is `word` and for which `same` holds. Not for the insert
    /// step.
    #[inline]
    pub fn find(&self, word: u64, same: impl FnMut(EntryId) -> bool) -> Option<EntryId> {
        of_either!(self, index => index.find(word, same))
    }

    /// Finds the first entry that may have the word: where the index has words and these are exact,
    /// the only one that has. Not for the insert step.
    #[inline]
    pub fn find_first(&self, word: u64) -> Option<EntryId> {
        of_either!(self, index => index.find_first(word))
    }

    /// Finds the entry whose word is `word` and for which `same` holds, or else makes sure that
    /// only the caller adds it. For the insert step, from any number of threads.
    #[inline]
    pub fn find_or_begin(
        &self,
        word: u64,
        same: impl FnMut(EntryId) -> bool,
    ) -> Result<EntryId, VacantEntry<'_>> {
        match self {
            Self::Words(index) => index.find_or_begin(word, same).map_err(VacantEntry::Words),
            Self::Tags(index) => index.find_or_begin(word, same).map_err(VacantEntry::Tags),
        }
    }

    /// [`HashIndex::find_or_begin`] where the index has words and these are exact.
    #[inline]
    pub fn find_exact_or_begin(&self, word: u64) -> Result<EntryId, Vacant<'_, Words>> {
        match self {
            Self::Words(index) => index.find_exact_or_begin(word),
            Self::Tags(_) => unreachable!("an index with tags has no exact words"),
        }
    }

    /// Adds an entry whose key is known to be new, as at recovery. From any number of threads.
    pub fn insert_unique(&self, word: u64, id: EntryId) {
        of_either!(self, index => index.insert_unique(word, id));
    }

    /// Makes room for `additional` entries more, so that adding them does not grow the index
    /// step by step. For the phases in which it changes.
    pub fn reserve(&self, additional: usize) {
        of_either!(self, index => index.reserve(additional));
    }

    /// Removes the entry `id` of `word`; returns whether it was there. For the time after
    /// execution, from any number of threads.
    pub fn remove(&self, word: u64, id: EntryId) -> bool {
        of_either!(self, index => index.remove(word, id))
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        of_either!(self, index => index.len())
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the index takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        of_either!(self, index => index.memory_bytes())
    }

    /// What of it is a part of the image.
    #[must_use]
    pub fn image_bytes(&self) -> usize {
        of_either!(self, index => index.image_bytes())
    }

    /// Visits every entry, with its word if the index has words, in no particular order: the order
    /// depends on how the index came about and must decide nothing. Not for the insert step.
    pub fn for_each(&self, mut visit: impl FnMut(Option<u64>, EntryId)) {
        (0..=u8::MAX).for_each(|shard| self.for_each_in(shard, &mut visit));
    }

    /// [`HashIndex::for_each`] for the entries of a shard: those of the words of which it is the
    /// [`shard_of_word`]. Words stay in their shard as the index grows.
    ///
    /// [`shard_of_word`]: HashIndex::shard_of_word
    pub fn for_each_in(&self, shard: u8, visit: impl FnMut(Option<u64>, EntryId)) {
        of_either!(self, index => index.for_each_in(shard, visit));
    }

    /// The shard of a word.
    #[must_use]
    pub fn shard_of_word(word: u64) -> u8 {
        Mixed::of(word).shard() as u8
    }
}

/// A word that is not in the index yet. Its shard is locked meanwhile, so of all threads that
/// come with one key exactly one has this, and must not use the index in another way.
#[derive(Debug)]
#[must_use = "nothing is added until it is filled"]
pub enum VacantEntry<'i> {
    /// Of an index with words.
    Words(Vacant<'i, Words>),
    /// Of one with tags.
    Tags(Vacant<'i, Tags>),
}

impl VacantEntry<'_> {
    /// Adds the word's entry.
    #[inline(always)]
    pub fn fill(self, id: EntryId) {
        match self {
            Self::Words(vacant) => vacant.fill(id),
            Self::Tags(vacant) => vacant.fill(id),
        }
    }
}

#[cfg(test)]
mod tests;
