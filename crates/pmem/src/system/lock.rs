//! One process at a time (O-52).

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock, fstat};
use rustix::io::Errno;

use crate::failure::{DeviceError, lock};
use crate::sync::background::Mutex;
use crate::system::Process;

/// Who else may have the file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// None.
    Alone,
    /// Others who only read.
    WithReaders,
}

/// An open file with a lock, released on drop.
///
/// The system releases the lock when the last handle is closed, which includes the end of the
/// process by any means. It belongs to the file, not to its name: two paths to one database exclude
/// each other. A child of `fork` has the same handle, and with it the lock, until it ends or runs
/// another program; what it drops releases nothing.
#[derive(Debug)]
pub(crate) struct Locked {
    pub(crate) file: File,
    /// Whose lock it is.
    process: Process,
    /// The file, as the system knows it.
    id: FileId,
}

/// Device and number of a file.
type FileId = (u64, u64);

/// The files on which this process has locks, once for each. Only for the words of a refusal.
static OWN: Mutex<Vec<(FileId, Process)>> = Mutex::new(Vec::new());

fn id_of(file: &File, path: &Path) -> Result<FileId, DeviceError> {
    let data = fstat(file).map_err(|e| DeviceError::io("look into", path, e))?;
    // Systems have numbers of different types for devices.
    let device = data.st_dev as u64;
    Ok((device, data.st_ino))
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
        let (id, process) = (id_of(&file, path)?, Process::current());
        loop {
            match flock(&file, operation) {
                Ok(()) => {
                    lock(&OWN).push((id, process));
                    return Ok(Self { file, process, id });
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    let is_own = lock(&OWN).contains(&(id, process));
                    return Err(DeviceError::Locked { path: path.to_path_buf(), is_own });
                }
                Err(e) => return Err(DeviceError::io("lock", path, e)),
            }
        }
    }
}

/// Whether there is a lock of another handle on the file. The handle must have none itself.
pub(crate) fn is_locked(file: &File, path: &Path) -> Result<bool, DeviceError> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => return Ok(true),
            Err(e) => return Err(DeviceError::io("look for a lock of", path, e)),
        }
    }
    flock(file, FlockOperation::Unlock).map_err(|e| DeviceError::io("unlock", path, e))?;
    Ok(false)
}

impl Drop for Locked {
    fn drop(&mut self) {
        if !self.process.is_here() {
            // The handle is the parent's, too, and to unlock it would unlock the parent's.
            return;
        }
        let mut own = lock(&OWN);
        if let Some(mine) = own.iter().position(|one| *one == (self.id, self.process)) {
            own.swap_remove(mine);
        }
        drop(own);
        // Closing alone is not enough: a process that is just being started shares the handle until
        // it runs its own program, and would hold the lock until then. An error leaves it to the
        // close.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::system::in_fork;

    /// O-52: what a child of `fork` drops leaves its parent's lock.
    #[test]
    fn o_52_a_child_does_not_unlock_its_parents_file() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("file");
        let open = || File::options().create(true).append(true).open(&path).unwrap();
        let lock = || Locked::new(open(), &path);
        let mut locked = Some(lock().unwrap());
        assert_eq!(in_fork(|| u8::from(locked.take().is_none())).unwrap(), 0);
        let again = lock().unwrap_err().to_string();
        assert!(again.contains("this process already has this database open"), "{again}");
        let in_child = || {
            let error = lock().unwrap_err().to_string();
            u8::from(!error.contains("another process has this database open"))
        };
        assert_eq!(in_fork(in_child).unwrap(), 0);
        drop(locked);
        lock().unwrap();
    }
}
