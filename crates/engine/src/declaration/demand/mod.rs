//! What the workers of an epoch may need of the image, and what they have at hand (O-43).
//!
//! Rows are created by the worker that declared them, so their demand adds up. Values are written,
//! and slots freed, by the worker that runs the call: the bound holds for every way to spread the
//! work. A worker that does all of it finds least at hand in the sub-pools of the poorest one, and
//! every worker, and every class of values, may begin a segment. Before anybody begins one, free
//! slots go to those that are short of them ([`handover`]); and some are kept for those that free
//! space ([`kept`]).
//!
//! What the serial part writes is decided by then, so its values have the lengths that they have. A
//! value of any other call may be as long as its table allows. Where the image would have to grow
//! by much for such values, the epoch is refused ([`crate::EngineConfig::guessed_growth_max`]).

pub(crate) mod handover;
pub(crate) mod kept;

use pmem::PAGE_BYTES;
use storage::format::{CLASSES, POOLS};
use storage::{class_bytes, class_of, class_pool};

use self::handover::Shares;
pub(crate) use self::kept::{Change, Decided, Taker, Written};
use crate::worker_id::WorkerId;

/// What the workers may need, and what they have at hand.
#[derive(Debug, Default)]
pub(crate) struct SpaceDemand {
    /// Declared inserts and writes of each table.
    pub(crate) inserts: Vec<u64>,
    pub(crate) writes: Vec<u64>,
    /// Tables of which declared ranges may cover every row.
    pub(crate) covered: Vec<bool>,
    /// Of the writes, those of the serial part to tables whose values may not be inline.
    pub(crate) decided: Decided,
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
    /// All of its slots, and those that are free or were never used.
    pub(crate) all: u64,
    pub(crate) left: u64,
    /// Segments of its free list.
    pub(crate) lists: u64,
}

impl Stock {
    /// Slots that it can take without a new segment.
    pub(crate) fn slots(&self) -> u64 {
        self.free + self.fresh
    }

    /// What workers have together; lists are those of the worker with the fewest.
    pub(crate) fn of_all(stocks: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> u64| stocks.iter().map(of).sum();
        let least = |of: fn(&Self) -> u64| stocks.iter().map(of).min().unwrap_or(0);
        Self {
            free: sum(|stock| stock.free),
            fresh: sum(|stock| stock.fresh),
            entries: least(|stock| stock.entries),
            needed: sum(|stock| stock.needed),
            all: sum(|stock| stock.all),
            left: sum(|stock| stock.left),
            lists: least(|stock| stock.lists),
        }
    }

    /// Slots that hold something.
    pub(crate) fn used(&self) -> u64 {
        assert!(self.left <= self.all, "{} slots are left of {}", self.left, self.all);
        self.all - self.left
    }
}

/// What the bound has to know of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSpace {
    /// Rows that it has, if ranges may cover them.
    pub(crate) rows: u64,
    /// Bytes of a row.
    pub(crate) row_bytes: u64,
    /// Longest value, if there may be values that are not inline.
    pub(crate) external_bytes_max: Option<u64>,
}

/// Values that may not be inline, by class.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Values {
    /// Of known lengths.
    pub(crate) known: [u64; CLASSES],
    /// Of unknown lengths, by the largest class that they may be of.
    pub(crate) unknown: [u64; CLASSES],
    /// Values that may be freed.
    frees: u64,
}

/// Segments that an epoch may take at most.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needed {
    /// For slots of rows and values.
    pub(crate) slots: u64,
    /// Of these, those for values, if some have no known length.
    pub(crate) guessed: u64,
    /// For free lists.
    pub(crate) lists: u64,
}

impl Needed {
    pub(crate) fn all(self) -> u64 {
        self.slots + self.lists
    }
}

impl Values {
    /// Whether any are of unknown length.
    fn are_unknown(&self) -> bool {
        self.unknown.iter().any(|&count| count > 0)
    }

    /// Most values that may be of a class.
    pub(crate) fn most(&self, class: usize) -> u64 {
        self.known[class] + self.unknown[class..].iter().sum::<u64>()
    }
}

/// Bytes of an entry of a free list.
const ENTRY_BYTES: u64 = 8;

/// Superblocks, checkpoint records and the catalog's copies.
const RECORD_PAGES: u64 = 8;

/// Most pages that something of so many bytes lies in.
fn pages_of(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES) + 1
}

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

    /// Nothing needed, as before the next epoch.
    pub(crate) fn clear(&mut self) {
        self.inserts.fill(0);
        self.writes.fill(0);
        self.covered.fill(false);
        self.decided.clear();
        self.collected = 0;
        self.stocks.iter_mut().for_each(Vec::clear);
        self.handed.fill(0);
    }

    /// Says what one of several workers has of a pool.
    pub(crate) fn stock(&mut self, pool: usize, worker: WorkerId, workers: usize, stock: Stock) {
        assert!(worker.index() < workers, "worker {worker} of {workers} has stock");
        self.stocks[pool].resize(workers, Stock::default());
        self.stocks[pool][worker.index()] = stock;
    }

    /// Counts slots as where they are handed over to.
    pub(crate) fn hand_over(&mut self, pool: usize, shares: &Shares) {
        self.handed[pool] += shares.count();
        let shares = shares.gives.iter().zip(&shares.takes);
        for (stock, (gives, takes)) in self.stocks[pool].iter_mut().zip(shares) {
            assert!(*gives <= stock.free, "a worker gives no more slots than are free");
            stock.free = stock.free + takes - gives;
        }
    }

    /// Writes of a table: a row is written and freed once, however many ranges cover it.
    fn writes_of(&self, index: usize, table: TableSpace) -> u64 {
        let in_ranges = table.rows + self.inserts[index];
        self.writes[index] + u64::from(self.covered[index]) * in_ranges
    }

    /// Most values that may not be inline.
    pub(crate) fn values(&self, tables: impl Iterator<Item = TableSpace>) -> Values {
        let mut values = Values { known: self.decided.values, ..Values::default() };
        for (index, table) in tables.enumerate() {
            if let Some(bytes) = table.external_bytes_max {
                let (all, decided) = (self.writes_of(index, table), self.decided.writes_of(index));
                assert!(decided <= all, "what the serial part wrote was declared");
                let unknown = all - decided;
                values.unknown[class_of(bytes)] += unknown;
                // A deletion frees the values of both versions.
                values.frees += 2 * unknown;
            }
        }
        values.frees += self.decided.frees + self.collected;
        values
    }

    /// Most segments that the epoch may take, however its calls are spread over the workers.
    /// `used` says how many slots of a pool hold something.
    pub(crate) fn segments(
        &self,
        tables: impl Iterator<Item = TableSpace> + Clone,
        workers: u64,
        segment_bytes: u64,
        used: impl Fn(usize) -> u64,
    ) -> Needed {
        let mut needed = Needed::default();
        for (index, table) in tables.clone().enumerate() {
            let frees = self.writes_of(index, table) + self.handed[index];
            let entries = Spread::of(frees, self.least_entries(index), segment_bytes / ENTRY_BYTES);
            needed.lists += entries.most + entries.begun(workers);
            needed.slots += self.row_segments(index, segment_bytes / table.row_bytes);
        }
        let values = self.values(tables);
        let for_values = self.value_segments(&values, workers, segment_bytes);
        needed.slots += for_values;
        needed.guessed = if values.are_unknown() { for_values } else { 0 };
        needed.lists += self.value_list_segments(&values, workers, segment_bytes, used);
        needed
    }

    /// Most pages of the rows that calls name, and of values as long as their tables allow.
    pub(crate) fn written_pages(&self, tables: impl Iterator<Item = TableSpace>) -> u64 {
        let of_one = |table: TableSpace| {
            pages_of(table.row_bytes) + table.external_bytes_max.map_or(0, pages_of)
        };
        tables.zip(&self.writes).map(|(table, writes)| writes * of_one(table)).sum()
    }

    /// Most pages of the image that the epoch may store to.
    pub(crate) fn pages(
        &self,
        tables: impl Iterator<Item = TableSpace> + Clone,
        workers: u64,
        needed: Needed,
    ) -> u64 {
        let values = self.values(tables.clone());
        let external =
            (0..CLASSES).map(|class| values.known[class] + values.unknown[class]).zip(0..);
        let external: u64 =
            external.map(|(count, class)| count * pages_of(class_bytes(class))).sum();
        let (mut pools, mut rows, mut frees) = (CLASSES as u64, 0, values.frees);
        for (index, table) in tables.enumerate() {
            let writes = self.writes_of(index, table);
            rows += writes * pages_of(table.row_bytes);
            frees += writes + self.handed[index];
            pools += 1;
        }
        // Of each pool its state, and for each worker the ends of its list and the segment that it
        // begins. A stale value is told from its row.
        let of_pools = pools * (1 + 3 * workers);
        let lists = (frees * ENTRY_BYTES).div_ceil(PAGE_BYTES);
        rows + external + self.collected + lists + of_pools + needed.all() + RECORD_PAGES
    }

    /// Who takes segments, and what for.
    pub(crate) fn taker(
        &self,
        tables: impl Iterator<Item = TableSpace> + Clone,
        needed: Needed,
        segment_bytes: u64,
    ) -> Taker {
        let rows = self.inserts.iter().zip(tables.clone());
        let rows: Vec<_> = rows.map(|(&rows, table)| (rows, table.row_bytes)).collect();
        let values = self.values(tables);
        let may_grow = rows.iter().any(|&(rows, _)| rows > 0) || values.are_unknown();
        let change = if may_grow { Change::Grows } else { self.decided.change };
        Taker { rows, values, change, needed, segment_bytes }
    }

    /// Segments for the rows that workers create.
    fn row_segments(&self, table: usize, per_segment: u64) -> u64 {
        let missing = |stock: &Stock| stock.needed.saturating_sub(stock.slots());
        self.stocks[table].iter().map(|stock| missing(stock).div_ceil(per_segment)).sum()
    }

    /// Most segments for values. The cost of those of unknown lengths is convex in how they are
    /// spread over the classes, so it is largest where all that have one limit are of one class,
    /// but for the segments that each class begins. Slots at hand are theirs only as far as all
    /// others leave them.
    fn value_segments(&self, values: &Values, workers: u64, segment_bytes: u64) -> u64 {
        let unknown: u64 = values.unknown.iter().sum();
        let mut segments = 0;
        let mut most_of = [0; CLASSES];
        for (class, per_segment) in classes_of(segment_bytes) {
            let at_hand = self.least_slots(class_pool(class).into());
            segments += Spread::of(values.known[class], at_hand, per_segment).most;
            let most = Spread::of(values.most(class), at_hand, per_segment);
            let rounded_up = most.most > 0 && values.unknown[class..].iter().any(|&n| n > 0);
            segments += most.begun(workers) + u64::from(rounded_up);
            for (limit, &count) in values.unknown.iter().enumerate().skip(class) {
                let others = values.known[class] + unknown - count;
                let spread = Spread::of(count, at_hand.saturating_sub(others), per_segment);
                most_of[limit] = spread.most.max(most_of[limit]);
            }
        }
        segments + most_of.iter().sum::<u64>()
    }

    /// Most segments for lists of values that are freed. Of a pool no more can be freed than hold
    /// something.
    fn value_list_segments(
        &self,
        values: &Values,
        workers: u64,
        segment_bytes: u64,
        used: impl Fn(usize) -> u64,
    ) -> u64 {
        let frees = values.frees;
        let (mut largest, mut sum, mut begun, mut classes) = (0, 0, 0, 0);
        for (class, _) in classes_of(segment_bytes) {
            let pool = class_pool(class).into();
            let at_hand = self.least_entries(pool);
            if at_hand >= frees + self.handed[pool] {
                continue;
            }
            let frees = frees.min(used(pool)) + self.handed[pool];
            let entries = Spread::of(frees, at_hand, segment_bytes / ENTRY_BYTES);
            largest = entries.most.max(largest);
            sum += entries.most;
            begun += entries.begun(workers);
            classes += u64::from(entries.most > 0);
        }
        sum.min(largest + classes) + begun
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

/// The classes that segments have room for, with their slots in one.
fn classes_of(segment_bytes: u64) -> impl Iterator<Item = (usize, u64)> {
    let per_segment = move |class| (class, segment_bytes / class_bytes(class));
    (0..CLASSES).map(per_segment).take_while(|&(_, slots)| slots > 0)
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
