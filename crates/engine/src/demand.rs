//! What the workers of an epoch may need of the image, and what they have at hand (O-43).
//!
//! Rows are created by the worker that declared them, so their demand adds up. Values are written,
//! and slots freed, by whoever runs the call: the bound holds for every way to spread the work. A
//! worker that does all of it finds least at hand in the sub-pools of the poorest one, and every
//! worker, and every class of values, may begin a segment. Before anybody begins one, free slots go
//! to those that are short of them ([`handover`]).

pub(crate) mod handover;

use self::handover::Shares;
use storage::format::{CLASSES, POOLS};
use storage::{class_bytes, class_of, class_pool};

/// What the workers may need, and what they have at hand.
#[derive(Debug, Default)]
pub(crate) struct SpaceDemand {
    /// Declared inserts and writes of each table.
    pub(crate) inserts: Vec<u64>,
    pub(crate) writes: Vec<u64>,
    /// Tables of which declared ranges may cover every row.
    pub(crate) covered: Vec<bool>,
    /// Stale external values that the major collector may free.
    pub(crate) collected: u64,
    /// What each worker has of each pool that is concerned; nothing of others.
    pub(crate) stocks: Vec<Vec<Stock>>,
    /// Free slots of each pool that are handed over: who does not use them puts them back.
    pub(crate) handed: Vec<u64>,
}

/// What a worker has of a pool, and needs of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Stock {
    /// Slots that it may take from its free lists.
    pub(crate) free: u64,
    /// Slots that were never used, in segments that it has.
    pub(crate) fresh: u64,
    /// Entries for which its free list has room.
    pub(crate) entries: u64,
    /// Slots that it needs for certain, or has to be ready to take.
    pub(crate) needed: u64,
}

impl Stock {
    /// Slots that it can take without a new segment.
    pub(crate) fn slots(&self) -> u64 {
        self.free + self.fresh
    }
}

/// What the bound has to know of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSpace {
    /// Rows that it has.
    pub(crate) rows: u64,
    /// Bytes of a row.
    pub(crate) row_bytes: u64,
    /// Longest value, if there may be values that are not inline.
    pub(crate) external_bytes_max: Option<u64>,
}

/// Bytes of an entry of a free list.
const ENTRY_BYTES: u64 = 8;

impl SpaceDemand {
    /// Nothing needed yet.
    pub(crate) fn new(tables: usize) -> Self {
        Self {
            inserts: vec![0; tables],
            writes: vec![0; tables],
            covered: vec![false; tables],
            stocks: vec![Vec::new(); POOLS],
            handed: vec![0; POOLS],
            ..Self::default()
        }
    }

    /// Says what one of several workers has of a pool.
    pub(crate) fn stock(&mut self, pool: usize, (worker, workers): (usize, usize), stock: Stock) {
        self.stocks[pool].resize(workers, Stock::default());
        self.stocks[pool][worker] = stock;
    }

    /// Counts slots as where they are handed over to.
    pub(crate) fn hand_over(&mut self, pool: usize, shares: &Shares) {
        self.handed[pool] += shares.count();
        let shares = shares.gives.iter().zip(&shares.takes);
        for (stock, (gives, takes)) in self.stocks[pool].iter_mut().zip(shares) {
            stock.free = stock.free + takes - gives;
        }
    }

    /// Writes of a table: a row is written and freed once, however many ranges cover it.
    fn writes_of(&self, index: usize, table: TableSpace) -> u64 {
        let in_ranges = table.rows + self.inserts[index];
        self.writes[index] + u64::from(self.covered[index]) * in_ranges
    }

    /// Most values that may not be inline, and the bytes of the longest.
    pub(crate) fn external(&self, tables: impl Iterator<Item = TableSpace>) -> (u64, u64) {
        let mut most = (0, 0);
        for (index, table) in tables.enumerate() {
            if let Some(bytes) = table.external_bytes_max {
                let writes = self.writes_of(index, table);
                most.0 += writes;
                most.1 = bytes.max(most.1);
            }
        }
        most
    }

    /// Most segments that the epoch may take, however its calls are spread over the workers.
    pub(crate) fn segments(
        &self,
        tables: impl Iterator<Item = TableSpace> + Clone,
        workers: u64,
        segment_bytes: u64,
    ) -> u64 {
        let mut segments = 0;
        for (index, table) in tables.clone().enumerate() {
            let frees = self.writes_of(index, table) + self.handed[index];
            let entries = Spread::of(frees, self.least_entries(index), segment_bytes / ENTRY_BYTES);
            segments += entries.most + entries.begun(workers);
            segments += self.row_segments(index, segment_bytes / table.row_bytes);
        }
        segments + self.value_segments(self.external(tables), workers, segment_bytes)
    }

    /// Segments for the rows that workers create.
    fn row_segments(&self, table: usize, per_segment: u64) -> u64 {
        let missing = |stock: &Stock| stock.needed.saturating_sub(stock.slots());
        self.stocks[table].iter().map(|stock| missing(stock).div_ceil(per_segment)).sum()
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
            let slots = Spread::of(external, self.least_slots(pool), per_segment);
            let frees = frees + self.handed[pool];
            let entries = Spread::of(frees, self.least_entries(pool), segment_bytes / ENTRY_BYTES);
            slots_most = slots_most.max(slots.most);
            entries_most = entries_most.max(entries.most);
            for spread in [slots, entries] {
                begun += spread.begun(workers) + u64::from(spread.most > 0);
            }
        }
        slots_most + entries_most + begun
    }

    /// Slots that every worker can take without a new segment.
    fn least_slots(&self, pool: usize) -> u64 {
        self.stocks[pool].iter().map(Stock::slots).min().unwrap_or(u64::MAX)
    }

    /// Entries for which the free list of every worker has room.
    fn least_entries(&self, pool: usize) -> u64 {
        self.stocks[pool].iter().map(|stock| stock.entries).min().unwrap_or(u64::MAX)
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
