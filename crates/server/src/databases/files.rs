//! The directories of a folder of databases.
//!
//! 1. CREATE makes a store in a directory whose name is no database's, closes it, renames the
//!    directory, and syncs the folder.
//! 2. DROP closes the store, renames the directory to a name that is no database's, syncs the
//!    folder, and deletes the directory.
//!
//! So after a crash each database is there whole or not at all; what is left is deleted when the
//! folder is opened.

use super::name::{being_made, decoded, dropped, encoded, is_left_over};
use crate::store::{DeviceSpec, OpenError, Store, StoreOptions};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file that each store has.
const OF_STORES: &str = "meta";

/// Makes the folder if it is not there.
///
/// # Errors
/// It is the directory of a store, or why it cannot be made.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    if folder.join(OF_STORES).is_file() {
        let message = format!(
            "{} has the files of a store: name a directory of databases, in which the store may be \
             a directory called nvcaracal",
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    match folder.parent() {
        Some(parent) if parent != Path::new("") => sync(parent),
        _ => sync(Path::new(".")),
    }
}

/// Finds the databases of a folder. Deletes what is left of others.
///
/// # Errors
/// The system's.
pub(super) fn find(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some(file_name) = file_name.to_str() else { continue };
        if !entry.path().is_dir() {
            continue;
        }
        if is_left_over(file_name) {
            fs::remove_dir_all(entry.path())?;
        } else if let Some(name) = decoded(file_name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether there is a store in the directory of a database.
pub(super) fn has_store(folder: &Path, name: &str) -> bool {
    directory(folder, name).join(OF_STORES).is_file()
}

/// The directory of a database.
pub(super) fn directory(folder: &Path, name: &str) -> PathBuf {
    folder.join(encoded(name))
}

/// Makes an empty store with a name.
///
/// # Errors
/// Why it is not made; nothing counts then.
pub(super) fn make(folder: &Path, options: StoreOptions, name: &str) -> Result<(), OpenError> {
    let (new, last) = (folder.join(being_made(name)), directory(folder, name));
    remove_if_there(&new).map_err(OpenError::Folder)?;
    let made = make_at(&new, &last, options);
    if made.is_err() {
        // The error is that of the store; what is left is deleted at the next start.
        let _ = remove_if_there(&new);
    }
    made
}

fn make_at(new: &Path, last: &Path, options: StoreOptions) -> Result<(), OpenError> {
    let device = DeviceSpec::File(new.to_owned());
    Store::open(StoreOptions { device, ..options })?.close()?;
    let renamed = rename_into(new, last);
    renamed.map_err(OpenError::Folder)
}

/// Takes the directory of a database away.
///
/// # Errors
/// Why the database is still there; [`io::ErrorKind::ResourceBusy`] if a process has it open.
pub(super) fn remove(folder: &Path, name: &str) -> io::Result<()> {
    let _alone = lock(&directory(folder, name))?;
    let old = folder.join(dropped(name));
    remove_if_there(&old)?;
    rename_into(&directory(folder, name), &old)?;
    // The database does not exist any more; what is left is deleted at the next start.
    let _ = fs::remove_dir_all(&old);
    Ok(())
}

/// Locks a store as its process does. `None` if there is no store.
fn lock(directory: &Path) -> io::Result<Option<fs::File>> {
    let file = match fs::File::open(directory.join(OF_STORES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::ResourceBusy.into()),
        Err(error) => Err(error.into()),
    }
}

fn rename_into(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    to.parent().map_or(Ok(()), sync)
}

fn remove_if_there(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_half_made_is_deleted() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("all");
        prepare(&folder).unwrap();
        for name in ["a", "b%20c", "%-new-d", "%-old-e", "%x"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        fs::write(folder.join("notes"), "").unwrap();
        assert_eq!(find(&folder).unwrap(), ["a", "b c"]);
        assert!(!folder.join("%-new-d").exists() && !folder.join("%-old-e").exists());
        assert!(folder.join("%x").exists() && folder.join("notes").exists());
    }

    #[test]
    fn the_directory_of_a_store_is_no_folder_of_databases() {
        let room = tempfile::tempdir().unwrap();
        let options = StoreOptions::at(DeviceSpec::File(room.path().join("store")));
        Store::open(options).unwrap().close().unwrap();
        let refused = prepare(&room.path().join("store")).unwrap_err();
        assert!(refused.to_string().contains("has the files of a store"), "{refused}");
    }

    #[test]
    fn a_store_is_made_and_removed_as_a_whole() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path();
        make(folder, StoreOptions::memory(), "a b").unwrap();
        assert_eq!(find(folder).unwrap(), ["a b"]);
        let device = DeviceSpec::File(directory(folder, "a b"));
        Store::open(StoreOptions::at(device)).unwrap().close().unwrap();
        remove(folder, "a b").unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
        assert!(remove(folder, "a b").is_err());
    }
}
