//! Measures a disk: what it takes to overwrite a part of a file that is there in full, durably.

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bench::clock::now_ns;
use bench::report::median;
use bench::{BenchError, Result};
use rustix::fs::FallocateFlags;
use tempfile::NamedTempFile;

/// Bytes of the file.
const FILE_BYTES: u64 = 16 << 20;
/// Overwrites of one size ...
const WRITES_MAX: usize = 200;
/// ... or as many as fit in this time, on a slow disk ...
const TIME_NS: u64 = 700_000_000;
/// ... but no fewer than this.
const WRITES_MIN: usize = 5;

/// A preallocated file whose every byte was written and synced; removed when dropped.
pub(super) struct Written {
    file: NamedTempFile,
    path: PathBuf,
    /// Where the next overwrite goes.
    next: u64,
}

impl Written {
    pub(super) fn create(directory: &Path) -> Result<Self> {
        let file = tempfile::Builder::new().prefix("nvcaracal-roofline-").tempfile_in(directory);
        let mut file = file.map_err(|e| BenchError::io("create a file in", directory, e))?;
        let path = file.path().to_path_buf();
        // Where a file system cannot preallocate, writing below makes the file as long.
        let _ = rustix::fs::fallocate(file.as_file(), FallocateFlags::empty(), 0, FILE_BYTES);
        let written = file.write_all(&vec![1; FILE_BYTES as usize]);
        let synced = written.and_then(|()| file.as_file().sync_all());
        synced.map_err(|e| BenchError::io("write", &path, e))?;
        Ok(Self { file, path, next: 0 })
    }

    /// Microseconds to overwrite the next `bytes` and sync them.
    pub(super) fn overwrite_us(&mut self, bytes: u64) -> Result<f64> {
        let content = vec![2; bytes as usize];
        let (first, mut times) = (now_ns(), Vec::new());
        while times.len() < WRITES_MIN || times.len() < WRITES_MAX && now_ns() - first < TIME_NS {
            let at = self.place(bytes);
            let start = now_ns();
            let written = self.file.as_file().write_all_at(&content, at);
            let synced = written.and_then(|()| self.file.as_file().sync_data());
            synced.map_err(|e| BenchError::io("write and sync", &self.path, e))?;
            times.push((now_ns() - start).max(1) as f64 / 1e3);
        }
        Ok(median(times))
    }

    /// The next aligned range of the file; after the last one the first.
    fn place(&mut self, bytes: u64) -> u64 {
        let at = self.next.next_multiple_of(bytes);
        let at = if at + bytes <= FILE_BYTES { at } else { 0 };
        self.next = at + bytes;
        at
    }

    /// Removes the file, and says if that fails.
    pub(super) fn remove(self) -> Result<()> {
        self.file.close().map_err(|e| BenchError::io("remove", &self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwrites_stay_in_the_file_which_is_removed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut file = Written::create(directory.path()).expect("a file");
        assert_eq!([file.place(4096), file.place(4096), file.place(1 << 20)], [0, 4096, 1 << 20]);
        file.next = FILE_BYTES - 4096;
        assert_eq!([file.place(1 << 20), file.place(4096)], [0, 1 << 20]);
        assert!(file.overwrite_us(4096).expect("written") > 0.0);
        assert_eq!(file.file.as_file().metadata().expect("a file").len(), FILE_BYTES);
        file.remove().expect("removed");
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }
}
