//! All shards of a hash index with buckets of one kind.

use std::sync::Arc;

use pmem::sync::atomic::{AtomicUsize, Ordering};

use super::super::EntryId;
use super::super::arena::Arena;
use super::super::memory::LINE_BYTES;
use super::super::phase::{Inside, PhaseCheck};
use super::super::space::IndexSpace;
use super::bucket::{self, Bucket, Mixed, NOBODY, SHARDS_COUNT};
use super::shard::{Head, Lock, Locked};
use super::words::Words;

/// For so few new entries, in an index with arrays no larger than this, no shard is looked at to
/// find out what they may take.
const FEW: usize = 8;
const SMALL_BYTES: usize = 8 << 10;

/// Where a shard has its array in the image, of how many buckets, and with how many entries; zeros
/// for one without memory.
pub type KeptShard = [u64; 3];

/// Shards of buckets of one kind. What is public here is [`super::HashIndex`]'s.
#[derive(Debug)]
pub struct Shards<B> {
    pub(super) heads: Box<[Head<B>; SHARDS_COUNT]>,
    locks: Box<[Lock; SHARDS_COUNT]>,
    /// Owns the memory that the heads point to.
    arena: Arena,
    /// So many entries may be added before any shard can grow.
    room: AtomicUsize,
    phase: PhaseCheck,
}

/// One for each shard, made where they stay: explored threads have small stacks.
fn of_shards<T: Default>() -> Box<[T; SHARDS_COUNT]> {
    let all: Box<[T]> = (0..SHARDS_COUNT).map(|_| T::default()).collect();
    all.try_into().ok().expect("as many as there are shards")
}

impl<B: Bucket> Shards<B> {
    pub(super) fn new_in(space: Option<Arc<IndexSpace>>) -> Self {
        Self {
            heads: of_shards(),
            locks: of_shards(),
            arena: Arena::over(space),
            room: AtomicUsize::new(0),
            phase: PhaseCheck::default(),
        }
    }

    pub(super) fn attach(&self, shards: &[KeptShard]) -> bool {
        let _inside = self.phase.change();
        let attach = |(number, &[offset, count, len]): (usize, &KeptShard)| {
            count == 0 || self.lock(number).attach(offset, count as usize, len as usize)
        };
        shards.len() == SHARDS_COUNT && shards.iter().enumerate().all(attach)
    }

    pub(super) fn kept(&self) -> Option<Vec<KeptShard>> {
        (0..SHARDS_COUNT).map(|shard| self.lock(shard).kept()).collect()
    }

    pub(super) fn is_sound(&self) -> bool {
        (0..SHARDS_COUNT).all(|shard| {
            let shard = self.lock(shard);
            let mut counts = shard.buckets().iter().map(B::count);
            counts.try_fold(0, |sum, count| Some(sum + count?)) == Some(shard.len())
        })
    }

    pub(super) fn growth(&self, additional: usize, blocks: &mut Vec<u64>) {
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

    pub(super) fn visit_outgrown(&self, additional: usize, mut visit: impl FnMut(usize, usize)) {
        let share = largest_share(additional);
        for shard in 0..SHARDS_COUNT {
            let shard = self.lock(shard);
            let bytes = size_of_val(shard.buckets());
            if bytes as u64 > pmem::PAGE_BYTES && shard.growth(shard.len() + share).next().is_some()
            {
                visit(shard.buckets().as_ptr().addr(), bytes);
            }
        }
    }

    #[inline]
    pub(super) fn prefetch(&self, word: u64) {
        let word = Mixed::of(word);
        self.heads[word.shard()].prefetch(word.mixed);
    }

    #[inline]
    pub(super) fn prefetch_to_add(&self, word: u64) {
        let word = Mixed::of(word);
        pmem::prefetch_to_write(std::ptr::from_ref(&self.locks[word.shard()]).addr());
        self.heads[word.shard()].prefetch(word.mixed);
    }

    pub(super) fn address_of(&self, word: u64) -> usize {
        let word = Mixed::of(word);
        self.heads[word.shard()].address_of(word.mixed)
    }

    #[inline]
    pub(super) fn find(&self, word: u64, same: impl FnMut(EntryId) -> bool) -> Option<EntryId> {
        let _inside = self.phase.read();
        let word = Mixed::of(word);
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let buckets = unsafe { self.heads[word.shard()].buckets() };
        bucket::find(buckets, word, same)
    }

    #[inline]
    pub(super) fn find_first(&self, word: u64) -> Option<EntryId> {
        let _inside = self.phase.read();
        let of_word = Mixed::of(word);
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let home = unsafe { self.heads[of_word.shard()].home(of_word.mixed) };
        match home.find_first(B::mark_of(of_word)) {
            NOBODY if home.is_full() => self.find_further(word),
            found => (found != NOBODY).then_some(found),
        }
    }

    /// [`Shards::find_first`] where the first bucket is full of others.
    #[inline(never)]
    fn find_further(&self, word: u64) -> Option<EntryId> {
        let _inside = self.phase.read();
        let word = Mixed::of(word);
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let buckets = unsafe { self.heads[word.shard()].buckets() };
        bucket::find_first_or_room(buckets, word).ok()
    }

    #[inline]
    pub(super) fn find_or_begin(
        &self,
        word: u64,
        same: impl FnMut(EntryId) -> bool,
    ) -> Result<EntryId, Vacant<'_, B>> {
        let inside = self.phase.change();
        let word = Mixed::of(word);
        let shard = self.lock(word.shard());
        match bucket::locate(shard.buckets(), word, same) {
            Ok((at, slot)) => Ok(shard.buckets()[at].id(slot)),
            Err(at) => Err(Vacant { shard, at, mark: B::mark_of(word), _inside: inside }),
        }
    }

    #[inline]
    pub(super) fn find_exact_or_begin(&self, word: u64) -> Result<EntryId, Vacant<'_, B>> {
        let inside = self.phase.change();
        let word = Mixed::of(word);
        let shard = self.lock(word.shard());
        bucket::find_first_or_room(shard.buckets(), word).map_err(|at| Vacant {
            shard,
            at,
            mark: B::mark_of(word),
            _inside: inside,
        })
    }

    pub(super) fn insert_unique(&self, word: u64, id: EntryId) {
        assert!(id != NOBODY, "the entry of a key is one");
        let _inside = self.phase.change();
        let word = Mixed::of(word);
        self.lock(word.shard()).insert(B::mark_of(word), id);
    }

    pub(super) fn reserve(&self, additional: usize) {
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

    pub(super) fn remove(&self, word: u64, id: EntryId) -> bool {
        let _inside = self.phase.change();
        let word = Mixed::of(word);
        self.lock(word.shard()).remove(word, id)
    }

    pub(super) fn len(&self) -> usize {
        self.locks.iter().map(Lock::len).sum()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + SHARDS_COUNT * (size_of::<Head<B>>() + size_of::<Lock>())
            + self.arena.memory_bytes()
    }

    pub(super) fn image_bytes(&self) -> usize {
        self.arena.image_bytes()
    }

    pub(super) fn for_each_in(&self, shard: u8, mut visit: impl FnMut(Option<u64>, EntryId)) {
        let _inside = self.phase.read();
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let buckets = unsafe { self.heads[usize::from(shard)].buckets() };
        buckets.iter().flat_map(B::entries).for_each(|(mark, id)| visit(B::word_of(mark), id));
    }

    #[inline]
    fn lock(&self, shard: usize) -> Locked<'_, B> {
        self.locks[shard].acquire(&self.heads[shard], &self.arena, shard)
    }
}

/// See [`super::VacantEntry`], which is of either kind.
#[derive(Debug)]
pub struct Vacant<'i, B: Bucket> {
    shard: Locked<'i, B>,
    /// The bucket with room.
    at: usize,
    mark: B::Mark,
    _inside: Inside<'i>,
}

impl<B: Bucket> Vacant<'_, B> {
    /// Adds the word's entry.
    #[inline(always)]
    pub fn fill(self, id: EntryId) {
        assert!(id != NOBODY, "the entry of a key is one");
        self.shard.insert_at(self.at, self.mark, id);
    }
}

/// The bucket in which the search for a word begins, as long as the index does not change.
#[derive(Debug)]
pub struct Home<'i> {
    bucket: &'i Words,
    _inside: Inside<'i>,
}

impl Home<'_> {
    /// That of any word in an index without entries.
    pub const NOWHERE: Self = Self { bucket: Words::EMPTY, _inside: Inside::NOWHERE };

    /// That of any word in an index without words: it is not here, and does not end here.
    pub const ELSEWHERE: Self = Self { bucket: Words::FULL, _inside: Inside::NOWHERE };

    /// The entry of the word whose home this is, if it is here and words are exact.
    #[inline]
    pub fn find_exact(&self, word: u64) -> Option<EntryId> {
        let found = self.bucket.find_first(word);
        (found != NOBODY).then_some(found)
    }

    /// Whether a word that is not here is nowhere.
    #[inline]
    pub fn ends(&self) -> bool {
        !self.bucket.is_full()
    }
}

impl Shards<Words> {
    /// Where the search for `word` begins, and asks for its line. Not for the insert step.
    #[inline]
    pub(super) fn home(&self, word: u64) -> Home<'_> {
        let inside = self.phase.read();
        let word = Mixed::of(word);
        // SAFETY: this is a phase without changes, as the check asserts in debug builds.
        let bucket = unsafe { self.heads[word.shard()].home(word.mixed) };
        pmem::prefetch(std::ptr::from_ref(bucket).addr());
        Home { bucket, _inside: inside }
    }
}

/// How many of some new entries a shard gets, unless by an unlikely chance.
fn largest_share(additional: usize) -> usize {
    let share = additional / SHARDS_COUNT;
    additional.min(share + 6 * (share.isqrt() + 2))
}
