//! What can go wrong with an engine, in the kinds that callers tell apart.

use storage::StorageError;

/// Why an engine could not open or could not run an epoch.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store, its device or its log.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A declaration, an option or a batch is beyond a limit; nothing was logged or executed.
    #[error("{0}")]
    Limit(String),
    /// The log was written with other procedures than are registered now.
    #[error(
        "the input log was written with other procedures ({0}); register the same ones in the \
         same order, new ones at the end, and open again"
    )]
    UnknownProcedure(String),
    /// A worker failed; the engine is stopped and must be opened again (O-50).
    #[error("stopped: {0}; open the store again to recover")]
    Poisoned(String),
}

impl From<pmem::DeviceError> for EngineError {
    fn from(error: pmem::DeviceError) -> Self {
        Self::Storage(StorageError::Device(error))
    }
}

impl From<storage::input_log::LogError> for EngineError {
    fn from(error: storage::input_log::LogError) -> Self {
        Self::Storage(StorageError::Log(error))
    }
}

impl EngineError {
    /// Whether data on the medium is damaged.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Storage(e) if e.is_corrupt())
    }

    /// Whether space or another limit is exhausted; nothing was lost or half-done.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Limit(_) => true,
            Self::Storage(e) => e.is_limit(),
            _ => false,
        }
    }
}

/// Result of this crate.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;
