//! Buckets of one cache line and what is done with an array of them.
//!
//! An entry lives in its home bucket or, where that is full, in the next that is not. The
//! invariant: every bucket from an entry's home up to the one before its own is full. A search
//! therefore ends at the first bucket with room, and a removal moves later entries up instead
//! of leaving a mark, so that any number of removals costs nothing afterwards.
//!
//! All functions take arrays whose length is a power of two and of which at least one bucket
//! has room; the table's load limit sees to that.

use super::super::EntryId;

/// Entries in a bucket.
pub(super) const SLOTS_COUNT: usize = 4;

/// The id of a slot that is free.
pub(super) const NOBODY: EntryId = EntryId(u32::MAX);

/// One cache line of entries; the first `used` are there.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Bucket {
    words: [u64; SLOTS_COUNT],
    /// The complements of the ids: a free slot has 0, [`NOBODY`]'s.
    ids: [u32; SLOTS_COUNT],
    used: u32,
}

const _: () = {
    assert!(size_of::<Bucket>() == 64);
    assert!(align_of::<Bucket>() == 64);
};

impl Bucket {
    /// A bucket without entries; its bytes are all zero.
    pub(super) const EMPTY: Self = Self { words: [0; SLOTS_COUNT], ids: [0; SLOTS_COUNT], used: 0 };

    /// The entries in it.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, EntryId)> {
        let entry = |slot| (self.words[slot], self.id(slot));
        (0..self.used as usize).map(entry)
    }

    /// How many entries are in it, if there can be so many.
    pub(super) fn count(&self) -> Option<usize> {
        Some(self.used as usize).filter(|used| *used <= SLOTS_COUNT)
    }

    #[inline]
    pub(super) fn id(&self, slot: usize) -> EntryId {
        EntryId(!self.ids[slot])
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.used as usize == SLOTS_COUNT
    }

    /// A bit for each slot that has this word. No branch depends on which slot that is, because
    /// that cannot be predicted.
    #[inline]
    fn slots_with(&self, word: u64) -> u32 {
        let allocated = (1 << self.used) - 1;
        self.slots_equal(word) & allocated
    }

    /// The same, with free slots that had it once.
    #[inline]
    fn slots_equal(&self, word: u64) -> u32 {
        let equal = |slot: usize| u32::from(self.words[slot] == word) << slot;
        (0..SLOTS_COUNT).fold(0, |slots, slot| slots | equal(slot))
    }

    /// The entry of a word that is exact, or [`NOBODY`]. What a slot held before is told from what
    /// it holds by its id, and comes after all that are used.
    #[inline]
    pub(super) fn find_exact(&self, word: u64) -> EntryId {
        match self.slots_equal(word) {
            0 => NOBODY,
            slots => self.id(slots.trailing_zeros() as usize % SLOTS_COUNT),
        }
    }

    #[inline]
    fn push(&mut self, word: u64, id: EntryId) {
        let slot = self.used as usize;
        assert!(slot < SLOTS_COUNT, "a bucket is full");
        self.words[slot] = word;
        self.ids[slot] = !id.0;
        self.used += 1;
    }

    /// Takes the entry out of `slot`; the last one moves there.
    fn swap_remove(&mut self, slot: usize) -> (u64, EntryId) {
        let last = self.used as usize - 1;
        assert!(slot <= last, "an entry that is removed is in its bucket");
        let allocated = (self.words[slot], self.id(slot));
        self.words[slot] = self.words[last];
        self.ids[slot] = self.ids[last];
        self.ids[last] = 0;
        self.used -= 1;
        allocated
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

/// The bucket where a word belongs in an array of `mask + 1`.
#[inline]
pub(super) fn home_of(word: u64, mask: usize) -> usize {
    mix(word) as usize & mask
}

/// Finds the entry that has this word and passes `same`.
#[inline]
pub(super) fn find(
    buckets: &[Bucket],
    mixed: u64,
    word: u64,
    same: impl FnMut(EntryId) -> bool,
) -> Option<EntryId> {
    locate(buckets, mixed, word, same).ok().map(|(at, slot)| buckets[at].id(slot))
}

/// Finds the entry that has this word where words are exact, or else the bucket that has room.
#[inline]
pub(super) fn find_exact_or_room(
    buckets: &[Bucket],
    mixed: u64,
    word: u64,
) -> Result<EntryId, usize> {
    let mask = buckets.len() - 1;
    let mut at = mixed as usize & mask;
    loop {
        let bucket = &buckets[at];
        let found = bucket.find_exact(word);
        if found != NOBODY {
            return Ok(found);
        }
        if !bucket.is_full() {
            return Err(at);
        }
        at = (at + 1) & mask;
    }
}

/// Finds the bucket and the slot of the entry that has this word and passes `same`, or else the
/// bucket that has room for it.
#[inline]
pub(super) fn locate(
    buckets: &[Bucket],
    mixed: u64,
    word: u64,
    mut same: impl FnMut(EntryId) -> bool,
) -> Result<(usize, usize), usize> {
    let mask = buckets.len() - 1;
    let mut at = mixed as usize & mask;
    loop {
        let bucket = &buckets[at];
        let mut slots = bucket.slots_with(word);
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
        at = (at + 1) & mask;
    }
}

/// Adds an entry to a bucket that has room for it.
#[inline]
pub(super) fn place_at(
    buckets: &mut [Bucket],
    at: usize,
    word: u64,
    id: EntryId,
    before: impl Fn(*const Bucket),
) {
    before(&raw const buckets[at]);
    buckets[at].push(word, id);
}

/// Adds an entry. `before` hears of the bucket that changes next.
pub(super) fn place(
    buckets: &mut [Bucket],
    word: u64,
    id: EntryId,
    before: impl Fn(*const Bucket),
) {
    let mask = buckets.len() - 1;
    let home = home_of(word, mask);
    let mut at = home;
    while buckets[at].is_full() {
        at = (at + 1) & mask;
        assert!(at != home, "an array has a bucket with room");
    }
    before(&raw const buckets[at]);
    buckets[at].push(word, id);
}

/// Removes the entry in `slot` of the bucket `hole` and restores the invariant. `before` hears of
/// each bucket that changes next.
pub(super) fn remove_at(
    buckets: &mut [Bucket],
    mut hole: usize,
    mut slot: usize,
    before: impl Fn(*const Bucket),
) {
    assert!(buckets.len().is_power_of_two(), "a bucket is found by a mask");
    loop {
        let was_full = buckets[hole].is_full();
        before(&raw const buckets[hole]);
        buckets[hole].swap_remove(slot);
        // Where there was room before, nothing had to go further.
        if !was_full {
            return;
        }
        let Some((from, moved)) = find_displaced(buckets, hole) else { return };
        let (word, id) = (buckets[from].words[moved], buckets[from].id(moved));
        buckets[hole].push(word, id);
        (hole, slot) = (from, moved);
    }
}

/// Finds the next entry after `hole` that would be in it, had there been room.
fn find_displaced(buckets: &[Bucket], hole: usize) -> Option<(usize, usize)> {
    let mask = buckets.len() - 1;
    let mut at = (hole + 1) & mask;
    loop {
        let past_hole = at.wrapping_sub(hole) & mask;
        let displaced = buckets[at]
            .entries()
            .position(|(word, _)| at.wrapping_sub(home_of(word, mask)) & mask >= past_hole);
        if let Some(slot) = displaced {
            return Some((at, slot));
        }
        if !buckets[at].is_full() {
            return None;
        }
        at = (at + 1) & mask;
    }
}

/// Panics unless the invariant holds; for tests.
#[cfg(test)]
pub(super) fn check(buckets: &[Bucket]) {
    let mask = buckets.len() - 1;
    for (own, bucket) in buckets.iter().enumerate() {
        for (word, _) in bucket.entries() {
            let mut at = home_of(word, mask);
            while at != own {
                assert!(buckets[at].is_full());
                at = (at + 1) & mask;
            }
        }
    }
}
