//! The hash index: where the entry of one key is.
//!
//! The high bits of a mixed word choose one of [`SHARDS_COUNT`] shards and the low bits one of
//! its buckets, each a cache line of four entries. A search reads the bucket and, where it is
//! full, the next ones; a caller with many keys asks for a group of lines with
//! [`HashIndex::prefetch`], 16 to 32 at a time, before it finds each. In the insert step and
//! after execution a shard changes only under its lock; in between nothing takes a lock.

mod bucket;
mod shard;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use pmem::sync::atomic::{AtomicUsize, Ordering};

use super::EntryId;
use super::arena::Arena;
use super::memory::LINE_BYTES;
use super::phase::{Inside, PhaseCheck};
use super::space::IndexSpace;
use bucket::{Bucket, NOBODY};
use shard::{Head, Lock, Locked, NOTHING};

/// A power of two; enough that workers seldom meet at a lock, and few enough that the heads of
/// all shards take 4 KiB.
const SHARDS_COUNT: usize = 256;
const _: () = assert!(SHARDS_COUNT == 1 << u8::BITS);

/// For so few new entries, in an index with arrays no larger than this, no shard is looked at to
/// find out what they may take.
const FEW: usize = 8;
const SMALL_BYTES: usize = 8 << 10;

/// An index from words to entries for point lookups.
///
/// See the [module](super) for words and for when what may be called.
#[derive(Debug)]
pub struct HashIndex {
    heads: Box<[Head; SHARDS_COUNT]>,
    locks: Box<[Lock; SHARDS_COUNT]>,
    /// Owns the memory that the heads point to.
    arena: Arena,
    /// So many entries may be added before any shard can grow.
    room: AtomicUsize,
    phase: PhaseCheck,
}

/// Where a shard has its array in the image, of how many buckets, and with how many entries; zeros
/// for one without memory.
pub type KeptShard = [u64; 3];

/// One for each shard, made where they stay: explored threads have small stacks.
fn of_shards<T: Default>() -> Box<[T; SHARDS_COUNT]> {
    let all: Box<[T]> = (0..SHARDS_COUNT).map(|_| T::default()).collect();
    all.try_into().ok().expect("as many as there are shards")
}

impl HashIndex {
    /// An empty index with room for `capacity_hint` entries; it grows beyond as needed.
    #[must_use]
    pub fn new(capacity_hint: usize) -> Self {
        let index = Self::new_in(None);
        index.reserve(capacity_hint);
        index
    }

    /// An empty index with its memory in the image, if there is room.
    #[must_use]
    pub fn new_in(space: Option<Arc<IndexSpace>>) -> Self {
        Self {
            heads: of_shards(),
            locks: of_shards(),
            arena: Arena::over(space),
            room: AtomicUsize::new(0),
            phase: PhaseCheck::default(),
        }
    }

    /// Takes over the arrays of an index that was kept, which has no entry yet. False if they are
    /// not where that says; the index is of no use then.
    #[must_use]
    pub fn attach(&self, shards: &[KeptShard]) -> bool {
        let _inside = self.phase.change();
        let attach = |(number, &[offset, count, len]): (usize, &KeptShard)| {
            count == 0 || self.lock(number).attach(offset, count as usize, len as usize)
        };
        shards.len() == SHARDS_COUNT && shards.iter().enumerate().all(attach)
    }

    /// Where the arrays are; `None` if not all are in the image.
    #[must_use]
    pub fn kept(&self) -> Option<Vec<KeptShard>> {
        (0..SHARDS_COUNT).map(|shard| self.lock(shard).kept()).collect()
    }

    /// Whether attached arrays hold what they can, so that searches end: they come from
    /// a file.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        (0..SHARDS_COUNT).all(|shard| {
            let shard = self.lock(shard);
            let mut counts = shard.buckets().iter().map(Bucket::count);
            counts.try_fold(0, |sum, count| Some(sum + count?)) == Some(shard.len())
        })
    }

    /// Adds the sizes of the blocks that so many new entries take, unless by an unlikely chance one
    /// shard gets much more than its share.
    pub fn growth(&self, additional: usize, blocks: &mut Vec<u64>) {
        let room = self.room.load(Ordering::Relaxed);
        self.room.store(room.saturating_sub(additional), Ordering::Relaxed);
        let largest = self.arena.largest();
        if additional <= room {
            return;
        }
        if additional <= FEW && largest <= SMALL_BYTES {
            // Whichever shards they go to.
            let block = (4 * largest).max(8 * LINE_BYTES) as u64;
            return blocks.extend(std::iter::repeat_n(block, additional));
        }
        let share = largest_share(additional);
        let mut room = usize::MAX;
        for shard in 0..SHARDS_COUNT {
            let shard = self.lock(shard);
            room = room.min(shard.room());
            blocks.extend(shard.growth(shard.len() + share));
        }
        self.room.store(room.saturating_sub(additional), Ordering::Relaxed);
    }

    /// Visits the arrays of more than a page that so many new entries may outgrow: where each is,
    /// and its bytes. The insert step reads all of them. Not while entries are added or removed.
    pub fn visit_outgrown(&self, additional: usize, mut visit: impl FnMut(usize, usize)) {
        let share = largest_share(additional);
        for shard in 0..SHARDS_COUNT {
            let shard = self.lock(shard);
            let bytes = size_of_val(shard.buckets());
            if bytes as u64 > pmem::PAGE_BYTES && shard.growth(shard.len() + share).is_some() {
                visit(shard.buckets().as_ptr().addr(), bytes);
            }
        }
    }

    /// Asks for the cache line where the search for `word` begins: a pure hint, in any phase.
    #[inline]
    pub fn prefetch(&self, word: u64) {
        let mixed = bucket::mix(word);
        self.heads[shard_of(mixed)].prefetch(mixed);
    }

    /// Asks for the lines that adding `word` begins with: a pure hint, in any phase.
    #[inline]
    pub fn prefetch_to_add(&self, word: u64) {
        let mixed = bucket::mix(word);
        let shard = shard_of(mixed);
        pmem::prefetch_to_write(std::ptr::from_ref(&self.locks[shard]).addr());
        self.heads[shard].prefetch(mixed);
    }

    /// Address of the line where the search for `word` begins, of which nothing is read. Not for
    /// the insert step.
    pub fn address_of(&self, word: u64) -> usize {
        let mixed = bucket::mix(word);
        self.heads[shard_of(mixed)].address_of(mixed)
    }

    /// Where the search for `word` begins, and asks for its line. Not for the insert step.
    #[inline]
    pub fn home(&self, word: u64) -> Home<'_> {
        let inside = self.phase.read();
        let mixed = bucket::mix(word);
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let bucket = unsafe { self.heads[shard_of(mixed)].home(mixed) };
        pmem::prefetch(std::ptr::from_ref(bucket).addr());
        Home { bucket, _inside: inside }
    }

    /// Finds the entry whose word is `word` and for which `same` holds. Not for the insert
    /// step.
    #[inline]
    pub fn find(&self, word: u64, same: impl FnMut(EntryId) -> bool) -> Option<EntryId> {
        let _inside = self.phase.read();
        let mixed = bucket::mix(word);
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let buckets = unsafe { self.heads[shard_of(mixed)].buckets() };
        bucket::find(buckets, mixed, word, same)
    }

    /// Finds the entry whose word is `word` where words are exact. Not for the insert step.
    #[inline]
    pub fn find_exact(&self, word: u64) -> Option<EntryId> {
        let inside = self.phase.read();
        let mixed = bucket::mix(word);
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let bucket = unsafe { self.heads[shard_of(mixed)].home(mixed) };
        let home = Home { bucket, _inside: inside };
        let found = home.find_exact(word);
        if found.is_some() || home.ends() { found } else { self.find_further(word) }
    }

    /// [`HashIndex::find_exact`] where the first bucket is full of others.
    #[inline(never)]
    fn find_further(&self, word: u64) -> Option<EntryId> {
        let _inside = self.phase.read();
        let mixed = bucket::mix(word);
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let buckets = unsafe { self.heads[shard_of(mixed)].buckets() };
        bucket::find_exact_or_room(buckets, mixed, word).ok()
    }

    /// Finds the entry whose word is `word` and for which `same` holds, or else makes sure that
    /// only the caller adds it. For the insert step, from any number of threads.
    #[inline]
    pub fn find_or_begin(
        &self,
        word: u64,
        same: impl FnMut(EntryId) -> bool,
    ) -> Result<EntryId, VacantEntry<'_>> {
        let inside = self.phase.change();
        let mixed = bucket::mix(word);
        let shard = self.lock(shard_of(mixed));
        match bucket::locate(shard.buckets(), mixed, word, same) {
            Ok((at, slot)) => Ok(shard.buckets()[at].id(slot)),
            Err(at) => Err(VacantEntry { shard, at, word, _inside: inside }),
        }
    }

    /// [`HashIndex::find_or_begin`] where words are exact.
    #[inline]
    pub fn find_exact_or_begin(&self, word: u64) -> Result<EntryId, VacantEntry<'_>> {
        let inside = self.phase.change();
        let mixed = bucket::mix(word);
        let shard = self.lock(shard_of(mixed));
        bucket::find_exact_or_room(shard.buckets(), mixed, word).map_err(|at| VacantEntry {
            shard,
            at,
            word,
            _inside: inside,
        })
    }

    /// Adds an entry whose key is known to be new, as at recovery. From any number of threads.
    pub fn insert_unique(&self, word: u64, id: EntryId) {
        assert!(id != NOBODY, "the entry of a key is one");
        let _inside = self.phase.change();
        self.lock(shard_of(bucket::mix(word))).insert(word, id);
    }

    /// Makes room for `additional` entries more, so that adding them does not grow the index
    /// step by step. For the phases in which it changes.
    pub fn reserve(&self, additional: usize) {
        if additional < SHARDS_COUNT {
            // So few that most shards get one at most: each takes its first bucket when it does.
            return;
        }
        let _inside = self.phase.change();
        // Some shards get more than their share: add four times the usual deviation.
        let share = additional / SHARDS_COUNT;
        let room = share + 4 * (share.isqrt() + 1);
        for shard in 0..SHARDS_COUNT {
            let mut shard = self.lock(shard);
            let len = shard.len();
            shard.reserve(len + room);
        }
    }

    /// Removes the entry `id` of `word`; returns whether it was there. For the time after
    /// execution, from any number of threads.
    pub fn remove(&self, word: u64, id: EntryId) -> bool {
        let _inside = self.phase.change();
        let mixed = bucket::mix(word);
        self.lock(shard_of(mixed)).remove(mixed, word, id)
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.locks.iter().map(Lock::len).sum()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the index takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + SHARDS_COUNT * (size_of::<Head>() + size_of::<Lock>())
            + self.arena.memory_bytes()
    }

    /// What of it is a part of the image.
    #[must_use]
    pub fn image_bytes(&self) -> usize {
        self.arena.image_bytes()
    }

    /// Visits every entry, in no particular order: the order depends on how the index came
    /// about and must decide nothing. Not for the insert step.
    pub fn for_each(&self, mut visit: impl FnMut(u64, EntryId)) {
        (0..=u8::MAX).for_each(|shard| self.for_each_in(shard, &mut visit));
    }

    /// Visits the entries of a shard: those of the words of which it is the [`shard_of_word`].
    /// Words stay in their shard as the index grows. Not for the insert step.
    ///
    /// [`shard_of_word`]: HashIndex::shard_of_word
    pub fn for_each_in(&self, shard: u8, mut visit: impl FnMut(u64, EntryId)) {
        let _inside = self.phase.read();
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let buckets = unsafe { self.heads[usize::from(shard)].buckets() };
        buckets.iter().flat_map(Bucket::entries).for_each(|(word, id)| visit(word, id));
    }

    /// Number of shards.
    pub const SHARDS: usize = SHARDS_COUNT;

    /// The shard of a word.
    #[must_use]
    pub fn shard_of_word(word: u64) -> u8 {
        shard_of(bucket::mix(word)) as u8
    }

    #[inline]
    fn lock(&self, shard: usize) -> Locked<'_> {
        self.locks[shard].acquire(&self.heads[shard], &self.arena, shard)
    }
}

/// A word that is not in the index yet. Its shard is locked meanwhile, so of all threads that
/// come with one key exactly one has this, and must not use the index in another way.
#[derive(Debug)]
#[must_use = "nothing is added until it is filled"]
pub struct VacantEntry<'i> {
    shard: Locked<'i>,
    /// The bucket with room.
    at: usize,
    word: u64,
    _inside: Inside<'i>,
}

impl VacantEntry<'_> {
    /// Adds the word's entry.
    #[inline(always)]
    pub fn fill(self, id: EntryId) {
        assert!(id != NOBODY, "the entry of a key is one");
        self.shard.insert_at(self.at, self.word, id);
    }
}

/// The bucket in which the search for a word begins, as long as the index does not change.
#[derive(Debug)]
pub struct Home<'i> {
    bucket: &'i Bucket,
    _inside: Inside<'i>,
}

impl Home<'_> {
    /// That of any word in an index without entries.
    pub const NOWHERE: Self = Self { bucket: &NOTHING, _inside: Inside::NOWHERE };

    /// The entry of the word whose home this is, if it is here and words are exact.
    #[inline]
    pub fn find_exact(&self, word: u64) -> Option<EntryId> {
        let found = self.bucket.find_exact(word);
        (found != NOBODY).then_some(found)
    }

    /// Whether a word that is not here is nowhere.
    #[inline]
    pub fn ends(&self) -> bool {
        !self.bucket.is_full()
    }
}

/// How many of some new entries a shard gets, unless by an unlikely chance.
fn largest_share(additional: usize) -> usize {
    let share = additional / SHARDS_COUNT;
    additional.min(share + 6 * (share.isqrt() + 2))
}

/// The shard of a mixed word: its high bits, since the low ones choose the bucket.
#[inline]
fn shard_of(mixed: u64) -> usize {
    (mixed >> (u64::BITS - SHARDS_COUNT.ilog2())) as usize
}
