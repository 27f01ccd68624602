//! Backups of a database that runs.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pmem::Compacted;
use storage::input_log::Until;
use storage::{Copied, CopyKind, EpochNumber, Restore, copy_store};

use super::handle::Database;
use crate::error::{Error, Result};

/// A copy of a database that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Epoch of the checkpoint that it begins with.
    pub checkpoint_epoch: u64,
    /// The last epoch that it has. Opening it replays those after the checkpoint.
    pub epoch: u64,
    /// Bytes of its pages and its log.
    pub bytes: u64,
    /// Bytes of them that were written.
    pub written_bytes: u64,
}

/// A moment to which a database is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The last one that is known.
    Newest,
    /// The end of an epoch.
    Epoch(u64),
    /// The end of the last epoch whose [timestamp](crate::Transaction::timestamp_ns) is not later.
    Time(SystemTime),
}

impl From<Copied> for Backup {
    fn from(copied: Copied) -> Self {
        Self {
            checkpoint_epoch: copied.checkpoint.0,
            epoch: copied.last.0,
            bytes: copied.page_bytes + copied.log_bytes,
            written_bytes: copied.written_bytes + copied.log_bytes,
        }
    }
}

impl Database {
    /// Copies the database while it runs, to a new directory or to an earlier copy of it, of which
    /// those pages are replaced that have changed since. Every call that was answered before is
    /// in the copy; of those that run meanwhile, those of the first epochs. The copy is a database
    /// as any other: its program opens it, and [`Database::restore`] makes another of it.
    ///
    /// Epochs go on meanwhile. Pages of the checkpoint that is copied are kept, at most as many as
    /// the database has; so the file `data` may grow to its size and half of it again.
    ///
    /// ```
    /// # use nvcaracal::{Database, HashTable, Stop, Table, Transaction, procedure};
    /// const POINTS: HashTable<u64, u64> = Table::hash("points");
    ///
    /// #[procedure]
    /// fn set(tx: &mut Transaction, player: u64, points: u64) -> Result<(), Stop> {
    ///     Ok(tx.insert(POINTS, player, &points)?)
    /// }
    ///
    /// # let directory = tempfile::tempdir().expect("a directory");
    /// # let path = directory.path();
    /// let options = || Database::options().table(POINTS).procedure::<Set>();
    /// let db = options().open(path.join("game"))?;
    /// db.call(Set { player: 1, points: 10 })?;
    /// let backup = db.backup(path.join("monday"))?;
    /// db.call(Set { player: 1, points: 20 })?;
    ///
    /// let monday = options().open(path.join("monday"))?;
    /// assert_eq!(monday.get(POINTS, 1)?, Some(10));
    /// # assert!(backup.epoch >= 1);
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::is_mistake`] on another device than `file`, and if something else is there, as a
    /// copy that was opened since; [`Error::is_locked`] while another copy is made;
    /// [`Error::is_full`]; [`Error::is_corrupt`] if what is copied is damaged; [`Error::is_limit`]
    /// if more was written meanwhile than is kept. The target is as it was then, or a copy.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<Backup> {
        let Some(directory) = self.inner.directory() else {
            let what = format!(
                "{} is no directory: only a database on `file` is copied while it \
                 runs",
                self.device()
            );
            return Err(Error::mistake(what));
        };
        let copied = copy_store(directory, target.as_ref(), CopyKind::Backup, &mut |_, _| {})?;
        Ok(copied.into())
    }

    /// Gives the space of a database that is not open back to the file system: its pages move to
    /// the front of the file `data`, which becomes as short as they are. Nothing else changes. It
    /// may be cut short: what has become shorter stays so.
    ///
    /// # Errors
    /// [`Error::is_locked`] while it is open or copied; [`Error::is_corrupt`].
    pub fn compact(directory: impl AsRef<Path>) -> Result<Compacted> {
        Ok(pmem::compact(directory.as_ref(), None, &mut |_, _| {})?)
    }

    /// Makes a database of a copy, in a new directory: with all that the copy has, or as it was at
    /// the end of an epoch from that of its checkpoint to its last. The copy stays as it is.
    ///
    /// # Errors
    /// As [`Database::backup`]; [`Error::is_limit`], with the epochs that the copy has, if the
    /// wanted one is not among them.
    pub fn restore(
        copy: impl AsRef<Path>,
        target: impl AsRef<Path>,
        epoch: Option<u64>,
    ) -> Result<Backup> {
        let until = epoch.map_or(Until::Newest, |epoch| Until::Epoch(EpochNumber(epoch)));
        let kind = CopyKind::Restored(Restore { until, archive: None });
        Ok(copy_store(copy.as_ref(), target.as_ref(), kind, &mut |_, _| {})?.into())
    }

    /// Makes a database as it was at a moment, in a new directory, of a copy and of the epochs that
    /// an [archive](crate::Options::archive) has behind it. The copy and the archive stay as they
    /// are. The new database is a *branch*: it never gets archived epochs of the future that it
    /// gave up, nor that future any of its epochs.
    ///
    /// # Errors
    /// As [`Database::restore`]. A moment that cannot be restored as asked is refused, with what is
    /// there, and nothing is made:
    /// - [`Error::is_limit`] if the moment is before the copy's checkpoint or, of a copy without
    ///   one, before the first epoch of all; if it is behind the newest epoch that is known; if the
    ///   archive lacks epochs up to it or a file with them is damaged; if the directory has no
    ///   archived epochs of this database and branch.
    /// - [`Error::is_mistake`] for a time before 1970 or after 2554, which no epoch can have.
    pub fn restore_to(
        copy: impl AsRef<Path>,
        target: impl AsRef<Path>,
        archive: impl AsRef<Path>,
        moment: Moment,
    ) -> Result<Backup> {
        let until = match moment {
            Moment::Newest => Until::Newest,
            Moment::Epoch(epoch) => Until::Epoch(EpochNumber(epoch)),
            Moment::Time(time) => Until::Time(nanoseconds(time)?),
        };
        let archive = Some(archive.as_ref().to_path_buf());
        let kind = CopyKind::Restored(Restore { until, archive });
        Ok(copy_store(copy.as_ref(), target.as_ref(), kind, &mut |_, _| {})?.into())
    }
}

/// Nanoseconds from 1970 to a time, as epochs have their times.
fn nanoseconds(time: SystemTime) -> Result<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok();
    since.and_then(|since| u64::try_from(since.as_nanos()).ok()).ok_or_else(|| {
        let which = if since.is_some() { "after 2554" } else { "before 1970" };
        Error::mistake(format!(
            "a time {which} cannot be restored to: epochs have times from 1970 to 2554"
        ))
    })
}
