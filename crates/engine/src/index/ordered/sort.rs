//! Sorting a worker's list by exact words: a radix sort from the lowest digit up, over as few
//! digits as the list seems to need; where most keys follow the one before closely, of such runs.
//!
//! A list is in the order in which calls come, and calls often name keys that ascend within
//! some group: the lines of an order, the orders of a district. Stable passes over the digits of
//! the group alone then sort it. Which digits do is guessed from neighbours in the list, and
//! where the guess was wrong, what came out is repaired.

use super::super::EntryId;
use super::order::Entry;

/// Shorter lists, and those that seem to need more digits, are sorted by comparing.
const ENTRIES_FEW: usize = 64;
const DIGITS_MAX: usize = 4;

/// Entries whose words ascend by so little at a time are a run, and runs of so many entries, on
/// average, are sorted as wholes.
const CLOSE: u64 = 256;
const RUN_LONG: usize = 4;

/// Bits of a digit at most: its counters fit into the nearest cache with room to spare.
const DIGIT_BITS: u32 = 10;
const COUNTERS: usize = 1 << DIGIT_BITS;

/// Memory for sorting, which is kept: it grows to the size of the longest list.
#[derive(Clone, Debug, Default)]
pub struct SortRoom {
    entries: Vec<Entry>,
    /// The first word of each run, and its number; and where each of them begins.
    runs: Vec<Entry>,
    starts: Vec<u32>,
    /// How many entries have a digit, and then where the next of them goes.
    counters: Vec<u32>,
}

/// Some bits of a word.
#[derive(Clone, Copy, Debug)]
struct Digit {
    shift: u32,
    mask: usize,
}

impl Digit {
    #[inline]
    fn of(self, word: u64) -> usize {
        (word >> self.shift) as usize & self.mask
    }
}

/// The digits that cover some bits, from the lowest up.
#[derive(Clone, Copy, Debug)]
struct Digits {
    rest: u64,
    bits_max: u32,
}

impl Iterator for Digits {
    type Item = Digit;

    fn next(&mut self) -> Option<Digit> {
        if self.rest == 0 {
            return None;
        }
        let shift = self.rest.trailing_zeros();
        let all = (self.rest >> shift) & ((1 << self.bits_max) - 1);
        self.rest &= !(all << shift);
        // The bits that are the same in all words are left out at either end.
        let mask = (1 << (u64::BITS - all.leading_zeros())) - 1;
        Some(Digit { shift, mask })
    }
}

/// Sorts a list by its words, which must be exact.
pub(super) fn sort_by_words(list: &mut [Entry], room: &mut SortRoom) {
    let (mut runs, mut starts) = (std::mem::take(&mut room.runs), std::mem::take(&mut room.starts));
    runs.clear();
    starts.clear();
    let runs_max = list.len() / RUN_LONG;
    let mut before = 0;
    for (at, &(word, _)) in list.iter().enumerate() {
        let follows = before <= word && word - before <= CLOSE && at > 0;
        if !follows && runs.len() <= runs_max {
            runs.push((word, EntryId(runs.len() as u32)));
            starts.push(at as u32);
        }
        before = word;
    }
    starts.push(list.len() as u32);
    if runs.len() > runs_max || !sort_by_runs(list, &mut runs, &starts, room) {
        sort_by_entries(list, room);
    }
    debug_assert!(list.is_sorted_by_key(|entry| entry.0), "a list is sorted by its words");
    (room.runs, room.starts) = (runs, starts);
}

/// Sorts a list whose runs are given, if they are apart from each other; else it stays.
fn sort_by_runs(
    list: &mut [Entry],
    runs: &mut [Entry],
    starts: &[u32],
    room: &mut SortRoom,
) -> bool {
    if runs.len() <= 1 {
        return true;
    }
    assert!(starts.len() == runs.len() + 1, "each run has a beginning and an end");
    sort_by_entries(runs, room);
    room.entries.clear();
    let mut are_apart = true;
    let mut last = 0;
    for &(first, EntryId(number)) in &*runs {
        let (from, to) = (starts[number as usize], starts[number as usize + 1]);
        let run = &list[from as usize..to as usize];
        are_apart &= last <= first;
        last = run[run.len() - 1].0;
        room.entries.extend_from_slice(run);
    }
    assert!(room.entries.len() == list.len(), "every entry is in a run");
    if are_apart {
        list.copy_from_slice(&room.entries);
    }
    are_apart
}

/// Sorts a list entry by entry.
fn sort_by_entries(list: &mut [Entry], room: &mut SortRoom) {
    if list.len() < ENTRIES_FEW {
        list.sort_unstable_by_key(|entry| entry.0);
        return;
    }
    let Some(unsorted) = unsorted_bits(list) else { return };
    let digits = Digits { rest: unsorted, bits_max: DIGIT_BITS.min(list.len().ilog2()) };
    if digits.count() > DIGITS_MAX {
        list.sort_unstable_by_key(|entry| entry.0);
        return;
    }
    digits.for_each(|digit| sort_by_digit(list, digit, room));
    repair(list, unsorted.trailing_zeros());
}

/// The bits by which a list must be sorted, as far as its neighbours tell; none if it is sorted.
///
/// A word that is less than the one before it differs from that by its highest bit that does.
/// Of all these the lowest is used, and every higher bit that is not the same in all words:
/// words that are equal in these are next to each other afterwards, in the order in which they
/// came, which is the right one wherever neighbours in the list were of one such group.
fn unsorted_bits(list: &[Entry]) -> Option<u64> {
    let (mut some, mut all) = (0, u64::MAX);
    let (mut before, mut least) = (0, u64::MAX);
    for &(word, _) in list {
        some |= word;
        all &= word;
        least = least.min(if word < before { word ^ before } else { u64::MAX });
        before = word;
    }
    // Words that are out of order and differ in every bit leave no trace.
    let is_sorted = least == u64::MAX && list.is_sorted_by_key(|entry| entry.0);
    (!is_sorted).then(|| (some ^ all) & (u64::MAX << least.ilog2()))
}

/// Sorts a list by one digit, leaving those entries in their order in which it is the same.
fn sort_by_digit(list: &mut [Entry], digit: Digit, room: &mut SortRoom) {
    if room.entries.len() < list.len() {
        room.entries.resize(list.len(), (0, EntryId(0)));
    }
    room.counters.resize(COUNTERS, 0);
    let counters = &mut room.counters[..=digit.mask];
    counters.fill(0);
    for entry in &*list {
        counters[digit.of(entry.0)] += 1;
    }
    let mut next = 0;
    for counter in &mut *counters {
        (*counter, next) = (next, next + *counter);
    }
    let sorted = &mut room.entries[..list.len()];
    for &entry in &*list {
        let counter = &mut counters[digit.of(entry.0)];
        sorted[*counter as usize] = entry;
        *counter += 1;
    }
    list.copy_from_slice(sorted);
}

/// Sorts what is not in order in a list that is by its words without the lowest `low` bits.
fn repair(list: &mut [Entry], low: u32) {
    let mut at = 1;
    while at < list.len() {
        if list[at - 1].0 <= list[at].0 {
            at += 1;
            continue;
        }
        let group = list[at].0 >> low;
        let is_other = |entry: &Entry| entry.0 >> low != group;
        let from = list[..at].iter().rposition(is_other).map_or(0, |last| last + 1);
        let end = list[at..].iter().position(is_other).map_or(list.len(), |next| at + next);
        assert!(end - from > 1, "words are in order by their higher bits");
        list[from..end].sort_unstable_by_key(|entry| entry.0);
        at = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: impl IntoIterator<Item = u64>) {
        let list: Vec<Entry> =
            words.into_iter().zip(0..).map(|(word, nth)| (word, EntryId(nth))).collect();
        let (mut sorted, mut expected) = (list.clone(), list);
        sort_by_words(&mut sorted, &mut SortRoom::default());
        expected.sort_by_key(|entry| entry.0);
        assert_eq!(sorted, expected);
    }

    /// A small generator: tests must not depend on chance.
    fn scatter(nth: u64) -> u64 {
        let mixed = (nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn lists_of_every_kind_are_sorted() {
        let lens = [0, 1, 2, ENTRIES_FEW as u64 - 1, ENTRIES_FEW as u64, 500, 5000];
        for len in lens.into_iter().filter(|&len| !cfg!(miri) || len <= 500) {
            check(0..len);
            check((0..len).rev());
            check((0..len).map(scatter));
            check((0..len).map(|nth| scatter(nth) >> 40 << 20));
            check((0..len).map(|nth| !scatter(nth) >> 50));
            // Groups whose keys ascend as they come, and some that do not.
            check((0..len).map(|nth| (scatter(nth / 7) % 20) << 40 | nth));
            check((0..len).map(|nth| (scatter(nth / 7) % 20) << 40 | (nth ^ 5)));
            // Neighbours say nothing: they are always of other groups.
            check((0..len).map(|nth| ((nth % 3) << 60) | scatter(nth / 3) >> 10));
            check((0..len).map(|nth| ((nth % 100) << 50) | (len - nth)));
        }
    }

    #[test]
    fn words_that_differ_in_every_bit_are_sorted() {
        check((0..ENTRIES_FEW as u64 * 2).map(|nth| if nth % 2 == 0 { u64::MAX } else { 0 }));
        check((0..ENTRIES_FEW as u64 * 2).map(|nth| if nth == 3 { u64::MAX } else { 0 }));
    }

    #[test]
    fn what_is_in_order_by_higher_bits_is_repaired() {
        let mut list: Vec<Entry> =
            [(0x11, 0), (0x10, 1), (0x20, 2), (0x33, 3), (0x32, 4), (0x31, 5)]
                .map(|(word, id)| (word, EntryId(id)))
                .to_vec();
        repair(&mut list, 4);
        assert_eq!(list.iter().map(|e| e.0).collect::<Vec<_>>(), [16, 17, 32, 49, 50, 51]);
    }

    #[test]
    fn digits_leave_out_what_is_the_same_in_all_words() {
        let digits = |rest| {
            let digits = Digits { rest, bits_max: 10 };
            digits.map(|digit| (digit.shift, digit.mask)).collect::<Vec<_>>()
        };
        assert_eq!(digits(0), []);
        assert_eq!(digits(0b1010_0000), [(5, 7)]);
        assert_eq!(digits(1 << 63 | 1 << 10 | 1), [(0, 1), (10, 1), (63, 1)]);
        assert_eq!(digits(u64::MAX).len(), 7);
    }

    #[test]
    fn groups_that_ascend_are_sorted_by_their_group() {
        let list: Vec<Entry> =
            (0..1000).map(|nth| ((scatter(nth / 7) % 20) << 40 | nth, EntryId(0))).collect();
        let bits = unsorted_bits(&list).expect("it is not sorted");
        assert!(bits.trailing_zeros() >= 40, "{bits:x}");
        assert_eq!(unsorted_bits(&list[..7]), None);
    }
}
