//! The target of a copy, until it is whole.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::OPENINGS_NAME;
use super::super::directory::{made_up, parent_of, sync_directory};
use super::super::disk::{Access, DiskFile, DiskHandle, DiskHook, Files, PIECE_BYTES};
use super::super::format::{DATA_MAGIC, Entry, META_BYTES, Root, TABLE_MAGIC, page_crc};
use super::super::inside::check_parent_outside;
use super::super::mark::Marks;
use super::super::meta::{find_newest, write_root};
use super::super::openings::{read_openings, write_openings};
use super::base::{Base, log_crc, open_files};
use super::origin::{ORIGIN_NAME, Origin};
use super::pinned::PinnedSnapshot;
use crate::device::{LogSpace, MARK_BYTES};
use crate::epoch_number::EpochNumber;
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;
use crate::side_files::Openings;
use crate::system::{Locked, Sharing, private};

/// What the name of a copy ends in until it is whole.
const SUFFIX: &str = ".incomplete";
/// The files of a copy, but for `origin` and `openings`.
const FILES: [DiskFile; 4] = [DiskFile::Meta, DiskFile::Data, DiskFile::Table, DiskFile::Log];

/// How far an earlier copy goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The epoch of its snapshot; `None` if it has none.
    pub epoch: Option<EpochNumber>,
    /// Its newest mark ([`crate::Device::write_mark`]), if one is intact.
    pub mark: Option<[u8; MARK_BYTES]>,
    /// Which openings wrote which of its epochs; `None` if that is not known.
    pub openings: Option<Openings>,
}

/// A directory that becomes a copy of a database, or a copy that is brought up to date. Dropped
/// before its end, a new one is removed, and an older one is as it was.
#[derive(Debug)]
pub struct UnfinishedCopy {
    target: PathBuf,
    /// Where new files are until they are whole.
    dir: PathBuf,
    files: Files,
    /// What there was before.
    base: Base,
    /// Of its own, if it begins one.
    branch: Option<u64>,
    /// Which openings wrote which of its epochs.
    openings: Openings,
    is_new: bool,
    /// Whether files of an older copy may have been replaced.
    is_begun: bool,
    is_whole: bool,
}

impl UnfinishedCopy {
    /// Makes the directory, beside its later place. What an earlier copy to there has left is
    /// removed.
    ///
    /// # Errors
    /// [`DeviceError::InTheWay`] if something is there, [`DeviceError::Inside`] if it is inside of
    /// a database, [`DeviceError::Locked`] if another process is making this copy; the file
    /// system's.
    pub fn create(
        target: &Path,
        source: &PinnedSnapshot,
        hook: Option<Arc<dyn DiskHook>>,
    ) -> Result<Self, DeviceError> {
        check_nothing_there(target)?;
        check_parent_outside(target, parent_of(target))?;
        let (dir, lock) = create_incomplete(target)?;
        let file = |which| DiskHandle::open(&dir, which, Access::Create, hook.clone());
        let files = Files {
            meta: file(DiskFile::Meta)?,
            data: file(DiskFile::Data)?,
            table: file(DiskFile::Table)?,
            log: file(DiskFile::Log)?,
            directory: file(DiskFile::Directory)?,
            place: fs::canonicalize(&dir).map_err(|e| DeviceError::io("look for", &dir, e))?,
            _locks: vec![lock],
        };
        let base = Base::nothing(source.instance());
        files.meta.allocate(META_BYTES)?;
        write_root(&files, &base.root)?;
        let (target, branch) = (target.to_path_buf(), None);
        let openings = Openings::known_from(EpochNumber(u64::MAX));
        Ok(Self {
            target,
            dir,
            files,
            base,
            branch,
            openings,
            is_new: true,
            is_begun: false,
            is_whole: false,
        })
    }

    /// Opens an earlier copy of the database, to bring it up to date; a new one if there is
    /// nothing.
    ///
    /// # Errors
    /// As [`UnfinishedCopy::create`]; [`DeviceError::InTheWay`] if it is none of this database, or
    /// has been opened and changed since; as [`crate::File::open`] if it is damaged.
    pub fn update(
        target: &Path,
        source: &mut PinnedSnapshot,
        hook: Option<Arc<dyn DiskHook>>,
    ) -> Result<Self, DeviceError> {
        if !target.join(DiskFile::Meta.name()).is_file() {
            return Self::create(target, source, hook);
        }
        if fs::canonicalize(target).is_ok_and(|place| place == source.files.place) {
            let what = "is the database itself";
            return Err(DeviceError::InTheWay { path: target.to_path_buf(), what });
        }
        check_place(target)?;
        finish_interrupted(target)?;
        let (dir, lock) = create_incomplete(target)?;
        let open = || {
            let files = open_files(target, &dir, lock, hook.as_ref())?;
            let base = Base::read(target, &files, source)?;
            source.compare_with(base.of)?;
            Ok((files, base))
        };
        let (files, base) = open().inspect_err(|_| remove_incomplete(&dir))?;
        let (target, branch) = (target.to_path_buf(), None);
        let openings = Openings::known_from(EpochNumber(u64::MAX));
        Ok(Self {
            target,
            dir,
            files,
            base,
            branch,
            openings,
            is_new: false,
            is_begun: false,
            is_whole: false,
        })
    }

    /// The newest epoch of its snapshot and the newest mark of the earlier copy that this one is
    /// to replace; `None` if there is none.
    ///
    /// # Errors
    /// The file system's.
    pub fn replaced(&self) -> Result<Option<Replaced>, DeviceError> {
        if self.is_new {
            return Ok(None);
        }
        let Root { epoch, instance, .. } = self.base.root;
        let mark = Marks::read(&self.files.meta, instance)?.found();
        let openings = read_openings(&self.target, instance, None)?;
        Ok(Some(Replaced { epoch, mark, openings }))
    }

    /// The copy is no copy any more, but a database that goes its own way: its epochs are others
    /// than those of the same numbers that its source has or had (S23).
    pub fn begin_branch(&mut self) {
        self.branch = Some(made_up());
    }

    /// Says which openings wrote the epochs that the copy has. By default no opening is known.
    pub fn keep_openings(&mut self, openings: Openings) {
        self.openings = openings;
    }

    /// Writes a part of the log.
    ///
    /// # Errors
    /// The file system's.
    pub fn log_write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.files.log.write_all_at(offset, bytes)
    }

    /// Cuts the log off at a length, a multiple of the size of a page.
    ///
    /// # Errors
    /// The file system's.
    pub fn log_end(&self, bytes: u64) -> Result<(), DeviceError> {
        assert!(bytes.is_multiple_of(PAGE_BYTES), "a log of {bytes} bytes has whole pages");
        self.files.log.set_len(bytes)
    }

    /// Writes the pages of a snapshot that differ, and makes all of it durable under its name.
    /// Calls `progress` with the number of pages that are written, and of all that are to be;
    /// returns that.
    ///
    /// # Errors
    /// As reading the snapshot; the file system's. The place is as it was then, or is a copy of
    /// either moment.
    pub fn finish(
        mut self,
        source: &PinnedSnapshot,
        mark: Option<&[u8; MARK_BYTES]>,
        progress: impl FnMut(u64, u64),
    ) -> Result<u64, DeviceError> {
        let instance = source.instance();
        let new = self.write_pages(source, progress)?;
        let Files { meta, data, table: table_file, log, .. } = &self.files;
        let Base { root: before, table, .. } = &mut self.base;
        let sequence = before.sequence + 1;
        let image_bytes = source.root.image_bytes.max(before.image_bytes);
        let head = Root { instance, image_bytes, ..Root::default() };
        data.write_all_at(0, &head.encode(DATA_MAGIC))?;
        for entry in &new {
            table.set(*entry);
        }
        let entries = match new.is_empty() {
            true => before.entries,
            false => table.place(&before.entries, &new).write(&self.files)?,
        };
        let head = Root { instance, sequence, ..Root::default() };
        table_file.write_all_at(0, &head.encode(TABLE_MAGIC))?;
        for file in [data, table_file, log] {
            file.sync()?;
        }
        let data_bytes = data.len()?;
        let epoch = source.epoch();
        // The log of before is there until the new one has its name, and may be shorter.
        let log_bytes = 0;
        let branch = self.branch.unwrap_or(source.root.branch);
        let root = Root { sequence, epoch, image_bytes, log_bytes, data_bytes, entries, ..*before };
        let root = Root { branch, ..root };
        let log_crc = log_crc(&self.dir)?.expect("the log was written");
        let origin = Origin { sequence, entries: source.root.entries, log_crc };
        origin.write(&self.dir)?;
        write_openings(&self.dir, instance, self.openings.clone())?;
        self.is_begun = true;
        // Those of the epochs before are in both lists, so that the new one is true of either root.
        self.give_name(OPENINGS_NAME)?;
        self.give_name(ORIGIN_NAME)?;
        // The commit point of an older copy. The log that it had goes on from either root, the new
        // one from this root only.
        write_root(&self.files, &root)?;
        self.give_name(DiskFile::Log.name())?;
        if let Some(mark) = mark {
            Marks::read(meta, instance)?.write(meta, mark)?;
            meta.sync()?;
        }
        self.end()?;
        Ok(new.len() as u64)
    }

    /// The pages, in slots that the copy does not need. Returns their entries.
    fn write_pages(
        &mut self,
        source: &PinnedSnapshot,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Vec<Entry>, DeviceError> {
        let has_changed =
            |page: &u64| source.changed.as_ref().is_none_or(|changed| changed.contains(page));
        let all = source.table.entries();
        let changed: Vec<Entry> = all.filter(|entry| has_changed(&entry.page)).collect();
        let (data, free) = (&self.files.data, &mut self.base.free);
        let all = changed.len() as u64;
        let end = free.end() + all.saturating_sub(free.count());
        data.allocate(end * PAGE_BYTES)?;
        free.grow(end);
        let mut slots = free.take_first(all).into_iter().flatten();
        let mut new: Vec<Entry> = Vec::with_capacity(changed.len());
        let mut buffer = Vec::with_capacity(PIECE_BYTES);
        source.read_pages(changed, |page, bytes| {
            let slot = slots.next().expect("a slot for each page");
            let follows = new.last().is_some_and(|last| last.slot + 1 == slot);
            if !follows || buffer.len() == PIECE_BYTES {
                write_run(data, &new, &mut buffer)?;
                progress(new.len() as u64, all);
            }
            buffer.extend_from_slice(bytes);
            new.push(Entry { page, slot, crc: page_crc(page, bytes) });
            Ok(())
        })?;
        write_run(data, &new, &mut buffer)?;
        source.check_kept()?;
        progress(all, all);
        Ok(new)
    }

    /// Moves a file of an older copy to its place.
    fn give_name(&self, name: &str) -> Result<(), DeviceError> {
        if self.is_new {
            return Ok(());
        }
        rename(&self.dir.join(name), &self.target.join(name))?;
        self.files.directory.sync()
    }

    /// A new copy gets its name, durably; nothing else is left of either kind.
    fn end(&mut self) -> Result<(), DeviceError> {
        self.files.directory.sync()?;
        if self.is_new {
            check_nothing_there(&self.target)?;
            rename(&self.dir, &self.target)?;
        } else {
            fs::remove_dir(&self.dir).map_err(|e| DeviceError::io("remove", &self.dir, e))?;
        }
        self.is_whole = true;
        sync_directory(parent_of(&self.target))
    }
}

impl Drop for UnfinishedCopy {
    fn drop(&mut self) {
        // Of an older copy they may be what completes it, once its files are replaced.
        if !self.is_whole && (self.is_new || !self.is_begun) {
            remove_incomplete(&self.dir);
        }
    }
}

impl LogSpace for UnfinishedCopy {
    fn log_bytes(&self) -> u64 {
        self.files.log.len().unwrap_or(0)
    }

    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.files.log.read_exact_at(offset, into)
    }
}

/// Writes pages that follow each other, the last of which has the last entry.
fn write_run(data: &DiskHandle, new: &[Entry], buffer: &mut Vec<u8>) -> Result<(), DeviceError> {
    if let Some(last) = new.last() {
        data.write_all_at((last.slot + 1) * PAGE_BYTES - buffer.len() as u64, buffer)?;
        buffer.clear();
    }
    Ok(())
}

/// An empty directory for what is not whole, and a lock on it.
fn create_incomplete(target: &Path) -> Result<(PathBuf, Locked), DeviceError> {
    let dir = incomplete(target)?;
    match private::create_directory(&dir) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => {
            return Err(DeviceError::io("create directory", &dir, e));
        }
        _ => {}
    }
    let lock = fs::File::open(&dir).map_err(|e| DeviceError::io("open", &dir, e))?;
    let lock = Locked::sharing(lock, &dir, Sharing::Alone)?;
    remove_files(&dir)?;
    check_nothing_there(&dir)?;
    Ok((dir, lock))
}

/// Refuses a copy that is inside of a database, by its name or where that leads.
fn check_place(target: &Path) -> Result<(), DeviceError> {
    check_parent_outside(target, parent_of(target))?;
    let place = fs::canonicalize(target).map_err(|e| DeviceError::io("look for", target, e))?;
    check_parent_outside(target, parent_of(&place))
}

/// Where the parts of a copy are that are not whole.
fn incomplete(target: &Path) -> Result<PathBuf, DeviceError> {
    let Some(name) = target.file_name() else {
        let what = "has no name of its own";
        return Err(DeviceError::InTheWay { path: target.to_path_buf(), what });
    };
    let mut name = name.to_os_string();
    name.push(SUFFIX);
    Ok(target.with_file_name(name))
}

/// Completes a copy whose new root is there and whose log still is the one before: its process was
/// killed between the two.
fn finish_interrupted(target: &Path) -> Result<(), DeviceError> {
    let dir = incomplete(target)?;
    let Some(origin) = Origin::read(target)? else { return Ok(()) };
    let is_newer = log_crc(&dir)? == Some(origin.log_crc) && has_sequence(target, origin.sequence)?;
    if !is_newer {
        return Ok(());
    }
    let name = DiskFile::Log.name();
    rename(&dir.join(name), &target.join(name))?;
    sync_directory(target)
}

/// Whether the newest snapshot of a copy has this number.
fn has_sequence(target: &Path, sequence: u64) -> Result<bool, DeviceError> {
    let meta = DiskHandle::open(target, DiskFile::Meta, Access::Read, None)?;
    Ok(find_newest(&meta)?.sequence == sequence)
}

fn rename(from: &Path, to: &Path) -> Result<(), DeviceError> {
    fs::rename(from, to).map_err(|e| DeviceError::io("give its name to", to, e))
}

/// Removes what is not whole. What cannot be removed is removed by the next copy to there.
fn remove_incomplete(dir: &Path) {
    let _ = remove_files(dir).map(|()| fs::remove_dir(dir));
}

/// Removes the files of a copy.
fn remove_files(dir: &Path) -> Result<(), DeviceError> {
    for name in FILES.map(DiskFile::name).into_iter().chain([OPENINGS_NAME, ORIGIN_NAME]) {
        let path = dir.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(DeviceError::io("remove", &path, e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A copy takes the place of nothing, or of an empty directory.
fn check_nothing_there(target: &Path) -> Result<(), DeviceError> {
    let in_the_way = |what| Err(DeviceError::InTheWay { path: target.to_path_buf(), what });
    match fs::read_dir(target) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => in_the_way("is not empty"),
        },
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == ErrorKind::NotADirectory => in_the_way("is no directory"),
        Err(e) => Err(DeviceError::io("look into", target, e)),
    }
}
