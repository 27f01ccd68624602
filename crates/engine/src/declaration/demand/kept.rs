//! Space that is kept for those that free some: a full store still takes deletes and shorter
//! values.
//!
//! A delete takes no slot, but its row and values go to free lists, and these may need a segment.
//! A shorter value takes a slot, and that of the value before comes back after the next checkpoint.
//! So who takes more space leaves
//! 1. for each pool that has slots, the segments that one list of all of them can need, of which
//!    those at its ends are not full;
//! 2. for each class of values that is in use two slots, so that the second of two shorter values
//!    need not wait for what the first one freed;
//! 3. segments to begin a class with that no value has yet, once.
//!
//! Who writes shorter values leaves 1. This does for an epoch of one worker, which has the
//! sub-pools of all in its hands; calls that were to run on all can be run so, too.

use storage::class_pool;
use storage::format::CLASSES;

use super::{ENTRY_BYTES, Needed, Stock, Values, classes_of};

/// What an epoch makes of the space.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// It frees slots, or writes values where the rows have room for them.
    #[default]
    Frees,
    /// It writes values that are no longer than those before.
    Shortens,
    /// Anything.
    Grows,
}

/// What the serial part writes to tables whose values may not be inline.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// Writes of each table.
    writes: Vec<u64>,
    /// Values that may not be inline, by class.
    pub(super) values: [u64; CLASSES],
    /// Values that are freed at most.
    pub(super) frees: u64,
    pub(super) change: Change,
}

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    New,
    Changed,
    Deleted,
}

impl Decided {
    /// A row of a table is written, with a value of so many bytes if that may not be inline.
    pub(crate) fn write(
        &mut self,
        table: usize,
        written: Written,
        external: Option<u64>,
        change: Change,
    ) {
        if self.writes.len() <= table {
            self.writes.resize(table + 1, 0);
        }
        self.writes[table] += 1;
        if let Some(bytes) = external {
            self.values[storage::class_of(bytes)] += 1;
        }
        self.frees += match written {
            Written::New => 0,
            // Where it was written since the last checkpoint.
            Written::Changed => 1,
            // Of both versions.
            Written::Deleted => 2,
        };
        self.change = self.change.max(change);
    }

    /// Adds what another worker counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.writes.resize(self.writes.len().max(other.writes.len()), 0);
        self.writes.iter_mut().zip(&other.writes).for_each(|(sum, n)| *sum += n);
        self.values.iter_mut().zip(&other.values).for_each(|(sum, n)| *sum += n);
        self.frees += other.frees;
        self.change = self.change.max(other.change);
    }

    pub(super) fn writes_of(&self, table: usize) -> u64 {
        self.writes.get(table).copied().unwrap_or(0)
    }

    pub(crate) fn clear(&mut self) {
        if !self.writes.is_empty() {
            *self = Self::default();
        }
    }
}

/// Slots that are left of each class.
const SPARE_SLOTS: u64 = 2;

/// What an epoch takes, and of what.
pub(crate) struct Taker {
    /// Rows that it creates, by table, and bytes of a row.
    pub(crate) rows: Vec<(u64, u64)>,
    pub(crate) values: Values,
    pub(crate) change: Change,
    /// Segments that it may take.
    pub(crate) needed: Needed,
    pub(crate) segment_bytes: u64,
}

impl Taker {
    /// Whether it frees more than it takes, so that it may use what is kept for that.
    pub(crate) fn frees(&self) -> bool {
        self.change != Change::Grows
    }

    /// Segments that have to be left, those for lists that it may take itself included; `of_all`
    /// says what all workers have of a pool together.
    pub(crate) fn leaves(&self, of_all: impl Fn(usize) -> Stock) -> u64 {
        let takes_segments = self.needed.slots > 0;
        if self.change == Change::Frees || self.change == Change::Shortens && !takes_segments {
            return 0;
        }
        let (mut kept, mut is_unused, mut may_begin) = (0, false, false);
        for (table, &(rows, row_bytes)) in self.rows.iter().enumerate().filter(|_| takes_segments) {
            kept += self.lists(&of_all(table), rows, self.segment_bytes / row_bytes);
        }
        for (class, per_segment) in classes_of(self.segment_bytes) {
            let count = self.values.most(class);
            if count == 0 && !takes_segments {
                continue;
            }
            let stock = of_all(class_pool(class).into());
            if takes_segments {
                kept += self.lists(&stock, count, per_segment);
            }
            if stock.all == 0 && count == 0 {
                is_unused = true;
                continue;
            }
            may_begin |= is_unused;
            if self.change == Change::Grows {
                let left = stock.slots().saturating_sub(count);
                kept += SPARE_SLOTS.saturating_sub(left).div_ceil(per_segment);
            }
        }
        if may_begin && takes_segments && self.change == Change::Grows {
            // Slots, and a list with two ends.
            kept += 1 + 2;
        }
        kept
    }

    /// Segments that the list of a pool may need one day, when it has allocated `count` slots.
    fn lists(&self, stock: &Stock, count: u64, per_segment: u64) -> u64 {
        let allocated = count.saturating_sub(stock.slots()).div_ceil(per_segment) * per_segment;
        match stock.all + allocated {
            0 => 0,
            slots => {
                (slots.div_ceil(self.segment_bytes / ENTRY_BYTES) + 1).saturating_sub(stock.lists)
            }
        }
    }
}
