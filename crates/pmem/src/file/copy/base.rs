//! A copy that is there, to be brought up to date.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::super::directory::load_mark;
use super::super::disk::{Access, DiskFile, DiskHandle, DiskHook, Files};
use super::super::format::{Entries, HEAD_BYTES, Root};
use super::super::meta::{check_heads, find_newest};
use super::super::slots::{FIRST_SLOT, FreeSlots};
use super::super::table::PageTable;
use super::origin::Origin;
use super::pinned::PinnedSnapshot;
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;
use crate::system::{Locked, Sharing};

/// The state of a copy before it is brought up to date.
#[derive(Debug)]
pub(super) struct Base {
    /// Its snapshot.
    pub(super) root: Root,
    pub(super) table: PageTable,
    /// The slots that it does not need.
    pub(super) free: FreeSlots,
    /// The entries of the source that it is a copy of; `None` if that is not known, because
    /// bringing it up to date was cut short.
    pub(super) of: Option<Entries>,
}

/// Opens the files of a copy, and its next log in the directory `dir`, whose lock is kept.
pub(super) fn open_files(
    target: &Path,
    dir: &Path,
    of_dir: Locked,
    hook: Option<&Arc<dyn DiskHook>>,
) -> Result<Files, DeviceError> {
    load_mark(target).check_none(target)?;
    let lock = fs::File::open(target).map_err(|e| DeviceError::io("open", target, e))?;
    let lock = Locked::sharing(lock, target, Sharing::Alone)?;
    let file = |of: &Path, which, access| DiskHandle::open(of, which, access, hook.cloned());
    let meta = file(target, DiskFile::Meta, Access::Write)?;
    let meta_lock = meta.lock(Sharing::Alone)?;
    Ok(Files {
        meta,
        data: file(target, DiskFile::Data, Access::Write)?,
        table: file(target, DiskFile::Table, Access::Write)?,
        log: file(dir, DiskFile::Log, Access::Create)?,
        directory: file(target, DiskFile::Directory, Access::Read)?,
        place: fs::canonicalize(target).map_err(|e| DeviceError::io("look for", target, e))?,
        _locks: vec![meta_lock, lock, of_dir],
    })
}

/// The checksum of a log; `None` if there is none.
pub(super) fn log_crc(dir: &Path) -> Result<Option<u32>, DeviceError> {
    let path = dir.join(DiskFile::Log.name());
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(crc32fast::hash(&bytes))),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(DeviceError::io("read", &path, e)),
    }
}

impl Base {
    /// That of a new copy.
    pub(super) fn nothing(instance: u64) -> Self {
        let root = Root { instance, data_bytes: HEAD_BYTES, ..Root::default() };
        let (table, free) = (PageTable::default(), FreeSlots::all(FIRST_SLOT));
        Self { root, table, free, of: None }
    }

    /// Reads the state of a copy, which must be one of the same database, and as it was made.
    pub(super) fn read(
        target: &Path,
        files: &Files,
        source: &PinnedSnapshot,
    ) -> Result<Self, DeviceError> {
        let refuse = |what| Err(DeviceError::InTheWay { path: target.to_path_buf(), what });
        let root = find_newest(&files.meta)?;
        if root.instance != source.instance() {
            return refuse("holds another database");
        }
        let Some(origin) = Origin::read(target)? else {
            return refuse("is a database, and not one of its copies");
        };
        if root.branch != source.branch() {
            return refuse(
                "is of another branch of the database, since one of the two was restored or gave \
                 up epochs",
            );
        }
        let was_cut_short = origin.sequence == root.sequence + 1;
        let is_as_made =
            origin.sequence == root.sequence && log_crc(target)? == Some(origin.log_crc);
        if !was_cut_short && !is_as_made {
            return refuse("is a copy that was opened and changed");
        }
        check_heads(files, &root)?;
        let table = PageTable::read(files, &root)?;
        let free = table.free_slots(files, files.data.len()? / PAGE_BYTES)?;
        Ok(Self { root, table, free, of: is_as_made.then_some(origin.entries) })
    }
}
