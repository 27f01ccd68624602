//! LMDB: one writer at a time, and each commit synced, pages and then the page of roots, which is
//! its default; `NO_META_SYNC`, `NO_SYNC` and `MAP_ASYNC` would lose answered commits. Not
//! `WRITE_MAP`, with which a sync takes the whole map. Readers map the file and wait for no writer;
//! each caller keeps its read transaction and renews it. Where memory is limited, nothing is read
//! ahead (`NO_READAHEAD`), as its documentation advises for data larger than memory.

use std::path::Path;

use lmdb::{
    Cursor, Database, DatabaseFlags, Environment, EnvironmentFlags, InactiveTransaction,
    RoTransaction, Transaction, WriteFlags,
};

use super::rows::{missing, parts, row_of};
use crate::peer::{Caller, Does, Error, Operation, Pace, Peer, Result, Shape, only_reads};
use crate::value;

pub(super) const WAY: &str = "one writer; each commit synced; readers mapped";

pub(crate) struct Lmdb {
    environment: Environment,
    table: Database,
    shape: Shape,
}

const NAME: &str = "lmdb";
/// Far more than one for each caller.
const READERS_MAX: u32 = 4096;
/// Of addresses, not of memory or of the disk: more than any comparison needs.
const MAP_BYTES: usize = 1 << 42;

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of(NAME, error)
}

impl Lmdb {
    pub(crate) fn open(path: &Path, shape: Shape) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(failed)?;
        let mut flags = EnvironmentFlags::empty();
        flags.set(EnvironmentFlags::NO_READAHEAD, shape.is_limited);
        flags.set(EnvironmentFlags::NO_SYNC, shape.pace == Pace::Unsynced);
        let environment = Environment::new()
            .set_flags(flags)
            .set_max_readers(READERS_MAX)
            .set_map_size(MAP_BYTES)
            .open(path)
            .map_err(failed)?;
        let table = environment.create_db(None, DatabaseFlags::empty()).map_err(failed)?;
        Ok(Self { environment, table, shape })
    }
}

impl Peer for Lmdb {
    fn load(&self) -> Result<()> {
        for part in parts(self.shape) {
            let mut tx = self.environment.begin_rw_txn().map_err(failed)?;
            for row in part {
                let value = value::value(row, 0, self.shape.value_bytes);
                let key = row.to_be_bytes();
                tx.put(self.table, &key, &value, WriteFlags::APPEND).map_err(failed)?;
            }
            tx.commit().map_err(failed)?;
        }
        Ok(())
    }

    fn caller(&self) -> Result<Box<dyn Caller + '_>> {
        Ok(Box::new(Session { of: self, reader: None }))
    }

    fn rows(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let tx = self.environment.begin_ro_txn().map_err(failed)?;
        let mut cursor = tx.open_ro_cursor(self.table).map_err(failed)?;
        for row in cursor.iter_start() {
            let (key, value) = row.map_err(failed)?;
            each(row_of(NAME, key)?, value)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A caller, with its read transaction between two uses.
struct Session<'l> {
    of: &'l Lmdb,
    reader: Option<InactiveTransaction<'l>>,
}

impl<'l> Session<'l> {
    fn reader(&mut self) -> Result<RoTransaction<'l>> {
        let tx = match self.reader.take() {
            Some(reader) => reader.renew(),
            None => self.of.environment.begin_ro_txn(),
        };
        tx.map_err(failed)
    }
}

/// The value of a row.
fn get(tx: &impl Transaction, table: Database, row: u64) -> Result<&[u8]> {
    match tx.get(table, &row.to_be_bytes()) {
        Err(lmdb::Error::NotFound) => Err(missing(NAME, row)),
        found => found.map_err(failed),
    }
}

impl Caller for Session<'_> {
    fn transact(&mut self, operations: &[Operation]) -> Result<()> {
        let table = self.of.table;
        if only_reads(operations) {
            let tx = self.reader()?;
            for &Operation { row, .. } in operations {
                let found = get(&tx, table, row)?;
                value::look_at(row, found).ok_or_else(|| missing(NAME, row))?;
            }
            self.reader = Some(tx.reset());
            return Ok(());
        }
        let mut tx = self.of.environment.begin_rw_txn().map_err(failed)?;
        for &Operation { row, does } in operations {
            if does == Does::Insert {
                let value = value::value(row, 0, self.of.shape.value_bytes);
                tx.put(table, &row.to_be_bytes(), &value, WriteFlags::empty()).map_err(failed)?;
                continue;
            }
            let found = get(&tx, table, row)?;
            if does == Does::Update {
                let value = value::updated(row, found).ok_or_else(|| missing(NAME, row))?;
                tx.put(table, &row.to_be_bytes(), &value, WriteFlags::empty()).map_err(failed)?;
            } else {
                value::look_at(row, found).ok_or_else(|| missing(NAME, row))?;
            }
        }
        tx.commit().map_err(failed)
    }
}
