//! What every engine offers: transactions of one thread, and a recovery.

use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::Device;

use crate::ground::{Footprint, Nvm, Traffic};
use crate::options::Options;
use crate::schema::{Changes, Key, Row, Schema};
use crate::{Error, Result};

/// Sees a tuple of a scan, and says whether to go on.
pub type Visit<'a> = &'a mut dyn FnMut(&Key, Row) -> ControlFlow<()>;

/// What a recovery did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Changes that were made again from a log.
    pub redone: u64,
    /// Entries of a log that were undone.
    pub undone: u64,
    /// What the engine itself read and wrote.
    pub engine: Traffic,
    /// Slots that the allocator looked at afterwards: the paper counts that for a restart of the
    /// system, not for one of the program.
    pub slots: u64,
    /// Slots that it freed, because they were not persisted.
    pub freed: u64,
}

/// A storage engine of one partition. Tables are numbers; secondary indexes are tables, too, which
/// [`crate::Partition`] maintains. Before the first change and after `commit` and `abort` there is
/// no transaction; a change begins one.
pub trait Engine<D: Device>: Sized {
    /// Name for reports.
    const NAME: &'static str;

    /// Makes an empty store.
    ///
    /// # Errors
    /// The device's, and tables that do not fit.
    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self>;

    /// Recovers what such an engine left on the device.
    ///
    /// # Errors
    /// The device's, and what cannot be such a store.
    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)>;

    /// Inserts a tuple; false if the key exists.
    ///
    /// # Errors
    /// The device's.
    fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool>;

    /// Changes fields of a tuple; false if there is none.
    ///
    /// # Errors
    /// The device's.
    fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool>;

    /// Deletes a tuple; false if there is none.
    ///
    /// # Errors
    /// The device's.
    fn delete(&mut self, table: usize, key: &Key) -> Result<bool>;

    /// Reads a tuple.
    ///
    /// # Errors
    /// The device's.
    fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>>;

    /// Visits the tuples with `from <= key`, and `key < to` if there is a `to`, in order.
    ///
    /// # Errors
    /// The device's.
    fn scan(&mut self, table: usize, from: &Key, to: Option<&Key>, each: Visit<'_>) -> Result<()>;

    /// Commits the running transaction. It may be answered once [`Engine::durable`] has come to its
    /// number: the first one is 1.
    ///
    /// # Errors
    /// The device's.
    fn commit(&mut self) -> Result<u64>;

    /// Undoes the running transaction.
    ///
    /// # Errors
    /// The device's.
    fn abort(&mut self) -> Result<()>;

    /// Ends the group, so that everything that was committed is durable.
    ///
    /// # Errors
    /// The device's.
    fn flush(&mut self) -> Result<()>;

    /// How many of the transactions that committed since the open are durable.
    fn durable(&self) -> u64;

    /// What went to and from the device.
    fn traffic(&self) -> Traffic;

    /// Bytes in use now, and at most.
    fn footprint(&self) -> (Footprint, Footprint);

    /// By how many the persisted slots differ from those that something leads to: lost memory, or
    /// memory in use that is free.
    #[cfg(test)]
    fn lost_slots(&mut self) -> Result<u64>;
}

/// Counts transactions, and says when a group is full.
#[derive(Debug, Default)]
pub(super) struct Groups {
    committed: u64,
    durable: u64,
    size: u64,
}

impl Groups {
    pub(super) fn new(options: &Options) -> Self {
        Self { size: options.group_transactions.max(1), ..Self::default() }
    }

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

/// The number that a device has which holds a store of this engine with these tables.
pub(super) fn magic(name: &str, schema: &Schema) -> u64 {
    xxhash_rust::xxh3::xxh3_64(format!("{name} {:?}", schema.tables).as_bytes()) | 1
}

/// Checks that a row has the columns of its table.
pub(super) fn check_row(schema: &Schema, table: usize, row: &[Vec<u8>]) -> Result<()> {
    let columns = &schema.tables[table].columns;
    if columns.len() != row.len() {
        return Err(Error::Limit(format!("{} columns instead of {}", row.len(), columns.len())));
    }
    row.iter().enumerate().try_for_each(|(column, value)| check_value(schema, table, column, value))
}

/// Checks that a value fits its column.
pub(super) fn check_value(
    schema: &Schema,
    table: usize,
    column: usize,
    value: &[u8],
) -> Result<()> {
    let of = &schema.tables[table];
    let most = of.columns[column] as usize;
    let fits = if of.is_inline(column) { value.len() == most } else { value.len() <= most };
    if fits {
        return Ok(());
    }
    Err(Error::Limit(format!("a value of {} bytes in a column of {most}", value.len())))
}

/// What an open did, before and after the allocator looked at all slots.
pub(super) fn end_recovery<D: Device>(nvm: &mut Nvm<D>, redone: u64, undone: u64) -> Recovery {
    let engine = nvm.traffic();
    let reclaimed = nvm.reclaim();
    Recovery { redone, undone, engine, slots: reclaimed.slots, freed: reclaimed.freed }
}
