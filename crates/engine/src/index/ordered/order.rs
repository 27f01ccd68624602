//! How keys compare: by word, and where words are equal through the caller.

use std::cmp::Ordering;

use super::super::EntryId;

/// A key's word and its entry, as lists and chunks hold them.
pub(super) type Entry = (u64, EntryId);

/// How entries whose words are equal compare.
///
/// Keys compare as their bytes do, and a word is the first eight of these, zero-padded and
/// read big-endian, so that comparing words first never contradicts. Entries passed in are
/// always ones that the caller gave to the index and has not removed.
pub trait KeyOrder {
    /// Whether words alone decide, so that neither method is ever called.
    const EXACT: bool;

    /// Compares the keys of two entries whose words are equal.
    fn compare(&self, a: EntryId, b: EntryId) -> Ordering;

    /// Compares the key of an entry with `key`, their words being equal.
    fn compare_key(&self, a: EntryId, key: &[u8]) -> Ordering;
}

/// The order of a table whose keys all have exactly 8 bytes: the word is the key.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExactWords;

impl KeyOrder for ExactWords {
    const EXACT: bool = true;

    fn compare(&self, _a: EntryId, _b: EntryId) -> Ordering {
        Ordering::Equal
    }

    fn compare_key(&self, _a: EntryId, _key: &[u8]) -> Ordering {
        Ordering::Equal
    }
}

/// A key to search for: its word and, unless words are exact, all its bytes.
#[derive(Clone, Copy, Debug)]
pub struct SearchKey<'k> {
    /// The first eight bytes, zero-padded, read big-endian.
    pub word: u64,
    /// The whole key; ignored where words are exact.
    pub key: &'k [u8],
}

/// Compares two entries.
pub(super) fn compare<O: KeyOrder>(a: Entry, b: Entry, order: &O) -> Ordering {
    let by_word = a.0.cmp(&b.0);
    if O::EXACT { by_word } else { by_word.then_with(|| order.compare(a.1, b.1)) }
}

/// How many entries, of some in order, come before a place: those of a smaller word and, among
/// those of the same word, the ones for which `is_before` holds.
#[inline(always)]
pub(super) fn count_before<O: KeyOrder>(
    words: &[u64],
    ids: &[EntryId],
    word: u64,
    is_before: impl Fn(EntryId) -> bool,
) -> usize {
    let low = words.partition_point(|&other| other < word);
    if words.get(low) != Some(&word) {
        return low;
    }
    // At most one entry has an exact word.
    if O::EXACT {
        return low + usize::from(is_before(ids[low]));
    }
    let ties = words[low..].partition_point(|&other| other == word);
    low + ids[low..low + ties].partition_point(|&id| is_before(id))
}

/// Like [`slice::partition_point`], quick where the point is near the beginning.
pub(super) fn gallop<T>(items: &[T], mut is_before: impl FnMut(&T) -> bool) -> usize {
    let mut low = 0;
    let mut step = 1;
    while let Some(item) = items.get(low + step - 1) {
        if !is_before(item) {
            break;
        }
        low += step;
        step *= 2;
    }
    let high = items.len().min(low + step - 1);
    low + items[low..high].partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_finds_what_a_binary_search_finds() {
        let items: Vec<u32> = (0..70).map(|i| i / 3).collect();
        for length in 0..items.len() {
            for wanted in 0..25 {
                let is_before = |&item: &u32| item < wanted;
                let items = &items[..length];
                assert_eq!(gallop(items, is_before), items.partition_point(is_before));
            }
        }
    }
}
