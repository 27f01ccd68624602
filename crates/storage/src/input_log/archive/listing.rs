//! Which files a directory of the archive has.

use std::fs;
use std::path::{Path, PathBuf};

use pmem::DeviceError;

use super::super::error::LogError;
use super::file::{FINISHED, FileHeader, UNFINISHED, of_name};

/// The files of a store and branch, by their first epochs. Names only: nothing is read.
pub(super) fn files_of(
    dir: &Path,
    instance: u64,
    branch: u64,
) -> Result<Vec<FileHeader>, LogError> {
    let mut files = all_files(dir)?;
    files.retain(|file| (file.instance, file.branch) == (instance, branch));
    files.sort_unstable_by_key(|file| (file.first, std::cmp::Reverse(file.last)));
    Ok(files)
}

/// Files that were begun, of any store.
pub(super) fn all_unfinished(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    let error = |source| io_error("list", dir, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let is_unfinished = path.extension().is_some_and(|extension| extension == UNFINISHED);
        let finished = path.with_extension(FINISHED);
        let named = finished.file_name().and_then(|name| name.to_str()).and_then(of_name);
        if is_unfinished && named.is_some() {
            found.push(path);
        }
    }
    Ok(found)
}

/// All files of the archive.
pub(super) fn all_files(dir: &Path) -> Result<Vec<FileHeader>, LogError> {
    let error = |source| io_error("list", dir, source);
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(error)? {
        files.extend(entry.map_err(error)?.file_name().to_str().and_then(of_name));
    }
    Ok(files)
}

/// An error of the operating system.
pub(super) fn io_error(what: &str, path: &Path, source: std::io::Error) -> LogError {
    LogError::Device(DeviceError::Io { what: what.to_string(), path: path.to_path_buf(), source })
}
