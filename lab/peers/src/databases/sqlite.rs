//! SQLite: write-ahead log, `synchronous=FULL`, which makes each commit durable, prepared
//! statements. One connection behind a lock writes: SQLite has one writer at a time anyway, and
//! connections of many threads would sleep while they wait for it. Each caller has a connection of
//! its own for transactions that only read, which run beside the writer. Files are mapped as far as
//! SQLite does that, so that reads copy no pages.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, TransactionBehavior};

use super::rows::{missing, parts};
use crate::peer::{Caller, Does, Error, Operation, Pace, Peer, Result, Shape, only_reads};
use crate::value;

pub(super) const WAY: &str = "write-ahead log, synchronous=FULL; one writer, a reader each";

pub(crate) struct Sqlite {
    path: PathBuf,
    writer: Mutex<Connection>,
    shape: Shape,
}

const NAME: &str = "sqlite";
/// Of the log before they are written to the file: by itself, and where little is kept back.
const CHECKPOINT_PAGES: u32 = 1000;
const SHORT_PAGES: u32 = 30;

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of(NAME, error)
}

pub(super) fn version() -> String {
    format!("SQLite {}", rusqlite::version())
}

/// A connection, and its settings.
fn connect(path: &Path, pace: Pace) -> Result<Connection> {
    let connection = Connection::open(path).map_err(failed)?;
    let synchronous = if pace == Pace::Unsynced { "OFF" } else { "FULL" };
    let checkpoint_pages = if pace == Pace::Usual { CHECKPOINT_PAGES } else { SHORT_PAGES };
    // 2 GiB less a page is the most that SQLite maps.
    let set = format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
         PRAGMA wal_autocheckpoint = {checkpoint_pages}; PRAGMA mmap_size = 2147418112;"
    );
    connection.execute_batch(&set).map_err(failed)?;
    Ok(connection)
}

impl Sqlite {
    pub(crate) fn open(path: &Path, shape: Shape) -> Result<Self> {
        let connection = connect(path, shape.pace)?;
        // The writer's pages that are not in the file yet.
        let kib = (shape.cache_bytes / 1024).min(1 << 20);
        let set = format!(
            "PRAGMA cache_size = -{kib};
             CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, value BLOB NOT NULL);"
        );
        connection.execute_batch(&set).map_err(failed)?;
        Ok(Self { path: path.to_path_buf(), writer: Mutex::new(connection), shape })
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const INSERT: &str = "INSERT INTO rows (id, value) VALUES (?1, ?2)";
const SELECT: &str = "SELECT value FROM rows WHERE id = ?1";
const UPDATE: &str = "UPDATE rows SET value = ?2 WHERE id = ?1";

/// What is made of the value of a row.
fn with_value<T>(on: &Connection, row: u64, with: fn(u64, &[u8]) -> Option<T>) -> Result<T> {
    let mut select = on.prepare_cached(SELECT).map_err(failed)?;
    let mut found = select.query([row as i64]).map_err(failed)?;
    let found = found.next().map_err(failed)?.ok_or_else(|| missing(NAME, row))?;
    let value = found.get_ref(0).map_err(failed)?;
    with(row, value.as_blob().map_err(failed)?).ok_or_else(|| missing(NAME, row))
}

impl Peer for Sqlite {
    fn load(&self) -> Result<()> {
        let mut connection = self.writer();
        for part in parts(self.shape) {
            let tx = connection.transaction().map_err(failed)?;
            {
                let mut insert = tx.prepare_cached(INSERT).map_err(failed)?;
                for row in part {
                    let value = value::value(row, 0, self.shape.value_bytes);
                    insert.execute((row as i64, value)).map_err(failed)?;
                }
            }
            tx.commit().map_err(failed)?;
        }
        Ok(())
    }

    fn caller(&self) -> Result<Box<dyn Caller + '_>> {
        Ok(Box::new(Session { of: self, reader: connect(&self.path, self.shape.pace)? }))
    }

    fn rows(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let connection = self.writer();
        let all = "SELECT id, value FROM rows ORDER BY id";
        let mut all = connection.prepare(all).map_err(failed)?;
        let mut rows = all.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let key: i64 = row.get(0).map_err(failed)?;
            let value = row.get_ref(1).map_err(failed)?;
            each(key as u64, value.as_blob().map_err(failed)?)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let connection = self.writer();
        let check = "PRAGMA integrity_check";
        let found: String = connection.query_row(check, [], |row| row.get(0)).map_err(failed)?;
        if found == "ok" { Ok(()) } else { Err(Error::lost(NAME, found)) }
    }

    fn close(self: Box<Self>) -> Result<()> {
        let writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        writer.close().map_err(|(_, error)| failed(error))
    }
}

/// A caller, with its connection for reading.
struct Session<'s> {
    of: &'s Sqlite,
    reader: Connection,
}

impl Caller for Session<'_> {
    fn transact(&mut self, operations: &[Operation]) -> Result<()> {
        if let [Operation { row, does: Does::Read }] = *operations {
            return with_value(&self.reader, row, value::look_at);
        }
        let mut writer;
        let (connection, behavior) = match only_reads(operations) {
            true => (&mut self.reader, TransactionBehavior::Deferred),
            false => {
                writer = self.of.writer();
                (&mut *writer, TransactionBehavior::Immediate)
            }
        };
        let tx = connection.transaction_with_behavior(behavior).map_err(failed)?;
        for &Operation { row, does } in operations {
            let (statement, value) = match does {
                Does::Read => {
                    with_value(&tx, row, value::look_at)?;
                    continue;
                }
                Does::Update => (UPDATE, with_value(&tx, row, value::updated)?),
                Does::Insert => (INSERT, value::value(row, 0, self.of.shape.value_bytes)),
            };
            let mut statement = tx.prepare_cached(statement).map_err(failed)?;
            statement.execute((row as i64, value)).map_err(failed)?;
        }
        tx.commit().map_err(failed)
    }
}
