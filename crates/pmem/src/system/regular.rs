//! Opening a file that must be one: a pipe would wait for its other end for ever, and a
//! device of the system has bytes of its own.

use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use super::private::private;

/// Opens a file without waiting for anybody. One that it creates is private.
///
/// # Errors
/// As the system's; `InvalidInput` with words for what is no file.
pub(crate) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    if let Ok(data) = fs::metadata(path) {
        check(data.file_type())?;
    }
    // It may be another one by now.
    private(options).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    let file = options.open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

fn check(of: FileType) -> io::Result<()> {
    if of.is_file() {
        return Ok(());
    }
    let what = match of {
        of if of.is_dir() => "a directory",
        of if of.is_fifo() => "a named pipe",
        of if of.is_socket() => "a socket",
        of if of.is_char_device() || of.is_block_device() => "a device of the system",
        _ => "something else",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a file")))
}
