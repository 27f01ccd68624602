//! Files of the archive that are not finished: each is locked by the process that writes it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::error::LogError;
use super::listing::{all_unfinished, io_error};

/// A file that is being written. Dropped without a name, it is removed.
#[derive(Debug)]
pub(super) struct Unfinished {
    /// Has the lock.
    pub(super) file: File,
    pub(super) path: PathBuf,
    has_name: bool,
}

impl Unfinished {
    /// Creates the file, over what a process has left that was killed.
    ///
    /// # Errors
    /// The file system's; that another process writes it.
    pub(super) fn create(path: PathBuf) -> Result<Self, LogError> {
        let file = create_locked(&path).map_err(|e| io_error("create", &path, e))?;
        Ok(Self { file, path, has_name: false })
    }

    /// Gives the file its name: it is finished.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn give_name(mut self, name: &Path) -> Result<(), LogError> {
        fs::rename(&self.path, name).map_err(|e| io_error("give its name to", name, e))?;
        self.has_name = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.has_name {
            // What cannot be removed is removed when a log is opened.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn create_locked(path: &Path) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = pmem::private::private(&mut options).open(path)?;
        file.try_lock()?;
        // Before the lock it may have been taken for left over, and removed.
        if is_named(&file, path)? {
            file.set_len(0)?;
            return Ok(file);
        }
    }
}

fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes what processes have left that were killed, of any store: what no process has a lock on.
///
/// # Errors
/// The file system's.
pub(super) fn remove_unfinished(dir: &Path) -> Result<(), LogError> {
    for path in all_unfinished(dir)? {
        remove_left(&path).map_err(|e| io_error("remove", &path, e))?;
    }
    Ok(())
}

fn remove_left(path: &Path) -> io::Result<()> {
    let removed = File::open(path).and_then(|file| match file.try_lock() {
        Ok(()) if is_named(&file, path)? => fs::remove_file(path),
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(e)) => Err(e),
    });
    match removed {
        // Another process has finished or removed it meanwhile.
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
