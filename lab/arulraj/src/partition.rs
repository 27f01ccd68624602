//! A partition: an engine, and the secondary indexes of its tables.
//!
//! A secondary index is a table without columns in the same engine: a key is a column's value and
//! the primary key. So it is as durable as the tables, by the same steps.

use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::Device;

use crate::Result;
use crate::engines::{Engine, Recovery, Visit};
use crate::options::Options;
use crate::schema::{Changes, Index, Key, Row, Schema};

/// A partition, which runs one transaction after the other.
pub struct Partition<D: Device, E: Engine<D>> {
    engine: E,
    schema: Schema,
    device: std::marker::PhantomData<D>,
}

impl<D: Device, E: Engine<D>> Partition<D, E> {
    /// Makes an empty one.
    ///
    /// # Errors
    /// The engine's.
    pub fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let engine = E::create(device, schema, options)?;
        Ok(Self { engine, schema: schema.clone(), device: std::marker::PhantomData })
    }

    /// Recovers one.
    ///
    /// # Errors
    /// The engine's.
    pub fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let (engine, recovery) = E::open(device, schema, options)?;
        let schema = schema.clone();
        Ok((Self { engine, schema, device: std::marker::PhantomData }, recovery))
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    #[cfg(test)]
    pub(crate) fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    fn indexes(&self, table: usize) -> Vec<Index> {
        self.schema.indexes.iter().filter(|index| index.of_table == table).copied().collect()
    }

    /// Inserts a tuple; false if the key exists.
    ///
    /// # Errors
    /// The engine's.
    pub fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool> {
        if !self.engine.insert(table, key, row)? {
            return Ok(false);
        }
        for index in self.indexes(table) {
            let entry = index.key(&self.schema, &row[index.column], key);
            self.engine.insert(index.table, &entry, &[])?;
        }
        Ok(true)
    }

    /// Changes fields of a tuple; false if there is none.
    ///
    /// # Errors
    /// The engine's.
    pub fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool> {
        let new_value = |index: Index| {
            let (_, new) = changes.iter().find(|(column, _)| *column == index.column)?;
            Some((index, *new))
        };
        let indexes: Vec<_> = self.indexes(table).into_iter().filter_map(new_value).collect();
        let before = match indexes.is_empty() {
            true => None,
            false => self.engine.get(table, key)?,
        };
        // The engine checks the values before an index gets one.
        if !self.engine.update(table, key, changes)? {
            return Ok(false);
        }
        let row = before.unwrap_or_default();
        for (index, new) in indexes {
            let old = &row[index.column];
            if old != new {
                self.engine.delete(index.table, &index.key(&self.schema, old, key))?;
                self.engine.insert(index.table, &index.key(&self.schema, new, key), &[])?;
            }
        }
        Ok(true)
    }

    /// Deletes a tuple; false if there is none.
    ///
    /// # Errors
    /// The engine's.
    pub fn delete(&mut self, table: usize, key: &Key) -> Result<bool> {
        let indexes = self.indexes(table);
        if !indexes.is_empty() {
            let Some(row) = self.engine.get(table, key)? else { return Ok(false) };
            for index in indexes {
                let entry = index.key(&self.schema, &row[index.column], key);
                self.engine.delete(index.table, &entry)?;
            }
        }
        self.engine.delete(table, key)
    }

    /// Reads a tuple.
    ///
    /// # Errors
    /// The engine's.
    pub fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        self.engine.get(table, key)
    }

    /// Visits the tuples with `from <= key`, and `key < to` if there is a `to`, in order.
    ///
    /// # Errors
    /// The engine's.
    pub fn scan(
        &mut self,
        table: usize,
        from: &Key,
        to: Option<&Key>,
        each: Visit<'_>,
    ) -> Result<()> {
        self.engine.scan(table, from, to, each)
    }

    /// The primary keys of the tuples that have a value in an indexed column, in order.
    ///
    /// # Errors
    /// The engine's.
    ///
    /// # Panics
    /// If the column has no index.
    pub fn find(&mut self, table: usize, column: usize, value: &[u8]) -> Result<Vec<Key>> {
        let mut indexes = self.indexes(table).into_iter();
        let index = indexes.find(|index| index.column == column).expect("the column has an index");
        let from = index.key(&self.schema, value, &Key::MIN);
        let mut to = index.key(&self.schema, value, &Key::of_u64(u64::MAX));
        to.0[self.schema.tables[index.table].key_words() - 1] += 1;
        let mut keys = Vec::new();
        let schema = &self.schema;
        self.engine.scan(index.table, &from, Some(&to), &mut |entry, _| {
            keys.push(index.primary(schema, entry));
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }

    /// Commits the running transaction; its number.
    ///
    /// # Errors
    /// The engine's.
    pub fn commit(&mut self) -> Result<u64> {
        self.engine.commit()
    }

    /// Undoes the running transaction.
    ///
    /// # Errors
    /// The engine's.
    pub fn abort(&mut self) -> Result<()> {
        self.engine.abort()
    }

    /// Makes everything durable that was committed, and empties the log: a checkpoint, or an empty
    /// MemTable.
    ///
    /// # Errors
    /// The engine's.
    pub fn settle(&mut self) -> Result<()> {
        self.engine.flush()?;
        self.engine.settle()
    }

    /// Makes everything durable that was committed.
    ///
    /// # Errors
    /// The engine's.
    pub fn flush(&mut self) -> Result<()> {
        self.engine.flush()
    }
}
