//! fjall: transactions of one writer at a time. The commit goes to the journal, and the caller then
//! asks for all of the journal to be durable (`PersistMode::SyncAll`) outside the writer's lock, so
//! that others commit meanwhile: that is faster than a durable commit within the lock.

use std::path::Path;

use fjall::{Config, PartitionCreateOptions, PersistMode, TxKeyspace, TxPartitionHandle};

use crate::peer::{Error, Peer, Result, VALUE_BYTES, counted, counter};

pub(crate) struct Fjall {
    keyspace: TxKeyspace,
    rows: TxPartitionHandle,
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of("fjall", error)
}

impl Fjall {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let keyspace = Config::new(path).open_transactional().map_err(failed)?;
        let options = PartitionCreateOptions::default();
        let rows = keyspace.open_partition("rows", options).map_err(failed)?;
        Ok(Self { keyspace, rows })
    }
}

impl Peer for Fjall {
    fn name(&self) -> String {
        "fjall 2".into()
    }

    fn load(&self, rows: u64) -> Result<()> {
        let mut tx = self.keyspace.write_tx();
        (0..rows).for_each(|row| tx.insert(&self.rows, row.to_be_bytes(), [0; VALUE_BYTES]));
        tx.commit().map_err(failed)?;
        self.keyspace.persist(PersistMode::SyncAll).map_err(failed)
    }

    fn update(&self, row: u64) -> Result<()> {
        let key = row.to_be_bytes();
        let mut tx = self.keyspace.write_tx();
        let value = tx.get(&self.rows, key).map_err(failed)?;
        let value = value.and_then(|value| counted(&value));
        tx.insert(&self.rows, key, value.ok_or_else(|| failed("a row is missing"))?);
        tx.commit().map_err(failed)?;
        self.keyspace.persist(PersistMode::SyncAll).map_err(failed)
    }

    fn sum(&self) -> Result<u64> {
        let mut sum = 0;
        for row in self.keyspace.read_tx().iter(&self.rows) {
            sum += counter(&row.map_err(failed)?.1);
        }
        Ok(sum)
    }
}
