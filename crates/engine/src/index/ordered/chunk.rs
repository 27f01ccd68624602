//! A chunk: some entries in order, in place.

use std::cmp::Ordering;

use super::super::EntryId;
use super::super::memory::prefetch_line;
use super::order::{Entry, KeyOrder, SearchKey, compare, count_before};

/// Entries in a chunk, such that it takes 2 KiB.
pub(super) const ENTRIES_MAX: usize = 168;

/// Up to [`ENTRIES_MAX`] entries in order. All bytes zero make an empty one.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Chunk {
    words: [u64; ENTRIES_MAX],
    ids: [EntryId; ENTRIES_MAX],
    len: u32,
    /// How many entries there are up to the end of those that came last. Keys that come next
    /// just there make an ascending sequence, which splits differently.
    hint: u32,
}

const _: () = assert!(size_of::<Chunk>() == 2048);

/// Where a run of new entries belongs among those of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// How many entries come before the first new one.
    pub(super) first: usize,
    /// How many entries come before the last new one.
    pub(super) last: usize,
}

impl Chunk {
    /// The number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The number of entries, if there can be so many.
    pub(super) fn count(&self) -> Option<usize> {
        Some(self.len()).filter(|len| *len <= ENTRIES_MAX && self.hint as usize <= *len)
    }

    /// The entry in `slot`, if there are so many.
    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<Entry> {
        (slot < self.len()).then(|| (self.words[slot], self.ids[slot]))
    }

    /// The smallest entry.
    pub(super) fn first(&self) -> Option<Entry> {
        self.get(0)
    }

    /// The entries.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = Entry> {
        self.words().iter().copied().zip(self.ids().iter().copied())
    }

    /// How many entries come before `key`, or with `with_equal` not after it.
    pub(super) fn count_before_key<O: KeyOrder>(
        &self,
        key: SearchKey<'_>,
        with_equal: bool,
        order: &O,
    ) -> usize {
        let is_before = |id| {
            let found = if O::EXACT { Ordering::Equal } else { order.compare_key(id, key.key) };
            found.is_lt() || (with_equal && found.is_eq())
        };
        count_before::<O>(self.words(), self.ids(), key.word, is_before)
    }

    /// Where a run belongs.
    pub(super) fn gap_for<O: KeyOrder>(&self, run: &[Entry], order: &O) -> Gap {
        let first = self.count_before_entry(0..self.len(), run[0], order);
        let last = self.count_before_entry(first..self.len(), run[run.len() - 1], order);
        Gap { first, last }
    }

    /// Whether a run in this place continues an ascending sequence: it is not interspersed
    /// with older entries, and it comes after the last ones that came, after all, or is long.
    pub(super) fn is_sequence(&self, gap: Gap, run_len: usize) -> bool {
        let is_after_last = gap.first == self.hint as usize || gap.first == self.len();
        // Random keys are next to each other so often that two or three prove nothing.
        gap.first == gap.last && (is_after_last || run_len >= 8)
    }

    /// Adds a run for which there is room.
    pub(super) fn insert_run<O: KeyOrder>(&mut self, run: &[Entry], gap: Gap, order: &O) {
        let len = self.len() + run.len();
        assert!(len <= ENTRIES_MAX, "there is room for the run");
        assert!(gap.first <= gap.last, "a run is in order");
        assert!(gap.last <= self.len(), "a run goes among the entries");
        // From the end: the entries of the run that belong to one place, and what comes after it.
        let (mut left, mut end, mut at) = (run.len(), self.len(), gap.last);
        loop {
            self.words.copy_within(at..end, at + left);
            self.ids.copy_within(at..end, at + left);
            let is_here = |entry: Entry| {
                at == gap.first
                    || compare((self.words[at - 1], self.ids[at - 1]), entry, order).is_lt()
            };
            let before = run[..left - 1].iter().rposition(|&entry| !is_here(entry));
            let from = before.map_or(0, |before| before + 1);
            self.write(at + from, &run[from..left]);
            if from == 0 {
                break;
            }
            (left, end) = (from, at);
            at = self.count_before_entry(gap.first..end, run[left - 1], order);
        }
        self.len = len as u32;
        self.hint = (gap.last + run.len()) as u32;
    }

    /// Keeps what comes before a gap, and adds a run behind it.
    pub(super) fn cut_and_add(&mut self, gap: usize, run: &[Entry]) {
        assert!(gap <= self.len(), "entries that are there are kept");
        self.write(gap, run);
        self.len = (gap + run.len()) as u32;
        self.hint = self.len;
    }

    /// Writes entries from a slot on.
    #[inline]
    fn write(&mut self, at: usize, entries: &[Entry]) {
        let slots = at..at + entries.len();
        let (words, ids) = (&mut self.words[slots.clone()], &mut self.ids[slots]);
        for ((word, id), entry) in words.iter_mut().zip(ids).zip(entries) {
            (*word, *id) = *entry;
        }
    }

    /// Replaces all entries; the hint says where in them the last ones came.
    pub(super) fn fill(&mut self, entries: &[Entry], hint: usize) {
        assert!(hint <= entries.len(), "the hint is in the chunk");
        self.write(0, entries);
        self.len = entries.len() as u32;
        self.hint = hint as u32;
    }

    /// Removes those entries of a run that are here; returns how many were.
    pub(super) fn remove_run<O: KeyOrder>(&mut self, run: &[Entry], order: &O) -> usize {
        let (mut from, mut to) = (0, 0);
        let hint = self.hint as usize;
        for &(word, id) in run {
            let at = self.count_before_entry(from..self.len(), (word, id), order);
            if self.get(at) != Some((word, id)) {
                continue;
            }
            if at < hint {
                self.hint -= 1;
            }
            to = self.move_down(from..at, to);
            from = at + 1;
        }
        let len = self.move_down(from..self.len(), to);
        let removed_count = self.len() - len;
        assert!(removed_count <= run.len(), "only entries of the run are removed");
        self.len = len as u32;
        removed_count
    }

    /// Takes over the entries of a chunk that comes right after this one.
    pub(super) fn append(&mut self, after: &Self) {
        let len = self.len() + after.len();
        assert!(len <= ENTRIES_MAX, "there is room for both");
        assert!(self.words().last() <= after.words().first(), "the chunk comes right after");
        self.words[self.len as usize..len].copy_from_slice(after.words());
        self.ids[self.len as usize..len].copy_from_slice(after.ids());
        // An ascending sequence goes on at its end, more likely than at this one's.
        self.hint = self.len + after.hint;
        self.len = len as u32;
    }

    /// Puts the entries of a chunk that comes right before this one in front.
    pub(super) fn prepend(&mut self, before: &Self) {
        let (own, added) = (self.len(), before.len());
        assert!(own + added <= ENTRIES_MAX, "there is room for both");
        assert!(before.words().last() <= self.words().first(), "the chunk comes right before");
        self.words.copy_within(..own, added);
        self.ids.copy_within(..own, added);
        self.words[..added].copy_from_slice(before.words());
        self.ids[..added].copy_from_slice(before.ids());
        self.hint += before.len;
        self.len += before.len;
    }

    /// Asks for the lines that a scan reads first, from whichever end it comes; those between
    /// follow in order, which the processor notices by itself.
    #[inline]
    pub(super) fn prefetch_ends(this: *const Self) {
        let words = std::mem::offset_of!(Self, words);
        let ids = std::mem::offset_of!(Self, ids);
        // A chunk is seldom full: its last entry is somewhere in the last quarter.
        let last = ENTRIES_MAX * 7 / 8;
        for offset in [
            words,
            words + 64,
            ids,
            words + last * size_of::<u64>(),
            ids + last * size_of::<EntryId>(),
            std::mem::offset_of!(Self, len),
        ] {
            prefetch_line(this.wrapping_byte_add(offset));
        }
    }

    /// Asks for the words, in which a binary search is about to jump from line to line, each
    /// depending on the one before.
    #[inline]
    pub(super) fn prefetch_words(this: *const Self) {
        let words = std::mem::offset_of!(Self, words);
        prefetch_line(this.wrapping_byte_add(std::mem::offset_of!(Self, len)));
        for offset in (0..ENTRIES_MAX * size_of::<u64>()).step_by(64) {
            prefetch_line(this.wrapping_byte_add(words + offset));
        }
    }

    /// Asks for the whole chunk, which is about to change.
    #[inline]
    pub(super) fn prefetch_all(this: *const Self) {
        for offset in (0..size_of::<Self>()).step_by(64) {
            prefetch_line(this.wrapping_byte_add(offset));
        }
    }

    /// The words, in order.
    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.len()]
    }

    /// The ids, in the order of the words.
    #[inline]
    pub(super) fn ids(&self) -> &[EntryId] {
        &self.ids[..self.len()]
    }

    /// How many entries come before `entry`, which lies in `slots`.
    fn count_before_entry<O: KeyOrder>(
        &self,
        slots: std::ops::Range<usize>,
        entry: Entry,
        order: &O,
    ) -> usize {
        let (words, ids) = (&self.words[slots.clone()], &self.ids[slots.clone()]);
        let is_before = |id| !O::EXACT && order.compare(id, entry.1).is_lt();
        slots.start + count_before::<O>(words, ids, entry.0, is_before)
    }

    /// Moves entries down to `to`; returns where they end.
    fn move_down(&mut self, slots: std::ops::Range<usize>, to: usize) -> usize {
        let end = to + slots.len();
        if slots.start != to {
            self.words.copy_within(slots.clone(), to);
            self.ids.copy_within(slots, to);
        }
        end
    }
}

/// Merges a run with the entries of a chunk into `merged`.
pub(super) fn merge_into<O: KeyOrder>(
    merged: &mut Vec<Entry>,
    chunk: &Chunk,
    run: &[Entry],
    order: &O,
) {
    merged.clear();
    let mut old = chunk.entries().peekable();
    for &entry in run {
        while let Some(before) = old.next_if(|&other| compare(other, entry, order).is_lt()) {
            merged.push(before);
        }
        debug_assert!(
            old.peek().is_none_or(|&other| compare(other, entry, order).is_ne()),
            "a key comes once"
        );
        merged.push(entry);
    }
    merged.extend(old);
}
