//! The change log: what epochs have changed in tables that named consumers follow, in files beside
//! the store.
//!
//! | file | what is in it |
//! |---|---|
//! | `consumers` | consumers with their tables and positions, followed tables |
//! | `<epoch>.changes` | a record for each epoch from that one on |
//!
//! 1. The record of an epoch is appended once its inputs are durable. So an epoch that is here is
//!    in the input log or in the image, and its replay comes to the same record, byte for byte.
//! 2. Before an image counts, the records up to its epoch are synced ([`ChangeLog::settle`]). A
//!    power cut takes away records of epochs only that are replayed, and appended again then. A log
//!    that ends before the image's epoch is damaged or incomplete.
//! 3. Files that all consumers have behind them are deleted. Beyond a limit the oldest are deleted
//!    all the same, and consumers that need them are told.
//!
//! An open only reads: damaged ends are cut off before the first record is appended, which is after
//! the device was accepted.

mod consumers;
mod hook;
mod record;
mod segments;
mod state;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use pmem::DeviceError;
use pmem::sync::background::{Mutex, MutexGuard};

use self::consumers::Followed;
pub use self::consumers::Position as ConsumerPosition;
pub use self::hook::{ChangeLogCall, ChangeLogHook};
pub use self::record::{Change, EpochChanges};
use self::segments::Segments;
pub use self::state::Kept;
use self::state::State;
use crate::error::StorageError;
use crate::ids::{EpochNumber, TableId};

/// The most bytes in memory of an epoch's changes that are kept, whatever the limit of all is.
const EPOCH_BYTES_MAX: u64 = 256 << 20;

/// The changes of a table in some epochs, in their order.
pub type EpochsOfTable = Vec<(EpochNumber, Vec<Change>)>;

/// See the [module](self).
#[derive(Debug)]
pub struct ChangeLog {
    directory: PathBuf,
    /// Most bytes of all files.
    bytes_max: u64,
    /// Held while the file `consumers` is replaced; taken before `state`, which an epoch needs.
    /// True once the store is closed, and the files may be another process's.
    is_closed: Mutex<bool>,
    state: Mutex<State>,
}

impl ChangeLog {
    /// Reads the change log of a store from a directory, which need not be there. Changes nothing.
    /// `bytes_max` is the most that all files take.
    ///
    /// # Errors
    /// The file system's, and `InvalidData` for a damaged file `consumers`.
    pub fn open(
        directory: &Path,
        bytes_max: u64,
        hook: Option<Arc<dyn ChangeLogHook>>,
    ) -> io::Result<Self> {
        let followed = Followed::read(directory)?;
        let segments = match followed.is_empty() {
            true => Segments::of(directory, hook),
            false => Segments::open(directory, hook)?,
        };
        let state = Mutex::new(State::new(followed, segments));
        let directory = directory.to_path_buf();
        Ok(Self { directory, bytes_max, is_closed: Mutex::default(), state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held from when the list of consumers is read until it is replaced.
    fn alone(&self) -> MutexGuard<'_, bool> {
        self.is_closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of its files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The most bytes in memory of an epoch's changes that are kept.
    pub fn epoch_bytes_max(&self) -> u64 {
        (self.bytes_max / 4).min(EPOCH_BYTES_MAX)
    }

    /// The tables that consumers follow, by number, with their names when they were followed first.
    pub fn tables(&self) -> BTreeMap<TableId, String> {
        self.state().followed.tables()
    }

    /// All consumers, by name.
    pub fn consumers(&self) -> Vec<ConsumerPosition> {
        self.state().followed.consumers().cloned().collect()
    }

    /// Bytes of all files of changes.
    pub fn bytes(&self) -> u64 {
        self.state().segments.bytes()
    }

    /// What is kept of a table; `None` if no consumer follows it.
    pub fn kept(&self, table: TableId) -> Option<Kept> {
        self.state().kept(table)
    }

    /// Adds a consumer, whose position is the end of `epoch`, the last one; durable when this
    /// returns. A consumer that is there stays where it is. If the list of consumers was lost, the
    /// position is epoch 0, so that the consumer is told. Returns the position.
    ///
    /// # Errors
    /// The file system's. `AlreadyExists` if the consumer follows another table.
    pub fn add_consumer(
        &self,
        name: &str,
        (table, table_name): (TableId, &str),
        epoch: EpochNumber,
    ) -> io::Result<EpochNumber> {
        let _alone = self.alone();
        let mut next = self.state().followed.clone();
        if let Some(known) = next.find(name) {
            if known.table == table {
                return Ok(known.epoch);
            }
            let what = format!("consumer {name:?} follows table {:?}", known.table_name);
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        consumers::create_directory(&self.directory)?;
        if next.is_empty() {
            // Earlier files are of consumers that were dropped.
            self.state().segments.begin(epoch)?;
        }
        let position = next.add(name, (table, table_name), epoch);
        self.replace(next)?;
        Ok(position)
    }

    /// Forgets a consumer. Returns whether there was one.
    ///
    /// # Errors
    /// The file system's.
    pub fn drop_consumer(&self, name: &str) -> io::Result<bool> {
        let _alone = self.alone();
        let mut next = self.state().followed.clone();
        if !next.remove(name) {
            return Ok(false);
        }
        self.replace(next)?;
        self.state().trim(self.bytes_max)?;
        Ok(true)
    }

    /// Moves a consumer to the end of an epoch; durable when this returns. Deletes files that no
    /// consumer needs.
    ///
    /// # Errors
    /// The file system's. `NotFound` if there is no such consumer, `NotConnected` if the store is
    /// closed.
    pub fn confirm(&self, name: &str, epoch: EpochNumber) -> io::Result<()> {
        let is_closed = self.alone();
        if *is_closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let mut next = self.state().followed.clone();
        if !next.confirm(name, epoch) {
            let what = format!("consumer {name:?} was dropped");
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        self.replace(next)?;
        self.state().trim(self.bytes_max)
    }

    /// The store is about to be closed: no consumer confirms anything from now on.
    pub fn close(&self) {
        *self.alone() = true;
    }

    /// Replaces the list of consumers. Epochs go on while the file is written.
    fn replace(&self, next: Followed) -> io::Result<()> {
        next.write(&self.directory)?;
        self.state().followed = next;
        Ok(())
    }

    /// Forgets consumers of tables for which `name_of` has no name, and notes new names of tables.
    ///
    /// # Errors
    /// The file system's.
    pub fn agree(&self, name_of: impl FnMut(TableId, &str) -> Option<String>) -> io::Result<()> {
        let _alone = self.alone();
        let (mut next, is_behind) = {
            let state = self.state();
            (state.followed.clone(), state.is_behind)
        };
        if next.agree(name_of) || is_behind {
            self.replace(next)?;
            self.state().is_behind = false;
        }
        Ok(())
    }

    /// The log is of the store with this instance number, which has had consumers or has not. A log
    /// of another store, or of none, has lost the consumers that there were. Changes no file.
    pub fn begin_store(&self, instance: u64, has_had_consumers: bool) {
        self.state().begin_store(instance, has_had_consumers, &self.directory);
    }

    /// A replay begins behind `checkpoint`: no epoch up to that one comes again. If the log ends
    /// before it, changes up to it are not kept. Changes no file.
    pub fn begin_replay(&self, checkpoint: EpochNumber) {
        self.state().begin_replay(checkpoint, &self.directory);
    }

    /// A replay has ended with `epoch`. Changes of later epochs are of another past, and so are the
    /// positions behind them. Changes no file.
    pub fn end_replay(&self, epoch: EpochNumber) {
        self.state().end_replay(epoch);
    }

    /// Appends what an epoch has changed in the tables that are followed. Epochs come in their
    /// order, and those that are here already are ignored. Before `may_write`, epochs of a replay
    /// are held in memory.
    ///
    /// # Errors
    /// The file system's.
    pub fn add(
        &self,
        epoch: EpochNumber,
        changes: &EpochChanges,
        may_write: bool,
    ) -> crate::Result<()> {
        let limits = (self.epoch_bytes_max(), self.bytes_max);
        let added = self.state().add(epoch, changes, may_write, limits);
        added.map_err(|source| self.failed("append to", source))
    }

    /// Makes all that was added up to `epoch`, the last one, durable: an image of that epoch is
    /// about to count, and no epoch up to it is replayed any more.
    ///
    /// # Errors
    /// The file system's.
    pub fn settle(&self, epoch: EpochNumber) -> crate::Result<()> {
        let settled = self.state().settle(epoch);
        settled.map_err(|source| self.failed("sync", source))
    }

    fn failed(&self, what: &str, source: io::Error) -> StorageError {
        DeviceError::Io { what: what.into(), path: self.directory.clone(), source }.into()
    }

    /// Reads changes of a table in epochs after `after` and up to `until`, the first ones, of about
    /// `bytes_max` bytes.
    ///
    /// # Errors
    /// The file system's, and `InvalidData` if a file is damaged.
    pub fn read(
        &self,
        table: TableId,
        (after, until): (EpochNumber, EpochNumber),
        bytes_max: u64,
    ) -> io::Result<EpochsOfTable> {
        // Files are appended to and deleted by others: which ones there are is known under the
        // lock, and a file that is open is read whatever becomes of its name.
        let files = self.state().segments.files_after(after)?;
        let (mut found, mut bytes) = (EpochsOfTable::new(), 0);
        for file in files {
            for record in file.records() {
                let (epoch, changes, _) = record?;
                if epoch <= after {
                    continue;
                }
                if epoch > until || bytes > bytes_max {
                    return Ok(found);
                }
                let mut rows = changes.rows;
                rows.retain(|change| change.table == table);
                if !rows.is_empty() {
                    bytes += rows.iter().map(Change::bytes).sum::<u64>();
                    found.push((epoch, rows));
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
