//! Buckets of four entries with a word each: where two keys have different words, no search looks
//! at a row.

use super::super::EntryId;
use super::bucket::{Bucket, Mixed, NOBODY, mix};

const SLOTS_COUNT: usize = 4;

/// One cache line of entries; the first `used` are there.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Words {
    words: [u64; SLOTS_COUNT],
    /// The complements of the ids: a free slot has 0, [`NOBODY`]'s.
    ids: [u32; SLOTS_COUNT],
    used: u32,
}

const _: () = {
    assert!(size_of::<Words>() == 64);
    assert!(align_of::<Words>() == 64);
};

impl Words {
    /// A bucket with no entry and no room.
    pub(super) const FULL: &'static Self =
        &Self { words: [0; SLOTS_COUNT], ids: [0; SLOTS_COUNT], used: SLOTS_COUNT as u32 };

    /// A bit for each slot that has this word, or had it when it was in use.
    #[inline]
    fn slots_equal(&self, word: u64) -> u32 {
        let equal = |slot: usize| u32::from(self.words[slot] == word) << slot;
        (0..SLOTS_COUNT).fold(0, |slots, slot| slots | equal(slot))
    }
}

impl Bucket for Words {
    const SLOTS: usize = SLOTS_COUNT;
    const EMPTY: &'static Self = &Self { words: [0; SLOTS_COUNT], ids: [0; SLOTS_COUNT], used: 0 };
    const LOADS: (usize, usize) = (600, 800);
    type Mark = u64;

    fn word_of(mark: u64) -> Option<u64> {
        Some(mark)
    }

    #[inline]
    fn mark_of(word: Mixed) -> u64 {
        word.word
    }

    /// Arrays have powers of two.
    #[inline]
    fn home_of_mixed(mixed: u64, last: usize) -> usize {
        mixed as usize & last
    }

    #[inline]
    fn home_of(word: u64, last: usize) -> usize {
        Self::home_of_mixed(mix(word), last)
    }

    fn next_count(count: usize) -> usize {
        2 * count
    }

    fn can_be_count(count: usize) -> bool {
        count.is_power_of_two()
    }

    fn count(&self) -> Option<usize> {
        Some(self.used as usize).filter(|used| *used <= SLOTS_COUNT)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.used as usize == SLOTS_COUNT
    }

    #[inline]
    fn mark(&self, slot: usize) -> u64 {
        self.words[slot]
    }

    #[inline]
    fn id(&self, slot: usize) -> EntryId {
        EntryId(!self.ids[slot])
    }

    #[inline]
    fn slots_with(&self, word: u64) -> u32 {
        let allocated = (1 << self.used) - 1;
        self.slots_equal(word) & allocated
    }

    /// What a slot held before is told from what it holds by its id, and comes after all that are
    /// used.
    #[inline]
    fn find_first(&self, word: u64) -> EntryId {
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

    fn swap_remove(&mut self, slot: usize) {
        let last = self.used as usize - 1;
        assert!(slot <= last, "an entry that is removed is in its bucket");
        self.words[slot] = self.words[last];
        self.ids[slot] = self.ids[last];
        self.ids[last] = 0;
        self.used -= 1;
    }
}
