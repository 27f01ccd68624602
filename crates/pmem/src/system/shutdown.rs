//! Power cuts of a file system, for tests of what is durable.

use std::io;
use std::path::Path;

/// Ends the file system that a directory is in, at once, as a power cut does: nothing that it has
/// in memory is written any more, not even its journal, and all I/O on it fails until it is
/// unmounted and mounted again. Needs root; ext4 and XFS of Linux can do that.
///
/// # Errors
/// The directory cannot be opened, or its file system or the system has no such call.
#[doc(hidden)]
pub fn shut_file_system_down(directory: &Path) -> io::Result<()> {
    shut_down(&std::fs::File::open(directory)?)
}

#[cfg(all(target_os = "linux", not(miri)))]
fn shut_down(directory: &std::fs::File) -> io::Result<()> {
    use rustix::ioctl::{Setter, ioctl, opcode};

    /// `EXT4_IOC_SHUTDOWN` (`fs/ext4/ext4.h`), and `XFS_IOC_GOINGDOWN` (`fs/xfs/libxfs/xfs_fs.h`).
    const SHUTDOWN: rustix::ioctl::Opcode = opcode::read::<u32>(b'X', 125);
    /// The journal is not flushed.
    const NO_LOG_FLUSH: u32 = 2;

    // SAFETY: the call reads a word of 4 bytes by its pointer, and keeps it not.
    let shut_down = unsafe { Setter::<SHUTDOWN, u32>::new(NO_LOG_FLUSH) };
    // SAFETY: as above.
    Ok(unsafe { ioctl(directory, shut_down) }?)
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn shut_down(_: &std::fs::File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
