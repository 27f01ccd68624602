//! The bytes of a record: parts, and entries in them.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::image::layout::Layout;

/// Words before the entries of a part.
pub(super) const HEAD_WORDS: usize = 2;
/// Words before the payload of an entry.
const ENTRY_WORDS: usize = 2;
const MAGIC: u64 = 0x4c44 << 48;
const MAGIC_MASK: u64 = 0xffff << 48;
const MORE: u64 = 1 << 32;
const NUMBER_SHIFT: u32 = 33;
const NUMBER_MASK: u64 = (1 << 15) - 1;
const DELETED: u64 = 1 << 16;

/// The head of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Its place among the parts of the record.
    pub(super) number: u64,
    /// Whether another one follows.
    pub(super) more: bool,
    /// Words, with the head.
    pub(super) words: usize,
}

/// Most parts of a record.
pub(super) const PARTS_MAX: u64 = NUMBER_MASK;

impl Part {
    /// Fills in the head of a part whose entries are behind it.
    pub(super) fn write_head(self, life: u64, part: &mut [u64]) {
        let more = if self.more { MORE } else { 0 };
        part[0] = MAGIC | self.number << NUMBER_SHIFT | more | self.words as u64;
        part[1] = checksum(life, part, self.words);
    }

    /// The part at the beginning of some words, if it is whole, or if that does not matter.
    pub(super) fn read(life: u64, words: &[u64], trusts: bool) -> Option<Self> {
        let head = *words.first()?;
        let part = Self {
            number: head >> NUMBER_SHIFT & NUMBER_MASK,
            more: head & MORE != 0,
            words: head as u32 as usize,
        };
        let fits = (HEAD_WORDS..=words.len()).contains(&part.words);
        let is_one = head & MAGIC_MASK == MAGIC && fits;
        (is_one && (trusts || words[1] == checksum(life, words, part.words))).then_some(part)
    }
}

fn checksum(life: u64, part: &[u64], words: usize) -> u64 {
    let entries = zerocopy::IntoBytes::as_bytes(&part[HEAD_WORDS..words]);
    xxh3_64_with_seed(entries, life ^ part[0].rotate_left(17))
}

/// A row as a transaction left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'l> {
    pub(crate) table: usize,
    pub(crate) version: u64,
    pub(crate) is_deleted: bool,
    /// Lengths and key, and the value unless there is none; as long as it must be.
    pub(crate) payload: &'l [u64],
}

/// Appends an entry with a row's whole payload.
pub(crate) fn push_entry(into: &mut Vec<u64>, entry: Entry<'_>, layout: &Layout) {
    let payload = match entry.is_deleted {
        true => &entry.payload[..layout.key_part_words()],
        false => &entry.payload[..layout.used_words(entry.payload)],
    };
    let words = (ENTRY_WORDS + payload.len()) as u64;
    let deleted = if entry.is_deleted { DELETED } else { 0 };
    into.push(words << 32 | deleted | entry.table as u64);
    into.push(entry.version);
    into.extend_from_slice(payload);
}

/// Words of the first of some entries.
pub(super) fn entry_words(entries: &[u64]) -> usize {
    (entries[0] >> 32) as usize
}

/// The entries of a record; `None` in the place of what cannot be one.
pub(crate) fn entries(mut words: &[u64]) -> impl Iterator<Item = Option<Entry<'_>>> {
    std::iter::from_fn(move || {
        let head = *words.first()?;
        let all = (head >> 32) as usize;
        if all <= ENTRY_WORDS || all > words.len() {
            words = &[];
            return Some(None);
        }
        let (entry, rest) = words.split_at(all);
        words = rest;
        Some(Some(Entry {
            table: usize::from(head as u16),
            version: entry[1],
            is_deleted: head & DELETED != 0,
            payload: &entry[ENTRY_WORDS..],
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(life: u64, entries: &[u64]) -> Vec<u64> {
        let mut words = vec![0; HEAD_WORDS];
        words.extend_from_slice(entries);
        Part { number: 3, more: true, words: words.len() }.write_head(life, &mut words);
        words
    }

    #[test]
    fn a_part_is_read_as_it_was_written_and_in_its_segment_only() {
        let mut words = part(7, &[1, 2, 3]);
        words.push(99);
        let whole = Part { number: 3, more: true, words: 5 };
        assert_eq!(Part::read(7, &words, false), Some(whole));
        assert_eq!(Part::read(8, &words, false), None);
        for torn in 0..5 {
            let mut words = words.clone();
            words[torn] ^= 1 << 34;
            assert_eq!(Part::read(7, &words, false), None, "word {torn}");
        }
        assert_eq!(Part::read(7, &words[..4], false), None);
        assert_eq!(Part::read(7, &[0; 8], true), None);
    }

    #[test]
    fn entries_come_back() {
        let words = [5 << 32 | 2, 8, 1, 2, 3, 3 << 32 | DELETED | 1, 10, 4];
        let all: Vec<_> = entries(&words).map(Option::unwrap).collect();
        let rows = all.iter().map(|e| (e.table, e.version, e.is_deleted, e.payload.len()));
        assert_eq!(rows.collect::<Vec<_>>(), [(2, 8, false, 3), (1, 10, true, 1)]);
        assert!(entries(&words[..7]).last().unwrap().is_none());
        assert!(entries(&[0, 0]).last().unwrap().is_none());
    }
}
