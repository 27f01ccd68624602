//! What the workers of an epoch may need of the image, and what they have at hand (O-43).

use storage::format::POOLS;

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
