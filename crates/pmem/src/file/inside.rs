//! Places inside of database directories, where nothing else is made: it would be copied, moved and
//! removed with the database, and would fill its disk.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::disk::DiskFile;
use super::format::META_MAGIC;
use crate::failure::DeviceError;
use crate::system::open_regular;

/// Refuses a place that is a database directory, or inside of one. It need not be there.
///
/// # Errors
/// [`DeviceError::Inside`], with the database.
pub fn check_outside(place: &Path) -> Result<(), DeviceError> {
    let whole = resolved(place);
    match whole.ancestors().find(|directory| is_database(directory)) {
        Some(directory) => Err(DeviceError::Inside {
            path: place.to_path_buf(),
            database: directory.to_path_buf(),
        }),
        None => Ok(()),
    }
}

/// As [`check_outside`], of what is to be made in a directory: refuses it under its own name.
pub(super) fn check_parent_outside(place: &Path, parent: &Path) -> Result<(), DeviceError> {
    check_outside(parent).map_err(|error| match error {
        DeviceError::Inside { database, .. } => {
            DeviceError::Inside { path: place.to_path_buf(), database }
        }
        error => error,
    })
}

/// The place without symbolic links, as far as it is there.
fn resolved(place: &Path) -> PathBuf {
    for there in place.ancestors() {
        let named = if there.as_os_str().is_empty() { Path::new(".") } else { there };
        if let (Ok(whole), Ok(rest)) = (fs::canonicalize(named), place.strip_prefix(there)) {
            return match rest.as_os_str().is_empty() {
                true => whole,
                false => whole.join(rest),
            };
        }
    }
    place.to_path_buf()
}

/// Whether there is a database in a directory. One that may not be looked at is none of this user.
fn is_database(directory: &Path) -> bool {
    let mut magic = [0; META_MAGIC.len()];
    let meta = open_regular(File::options().read(true), &directory.join(DiskFile::Meta.name()));
    meta.is_ok_and(|mut meta| meta.read_exact(&mut magic).is_ok()) && magic == META_MAGIC
}
