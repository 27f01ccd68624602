//! Files and directories for the user alone that runs the process: rows are in them. Existing ones
//! keep their permissions.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The permissions of a new file.
const FILE_MODE: u32 = 0o600;
/// The permissions of a new directory.
const DIRECTORY_MODE: u32 = 0o700;

/// Says in options that a file which they create is private.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(FILE_MODE)
}

/// Creates a file, or empties the one that is there, to write it.
///
/// # Errors
/// The system's.
pub fn create_file(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().write(true).create(true).truncate(true)).open(path)
}

/// Creates a file that is not there, to write it.
///
/// # Errors
/// The system's; `AlreadyExists`.
pub fn create_new_file(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().write(true).create_new(true)).open(path)
}

/// Creates a directory that is not there.
///
/// # Errors
/// The system's; `AlreadyExists`.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY_MODE).create(path)
}

/// Creates a directory, and those that it is in, as far as they are not there.
///
/// # Errors
/// The system's.
pub fn create_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_created_is_private() {
        let room = tempfile::tempdir().unwrap();
        let inner = room.path().join("a/b");
        create_directories(&inner).unwrap();
        create_directories(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&room.path().join("a"))), (0o700, 0o700));
        let (first, second) = (inner.join("first"), inner.join("second"));
        create_file(&first).unwrap();
        create_new_file(&second).unwrap();
        assert!(create_new_file(&second).is_err());
        assert_eq!((mode(&first), mode(&second)), (0o600, 0o600));
        create_directory(&inner.join("c")).unwrap();
        assert_eq!(mode(&inner.join("c")), 0o700);
        // An existing file keeps its permissions.
        std::fs::set_permissions(&first, std::fs::Permissions::from_mode(0o640)).unwrap();
        create_file(&first).unwrap();
        assert_eq!(mode(&first), 0o640);
    }
}
