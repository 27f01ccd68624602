//! What runs in the process of one database: does what it is told, and counts what it answered.

mod callers;
mod process;
mod stream;

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::databases::{self, Database};
use crate::order::{Answer, Finished, Order};
use crate::peer::{Error, Peer, Result, Shape};
use crate::value;
use callers::Measurement;
pub(crate) use process::end_with_parent;
use process::written_bytes;

/// How a database is opened.
pub(crate) type Open = fn(Database, &Path, Shape) -> Result<Box<dyn Peer>>;

/// One database, once it is open.
pub(crate) struct Host {
    open: Open,
    running: Option<Running>,
}

struct Running {
    database: Database,
    path: PathBuf,
    shape: Shape,
    peer: Box<dyn Peer>,
    /// Updates of each row that were answered.
    answered: Vec<AtomicU32>,
    /// What this process had written when the rows were loaded.
    written_bytes: Option<u64>,
}

/// Takes orders, one JSON object a line, and answers in the same way, until they end.
///
/// # Errors
/// If they cannot be read or answered.
pub fn serve(orders: impl BufRead, mut answers: impl Write) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| Error::of("an order", error);
    end_with_parent();
    let mut host = Host::new(databases::open);
    for line in orders.lines() {
        let line = line.map_err(|error| failed(&error))?;
        let order = serde_json::from_str(&line).map_err(|error| failed(&error))?;
        let mut answer = serde_json::to_vec(&host.obey(&order)).map_err(|error| failed(&error))?;
        answer.push(b'\n');
        answers.write_all(&answer).and_then(|()| answers.flush()).map_err(|e| failed(&e))?;
    }
    Ok(())
}

impl Host {
    pub(crate) fn new(open: Open) -> Self {
        Self { open, running: None }
    }

    /// Does what it is told.
    pub(crate) fn obey(&mut self, order: &Order) -> Answer {
        self.try_to(order).unwrap_or_else(Answer::Failed)
    }

    fn try_to(&mut self, order: &Order) -> Result<Answer> {
        match order {
            Order::Load { database, path, shape } => {
                let started = Instant::now();
                let peer = (self.open)(*database, path, *shape)?;
                peer.load()?;
                self.running = Some(Running {
                    database: *database,
                    path: path.clone(),
                    shape: *shape,
                    peer,
                    answered: (0..shape.rows).map(|_| AtomicU32::new(0)).collect(),
                    written_bytes: written_bytes(),
                });
                Ok(Answer::Loaded { seconds: started.elapsed().as_secs_f64() })
            }
            Order::Measure { load, operations, time, seed } => {
                let running = self.running.as_ref().ok_or_else(nothing_open)?;
                let measured = callers::measure(&Measurement {
                    peer: running.peer.as_ref(),
                    shape: running.shape,
                    load: *load,
                    operations: *operations,
                    time: *time,
                    seed: *seed,
                    answered: &running.answered,
                })?;
                Ok(Answer::Measured(measured))
            }
            Order::Finish => {
                let running = self.running.take().ok_or_else(nothing_open)?;
                running.finish(self.open).map(Answer::Finished)
            }
        }
    }
}

fn nothing_open() -> Error {
    Error::Failed("no database is open".into())
}

impl Running {
    /// Closes the database, opens it again, and compares its rows with what was answered.
    fn finish(self, open: Open) -> Result<Finished> {
        let disk_bytes = disk_bytes(&self.path)?;
        self.peer.close()?;
        let written = written_bytes().zip(self.written_bytes);
        let closed_disk_bytes = self::disk_bytes(&self.path)?;
        let peer = open(self.database, &self.path, self.shape)?;
        check(peer.as_ref(), self.database.name(), self.shape, &self.answered)?;
        peer.close()?;
        Ok(Finished {
            disk_bytes,
            closed_disk_bytes,
            written_bytes: written.map(|(now, before)| now.saturating_sub(before)),
            updates: self.answered.iter().map(|of| u64::from(of.load(Ordering::Relaxed))).sum(),
            checked_rows: self.shape.rows,
        })
    }
}

/// Whether the rows are those that the answers say.
fn check(peer: &dyn Peer, name: &str, shape: Shape, answered: &[AtomicU32]) -> Result<()> {
    let mut next = 0;
    peer.rows(&mut |row, found| {
        if row != next || row >= shape.rows {
            return Err(Error::lost(name, format!("row {next} is missing: row {row} is there")));
        }
        next += 1;
        let updates = u64::from(answered[row as usize].load(Ordering::Relaxed));
        if found == value::value(row, updates, shape.value_bytes) {
            return Ok(());
        }
        Err(match value::counter(row, found) {
            Some(counter) if counter != updates => Error::lost(
                name,
                format!("{updates} updates of row {row} were answered, and it holds {counter}"),
            ),
            _ => Error::lost(name, format!("row {row} holds what was not written")),
        })
    })?;
    if next != shape.rows {
        return Err(Error::lost(name, format!("{next} of {} rows are there", shape.rows)));
    }
    Ok(())
}

/// Bytes that the files of a database take on the disk.
fn disk_bytes(path: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    /// What the system counts blocks in.
    const BLOCK_BYTES: u64 = 512;
    let failed = |error: std::io::Error| Error::of(&path.display().to_string(), error);
    let of = std::fs::symlink_metadata(path).map_err(failed)?;
    let mut bytes = of.blocks() * BLOCK_BYTES;
    if of.is_dir() {
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let below = entry.map_err(failed)?.path();
            // Databases remove files at any time.
            bytes += if below.exists() { disk_bytes(&below)? } else { 0 };
        }
    }
    Ok(bytes)
}
