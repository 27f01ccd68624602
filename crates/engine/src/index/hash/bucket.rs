//! Buckets of one cache line, and what is done with an array of them.
//!
//! An entry lives in its home bucket or, where that is full, in the next that is not. The
//! invariant: every bucket from an entry's home up to the one before its own is full. A search
//! therefore ends at the first bucket with room, and a removal moves later entries up instead
//! of leaving a mark, so that any number of removals costs nothing afterwards.
//!
//! All functions take arrays of which at least one bucket has room; the table's load limit sees to
//! that. There are two kinds of buckets, for a word as a whole (`words.rs`) and for a part of it
//! (`tags.rs`).

use super::super::EntryId;

/// A power of two; enough that workers seldom meet at a lock, and few enough that the heads of
/// all shards take 4 KiB.
pub(super) const SHARDS_COUNT: usize = 256;
const _: () = assert!(SHARDS_COUNT == 1 << u8::BITS);

/// The id of a slot that is free.
pub(super) const NOBODY: EntryId = EntryId(u32::MAX);

/// A word, and what [`mix`] makes of it.
#[derive(Debug, Clone, Copy)]
pub struct Mixed {
    pub(super) word: u64,
    pub(super) mixed: u64,
}

impl Mixed {
    #[inline]
    pub(super) fn of(word: u64) -> Self {
        Self { word, mixed: mix(word) }
    }

    /// The number of its shard: the high bits, since the low ones choose the bucket.
    #[inline]
    pub(super) fn shard(self) -> usize {
        (self.mixed >> (u64::BITS - SHARDS_COUNT.ilog2())) as usize
    }
}

/// One cache line of entries, the first of its slots in use. A bucket without entries has zeros.
pub trait Bucket: Sized + Send + Sync + std::fmt::Debug + 'static {
    /// Entries in a bucket.
    const SLOTS: usize;
    const EMPTY: &'static Self;
    /// Thousandths of the slots that an array of more than a page may use when it grows: those of
    /// the first and of the last shard.
    const LOADS: (usize, usize);
    /// What an entry has of its word.
    type Mark: Copy + Eq + std::fmt::Debug;

    fn mark_of(word: Mixed) -> Self::Mark;

    /// The word of an entry, if it has all of it.
    fn word_of(mark: Self::Mark) -> Option<u64>;

    /// The bucket where a mixed word belongs in an array of `last + 1`.
    fn home_of_mixed(mixed: u64, last: usize) -> usize;

    /// The same for the word of an entry.
    fn home_of(mark: Self::Mark, last: usize) -> usize;

    /// The length of the next larger array.
    fn next_count(count: usize) -> usize;

    /// Whether there are arrays of this length.
    fn can_be_count(count: usize) -> bool;

    /// How many entries are in it, if it can be so.
    fn count(&self) -> Option<usize>;

    fn is_full(&self) -> bool;

    fn mark(&self, slot: usize) -> Self::Mark;

    fn id(&self, slot: usize) -> EntryId;

    /// A bit for each slot in use that has this mark. No branch depends on which slot that is,
    /// because that cannot be predicted.
    fn slots_with(&self, mark: Self::Mark) -> u32;

    /// The first entry with this mark, or [`NOBODY`].
    fn find_first(&self, mark: Self::Mark) -> EntryId;

    /// Adds an entry to one that is not full.
    fn push(&mut self, mark: Self::Mark, id: EntryId);

    /// Takes the entry out of `slot`; the last one moves there.
    fn swap_remove(&mut self, slot: usize);

    /// How many entries are in one whose count can be.
    fn used(&self) -> usize {
        self.count().map_or(0, |count| count)
    }

    /// The entries in it.
    fn entries(&self) -> impl Iterator<Item = (Self::Mark, EntryId)> {
        (0..self.used()).map(|slot| (self.mark(slot), self.id(slot)))
    }
}

/// Spreads the bits of a word: its high bits choose the shard and its low bits the bucket.
///
/// Words are often consecutive, or equal but for a few bits anywhere; folding the halves of a
/// product lets every bit of the word reach both ends. There is no secret in it: who can choose
/// exact words can make them collide, which costs time and nothing else.
#[inline]
pub(super) fn mix(word: u64) -> u64 {
    let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product as u64) ^ ((product >> 64) as u64)
}

/// The bucket behind another one.
#[inline]
fn next(at: usize, last: usize) -> usize {
    if at == last { 0 } else { at + 1 }
}

/// How many buckets one is behind another.
#[inline]
fn distance(from: usize, to: usize, last: usize) -> usize {
    if to >= from { to - from } else { to + last + 1 - from }
}

/// Finds the entry that has this word's mark and passes `same`.
#[inline]
pub(super) fn find<B: Bucket>(
    buckets: &[B],
    word: Mixed,
    same: impl FnMut(EntryId) -> bool,
) -> Option<EntryId> {
    locate(buckets, word, same).ok().map(|(at, slot)| buckets[at].id(slot))
}

/// Finds the first entry that has this word's mark, or else the bucket that has room.
#[inline]
pub(super) fn find_first_or_room<B: Bucket>(buckets: &[B], word: Mixed) -> Result<EntryId, usize> {
    let last = buckets.len() - 1;
    let mark = B::mark_of(word);
    let mut at = B::home_of_mixed(word.mixed, last);
    loop {
        let bucket = &buckets[at];
        let found = bucket.find_first(mark);
        if found != NOBODY {
            return Ok(found);
        }
        if !bucket.is_full() {
            return Err(at);
        }
        at = next(at, last);
    }
}

/// Finds the bucket and the slot of the entry that has this word's mark and passes `same`, or else
/// the bucket that has room for it.
#[inline]
pub(super) fn locate<B: Bucket>(
    buckets: &[B],
    word: Mixed,
    mut same: impl FnMut(EntryId) -> bool,
) -> Result<(usize, usize), usize> {
    let last = buckets.len() - 1;
    let mark = B::mark_of(word);
    let mut at = B::home_of_mixed(word.mixed, last);
    loop {
        let bucket = &buckets[at];
        let mut slots = bucket.slots_with(mark);
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            if same(bucket.id(slot)) {
                return Ok((at, slot));
            }
            slots &= slots - 1;
        }
        if !bucket.is_full() {
            return Err(at);
        }
        at = next(at, last);
    }
}

/// Adds an entry to a bucket that has room for it. `before` hears of the bucket that changes next.
#[inline]
pub(super) fn place_at<B: Bucket>(
    buckets: &mut [B],
    at: usize,
    mark: B::Mark,
    id: EntryId,
    before: impl Fn(*const B),
) {
    before(&raw const buckets[at]);
    buckets[at].push(mark, id);
}

/// Adds an entry. `before` hears of the bucket that changes next.
pub(super) fn place<B: Bucket>(
    buckets: &mut [B],
    mark: B::Mark,
    id: EntryId,
    before: impl Fn(*const B),
) {
    let last = buckets.len() - 1;
    let home = B::home_of(mark, last);
    let mut at = home;
    while buckets[at].is_full() {
        at = next(at, last);
        assert!(at != home, "an array has a bucket with room");
    }
    place_at(buckets, at, mark, id, before);
}

/// Removes the entry in `slot` of the bucket `hole` and restores the invariant. `before` hears of
/// each bucket that changes next.
pub(super) fn remove_at<B: Bucket>(
    buckets: &mut [B],
    mut hole: usize,
    mut slot: usize,
    before: impl Fn(*const B),
) {
    loop {
        let was_full = buckets[hole].is_full();
        before(&raw const buckets[hole]);
        buckets[hole].swap_remove(slot);
        // Where there was room before, nothing had to go further.
        if !was_full {
            return;
        }
        let Some((from, moved)) = find_displaced(buckets, hole) else { return };
        let (mark, id) = (buckets[from].mark(moved), buckets[from].id(moved));
        buckets[hole].push(mark, id);
        (hole, slot) = (from, moved);
    }
}

/// Finds the next entry after `hole` that would be in it, had there been room.
fn find_displaced<B: Bucket>(buckets: &[B], hole: usize) -> Option<(usize, usize)> {
    let last = buckets.len() - 1;
    let mut at = next(hole, last);
    while at != hole {
        let past_hole = distance(hole, at, last);
        let displaced = buckets[at]
            .entries()
            .position(|(mark, _)| distance(B::home_of(mark, last), at, last) >= past_hole);
        if let Some(slot) = displaced {
            return Some((at, slot));
        }
        if !buckets[at].is_full() {
            return None;
        }
        at = next(at, last);
    }
    None
}

/// Panics unless the invariant holds; for tests.
#[cfg(test)]
pub(super) fn check<B: Bucket>(buckets: &[B]) {
    let last = buckets.len() - 1;
    for (own, bucket) in buckets.iter().enumerate() {
        for (mark, _) in bucket.entries() {
            let mut at = B::home_of(mark, last);
            while at != own {
                assert!(buckets[at].is_full());
                at = next(at, last);
            }
        }
    }
}
