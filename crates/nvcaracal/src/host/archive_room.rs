//! The directory of an archive, which is made before a database is: one that cannot be made is
//! refused while nothing is there, and one of a database that is refused goes again.

use std::path::{Path, PathBuf};

use pmem::DeviceError;

use crate::error::{Error, Result};

/// The directories that were made for an archive.
pub(super) struct ArchiveRoom {
    /// From the innermost one on.
    made: Vec<PathBuf>,
}

impl ArchiveRoom {
    /// Makes the directory `archive`, unless it is there.
    ///
    /// # Errors
    /// That it is a file, or inside of a database, and the system's.
    pub(super) fn make(archive: &Path) -> Result<ArchiveRoom> {
        pmem::check_outside(archive)?;
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made = archive.ancestors().take_while(is_missing).map(Path::to_path_buf).collect();
        if archive.exists() && !archive.is_dir() {
            return Err(Error::mistake(format!(
                "the archive {} is no directory: name one that is there or can be made",
                archive.display()
            )));
        }
        let room = ArchiveRoom { made };
        pmem::private::create_directories(archive).map_err(|source| {
            room.remove();
            DeviceError::Io { what: "create directory".into(), path: archive.into(), source }
        })?;
        Ok(room)
    }

    /// Removes the directories, as far as they are empty.
    pub(super) fn remove(&self) {
        // One that is not empty is in use, and so are those around it.
        self.made.iter().all(|path| std::fs::remove_dir(path).is_ok());
    }
}
