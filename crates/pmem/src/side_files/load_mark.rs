//! A file beside a store that says that a load into it has not come to its end.
//!
//! It is written before a load changes anything, and removed when everything that was loaded is
//! durable; both are synced with the directory. A store that has it is refused by every open but
//! that of a load. What it says is the caller's affair.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::failure::DeviceError;
use crate::system::private;

/// The mark of one store.
#[derive(Debug)]
pub struct LoadMark {
    path: PathBuf,
}

impl LoadMark {
    /// The mark that is, or would be, this file.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// What the mark says; `None` if there is none.
    ///
    /// # Errors
    /// [`DeviceError::Io`].
    pub fn read(&self) -> Result<Option<String>, DeviceError> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(DeviceError::io("read", &self.path, e)),
        }
    }

    /// Writes the mark, durably, over one that is there.
    ///
    /// # Errors
    /// [`DeviceError::Io`].
    pub fn set(&self, text: &str) -> Result<(), DeviceError> {
        let write = || {
            let mut file = private::create_file(&self.path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|e| DeviceError::io("write", &self.path, e))?;
        self.sync_directory()
    }

    /// Removes the mark, durably.
    ///
    /// # Errors
    /// [`DeviceError::Io`].
    pub fn clear(&self) -> Result<(), DeviceError> {
        fs::remove_file(&self.path).map_err(|e| DeviceError::io("remove", &self.path, e))?;
        self.sync_directory()
    }

    /// Refuses a store that has the mark.
    pub(crate) fn check_none(&self, store: &Path) -> Result<(), DeviceError> {
        match fs::symlink_metadata(&self.path) {
            Ok(_) => Err(DeviceError::Unfinished { path: store.to_path_buf() }),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(DeviceError::io("look for", &self.path, e)),
        }
    }

    fn sync_directory(&self) -> Result<(), DeviceError> {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let sync = File::open(parent).and_then(|directory| directory.sync_all());
        sync.map_err(|e| DeviceError::io("sync directory", parent, e))
    }
}
