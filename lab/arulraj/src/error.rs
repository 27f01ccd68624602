//! Why an engine cannot go on.

use pmem::DeviceError;

/// Why an engine cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// What the device holds is no store of this engine with these tables.
    #[error("{0}")]
    Corrupt(String),
    /// Something is larger than the engine was made for.
    #[error("{0}")]
    Limit(String),
}

/// Whatever stops an engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;
