//! fjall: transactions of one writer at a time. The commit goes to the journal, and the caller then
//! asks for all of the journal to be durable (`PersistMode::SyncAll`) outside the writer's lock, so
//! that others commit meanwhile: that is faster than a durable commit within the lock. Transactions
//! that only read take a snapshot, or read one row as it is. No compression, as everywhere.

use std::path::Path;

use fjall::{Config, PartitionCreateOptions, PersistMode, TxKeyspace, TxPartitionHandle};

use super::rows::{missing, parts, row_of};
use crate::peer::{Caller, Does, Error, Operation, Pace, Peer, Result, Shape, only_reads};
use crate::value;

pub(super) const WAY: &str = "one writer; the journal synced outside its lock (SyncAll)";

pub(crate) struct Fjall {
    keyspace: TxKeyspace,
    table: TxPartitionHandle,
    shape: Shape,
}

const NAME: &str = "fjall";
/// Of rows in memory that are then written as a sorted file, where little is kept back.
const SHORT_BYTES: u32 = 64 << 10;

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of(NAME, error)
}

impl Fjall {
    pub(crate) fn open(path: &Path, shape: Shape) -> Result<Self> {
        let config = Config::new(path).cache_size(shape.cache_bytes);
        let keyspace = config.open_transactional().map_err(failed)?;
        let mut options = PartitionCreateOptions::default();
        if shape.pace != Pace::Usual {
            options = options.max_memtable_size(SHORT_BYTES);
        }
        let table = keyspace.open_partition("rows", options).map_err(failed)?;
        Ok(Self { keyspace, table, shape })
    }

    fn persist(&self) -> Result<()> {
        let mode = match self.shape.pace {
            Pace::Unsynced => PersistMode::Buffer,
            _ => PersistMode::SyncAll,
        };
        self.keyspace.persist(mode).map_err(failed)
    }
}

impl Peer for Fjall {
    fn load(&self) -> Result<()> {
        for part in parts(self.shape) {
            let mut tx = self.keyspace.write_tx();
            for row in part {
                let value = value::value(row, 0, self.shape.value_bytes);
                tx.insert(&self.table, row.to_be_bytes(), value);
            }
            tx.commit().map_err(failed)?;
        }
        self.persist()
    }

    fn caller(&self) -> Result<Box<dyn Caller + '_>> {
        Ok(Box::new(self))
    }

    fn rows(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        for row in self.keyspace.read_tx().iter(&self.table) {
            let (key, value) = row.map_err(failed)?;
            each(row_of(NAME, &key)?, &value)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.persist()
    }
}

impl Caller for &Fjall {
    fn transact(&mut self, operations: &[Operation]) -> Result<()> {
        if let [Operation { row, does: Does::Read }] = *operations {
            let found = self.table.get(row.to_be_bytes()).map_err(failed)?;
            let found = found.and_then(|found| value::look_at(row, &found));
            return found.ok_or_else(|| missing(NAME, row));
        }
        if only_reads(operations) {
            let tx = self.keyspace.read_tx();
            for &Operation { row, .. } in operations {
                let found = tx.get(&self.table, row.to_be_bytes()).map_err(failed)?;
                let found = found.and_then(|found| value::look_at(row, &found));
                found.ok_or_else(|| missing(NAME, row))?;
            }
            return Ok(());
        }
        let mut tx = self.keyspace.write_tx();
        for &Operation { row, does } in operations {
            let key = row.to_be_bytes();
            if does == Does::Insert {
                tx.insert(&self.table, key, value::value(row, 0, self.shape.value_bytes));
                continue;
            }
            let found = tx.get(&self.table, key).map_err(failed)?;
            let found = found.ok_or_else(|| missing(NAME, row))?;
            if does == Does::Update {
                let value = value::updated(row, &found).ok_or_else(|| missing(NAME, row))?;
                tx.insert(&self.table, key, value);
            } else {
                value::look_at(row, &found).ok_or_else(|| missing(NAME, row))?;
            }
        }
        tx.commit().map_err(failed)?;
        self.persist()
    }
}
