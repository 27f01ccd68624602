//! What the workers of an epoch may need of the image, and what they have at hand (O-43).
//!
//! Rows are created by the worker that declared them, so their demand adds up. Values are written,
//! and slots freed, by whoever runs the call: the bound holds for every way to spread the work. A
//! worker that does all of it finds least at hand in the sub-pools of the poorest one, and every
//! worker, and every class of values, may begin a segment.

use storage::format::{CLASSES, POOLS};
use storage::{class_bytes, class_of, class_pool};

/// What the workers may need, and what they have at hand.
#[derive(Debug, Default)]
pub(crate) struct SpaceDemand {
    /// Segments for the rows that workers create.
    pub(crate) row_segments: u64,
    /// Declared inserts and writes of each table.
    pub(crate) inserts: Vec<u64>,
    pub(crate) writes: Vec<u64>,
    /// Tables of which declared ranges may cover every row.
    pub(crate) covered: Vec<bool>,
    /// Stale external values that the major collector may free.
    pub(crate) collected: u64,
    /// For each pool, the slots and the free-list entries that every worker has at hand at least.
    pub(crate) slots_at_hand: Vec<u64>,
    pub(crate) entries_at_hand: Vec<u64>,
}

impl SpaceDemand {
    /// Nothing needed yet.
    pub(crate) fn new(tables: usize) -> Self {
        Self {
            inserts: vec![0; tables],
            writes: vec![0; tables],
            covered: vec![false; tables],
            slots_at_hand: vec![u64::MAX; POOLS],
            entries_at_hand: vec![u64::MAX; POOLS],
            ..Self::default()
        }
    }
}

/// What the bound has to know of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSpace {
    /// Rows that it has.
    pub(crate) rows: u64,
    /// Longest value, if there may be values that are not inline.
    pub(crate) external_bytes_max: Option<u64>,
}

/// Bytes of an entry of a free list.
const ENTRY_BYTES: u64 = 8;

impl SpaceDemand {
    /// Most segments that the epoch may take, however its calls are spread over the workers.
    pub(crate) fn segments(
        &self,
        tables: impl Iterator<Item = TableSpace>,
        workers: u64,
        segment_bytes: u64,
    ) -> u64 {
        let mut segments = self.row_segments;
        let (mut external, mut largest) = (0, 0);
        for (index, table) in tables.enumerate() {
            // A row is written and freed once, however many ranges cover it.
            let in_ranges = table.rows + self.inserts[index];
            let writes = self.writes[index] + u64::from(self.covered[index]) * in_ranges;
            let at_hand = self.entries_at_hand[index];
            let entries = Spread::of(writes, at_hand, segment_bytes / ENTRY_BYTES);
            segments += entries.most + entries.begun(workers);
            if let Some(bytes) = table.external_bytes_max {
                external += writes;
                largest = largest.max(bytes);
            }
        }
        segments + self.value_segments((external, largest), workers, segment_bytes)
    }

    /// Most segments for so many values of unknown lengths up to the largest. Their cost is convex
    /// in how they are spread over the classes, so it is largest where all are of one class, but
    /// for the segments that each class begins.
    fn value_segments(
        &self,
        (external, largest): (u64, u64),
        workers: u64,
        segment_bytes: u64,
    ) -> u64 {
        // A deletion frees the values of both versions.
        let frees = 2 * external + self.collected;
        if frees == 0 {
            return 0;
        }
        let (mut slots_most, mut entries_most, mut begun) = (0, 0, 0);
        // What the collector frees may be of any class that fits a segment.
        let classes = if self.collected > 0 { CLASSES } else { class_of(largest) + 1 };
        for class in (0..classes).filter(|&class| class_bytes(class) <= segment_bytes) {
            let pool = class_pool(class) as usize;
            let per_segment = segment_bytes / class_bytes(class);
            let slots = Spread::of(external, self.slots_at_hand[pool], per_segment);
            let at_hand = self.entries_at_hand[pool];
            let entries = Spread::of(frees, at_hand, segment_bytes / ENTRY_BYTES);
            slots_most = slots_most.max(slots.most);
            entries_most = entries_most.max(entries.most);
            for spread in [slots, entries] {
                begun += spread.begun(workers) + u64::from(spread.most > 0);
            }
        }
        slots_most + entries_most + begun
    }
}

/// Things of which every worker has room for some.
#[derive(Debug, Clone, Copy)]
struct Spread {
    /// Segments that one worker needs that gets all of them.
    most: u64,
}

impl Spread {
    /// So many things, of which every worker has room for `at_hand`.
    fn of(count: u64, at_hand: u64, per_segment: u64) -> Self {
        Self { most: count.saturating_sub(at_hand).div_ceil(per_segment) }
    }

    /// Segments that the others may begin besides.
    fn begun(self, workers: u64) -> u64 {
        if self.most == 0 { 0 } else { workers - 1 }
    }
}

#[cfg(test)]
mod tests;
