//! Buckets of eight entries with half of the mixed word each, its *tag*: half as large as those
//! with words. The number of the shard and the tag are 40 bits, so that a search meets hardly any
//! row but that of its key; but it has to look at the row, which has the key, to know.
//!
//! Arrays have lengths of `2^n` and `3 * 2^n`, and are filled further than those with words: an
//! entry takes 9 to 15 bytes, some 11 of all shards together.

use super::super::EntryId;
use super::bucket::{Bucket, Mixed, NOBODY};

const SLOTS_COUNT: usize = 8;

/// One cache line of entries.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Tags {
    tags: [u32; SLOTS_COUNT],
    /// The complements of the ids: a free slot has 0, [`NOBODY`]'s, and so have all behind it.
    ids: [u32; SLOTS_COUNT],
}

const _: () = {
    assert!(size_of::<Tags>() == 64);
    assert!(align_of::<Tags>() == 64);
};

impl Tags {
    /// A bit for each slot in use.
    #[inline]
    fn slots_used(&self) -> u32 {
        let is_used = |slot: usize| u32::from(self.ids[slot] != 0) << slot;
        (0..SLOTS_COUNT).fold(0, |slots, slot| slots | is_used(slot))
    }
}

impl Bucket for Tags {
    const SLOTS: usize = SLOTS_COUNT;
    const EMPTY: &'static Self = &Self { tags: [0; SLOTS_COUNT], ids: [0; SLOTS_COUNT] };
    const LOADS: (usize, usize) = (800, 920);
    type Mark = u32;

    fn word_of(_: u32) -> Option<u64> {
        None
    }

    #[inline]
    fn mark_of(word: Mixed) -> u32 {
        word.mixed as u32
    }

    #[inline]
    fn home_of_mixed(mixed: u64, last: usize) -> usize {
        Self::home_of(mixed as u32, last)
    }

    /// The tag as a fraction of all tags, so that arrays may have any length.
    #[inline]
    fn home_of(tag: u32, last: usize) -> usize {
        ((u64::from(tag) * (last as u64 + 1)) >> u32::BITS) as usize
    }

    fn next_count(count: usize) -> usize {
        if count.is_power_of_two() && count > 1 {
            count / 2 * 3
        } else {
            (count + 1).next_power_of_two()
        }
    }

    fn can_be_count(count: usize) -> bool {
        let odd = count.checked_shr(count.trailing_zeros()).unwrap_or(0);
        odd == 1 || odd == 3
    }

    fn count(&self) -> Option<usize> {
        let used = self.slots_used();
        (used & (used + 1) == 0).then_some(used.trailing_ones() as usize)
    }

    #[inline]
    fn used(&self) -> usize {
        self.slots_used().count_ones() as usize
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.ids[SLOTS_COUNT - 1] != 0
    }

    #[inline]
    fn mark(&self, slot: usize) -> u32 {
        self.tags[slot]
    }

    #[inline]
    fn id(&self, slot: usize) -> EntryId {
        EntryId(!self.ids[slot])
    }

    #[inline]
    fn slots_with(&self, tag: u32) -> u32 {
        let equal = |slot: usize| u32::from(self.tags[slot] == tag && self.ids[slot] != 0) << slot;
        (0..SLOTS_COUNT).fold(0, |slots, slot| slots | equal(slot))
    }

    #[inline]
    fn find_first(&self, tag: u32) -> EntryId {
        match self.slots_with(tag) {
            0 => NOBODY,
            slots => self.id(slots.trailing_zeros() as usize % SLOTS_COUNT),
        }
    }

    #[inline]
    fn push(&mut self, tag: u32, id: EntryId) {
        let slot = self.used();
        assert!(slot < SLOTS_COUNT, "a bucket is full");
        self.tags[slot] = tag;
        self.ids[slot] = !id.0;
    }

    fn swap_remove(&mut self, slot: usize) {
        let last = self.used() - 1;
        assert!(slot <= last, "an entry that is removed is in its bucket");
        self.tags[slot] = self.tags[last];
        self.ids[slot] = self.ids[last];
        self.ids[last] = 0;
    }
}
