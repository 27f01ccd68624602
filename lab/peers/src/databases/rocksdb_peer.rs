//! RocksDB: its `TransactionDB`, which locks the rows that a transaction updates (`get_for_update`,
//! in ascending order, so that there are no deadlocks) and commits with `sync=true`. RocksDB itself
//! writes the commits that wait together with one sync of its log. Rows that are only read in a
//! transaction with updates are locked, too, shared: else it would not be serializable.
//! Transactions that only read take a snapshot, or read one row as it is. No compression; a cache
//! of blocks as large as those of others, with filters, as its documentation advises for reads by
//! key.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, IteratorMode, Options, SingleThreaded, TransactionDB,
    TransactionDBOptions, TransactionOptions, WriteBatchWithTransaction, WriteOptions,
};

use super::rows::{missing, parts, row_of};
use crate::peer::{Caller, Does, Error, Operation, Pace, Peer, Result, Shape, only_reads};
use crate::value;

pub(super) const WAY: &str = "row locks (TransactionDB), sync=true; commits share syncs";

/// Bits of a filter for each key.
const FILTER_BITS: f64 = 10.0;
/// Milliseconds that a transaction waits for a lock: longer than any queue of callers takes.
const LOCK_WAIT_MS: i64 = 60_000;
/// Of rows in memory that are then written as a sorted file, where little is kept back.
const SHORT_BYTES: usize = 64 << 10;

pub(crate) struct RocksDb {
    database: TransactionDB<SingleThreaded>,
    shape: Shape,
}

const NAME: &str = "rocksdb";

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of(NAME, error)
}

/// How commits are written.
fn commits(pace: Pace) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(pace != Pace::Unsynced);
    options
}

impl RocksDb {
    pub(crate) fn open(path: &Path, shape: Shape) -> Result<Self> {
        let mut blocks = BlockBasedOptions::default();
        let cache = usize::try_from(shape.cache_bytes).unwrap_or(usize::MAX);
        blocks.set_block_cache(&Cache::new_lru_cache(cache));
        blocks.set_bloom_filter(FILTER_BITS, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        if shape.pace != Pace::Usual {
            options.set_write_buffer_size(SHORT_BYTES);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        options.increase_parallelism(i32::try_from(cores).unwrap_or(i32::MAX));
        let mut locks = TransactionDBOptions::default();
        locks.set_default_lock_timeout(LOCK_WAIT_MS);
        locks.set_txn_lock_timeout(LOCK_WAIT_MS);
        let database = TransactionDB::open(&options, &locks, path).map_err(failed)?;
        Ok(Self { database, shape })
    }
}

impl Peer for RocksDb {
    fn load(&self) -> Result<()> {
        for part in parts(self.shape) {
            let mut batch = WriteBatchWithTransaction::<true>::default();
            for row in part {
                batch.put(row.to_be_bytes(), value::value(row, 0, self.shape.value_bytes));
            }
            self.database.write_opt(batch, &commits(self.shape.pace)).map_err(failed)?;
        }
        Ok(())
    }

    fn caller(&self) -> Result<Box<dyn Caller + '_>> {
        Ok(Box::new(Session {
            of: self,
            durable: commits(self.shape.pace),
            options: TransactionOptions::default(),
        }))
    }

    fn rows(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        for row in self.database.iterator(IteratorMode::Start) {
            let (key, value) = row.map_err(failed)?;
            each(row_of(NAME, &key)?, &value)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A caller, with its options.
struct Session<'r> {
    of: &'r RocksDb,
    durable: WriteOptions,
    options: TransactionOptions,
}

impl Caller for Session<'_> {
    fn transact(&mut self, operations: &[Operation]) -> Result<()> {
        let database = &self.of.database;
        let look_at = |row: u64, found: Option<&[u8]>| {
            let found = found.and_then(|found| value::look_at(row, found));
            found.ok_or_else(|| missing(NAME, row))
        };
        if let [Operation { row, does: Does::Read }] = *operations {
            let found = database.get_pinned(row.to_be_bytes()).map_err(failed)?;
            return look_at(row, found.as_deref());
        }
        if only_reads(operations) {
            let snapshot = database.snapshot();
            for &Operation { row, .. } in operations {
                let found = snapshot.get(row.to_be_bytes()).map_err(failed)?;
                look_at(row, found.as_deref())?;
            }
            return Ok(());
        }
        let tx = database.transaction_opt(&self.durable, &self.options);
        for &Operation { row, does } in operations {
            let key = row.to_be_bytes();
            if does == Does::Insert {
                let value = value::value(row, 0, self.of.shape.value_bytes);
                tx.put(key, value).map_err(failed)?;
                continue;
            }
            let updates = does == Does::Update;
            let found = tx.get_for_update(key, updates).map_err(failed)?;
            if updates {
                let value = found.and_then(|found| value::updated(row, &found));
                tx.put(key, value.ok_or_else(|| missing(NAME, row))?).map_err(failed)?;
            } else {
                look_at(row, found.as_deref())?;
            }
        }
        tx.commit().map_err(failed)
    }
}
