//! The directory: who has it open, whether there is a database in it, and how one is created.
//!
//! Nothing is written into a directory that holds something else. A database is there as soon as
//! there is anything in `meta`; that comes last when one is created, so files of our names without
//! a byte in them are the remains of a creation that was cut short, and are reused.

use std::fs::{self, File, FileType};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::SeekFrom;

use super::disk::{Access, DiskFile, DiskHandle, Files, PIECE_BYTES};
use super::format::{DATA_MAGIC, HEAD_BYTES, META_BYTES, Root};
use super::inside::{check_outside, check_parent_outside};
use super::meta::{check_is_ours, write_root};
use super::options::FileOptions;
use crate::failure::DeviceError;
use crate::side_files::LoadMark;
use crate::system::{Locked, Sharing, open_regular, private};

/// Names of ours in a directory.
const NAMES: [&str; 7] =
    ["meta", "data", "table", "log", super::OPENINGS_NAME, super::REPLAY_NAME, super::LOADING_NAME];

/// Opens the files of the database in a directory, or creates them if there is none yet and the
/// options say so.
pub(super) fn open_files(dir: &Path, options: &FileOptions) -> Result<Arc<Files>, DeviceError> {
    let may_create = options.create && !options.read_only;
    if may_create {
        create_directory(dir)?;
    } else if !is_there(dir, FileType::is_dir)? {
        return Err(DeviceError::Missing { path: dir.to_path_buf() });
    }
    let sharing = if options.read_only { Sharing::WithReaders } else { Sharing::Alone };
    // The lock of the directory is there before any file, and no process can remove what it is on.
    // Only the lock of `meta` is seen by other machines on a network file system.
    let lock = File::open(dir).map_err(|e| DeviceError::io("open", dir, e))?;
    let lock = Locked::sharing(lock, dir, sharing)?;
    let place = fs::canonicalize(dir).map_err(|e| DeviceError::io("look for", dir, e))?;
    let is_there = has_content(&dir.join(DiskFile::Meta.name()))?;
    if is_there && !options.loading {
        load_mark(dir).check_none(dir)?;
    }
    if !is_there {
        check_no_meta_was_lost(dir)?;
        if !may_create {
            return Err(DeviceError::Missing { path: dir.to_path_buf() });
        }
        check_nothing_in_the_way(dir, options)?;
        check_parent_outside(dir, parent_of(&place))?;
    }
    let access = match (is_there, options.read_only) {
        (_, true) => Access::Read,
        (true, false) => Access::Write,
        (false, false) => Access::Create,
    };
    let file = |which| DiskHandle::open(dir, which, access, options.hook.clone());
    let meta = file(DiskFile::Meta)?;
    let meta_lock = meta.lock(sharing)?;
    if is_there {
        check_is_ours(&meta)?;
    }
    let files = Files {
        meta,
        data: file(DiskFile::Data)?,
        table: file(DiskFile::Table)?,
        log: file(DiskFile::Log)?,
        directory: file(DiskFile::Directory)?,
        place,
        _locks: vec![meta_lock, lock],
    };
    // What was locked is what the names stand for.
    files.check_place()?;
    if !is_there {
        create(&files)?;
    }
    Ok(Arc::new(files))
}

/// Whether something of a type has a name. What may not be looked at is an error, and not missing.
pub(super) fn is_there(path: &Path, is: fn(&FileType) -> bool) -> Result<bool, DeviceError> {
    match fs::metadata(path) {
        Ok(data) => Ok(is(&data.file_type())),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(e) => Err(DeviceError::io("look for", path, e)),
    }
}

/// The mark of a load into the database of a directory.
pub(super) fn load_mark(dir: &Path) -> LoadMark {
    LoadMark::at(dir.join(super::LOADING_NAME))
}

fn create_directory(dir: &Path) -> Result<(), DeviceError> {
    if dir.is_dir() {
        return Ok(());
    }
    check_outside(dir)?;
    private::create_directories(dir).map_err(|e| DeviceError::io("create directory", dir, e))?;
    // The entry of the new directory must survive too (O-56).
    sync_directory(parent_of(dir))
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(dir: &Path) -> Result<(), DeviceError> {
    let sync = File::open(dir).and_then(|file| file.sync_all());
    sync.map_err(|e| DeviceError::io("sync directory", dir, e))
}

pub(super) fn parent_of(dir: &Path) -> &Path {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Lays out an empty database. The root in `meta` comes last: without it, the next open starts
/// over.
fn create(files: &Files) -> Result<(), DeviceError> {
    let instance = made_up();
    files.meta.allocate(META_BYTES)?;
    // Their heads are written with what they are of.
    files.data.allocate(HEAD_BYTES)?;
    files.table.allocate(HEAD_BYTES)?;
    for file in [&files.meta, &files.data, &files.table, &files.log, &files.directory] {
        file.sync()?;
    }
    write_root(files, &Root { instance, data_bytes: HEAD_BYTES, ..Root::default() })
}

/// A number that differs from database to database; nothing is computed from it. Not zero.
pub(super) fn made_up() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

/// Pages without `meta` are those of a database that lost a file, not a place for a new one.
fn check_no_meta_was_lost(dir: &Path) -> Result<(), DeviceError> {
    let path = dir.join(DiskFile::Data.name());
    let mut magic = [0; 8];
    let opened = open_regular(File::options().read(true), &path);
    let read = opened.and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() || magic != DATA_MAGIC {
        return Ok(());
    }
    let what = "it is missing or empty, but there are pages of a database: put it back from where \
                the other files come from";
    Err(DeviceError::corrupt(&dir.join(DiskFile::Meta.name()), what))
}

/// A new database must not get mixed up with other files, nor write over them.
fn check_nothing_in_the_way(dir: &Path, options: &FileOptions) -> Result<(), DeviceError> {
    let list = |e| DeviceError::io("list", dir, e);
    let mut in_the_way: Option<PathBuf> = None;
    for entry in fs::read_dir(dir).map_err(list)? {
        let entry = entry.map_err(list)?;
        let is = |names: &[&str]| names.iter().any(|name| entry.file_name() == *name);
        if is(options.beside) || (is(&NAMES) && !has_content(&entry.path())?) {
            continue;
        }
        // The first by name, so that the message does not depend on the file system.
        let smaller = in_the_way.take().filter(|path| *path < entry.path());
        in_the_way = Some(smaller.unwrap_or_else(|| entry.path()));
    }
    let Some(path) = in_the_way else { return Ok(()) };
    let what = "it is in the way of a new database, and nothing was changed: choose an empty or a \
                new directory";
    Err(DeviceError::foreign(&path, what))
}

/// Whether there is anything of that name but a file of zeros.
fn has_content(path: &Path) -> Result<bool, DeviceError> {
    let error = |e| DeviceError::io("look into", path, e);
    let data = match fs::metadata(path) {
        Ok(data) => data,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(error(e)),
    };
    if !data.is_file() {
        return Ok(true);
    }
    let file = File::open(path).map_err(error)?;
    let mut buffer = vec![0; PIECE_BYTES.min(data.len() as usize)];
    let mut at = 0;
    while at < data.len() {
        // Without holes the file system says that there is data, or that it does not know.
        at = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => at,
        };
        let piece = &mut buffer[..PIECE_BYTES.min((data.len() - at) as usize)];
        file.read_exact_at(piece, at).map_err(error)?;
        if piece.iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        at += piece.len() as u64;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O-56: the entry of a new directory is in the directory above it, which may be this one.
    #[test]
    fn o_56_a_directory_is_named_in_its_parent() {
        for (dir, parent) in [("store", "."), ("a/store", "a"), ("/store", "/"), ("/a/store", "/a")]
        {
            assert_eq!(parent_of(Path::new(dir)), Path::new(parent));
        }
    }
}
