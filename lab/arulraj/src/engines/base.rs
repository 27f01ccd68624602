//! What every engine has beside its own structures: the device, the tables, how it was made, and
//! the groups of its transactions.

use std::sync::Arc;

use pmem::Device;

use super::engine::Recovery;
use crate::ground::Nvm;
use crate::options::Options;
use crate::schema::{Changes, Entry, Schema, Table};
use crate::structures::{BTree, read_tuple, slots_of};
use crate::{Error, Result};

/// What every engine has.
pub struct Base<D: Device> {
    pub(super) nvm: Nvm<D>,
    pub(super) schema: Schema,
    pub(super) options: Options,
    pub(super) groups: Groups,
}

impl<D: Device> Base<D> {
    /// That of an empty store of the engine with this name.
    pub(super) fn create(
        name: &str,
        device: Arc<D>,
        schema: &Schema,
        options: &Options,
    ) -> Result<Self> {
        let nvm = Nvm::create(device, magic(name, schema), options.modelled)?;
        Ok(Self::new(nvm, schema, options))
    }

    /// That of a store which the engine with this name left.
    pub(super) fn open(
        name: &str,
        device: Arc<D>,
        schema: &Schema,
        options: &Options,
    ) -> Result<Self> {
        let nvm = Nvm::open(device, magic(name, schema), options.modelled)?;
        Ok(Self::new(nvm, schema, options))
    }

    fn new(nvm: Nvm<D>, schema: &Schema, options: &Options) -> Self {
        let (schema, options) = (schema.clone(), options.clone());
        let groups = Groups { size: options.group_transactions.max(1), ..Groups::default() };
        Self { nvm, schema, options, groups }
    }

    pub(super) fn table(&self, table: usize) -> &Table {
        &self.schema.tables[table]
    }

    /// An empty tree for each table.
    pub(super) fn new_trees(&mut self, is_durable: bool) -> Result<Vec<BTree>> {
        let node_bytes = self.options.node_bytes;
        let tables = self.schema.tables.iter();
        tables
            .map(|table| BTree::create(&mut self.nvm, table.key_words(), node_bytes, is_durable))
            .collect()
    }

    /// The trees of the tables, whose headers are in slots.
    pub(super) fn trees_at(&self, headers: &[u64], is_durable: bool) -> Vec<BTree> {
        let node_bytes = self.options.node_bytes;
        let tables = self.schema.tables.iter().zip(headers);
        tables
            .map(|(table, at)| BTree::at(*at, table.key_words(), node_bytes, is_durable))
            .collect()
    }

    pub(super) fn read_tuple(&mut self, table: usize, tuple: u64) -> Result<Entry> {
        read_tuple(&mut self.nvm, &self.schema.tables[table], tuple)
    }

    pub(super) fn slots_of(&mut self, table: usize, tuple: u64) -> Vec<u64> {
        slots_of(&mut self.nvm, &self.schema.tables[table], tuple)
    }

    /// How many slots a tree of tuples has: nodes, tuples and fields.
    #[cfg(test)]
    pub(super) fn count_slots(&mut self, table: usize, tree: &BTree) -> u64 {
        let nodes = tree.slots(&mut self.nvm).len();
        let tuples = tree.range(&mut self.nvm, &crate::Key::MIN, None);
        let slots = tuples.into_iter().map(|(_, tuple)| self.slots_of(table, tuple).len());
        (nodes + slots.sum::<usize>()) as u64
    }

    /// What an open did, before and after the allocator looked at all slots.
    pub(super) fn end_recovery(&mut self, redone: u64, undone: u64) -> Recovery {
        let engine = self.nvm.traffic();
        let reclaimed = self.nvm.reclaim();
        let (slots, freed) = (reclaimed.slots, reclaimed.freed);
        Recovery { redone, undone, engine, slots, freed, ..Recovery::default() }
    }

    /// Lines that went to and from the device.
    pub(super) fn lines(&self) -> u64 {
        let counters = self.nvm.traffic().counters;
        counters.lines_read + counters.lines_written
    }

    /// Checks that a row has the columns of its table.
    pub(super) fn check_row(&self, table: usize, row: &[Vec<u8>]) -> Result<()> {
        let of = self.table(table);
        let columns = of.columns.len();
        if columns != row.len() {
            return Err(Error::Limit(format!("{} columns instead of {columns}", row.len())));
        }
        row.iter().enumerate().try_for_each(|(column, value)| check_value(of, column, value))
    }

    /// Checks that the values fit their columns, and that no column is named again.
    pub(super) fn check_changes(&self, table: usize, changes: Changes<'_>) -> Result<()> {
        let mut named = 0u64;
        for (column, value) in changes {
            check_value(self.table(table), *column, value)?;
            if named >> column & 1 == 1 {
                return Err(Error::Limit(format!("two changes of column {column}")));
            }
            named |= 1 << column;
        }
        Ok(())
    }
}

fn check_value(table: &Table, column: usize, value: &[u8]) -> Result<()> {
    let most = table.columns[column] as usize;
    let fits = if table.is_inline(column) { value.len() == most } else { value.len() <= most };
    match fits {
        true => Ok(()),
        false => Err(Error::Limit(format!("{} bytes in a column of {most}", value.len()))),
    }
}

/// The number that a device has which holds a store of this engine with these tables.
fn magic(name: &str, schema: &Schema) -> u64 {
    xxhash_rust::xxh3::xxh3_64(format!("{name} {:?}", schema.tables).as_bytes()) | 1
}

/// Counts transactions, and says when a group is full.
#[derive(Debug, Default)]
pub(super) struct Groups {
    committed: u64,
    durable: u64,
    size: u64,
}

impl Groups {
    /// One more has committed: its number.
    pub(super) fn commit(&mut self) -> u64 {
        self.committed += 1;
        self.committed
    }

    pub(super) fn is_full(&self) -> bool {
        self.committed - self.durable >= self.size
    }

    pub(super) fn committed(&self) -> u64 {
        self.committed
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.committed == self.durable
    }

    pub(super) fn all_durable(&mut self) {
        self.durable = self.committed;
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable
    }
}
