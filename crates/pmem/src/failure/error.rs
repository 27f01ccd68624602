//! What can go wrong with a device, said so that the operator knows what to do.

use std::{io, path::Path, path::PathBuf};

/// An error of a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A configured limit or the file system leaves no room. Nothing was changed; the caller may go
    /// on.
    #[error("{}", full(what, *wanted_bytes, *limit_bytes))]
    Full {
        /// What is full: a space of the device, or the file system behind a file.
        what: String,
        /// The size that was asked for.
        wanted_bytes: u64,
        /// The configured limit; `None` if it is the disk that is full.
        limit_bytes: Option<u64>,
    },
    /// The operating system refused an operation.
    #[error("cannot {what} {path}: {source}", path = .path.display())]
    Io {
        /// The operation, as a verb: `write 4096 bytes at offset 0 of`.
        what: String,
        /// The file.
        path: PathBuf,
        /// The reason given by the operating system.
        source: io::Error,
    },
    /// An earlier write or sync failed, so nothing that follows can be trusted (obligation O-57).
    #[error(
        "the device failed earlier and accepts nothing more until the store is opened again: \
         {first}"
    )]
    Sticky {
        /// The text of the first failure.
        first: String,
    },
    /// The device cannot promise what it is for on this machine or file system.
    #[error("refused: {0}")]
    Refused(String),
    /// Another process (or another handle of this one) has the database open (obligation O-52).
    #[error(
        "{path} is locked: {who} has this database open; close it or choose another path",
        path = .path.display(),
        who = if *.is_own { "this process already" } else { "another process" }
    )]
    Locked {
        /// The locked file.
        path: PathBuf,
        /// Whether it is this process that has it open.
        is_own: bool,
    },
    /// The database was opened to be looked at only.
    #[error("{path} was opened to be read only, so nothing can be changed", path = .path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// There is no database here, and the caller did not ask to create one.
    #[error("{path} holds no database: create one or check the path", path = .path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A load into this database was cut short: it holds a part of what was to be loaded.
    #[error(
        "{path} holds a part of what was to be loaded: a load into it was cut short; run \
         `nvcaracal load` with the same files again",
        path = .path.display()
    )]
    Unfinished {
        /// The database.
        path: PathBuf,
    },
    /// There is something where a new directory is to be.
    #[error(
        "{path} {what}: choose a new directory for the copy",
        path = .path.display()
    )]
    InTheWay {
        /// The place.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// Something was to be made inside of a database directory.
    #[error(
        "{path} is inside of the database {database}: choose a place outside of it",
        path = .path.display(), database = .database.display()
    )]
    Inside {
        /// The place.
        path: PathBuf,
        /// The directory of the database.
        database: PathBuf,
    },
    /// Another copy of this database is being made.
    #[error(
        "{path} is being copied already, by another backup: wait for its end",
        path = .path.display()
    )]
    Copying {
        /// The directory.
        path: PathBuf,
    },
    /// The database changed faster than it was copied.
    #[error(
        "{path} changed while it was copied, in more places than it has room to keep: copy it \
         again when less is written",
        path = .path.display()
    )]
    Outrun {
        /// The directory.
        path: PathBuf,
    },
    /// The file belongs to something else: another program, another database, or a newer format.
    #[error("{path} is not ours: {what}", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        what: String,
    },
    /// The file is ours but damaged.
    #[error("{path} is corrupt: {what}", path = .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        what: String,
    },
}

impl DeviceError {
    /// Whether space ran out; a smaller request may succeed.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// Whether what is on the device cannot be used as it is.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Foreign { .. } | Self::Corrupt { .. } | Self::Unfinished { .. })
    }

    /// Whether another process has the database open.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self, Self::Locked { .. })
    }

    /// Whether this device cannot be used on this machine or file system at all.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    pub(crate) fn io(what: impl Into<String>, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { what: what.into(), path: path.to_path_buf(), source: source.into() }
    }

    /// The disk has no room for a file of so many bytes.
    pub(crate) fn disk_full(path: &Path, wanted_bytes: u64) -> Self {
        let what = format!("the file system of {}", path.display());
        Self::Full { what, wanted_bytes, limit_bytes: None }
    }

    pub(crate) fn corrupt(path: &Path, what: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_path_buf(), what: what.into() }
    }

    pub(crate) fn foreign(path: &Path, what: impl Into<String>) -> Self {
        Self::Foreign { path: path.to_path_buf(), what: what.into() }
    }
}

/// Whether an error of the operating system says that there is no room, as opposed to a failure.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The text of [`DeviceError::Full`].
fn full(what: &str, wanted_bytes: u64, limit_bytes: Option<u64>) -> String {
    match limit_bytes {
        Some(limit_bytes) => format!(
            "{what} has no room for {wanted_bytes} bytes (limit {limit_bytes} bytes): raise the \
             limit or free space"
        ),
        None => format!(
            "the disk is full: {what} has no room for {wanted_bytes} bytes: free space on it"
        ),
    }
}
