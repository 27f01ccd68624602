//! Which slots of `data` are free.

use std::ops::Range;

use super::format::HEAD_BYTES;
use crate::memory::PAGE_BYTES;

/// The first slot that may hold a page.
pub(super) const FIRST_SLOT: u64 = HEAD_BYTES / PAGE_BYTES;

const WORD_BITS: u64 = u64::BITS as u64;

/// A bit for each slot, set where it is free. It is not stored: it follows from the page table
/// (S20).
#[derive(Debug, Default)]
pub(super) struct FreeSlots {
    words: Vec<u64>,
    free: u64,
    /// Number of slots, the head's included.
    end: u64,
    /// All words before this one are zero.
    lowest_word: usize,
}

impl FreeSlots {
    /// All slots of a file of so many, but the head.
    pub(super) fn all(end: u64) -> Self {
        let mut slots = Self { end: FIRST_SLOT, ..Self::default() };
        slots.grow(end);
        slots
    }

    pub(super) fn count(&self) -> u64 {
        self.free
    }

    /// Number of slots, the head's included.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Slots that were added to the file are free.
    pub(super) fn grow(&mut self, end: u64) {
        if end <= self.end {
            return;
        }
        self.words.resize(end.div_ceil(WORD_BITS) as usize, 0);
        for slot in self.end..end {
            self.words[(slot / WORD_BITS) as usize] |= 1 << (slot % WORD_BITS);
        }
        self.free += end - self.end;
        self.lowest_word = self.lowest_word.min((self.end / WORD_BITS) as usize);
        self.end = end;
    }

    /// The last slots were given back to the file system.
    ///
    /// # Panics
    /// If one of them is not free.
    pub(super) fn shrink(&mut self, end: u64) {
        if end >= self.end {
            return;
        }
        assert!(end >= FIRST_SLOT, "the head stays");
        let given_back = self.end - end;
        let last_bits = (1 << (end % WORD_BITS)) - 1;
        let mut found = 0;
        for word in (end / WORD_BITS) as usize..self.words.len() {
            let stays = if word == (end / WORD_BITS) as usize { last_bits } else { 0 };
            found += u64::from((self.words[word] & !stays).count_ones());
            self.words[word] &= stays;
        }
        assert!(found == given_back, "{found} of the last {given_back} slots are free");
        self.words.truncate(end.div_ceil(WORD_BITS) as usize);
        self.lowest_word = self.lowest_word.min(self.words.len());
        self.free -= given_back;
        self.end = end;
    }

    /// How many slots before this one are free.
    pub(super) fn count_before(&self, end: u64) -> u64 {
        let end = end.min(self.end);
        let (whole, last) = ((end / WORD_BITS) as usize, end % WORD_BITS);
        let of_whole: u64 = self.words[..whole].iter().map(|word| count(*word)).sum();
        let last_word = self.words.get(whole).map_or(0, |word| word & ((1 << last) - 1));
        of_whole + count(last_word)
    }

    /// Takes a slot that a page has; `false` if it is no slot, or taken.
    pub(super) fn take(&mut self, slot: u64) -> bool {
        let bit = 1 << (slot % WORD_BITS);
        match self.words.get_mut((slot / WORD_BITS) as usize) {
            Some(word) if *word & bit != 0 => *word &= !bit,
            _ => return false,
        }
        self.free -= 1;
        true
    }

    /// Takes the first free slots, in order, as runs of neighbours.
    ///
    /// # Panics
    /// If there are not so many: their room was not reserved.
    pub(super) fn take_first(&mut self, count: u64) -> Vec<Range<u64>> {
        assert!(count <= self.free, "{count} slots are wanted, and {} are free", self.free);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for _ in 0..count {
            while self.words[self.lowest_word] == 0 {
                self.lowest_word += 1;
            }
            let word = &mut self.words[self.lowest_word];
            let slot = self.lowest_word as u64 * WORD_BITS + u64::from(word.trailing_zeros());
            *word &= *word - 1;
            match runs.last_mut() {
                Some(run) if run.end == slot => run.end += 1,
                _ => runs.push(slot..slot + 1),
            }
        }
        self.free -= count;
        runs
    }

    /// Frees a slot that was taken.
    pub(super) fn release(&mut self, slot: u64) {
        assert!((FIRST_SLOT..self.end).contains(&slot), "slot {slot} of {}", self.end);
        let at = (slot / WORD_BITS) as usize;
        let bit = 1 << (slot % WORD_BITS);
        assert!(self.words[at] & bit == 0, "slot {slot} is freed twice");
        self.words[at] |= bit;
        self.free += 1;
        self.lowest_word = self.lowest_word.min(at);
    }
}

fn count(word: u64) -> u64 {
    u64::from(word.count_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_in_runs_from_the_lowest() {
        let mut slots = FreeSlots::all(200);
        assert_eq!((slots.count(), slots.end()), (199, 200));
        assert!(!slots.take(0), "the head is no slot");
        assert!(slots.take(3) && !slots.take(3));
        assert!(!slots.take(200));
        assert_eq!(slots.take_first(5), [1..3, 4..7]);
        slots.release(2);
        assert_eq!(slots.take_first(3), [2..3, 7..9]);
        assert_eq!(slots.count(), 199 - 8);
        slots.grow(260);
        assert_eq!(slots.take_first(slots.count()).first(), Some(&(9..260)));
        slots.grow(100);
        assert_eq!((slots.count(), slots.end()), (0, 260));
        slots.release(130);
        assert_eq!(slots.take_first(1).first(), Some(&(130..131)));
    }

    #[test]
    fn the_last_slots_are_given_back() {
        for end in [1, 63, 64, 65, 100, 128, 199, 200, 300] {
            let mut slots = FreeSlots::all(200);
            assert_eq!(slots.take_first(1).first(), Some(&(1..2)));
            let before = slots.count_before(end);
            assert_eq!(before, end.min(200).saturating_sub(2), "before {end}");
            if end == 1 {
                slots.release(1);
            }
            slots.shrink(end);
            let end = end.min(200);
            assert_eq!((slots.end(), slots.count()), (end, before));
            slots.grow(260);
            assert_eq!(slots.count(), before + 260 - end);
            assert_eq!(slots.take_first(1)[0].start, if end == 1 { 1 } else { 2 });
        }
    }

    /// S6: a slot with a page is not cut off.
    #[test]
    #[should_panic(expected = "99 of the last 100 slots are free")]
    fn s_6_no_slot_with_a_page_is_given_back() {
        let mut slots = FreeSlots::all(200);
        assert!(slots.take(150));
        slots.shrink(100);
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn a_slot_is_freed_once() {
        FreeSlots::all(8).release(5);
    }
}
