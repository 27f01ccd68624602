//! One process at a time (O-52).

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::DeviceError;

/// Who else may have the file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nobody.
    Alone,
    /// Others who only read.
    WithReaders,
}

/// An open file with a lock, released on drop.
///
/// The system releases the lock when the last handle is closed, which includes the end of the
/// process by any means. It belongs to the file, not to its name: two paths to one database exclude
/// each other.
#[derive(Debug)]
pub(crate) struct Locked {
    pub(crate) file: File,
}

impl Locked {
    /// Locks an open file for this handle alone, or fails at once.
    pub(crate) fn new(file: File, path: &Path) -> Result<Self, DeviceError> {
        Self::sharing(file, path, Sharing::Alone)
    }

    /// Locks an open file, or fails at once.
    pub(crate) fn sharing(file: File, path: &Path, with: Sharing) -> Result<Self, DeviceError> {
        let operation = match with {
            Sharing::Alone => FlockOperation::NonBlockingLockExclusive,
            Sharing::WithReaders => FlockOperation::NonBlockingLockShared,
        };
        loop {
            match flock(&file, operation) {
                Ok(()) => return Ok(Self { file }),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    return Err(DeviceError::Locked { path: path.to_path_buf() });
                }
                Err(e) => return Err(DeviceError::io("lock", path, e)),
            }
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing alone is not enough: a process that is just being started shares the handle until
        // it runs its own program, and would hold the lock until then. An error leaves it to the
        // close.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}
