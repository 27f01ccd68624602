//! How a database directory is opened.

use std::path::PathBuf;
use std::sync::Arc;

use super::disk::DiskHook;

/// How to open a [`super::File`].
#[derive(Debug, Clone)]
pub struct FileOptions {
    /// The image never grows beyond this; address space, not memory or disk, is reserved for it.
    pub image_limit_bytes: u64,
    /// The log space never grows beyond this.
    pub log_limit_bytes: u64,
    /// Whether to create the database if there is none.
    pub create: bool,
    /// Whether the database is only looked at: nothing is created, no file is opened for writing,
    /// and [`crate::Device::accept`] is refused. Others may look at it too.
    pub read_only: bool,
    /// Of one that is only looked at: whether [`crate::Device::accept`] succeeds all the same, and
    /// what is changed from then on stays in memory and is forgotten. For a store whose log has to
    /// be replayed before it can be read.
    pub detached: bool,
    /// Whether this is for a load, which may finish one that was cut short. Anybody else is refused
    /// what that has left.
    pub loading: bool,
    /// Names of the caller's own files that may lie in the directory of a new database. Anything
    /// else is in the way of one.
    pub beside: &'static [&'static str],
    /// Where the user of the log is to keep what it needs no more; `None`: nowhere.
    pub archive: Option<PathBuf>,
    /// Most bytes of memory for the image, and for what its user says that it needs besides
    /// ([`crate::Device::leave_memory`]); `None`: all of the image is in memory. Needs
    /// `userfaultfd`.
    pub memory_limit_bytes: Option<u64>,
    /// A store with at least so many bytes of pages is opened before they are read: they come when
    /// they are touched, and all of them in the background
    /// ([`crate::Device::wait_for_pages`]); `None`: the open reads all pages. So it does where
    /// there is a limit of memory, where the store is only looked at, and where the system has no
    /// `userfaultfd`, too.
    pub background_load_bytes_min: Option<u64>,
    /// Watches every call to the file system, and may make it fail. For tests and simulations.
    pub hook: Option<Arc<dyn DiskHook>>,
}

impl FileOptions {
    /// Reading fewer bytes takes less time than it is worth threads:
    /// [`FileOptions::background_load_bytes_min`] of those who want stores opened fast.
    pub const BACKGROUND_LOAD_BYTES: u64 = 16 << 20;

    /// Options with these limits that create the database if there is none.
    #[must_use]
    pub fn new(image_limit_bytes: u64, log_limit_bytes: u64) -> Self {
        Self {
            image_limit_bytes,
            log_limit_bytes,
            create: true,
            read_only: false,
            detached: false,
            loading: false,
            beside: &[],
            archive: None,
            memory_limit_bytes: None,
            background_load_bytes_min: None,
            hook: None,
        }
    }
}
