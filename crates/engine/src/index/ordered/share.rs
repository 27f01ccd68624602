//! How the workers divide the keys of all lists among themselves.

use std::borrow::Cow;
use std::ops::Range;

use super::directory::Directory;
use super::order::{Entry, KeyOrder, compare};

/// Keys sampled for each worker: its share is off by a few parts in this many.
const SAMPLES_PER_PART: usize = 16;

/// One worker's part of a round, computed alike by all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share<'l> {
    /// Which worker.
    pub(super) part: usize,
    /// Of how many.
    pub(super) parts: usize,
    /// The sorted lists of all workers.
    pub(super) lists: &'l [&'l [Entry]],
}

impl<'l> Share<'l> {
    /// The chunks that are this worker's to change.
    pub(super) fn chunks<O: KeyOrder>(&self, directory: &Directory, order: &O) -> Range<usize> {
        let cuts = self.cuts(order);
        let bound =
            |cut: Option<Entry>, end| cut.map_or(end, |entry| directory.locate_entry(entry, order));
        bound(cuts.0, 0)..bound(cuts.1, directory.len())
    }

    /// The keys from which and up to which this worker's share extends, dividing keys evenly;
    /// none at either end.
    pub(super) fn cuts<O: KeyOrder>(&self, order: &O) -> (Option<Entry>, Option<Entry>) {
        assert!(self.part < self.parts, "the worker has a part in the round");
        if self.parts == 1 {
            return (None, None);
        }
        let total = self.lists.iter().map(|list| list.len()).sum::<usize>();
        let stride = (total / (self.parts * SAMPLES_PER_PART)).max(1);
        // A list shorter than the stride has its first key sampled, which does little harm.
        let mut samples: Vec<_> =
            self.lists.iter().flat_map(|list| list.iter().step_by(stride).copied()).collect();
        samples.sort_unstable_by(|&a, &b| compare(a, b, order));
        let cut = |part: usize| {
            let is_inner = part > 0 && part < self.parts;
            is_inner.then(|| samples.get(part * samples.len() / self.parts).copied()).flatten()
        };
        (cut(self.part), cut(self.part + 1))
    }

    /// The keys of all lists from `low` on and before `high`, merged if there is more than one.
    pub(super) fn gather<O: KeyOrder>(
        &self,
        low: Option<Entry>,
        high: Option<Entry>,
        order: &O,
    ) -> Cow<'l, [Entry]> {
        let place = |list: &[Entry], cut: Option<Entry>, end| {
            cut.map_or(end, |cut| list.partition_point(|&entry| compare(entry, cut, order).is_lt()))
        };
        let part_of = |list: &&'l [Entry]| {
            debug_assert!(
                list.is_sorted_by(|&a, &b| compare(a, b, order).is_lt()),
                "a worker's list is sorted, and has each key once"
            );
            &list[place(list, low, 0)..place(list, high, list.len())]
        };
        if let [list] = self.lists {
            return Cow::Borrowed(part_of(list));
        }
        let mut run: Vec<_> = self.lists.iter().flat_map(part_of).copied().collect();
        // The stable sort recognises the sorted pieces and merges them.
        run.sort_by(|&a, &b| compare(a, b, order));
        debug_assert!(
            run.is_sorted_by(|&a, &b| compare(a, b, order).is_lt()),
            "no key is in the lists of two workers"
        );
        Cow::Owned(run)
    }
}

/// Which entries of a run belong to which chunk.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The chunk.
    pub(super) at: usize,
    /// Where its entries are in the run.
    pub(super) run: Range<usize>,
}

/// Divides a run, all of it within `chunks`, by chunk.
pub(super) fn divide<O: KeyOrder>(
    directory: &Directory,
    run: &[Entry],
    chunks: Range<usize>,
    order: &O,
) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut next = 0;
    while let Some(&entry) = run.get(next) {
        let at = directory.locate_entry(entry, order);
        assert!(chunks.contains(&at), "a worker keeps to its chunks");
        let is_here = |&other: &Entry| compare(other, directory.first(at + 1), order).is_lt();
        let is_last = at + 1 == directory.len();
        let count =
            if is_last { run.len() - next } else { super::order::gallop(&run[next..], is_here) };
        assert!(count > 0, "an entry belongs to the chunk where it was looked for");
        targets.push(Target { at, run: next..next + count });
        next += count;
    }
    targets
}
