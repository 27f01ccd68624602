//! SQLite: write-ahead log, `synchronous=FULL`, which makes each commit durable, prepared
//! statements. One connection behind a lock: SQLite has one writer at a time anyway, and
//! connections of many threads would sleep while they wait for it.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, TransactionBehavior};

use crate::peer::{Error, Peer, Result, VALUE_BYTES, counted, counter};

pub(crate) struct Sqlite(Mutex<Connection>);

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of("SQLite", error)
}

impl Sqlite {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open(path).map_err(failed)?;
        let set = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                   CREATE TABLE rows (id INTEGER PRIMARY KEY, value BLOB NOT NULL);";
        connection.execute_batch(set).map_err(failed)?;
        Ok(Self(Mutex::new(connection)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const INSERT: &str = "INSERT INTO rows (id, value) VALUES (?1, ?2)";
const SELECT: &str = "SELECT value FROM rows WHERE id = ?1";
const UPDATE: &str = "UPDATE rows SET value = ?2 WHERE id = ?1";

impl Peer for Sqlite {
    fn name(&self) -> String {
        format!("SQLite {}", rusqlite::version())
    }

    fn load(&self, rows: u64) -> Result<()> {
        let mut connection = self.connection();
        let tx = connection.transaction().map_err(failed)?;
        {
            let mut insert = tx.prepare_cached(INSERT).map_err(failed)?;
            for row in 0..rows as i64 {
                insert.execute((row, [0_u8; VALUE_BYTES])).map_err(failed)?;
            }
        }
        tx.commit().map_err(failed)
    }

    fn update(&self, row: u64) -> Result<()> {
        let row = row as i64;
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let tx = tx.map_err(failed)?;
        {
            let mut select = tx.prepare_cached(SELECT).map_err(failed)?;
            let value: Vec<u8> = select.query_row([row], |found| found.get(0)).map_err(failed)?;
            let value = counted(&value).ok_or_else(|| failed("a value is too short"))?;
            tx.prepare_cached(UPDATE).map_err(failed)?.execute((row, value)).map_err(failed)?;
        }
        tx.commit().map_err(failed)
    }

    fn sum(&self) -> Result<u64> {
        let connection = self.connection();
        let mut all = connection.prepare("SELECT value FROM rows").map_err(failed)?;
        let values = all.query_map([], |found| found.get::<_, Vec<u8>>(0)).map_err(failed)?;
        let mut sum = 0;
        for value in values {
            sum += counter(&value.map_err(failed)?);
        }
        Ok(sum)
    }
}
