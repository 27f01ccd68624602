//! What can go wrong with a run, in the kinds that end in different exit codes.

use std::path::{Path, PathBuf};

use engine::EngineError;
use pmem::DeviceError;
use storage::StorageError;

/// Why a command could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The options contradict each other, a limit, or the store they are used on.
    #[error("{0}")]
    Usage(String),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The library.
    #[error(transparent)]
    Library(#[from] nvcaracal::Error),
    /// The directory or the acknowledgement log is not what this run needs.
    #[error("{0}")]
    Store(String),
    /// The operating system refused an operation.
    #[error("cannot {what} {path}: {source}", path = .path.display())]
    Io {
        /// The operation, as a verb.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason given by the operating system.
        source: std::io::Error,
    },
    /// The engine and the serial oracle do not agree, or something acknowledged was lost.
    #[error("verification failed: {0}")]
    Difference(String),
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, BenchError>;

impl BenchError {
    /// Whether other options would help; everything else is a failure of the run.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }

    /// Whether data on the device is damaged or foreign.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        match self {
            Self::Engine(EngineError::Storage(StorageError::Device(e))) => e.is_corrupt(),
            Self::Engine(EngineError::Storage(StorageError::Foreign(_))) => true,
            Self::Engine(e) => e.is_corrupt(),
            Self::Library(e) => e.is_corrupt(),
            _ => false,
        }
    }

    /// Whether another process has the store open.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        match self {
            Self::Engine(EngineError::Storage(StorageError::Device(DeviceError::Locked {
                ..
            }))) => true,
            Self::Library(e) => e.is_locked(),
            _ => false,
        }
    }

    /// Whether there is no store.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Engine(EngineError::Storage(
                StorageError::Device(DeviceError::Missing { .. }) | StorageError::Missing(_)
            ))
        )
    }

    /// The operating system refused an operation on a file.
    #[must_use]
    pub fn io(what: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { what, path: path.to_path_buf(), source }
    }
}

impl From<DeviceError> for BenchError {
    fn from(error: DeviceError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<StorageError> for BenchError {
    fn from(error: StorageError) -> Self {
        Self::Engine(error.into())
    }
}
