//! How rows are divided among the workers: a partition is all rows whose home is a worker's.

use workloads::{TableId, TableSpec, Workload};

use super::declare::{Declared, Item, Kind};
use crate::error::{Error, Result};

/// Most workers, and most tables: sets of them are bits.
const PARTS_MAX: usize = 64;

/// A set of partitions.
pub(super) type Parts = u64;

/// See the module's documentation.
#[derive(Clone, Copy)]
pub(super) struct Division<'a> {
    workload: &'a dyn Workload,
    pub(super) workers: usize,
    /// Bits of the tables that calls of the batch may write. The rows of others are read from
    /// anywhere, as if each partition had a copy.
    written: u64,
    /// Bits of the tables that calls only insert into, each keys of its own that were not there
    /// before: no other call has anything to do with such a row, so it may be made anywhere.
    apart: u64,
}

/// Whether rows can be divided like this.
///
/// # Errors
/// Too many workers or tables.
pub(super) fn check(specs: &[TableSpec], workers: usize) -> Result<()> {
    if workers > PARTS_MAX || specs.len() > PARTS_MAX {
        let what = format!("there are at most {PARTS_MAX} partitions, and as many tables");
        return Err(Error::Limit(what));
    }
    Ok(())
}

impl<'a> Division<'a> {
    /// The division of a batch whose calls have declared this.
    pub(super) fn new<'d>(
        workload: &'a dyn Workload,
        workers: usize,
        declared: impl Iterator<Item = &'d Declared>,
        new_keys: &[bool],
    ) -> Self {
        let (mut written, mut used) = (0_u64, 0_u64);
        for item in declared.flat_map(|declared| declared.all_items()) {
            let table = 1 << item.table.0;
            match item.kind {
                Kind::Read | Kind::ReadRange => used |= table,
                Kind::Insert => written |= table,
                Kind::Write | Kind::Piece | Kind::WriteRange => {
                    written |= table;
                    used |= table;
                }
            }
        }
        let tables = new_keys.iter().enumerate().filter(|(_, are_new)| **are_new);
        let new_keys = tables.fold(0, |tables, (table, _)| tables | 1 << table);
        Self { workload, workers, written, apart: new_keys & !used }
    }

    fn is_apart(&self, table: TableId) -> bool {
        self.apart >> table.0 & 1 == 1
    }

    fn writes(&self, table: TableId) -> bool {
        self.written >> table.0 & 1 == 1
    }

    /// The partition of a row.
    pub(super) fn part(&self, table: TableId, key: &[u8]) -> usize {
        (self.workload.home(table, key) % self.workers as u64) as usize
    }

    /// The partitions that a declared key or range touches.
    pub(super) fn touched(&self, declared: &Declared, item: &Item) -> Parts {
        match self.writes(item.table) && !self.is_apart(item.table) {
            true => 1 << self.part(item.table, declared.key(item)),
            false => 0,
        }
    }

    fn has(&self, parts: Parts, table: TableId, key: &[u8]) -> bool {
        parts >> self.part(table, key) & 1 == 1
    }

    /// Whether a call that has some partitions for itself may read a row.
    pub(super) fn may_read(&self, parts: Parts, table: TableId, key: &[u8]) -> bool {
        !self.writes(table) || self.has(parts, table, key)
    }

    /// Whether a call that has some partitions for itself may write a row.
    pub(super) fn may_write(&self, parts: Parts, table: TableId, key: &[u8]) -> bool {
        self.is_apart(table) || self.writes(table) && self.has(parts, table, key)
    }
}
