//! The system calls that the file device makes, in one place.
//!
//! Each call can be watched or made to fail by a [`DiskHook`]: that is how tests and simulations
//! put a power cut, a full file system or a bad sector at every step. Without a hook a call costs
//! one branch.
//!
//! Interrupted calls are repeated and short writes continued (O-58). Nothing else is repeated.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FallocateFlags;

use super::{OPENINGS_NAME, REPLAY_NAME};
use crate::failure::{DeviceError, is_no_space};
use crate::memory::PAGE_BYTES;
use crate::system::{Locked, Process, Sharing, is_locked, open_regular};

/// Large transfers are cut into pieces of this size.
pub(super) const PIECE_BYTES: usize = 4 << 20;
/// Pieces of snapshots of at least this many bytes are written with direct I/O: copying them
/// into it takes the processor from the workers. Shorter ones would wait for the disk one by one.
const DIRECT_BYTES_MIN: usize = 256 << 10;

/// One of the files of a database directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DiskFile {
    /// Identity, and which snapshot is the state.
    Meta,
    /// The pages of the image, in slots.
    Data,
    /// Which slot each page has.
    Table,
    /// The log space.
    Log,
    /// The words of [`crate::ReplayMarks`], which are stored to as memory: the hook is asked only
    /// before they are opened.
    Replay,
    /// The directory itself.
    Directory,
    /// Which openings wrote which epochs.
    Openings,
}

impl DiskFile {
    /// Name inside the database directory; empty for the directory itself.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Data => "data",
            Self::Table => "table",
            Self::Log => "log",
            Self::Replay => REPLAY_NAME,
            Self::Directory => "",
            Self::Openings => OPENINGS_NAME,
        }
    }
}

/// What is about to be done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskOperation<'a> {
    /// The file is opened.
    Open {
        /// Whether it may be written to through this handle.
        write: bool,
        /// Whether it is created if it is missing.
        create: bool,
    },
    /// Bytes are written at an offset.
    Write {
        /// Where.
        offset: u64,
        /// What.
        bytes: &'a [u8],
    },
    /// Bytes are read at an offset.
    Read {
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Everything written to the file so far is made durable.
    Sync,
    /// The file is extended with zeros to a new length.
    Allocate {
        /// The new length.
        len: u64,
    },
    /// What is behind a length is given back to the file system.
    Truncate {
        /// The new length.
        len: u64,
    },
}

/// One call, before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskCall<'a> {
    /// On which file.
    pub file: DiskFile,
    /// What.
    pub operation: DiskOperation<'a>,
}

/// What a hook makes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The call is made.
    Proceed,
    /// The call is not made and fails with this error number of the operating system.
    Fail(i32),
    /// A write is made for the first so many bytes only, as the operating system may do.
    Short(usize),
}

/// Watches every call, and decides what becomes of it. Called on the thread that makes the call,
/// which for snapshots is the background writer.
pub trait DiskHook: std::fmt::Debug + Send + Sync {
    /// Called before `call` is made.
    fn before(&self, call: &DiskCall<'_>) -> Outcome;

    /// Called with the bytes that were read at an offset, and may change them: disks return the
    /// wrong sector or damaged ones.
    fn after_read(&self, _file: DiskFile, _offset: u64, _bytes: &mut [u8]) {}
}

/// Pages that one read may bring.
pub(super) const RUN_PAGES: usize = 4;

/// Pages, where a disk can read them into.
#[repr(align(4096))]
pub(super) struct PageBuffers(pub(super) [[u8; PAGE_BYTES as usize]; RUN_PAGES]);

impl PageBuffers {
    pub(super) const fn new() -> Self {
        Self([[0; PAGE_BYTES as usize]; RUN_PAGES])
    }
}

/// An open file with its name for errors and its hook.
#[derive(Debug)]
pub(super) struct DiskHandle {
    which: DiskFile,
    path: PathBuf,
    file: File,
    /// The same file for direct I/O, where that is of use and can be done.
    direct: Option<File>,
    hook: Option<Arc<dyn DiskHook>>,
    /// Who opened it, and alone may change it.
    process: Process,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// To be read; it must be there.
    Read,
    /// To be read and written; it must be there.
    Write,
    /// To be read and written; it is created if it is missing.
    Create,
}

impl DiskHandle {
    /// Opens a file of the directory.
    pub(super) fn open(
        dir: &Path,
        which: DiskFile,
        access: Access,
        hook: Option<Arc<dyn DiskHook>>,
    ) -> Result<Self, DeviceError> {
        let path = dir.join(which.name());
        let is_file = which != DiskFile::Directory;
        let write = is_file && access != Access::Read;
        let create = is_file && access == Access::Create;
        let operation = DiskOperation::Open { write, create };
        let mut options = OpenOptions::new();
        options.read(true).write(write).create(create).truncate(false);
        let open = |options: &mut OpenOptions| match is_file {
            true => open_regular(options, &path),
            false => options.open(&path),
        };
        let file = loop {
            match ask(hook.as_ref(), which, operation).and_then(|_| open(&mut options)) {
                Ok(file) => break file,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound && is_file && !create => {
                    let what = "it is missing: put it back from where the other files come from";
                    return Err(DeviceError::corrupt(&path, what));
                }
                Err(e) => {
                    let what = if create { "create or open" } else { "open" };
                    return Err(DeviceError::io(what, &path, e));
                }
            }
        };
        let direct = open_direct(which, &path, write);
        Ok(Self { which, path, file, direct, hook, process: Process::current() })
    }

    /// Locks the file until the lock is dropped.
    pub(super) fn lock(&self, with: Sharing) -> Result<Locked, DeviceError> {
        let file = self.file.try_clone().map_err(|e| DeviceError::io("open", &self.path, e))?;
        Locked::sharing(file, &self.path, with)
    }

    /// Whether there is a lock of another handle on the file.
    pub(super) fn is_locked(&self) -> Result<bool, DeviceError> {
        is_locked(&self.file, &self.path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that a name still stands for this file.
    fn check_name(&self, name: &Path) -> Result<(), DeviceError> {
        let look = |data: io::Result<fs::Metadata>| match data {
            Ok(data) => Ok(Some((data.dev(), data.ino()))),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(e) => Err(DeviceError::io("look for", name, e)),
        };
        if look(fs::metadata(name))? == look(self.file.metadata())? {
            return Ok(());
        }
        let what = "it was removed or replaced while the database was open; nothing more is \
                    written, close the database and look for what took its place";
        Err(DeviceError::io("go on with", name, io::Error::other(what)))
    }

    pub(super) fn len(&self) -> Result<u64, DeviceError> {
        let data = self.file.metadata();
        Ok(data.map_err(|e| DeviceError::io("read the length of", &self.path, e))?.len())
    }

    pub(super) fn write_all_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < bytes.len() {
            let end = bytes.len().min(done + PIECE_BYTES);
            match self.write_some(offset + done as u64, &bytes[done..end]) {
                Ok(0) => {
                    return Err(self.write_error(offset, bytes, io::ErrorKind::WriteZero.into()));
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.write_error(offset, bytes, e)),
            }
        }
        Ok(())
    }

    fn write_some(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let len = self.ask(DiskOperation::Write { offset, bytes })?.unwrap_or(bytes.len());
        let bytes = &bytes[..len.min(bytes.len())];
        match &self.direct {
            Some(direct) if self.which == DiskFile::Data && can_be_direct(offset, bytes) => {
                match direct.write_at(bytes, offset) {
                    // Some file systems say only now that they cannot do it.
                    Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                        self.file.write_at(bytes, offset)
                    }
                    result => result,
                }
            }
            _ => self.file.write_at(bytes, offset),
        }
    }

    /// Writes whole sectors of aligned memory, durably where the file system can do that at once.
    /// Says whether they are durable; otherwise they are written and a sync is needed.
    pub(super) fn write_durably(&self, offset: u64, bytes: &[u8]) -> Result<bool, DeviceError> {
        debug_assert!(bytes.as_ptr().addr().is_multiple_of(PAGE_BYTES as usize), "aligned memory");
        let Some(direct) = self.direct.as_ref().filter(|_| self.which == DiskFile::Log) else {
            return self.write_all_at(offset, bytes).map(|()| false);
        };
        if self.hook.is_some() {
            // It sees both steps.
            self.write_all_at(offset, bytes)?;
            return self.sync().map(|()| true);
        }
        loop {
            match self
                .ask(DiskOperation::Write { offset, bytes })
                .and_then(|_| direct.write_at(bytes, offset))
            {
                Ok(written) if written == bytes.len() => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // A part was written, or the file system says only now that it cannot do it.
                Ok(_) => return self.write_all_at(offset, bytes).map(|()| false),
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                    return self.write_all_at(offset, bytes).map(|()| false);
                }
                Err(e) => return Err(self.write_error(offset, bytes, e)),
            }
        }
    }

    /// Whether small epochs of the log are one write.
    pub(super) fn writes_durably(&self) -> bool {
        self.direct.is_some() && self.which == DiskFile::Log
    }

    fn write_error(&self, offset: u64, bytes: &[u8], source: io::Error) -> DeviceError {
        if is_no_space(&source) {
            return self.full(offset + bytes.len() as u64);
        }
        let what = format!("write {} bytes at offset {offset} of", bytes.len());
        DeviceError::io(what, &self.path, source)
    }

    fn full(&self, wanted_bytes: u64) -> DeviceError {
        DeviceError::disk_full(&self.path, wanted_bytes)
    }

    pub(super) fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let error = |len: usize, e: io::Error| {
            DeviceError::io(format!("read {len} bytes at offset {offset} of"), &self.path, e)
        };
        loop {
            let len = into.len() as u64;
            match self.ask(DiskOperation::Read { offset, len }) {
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(error(into.len(), e)),
            }
        }
        self.file.read_exact_at(into, offset).map_err(|e| error(into.len(), e))?;
        if let Some(hook) = &self.hook {
            hook.after_read(self.which, offset, into);
        }
        Ok(())
    }

    /// The same, of so many pages, without a copy in the memory of the system where that can be
    /// done: it would take as much memory again.
    pub(super) fn read_pages_at(
        &self,
        offset: u64,
        pages: usize,
        into: &mut PageBuffers,
    ) -> Result<(), DeviceError> {
        let into = into.0[..pages].as_flattened_mut();
        let Some(direct) = self.direct.as_ref().filter(|_| self.hook.is_none()) else {
            return self.read_exact_at(offset, into);
        };
        match direct.read_exact_at(into, offset) {
            // Some file systems say only now that they cannot do it; errors are told as usual.
            Err(_) => self.read_exact_at(offset, into),
            Ok(()) => Ok(()),
        }
    }

    /// Makes everything written durable, together with the length of the file.
    pub(super) fn sync(&self) -> Result<(), DeviceError> {
        loop {
            let result = self.ask(DiskOperation::Sync).and_then(|_| match self.which {
                // On macOS the standard library asks for F_FULLFSYNC, here and there.
                DiskFile::Directory => self.file.sync_all(),
                _ => self.file.sync_data(),
            });
            match result {
                Ok(()) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(DeviceError::io("sync", &self.path, e)),
            }
        }
    }

    /// Extends the file with zeros, backed by space on the device, unless it is long enough. Not
    /// durable before a sync; says whether one is needed.
    pub(super) fn allocate(&self, len: u64) -> Result<bool, DeviceError> {
        let old = self.len()?;
        if len <= old {
            return Ok(false);
        }
        loop {
            let result = self.ask(DiskOperation::Allocate { len }).and_then(|_| {
                rustix::fs::fallocate(&self.file, FallocateFlags::empty(), old, len - old)
                    .map_err(io::Error::from)
            });
            match result {
                Ok(()) => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                    return self.zero(old, len).map(|()| true);
                }
                Err(e) if is_no_space(&e) => return Err(self.full(len)),
                Err(e) => {
                    return Err(DeviceError::io(format!("extend to {len} bytes"), &self.path, e));
                }
            }
        }
    }

    /// Makes the file shorter, or longer with zeros.
    pub(super) fn set_len(&self, len: u64) -> Result<(), DeviceError> {
        self.ask(DiskOperation::Allocate { len }).and_then(|_| self.file.set_len(len)).map_err(
            |e| DeviceError::io(format!("set the length to {len} bytes of"), &self.path, e),
        )
    }

    /// Gives what is behind a length back to the file system. Not durable before a sync: a power
    /// cut leaves the old length or the new one.
    pub(super) fn truncate(&self, len: u64) -> Result<(), DeviceError> {
        let old = self.len()?;
        assert!(len <= old, "a file of {old} bytes is not cut at {len}");
        loop {
            match self.ask(DiskOperation::Truncate { len }).and_then(|_| self.file.set_len(len)) {
                Ok(()) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    return Err(DeviceError::io(format!("cut at {len} bytes"), &self.path, e));
                }
            }
        }
    }

    /// Writes zeros over a range.
    pub(super) fn zero(&self, from: u64, to: u64) -> Result<(), DeviceError> {
        let zeros = vec![0; PIECE_BYTES.min(to.saturating_sub(from) as usize)];
        let mut at = from;
        while at < to {
            let len = zeros.len().min((to - at) as usize);
            self.write_all_at(at, &zeros[..len])?;
            at += len as u64;
        }
        Ok(())
    }

    /// Asks the hook whether another file of the directory may be created.
    pub(super) fn may_create(&self, which: DiskFile) -> io::Result<()> {
        let operation = DiskOperation::Open { write: true, create: true };
        ask(self.hook.as_ref(), which, operation).map(drop)
    }

    /// Asks the hook. A child of `fork` has the file, too, and must not change it: its parent goes
    /// on, and knows nothing of what the child did.
    #[inline]
    fn ask(&self, operation: DiskOperation<'_>) -> io::Result<Option<usize>> {
        if !self.process.is_here() && !matches!(operation, DiskOperation::Read { .. }) {
            let what = "it was opened by the process of which this one is a fork";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        ask(self.hook.as_ref(), self.which, operation)
    }
}

/// Asks the hook; `Some` is the length of a short write.
#[inline]
fn ask(
    hook: Option<&Arc<dyn DiskHook>>,
    file: DiskFile,
    operation: DiskOperation<'_>,
) -> io::Result<Option<usize>> {
    let Some(hook) = hook else { return Ok(None) };
    match hook.before(&DiskCall { file, operation }) {
        Outcome::Proceed => Ok(None),
        Outcome::Fail(number) => Err(io::Error::from_raw_os_error(number)),
        Outcome::Short(len) => Ok(Some(len)),
    }
}

/// Opens a file for direct I/O, if it is of use; `None` also where the file system cannot.
#[cfg(not(target_os = "linux"))]
fn open_direct(_: DiskFile, _: &Path, _: bool) -> Option<File> {
    None
}

/// Opens a file for direct I/O, if it is of use; `None` also where the file system cannot. Of the
/// log such writes are durable.
#[cfg(target_os = "linux")]
fn open_direct(which: DiskFile, path: &Path, write: bool) -> Option<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;

    let flags = match which {
        DiskFile::Data => OFlags::DIRECT,
        DiskFile::Log => OFlags::DIRECT | OFlags::DSYNC,
        DiskFile::Meta
        | DiskFile::Table
        | DiskFile::Replay
        | DiskFile::Directory
        | DiskFile::Openings => return None,
    };
    OpenOptions::new().read(true).write(write).custom_flags(flags.bits() as i32).open(path).ok()
}

/// Whether a write may be direct: aligned to pages in the file and in memory, and
/// long enough to be worth it.
fn can_be_direct(offset: u64, bytes: &[u8]) -> bool {
    let is_aligned = |place: u64| place.is_multiple_of(PAGE_BYTES);
    bytes.len() >= DIRECT_BYTES_MIN
        && is_aligned(offset)
        && is_aligned(bytes.len() as u64)
        && is_aligned(bytes.as_ptr().addr() as u64)
}

/// The files of a database directory, held open together.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) meta: DiskHandle,
    pub(super) data: DiskHandle,
    pub(super) table: DiskHandle,
    pub(super) log: DiskHandle,
    pub(super) directory: DiskHandle,
    /// The directory's name, whatever the current directory is.
    pub(super) place: PathBuf,
    /// Those of `meta` and of the directory, or a pin; released last.
    pub(super) _locks: Vec<Locked>,
}

impl Files {
    /// Checks that the directory and the files still are what their names stand for: no open will
    /// find what is written to one that was removed or replaced.
    pub(super) fn check_place(&self) -> Result<(), DeviceError> {
        let Self { meta, data, table, log, directory, place, .. } = self;
        directory.check_name(place)?;
        let mut files = [meta, data, table, log].into_iter();
        files.try_for_each(|file| file.check_name(&place.join(file.which.name())))
    }
}
