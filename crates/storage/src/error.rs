//! What can go wrong with a store, in the kinds that callers tell apart.

use pmem::DeviceError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, StorageError>;

/// Why a store could not be opened, read or extended.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The input log is damaged or full.
    #[error(transparent)]
    Log(#[from] crate::input_log::LogError),
    /// There is no store here.
    #[error("no store here: {0}")]
    Missing(String),
    /// The bytes are not those of a store of this format.
    #[error("not a store of this format: {0}")]
    Foreign(String),
    /// The bytes were once ours and are no longer right.
    #[error("corrupt store: {0}")]
    Corrupt(String),
    /// A table is stored in a way that cannot become what was asked for.
    #[error("{0}")]
    OtherTable(String),
    /// An option or a declaration is beyond a limit.
    #[error("{0}")]
    Limit(String),
}

impl StorageError {
    /// Whether data on the device is damaged.
    pub fn is_corrupt(&self) -> bool {
        match self {
            Self::Corrupt(_) => true,
            Self::Log(error) => error.is_corrupt(),
            Self::Device(error) => error.is_corrupt(),
            _ => false,
        }
    }

    /// Whether space or another limit is exhausted.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Limit(_) => true,
            Self::Log(error) => error.is_limit(),
            Self::Device(error) => error.is_limit(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::EpochNumber;
    use crate::input_log::LogError;

    fn full() -> DeviceError {
        DeviceError::Full { what: "image".into(), wanted_bytes: 2, limit_bytes: Some(1) }
    }

    fn corrupt() -> DeviceError {
        DeviceError::Corrupt { path: "image".into(), what: "damaged".into() }
    }

    /// Callers tell the kinds apart, through whatever layer an error came.
    #[test]
    fn each_error_is_of_one_kind() {
        let lost = LogError::Lost { last: EpochNumber(3), what: "epoch 4".into() };
        for (error, is_corrupt, is_limit) in [
            (StorageError::Corrupt("a".into()), true, false),
            (StorageError::Limit("a".into()), false, true),
            (StorageError::Missing("a".into()), false, false),
            (StorageError::Foreign("a".into()), false, false),
            (StorageError::OtherTable("a".into()), false, false),
            (full().into(), false, true),
            (corrupt().into(), true, false),
            (LogError::Device(full()).into(), false, true),
            (LogError::Device(corrupt()).into(), true, false),
            (lost.into(), true, false),
        ] {
            assert_eq!((error.is_corrupt(), error.is_limit()), (is_corrupt, is_limit), "{error}");
        }
    }
}
