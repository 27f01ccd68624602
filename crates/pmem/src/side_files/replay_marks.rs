//! Words that outlive the process: how far a replay came that ended in its death.
//!
//! A file of one page is mapped and shared, so that a store to a word costs no system call and is
//! seen by the next process, however this one ends. Nothing is durable: a power cut takes it.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::MapFlags;

use crate::failure::{DeviceError, is_no_space, lock};
use crate::memory::{Mapping, PAGE_BYTES};
use crate::sync::background::Mutex;
use crate::system::{death, private};

/// The files that this process has made, and still has open.
static MADE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Number of words in [`ReplayMarks`].
pub const REPLAY_WORDS: usize = PAGE_BYTES as usize / size_of::<u64>();

/// The words. What they mean is the caller's affair.
///
/// The file stays when this is dropped: what is in it is for the next process. [`Self::remove`]
/// deletes it.
#[derive(Debug)]
pub struct ReplayMarks {
    mapping: Mapping,
    path: PathBuf,
}

impl ReplayMarks {
    /// Maps the file; creates it, with zeros, if there is none. On a disk without room no file is
    /// left.
    ///
    /// # Errors
    /// [`DeviceError::Full`] if the disk has no room for it; [`DeviceError::Io`] otherwise, also
    /// if `may_create` fails so.
    pub(crate) fn open(
        path: &Path,
        may_create: impl FnOnce() -> io::Result<()>,
    ) -> Result<Self, DeviceError> {
        let error = |what| {
            move |e: io::Error| match is_no_space(&e) {
                true => DeviceError::disk_full(path, PAGE_BYTES),
                false => DeviceError::io(what, path, e),
            }
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let open = |()| private::private(&mut options).open(path);
        let is_new = !path.exists();
        let file = may_create().and_then(open).map_err(error("create or open"))?;
        // Space for all of it: a store to a page that cannot be had would end the process.
        fallocate(&file, FallocateFlags::empty(), 0, PAGE_BYTES).map_err(|e| {
            if file.metadata().is_ok_and(|found| found.len() == 0) {
                // It says nothing. One that stays is used by the next open.
                let _ = fs::remove_file(path);
            }
            error("extend")(e.into())
        })?;
        let mapping = Mapping::of_file(file.as_fd(), PAGE_BYTES, MapFlags::SHARED)
            .map_err(|e| DeviceError::io("map", path, e))?;
        if is_new {
            lock(&MADE).insert(path.to_path_buf());
        }
        Ok(Self { mapping, path: path.to_path_buf() })
    }

    /// The words, as an earlier process left them where this one did not store to them yet.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64; REPLAY_WORDS] {
        // SAFETY: mapped as long as this lives, aligned to pages, and initialised by the file; all
        // sides access it as atomics, and the database's lock keeps other processes away.
        unsafe { &*self.mapping.base().cast() }
    }

    /// The word at a place.
    ///
    /// # Panics
    /// If there are not as many.
    #[must_use]
    pub fn get(&self, place: usize) -> u64 {
        self.words()[place].load(Ordering::Relaxed)
    }

    /// Sets the word at a place.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn set(&self, place: usize, word: u64) {
        self.words()[place].store(word, Ordering::Relaxed);
    }

    /// Runs something. If this thread ends the process meanwhile, by an abort, a stack overflow or
    /// another fault, `word` is stored at `place`; a process that is ended from outside stores
    /// nothing. The word is not zero.
    ///
    /// # Panics
    /// If there are not as many places.
    pub fn noting<R>(&self, place: usize, word: u64, run: impl FnOnce() -> R) -> R {
        death::noting(&self.words()[place], word, run)
    }

    /// Deletes the file: there is nothing to tell the next process.
    ///
    /// # Errors
    /// [`DeviceError::Io`].
    pub fn remove(&self) -> Result<(), DeviceError> {
        fs::remove_file(&self.path).map_err(|e| DeviceError::io("remove", &self.path, e))
    }
}

impl Drop for ReplayMarks {
    fn drop(&mut self) {
        lock(&MADE).remove(&self.path);
    }
}

/// Deletes the files that this process has made: it ends for a reason of its own, and no call did
/// that. What an earlier process has left stays.
pub(crate) fn remove_made() {
    for path in &*lock(&MADE) {
        // One that stays says of no call that it ended the process.
        let _ = fs::remove_file(path);
    }
}
