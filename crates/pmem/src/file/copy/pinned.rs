//! The source of a copy: a snapshot that stays readable.

use std::collections::BTreeSet;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::super::directory::{is_there, load_mark};
use super::super::disk::{Access, DiskFile, DiskHandle, DiskHook, Files};
use super::super::format::{Entries, Entry, Root};
use super::super::mark::Marks;
use super::super::meta::{check_heads, find_newest};
use super::super::open::lost_log;
use super::super::openings::read_openings;
use super::super::page_reads::{check_page, read_pages};
use super::super::table::{PageTable, TableRead};
use crate::device::{LogSpace, MARK_BYTES};
use crate::epoch_number::EpochNumber;
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;
use crate::side_files::Openings;
use crate::system::{Locked, Sharing};

/// The process that writes looks for a pin now and then, by a lock of its own that lasts for some
/// microseconds; so often a pin is tried before it counts as refused.
const PIN_TRIES: u32 = 100;
const PIN_WAIT: Duration = Duration::from_millis(10);
/// So often a snapshot is looked for that is not replaced while it is looked at.
const OPEN_TRIES: u32 = 20;

/// The newest snapshot of a database directory, which another process may have open, and go on
/// writing to. Its pages stay readable while this lives.
#[derive(Debug)]
pub struct PinnedSnapshot {
    dir: PathBuf,
    pub(super) files: Files,
    pub(super) root: Root,
    pub(super) table: PageTable,
    /// Entries that a copy has, and the pages that have changed since, if that can be told.
    since: Option<Entries>,
    pub(super) changed: Option<BTreeSet<u64>>,
}

impl PinnedSnapshot {
    /// Pins the newest snapshot. Changes no file.
    ///
    /// # Errors
    /// [`DeviceError::Missing`] if there is no database, [`DeviceError::Unfinished`] if one is
    /// half loaded, [`DeviceError::Copying`] if another copy is being made,
    /// [`DeviceError::Outrun`] if snapshots follow each other too fast, and as
    /// [`crate::File::open`].
    pub fn open(dir: &Path, hook: Option<Arc<dyn DiskHook>>) -> Result<Self, DeviceError> {
        let meta = dir.join(DiskFile::Meta.name());
        if !is_there(&meta, FileType::is_file)? {
            return Err(DeviceError::Missing { path: dir.to_path_buf() });
        }
        load_mark(dir).check_none(dir)?;
        let file = |which| DiskHandle::open(dir, which, Access::Read, hook.clone());
        let table = file(DiskFile::Table)?;
        let pin = pin(dir, &table)?;
        let files = Files {
            meta: file(DiskFile::Meta)?,
            data: file(DiskFile::Data)?,
            table,
            log: file(DiskFile::Log)?,
            directory: file(DiskFile::Directory)?,
            place: fs::canonicalize(dir).map_err(|e| DeviceError::io("look for", dir, e))?,
            _locks: vec![pin],
        };
        let (dir, root, table) = (dir.to_path_buf(), Root::default(), PageTable::default());
        let mut pinned = Self { dir, files, root, table, since: None, changed: None };
        pinned.read_newest()?;
        Ok(pinned)
    }

    /// Pins the snapshot that is the newest now instead.
    ///
    /// # Errors
    /// As [`PinnedSnapshot::open`].
    pub fn renew(&mut self) -> Result<(), DeviceError> {
        if self.is_newest()? { Ok(()) } else { self.read_newest() }
    }

    /// From now on says which pages have changed since these entries were all.
    pub(super) fn compare_with(&mut self, entries: Option<Entries>) -> Result<(), DeviceError> {
        self.since = entries;
        self.read_newest()
    }

    fn read_newest(&mut self) -> Result<(), DeviceError> {
        for _ in 0..OPEN_TRIES {
            // Only what was read after the lock counts.
            let root = newest(&self.files.meta)?;
            let heads = check_heads(&self.files, &root);
            let since = self.since.as_ref();
            let read = heads.and_then(|_| PageTable::read_since(&self.files, &root, since));
            if newest(&self.files.meta)? == root {
                let TableRead { table, changed } = read?;
                (self.root, self.table, self.changed) = (root, table, changed);
                return Ok(());
            }
        }
        Err(self.outrun())
    }

    fn outrun(&self) -> DeviceError {
        DeviceError::Outrun { path: self.dir.clone() }
    }

    /// The epoch of the snapshot; `None` if there never was one.
    #[must_use]
    pub fn epoch(&self) -> Option<EpochNumber> {
        self.root.epoch
    }

    /// Number of the database, equal in all its files.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.root.instance
    }

    /// Tells a database that was restored from the one whose copy it was made of.
    #[must_use]
    pub fn branch(&self) -> u64 {
        self.root.branch
    }

    /// Pages that were ever stored to.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.table.used()
    }

    /// Whether no newer snapshot has been committed since it was pinned: then no part of the log
    /// that it needs has been written over.
    ///
    /// # Errors
    /// The file system's.
    pub fn is_newest(&self) -> Result<bool, DeviceError> {
        Ok(newest(&self.files.meta)? == self.root)
    }

    /// Whether the log is shorter than it was at the snapshot; says so. It counts only if the
    /// snapshot is the newest afterwards.
    ///
    /// # Errors
    /// The file system's.
    pub fn log_is_short(&self) -> Result<Option<String>, DeviceError> {
        Ok(lost_log(&self.root, self.files.log.len()? / PAGE_BYTES * PAGE_BYTES))
    }

    /// The newest mark of the caller.
    ///
    /// # Errors
    /// The file system's.
    pub fn mark(&self) -> Result<Option<[u8; MARK_BYTES]>, DeviceError> {
        Ok(Marks::read(&self.files.meta, self.root.instance)?.found())
    }

    /// Which openings wrote which epochs; `None` if that is not known. Of epochs that were copied
    /// before, the answer is the same as long as the database lives.
    ///
    /// # Errors
    /// As [`crate::File::open`].
    pub fn openings(&self) -> Result<Option<Openings>, DeviceError> {
        read_openings(&self.dir, self.root.instance, None)
    }

    /// Reads a part of the image that is within a page.
    ///
    /// # Errors
    /// [`DeviceError::Outrun`] or [`DeviceError::Corrupt`] if the page has not its checksum; the
    /// file system's.
    ///
    /// # Panics
    /// If it is not within a page.
    pub fn image_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let (page, at) = (offset / PAGE_BYTES, (offset % PAGE_BYTES) as usize);
        assert!(at + into.len() <= PAGE_BYTES as usize, "a page is read, or a part of it");
        let Some(entry) = self.table.entry(page) else {
            into.fill(0);
            return Ok(());
        };
        let Entry { slot, .. } = entry;
        let mut bytes = [0; PAGE_BYTES as usize];
        self.explain(self.files.data.read_exact_at(slot * PAGE_BYTES, &mut bytes))?;
        self.explain(check_page(&self.files.data, &entry, &bytes))?;
        into.copy_from_slice(&bytes[at..][..into.len()]);
        Ok(())
    }

    /// Reads pages, in the order of the file. They count only if [`Self::check_kept`] succeeds
    /// afterwards.
    pub(super) fn read_pages(
        &self,
        entries: Vec<Entry>,
        each: impl FnMut(u64, &[u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.explain(read_pages(&self.files.data, entries, each))
    }

    /// Whether all pages that were read until now have been kept for it.
    ///
    /// # Errors
    /// `Outrun` if not.
    pub(super) fn check_kept(&self) -> Result<(), DeviceError> {
        match newest(&self.files.meta)?.given_up == self.root.given_up {
            true => Ok(()),
            false => Err(self.outrun()),
        }
    }

    /// A page that cannot be read, or has not its checksum, is damaged, unless it was not kept.
    fn explain(&self, result: Result<(), DeviceError>) -> Result<(), DeviceError> {
        match result {
            Err(error) => self.check_kept().and(Err(error)),
            result => result,
        }
    }
}

/// The log of the database, which goes on.
impl LogSpace for PinnedSnapshot {
    fn log_bytes(&self) -> u64 {
        self.files.log.len().map_or(0, |len| len / PAGE_BYTES * PAGE_BYTES)
    }

    /// What was cut off meanwhile reads as zeros: nothing was needed of it.
    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let there = self.files.log.len()?.saturating_sub(offset).min(into.len() as u64);
        let (head, tail) = into.split_at_mut(there as usize);
        tail.fill(0);
        self.files.log.read_exact_at(offset, head)
    }
}

/// Locks the page table against other copies, and so that its writer sees it.
fn pin(dir: &Path, table: &DiskHandle) -> Result<Locked, DeviceError> {
    for _ in 1..PIN_TRIES {
        match table.lock(Sharing::Alone) {
            Err(error) if error.is_locked() => std::thread::sleep(PIN_WAIT),
            other => return other,
        }
    }
    table.lock(Sharing::Alone).map_err(|error| match error.is_locked() {
        true => DeviceError::Copying { path: dir.to_path_buf() },
        false => error,
    })
}

/// The newest root. It may be written just now, so one that seems damaged is read again.
fn newest(meta: &DiskHandle) -> Result<Root, DeviceError> {
    for _ in 1..OPEN_TRIES {
        match find_newest(meta) {
            Err(error) if error.is_corrupt() => std::thread::sleep(Duration::from_millis(1)),
            other => return other,
        }
    }
    find_newest(meta)
}
