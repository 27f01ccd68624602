//! redb: one writer at a time, and each commit durable when it returns (`Durability::Immediate`,
//! its default). Callers wait for their turn; commits of several callers cannot share a sync.
//! Transactions that only read do so beside the writer.

use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, TableError};

use super::rows::{missing, parts};
use crate::peer::{Caller, Does, Error, Operation, Pace, Peer, Result, Shape, only_reads};
use crate::value;

pub(super) const WAY: &str = "one writer; each commit synced (Immediate)";

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

pub(crate) struct Redb {
    database: Database,
    shape: Shape,
}

const NAME: &str = "redb";

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of(NAME, error)
}

impl Redb {
    pub(crate) fn open(path: &Path, shape: Shape) -> Result<Self> {
        let mut builder = Database::builder();
        builder.set_cache_size(usize::try_from(shape.cache_bytes).unwrap_or(usize::MAX));
        Ok(Self { database: builder.create(path).map_err(failed)?, shape })
    }
}

impl Peer for Redb {
    fn load(&self) -> Result<()> {
        for part in parts(self.shape) {
            let tx = self.database.begin_write().map_err(failed)?;
            {
                let mut table = tx.open_table(ROWS).map_err(failed)?;
                for row in part {
                    let value = value::value(row, 0, self.shape.value_bytes);
                    table.insert(row, value.as_slice()).map_err(failed)?;
                }
            }
            tx.commit().map_err(failed)?;
        }
        Ok(())
    }

    fn caller(&self) -> Result<Box<dyn Caller + '_>> {
        Ok(Box::new(self))
    }

    fn rows(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let tx = self.database.begin_read().map_err(failed)?;
        let table = match tx.open_table(ROWS) {
            // No row was ever made.
            Err(TableError::TableDoesNotExist(_)) => return Ok(()),
            table => table.map_err(failed)?,
        };
        for row in table.iter().map_err(failed)? {
            let (key, value) = row.map_err(failed)?;
            each(key.value(), value.value())?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Caller for &Redb {
    fn transact(&mut self, operations: &[Operation]) -> Result<()> {
        if only_reads(operations) {
            let tx = self.database.begin_read().map_err(failed)?;
            let table = tx.open_table(ROWS).map_err(failed)?;
            for &Operation { row, .. } in operations {
                let found = table.get(row).map_err(failed)?;
                let found = found.and_then(|found| value::look_at(row, found.value()));
                found.ok_or_else(|| missing(NAME, row))?;
            }
            return Ok(());
        }
        let mut tx = self.database.begin_write().map_err(failed)?;
        if self.shape.pace == Pace::Unsynced {
            tx.set_durability(Durability::None).map_err(failed)?;
        }
        {
            let mut table = tx.open_table(ROWS).map_err(failed)?;
            for &Operation { row, does } in operations {
                if does == Does::Insert {
                    let value = value::value(row, 0, self.shape.value_bytes);
                    table.insert(row, value.as_slice()).map_err(failed)?;
                    continue;
                }
                let found = table.get(row).map_err(failed)?;
                let found = found.ok_or_else(|| missing(NAME, row))?;
                if does == Does::Update {
                    let value = value::updated(row, found.value());
                    drop(found);
                    let value = value.ok_or_else(|| missing(NAME, row))?;
                    table.insert(row, value.as_slice()).map_err(failed)?;
                } else {
                    value::look_at(row, found.value()).ok_or_else(|| missing(NAME, row))?;
                }
            }
        }
        tx.commit().map_err(failed)
    }
}
