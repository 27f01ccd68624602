//! redb: one writer at a time, and each commit durable when it returns (`Durability::Immediate`,
//! its default). Callers wait for their turn; commits of several callers cannot share a sync.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::peer::{Error, Peer, Result, VALUE_BYTES, counted, counter};

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

pub(crate) struct Redb(Database);

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of("redb", error)
}

impl Redb {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self(Database::create(path).map_err(failed)?))
    }
}

impl Peer for Redb {
    fn name(&self) -> String {
        "redb 3".into()
    }

    fn load(&self, rows: u64) -> Result<()> {
        let tx = self.0.begin_write().map_err(failed)?;
        {
            let mut table = tx.open_table(ROWS).map_err(failed)?;
            for row in 0..rows {
                table.insert(row, &[0; VALUE_BYTES][..]).map_err(failed)?;
            }
        }
        tx.commit().map_err(failed)
    }

    fn update(&self, row: u64) -> Result<()> {
        let tx = self.0.begin_write().map_err(failed)?;
        {
            let mut table = tx.open_table(ROWS).map_err(failed)?;
            let value = table.get(row).map_err(failed)?.and_then(|value| counted(value.value()));
            let value = value.ok_or_else(|| failed("a row is missing"))?;
            table.insert(row, value.as_slice()).map_err(failed)?;
        }
        tx.commit().map_err(failed)
    }

    fn sum(&self) -> Result<u64> {
        let tx = self.0.begin_read().map_err(failed)?;
        let table = tx.open_table(ROWS).map_err(failed)?;
        let mut sum = 0;
        for row in table.iter().map_err(failed)? {
            sum += counter(row.map_err(failed)?.1.value());
        }
        Ok(sum)
    }
}
