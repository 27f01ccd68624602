//! What can go wrong with an engine, in the kinds that callers tell apart.

use storage::{EpochNumber, Position, StorageError};

/// Why an engine could not open or could not run an epoch.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store, its device or its log.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A declaration, an option or a batch is beyond a limit; nothing was logged or executed.
    #[error("{0}")]
    Limit(String),
    /// The log was written by a program to which its calls do not mean the same. Nothing was
    /// changed.
    #[error(
        "the input log has calls of another program, which must be replayed first: {0}; keep what \
         they need in the program, or open the store once with the program that wrote it and close \
         it"
    )]
    OtherProgram(String),
    /// The rows of a table are not what the program takes them for. Nothing was changed.
    #[error(
        "{0}: declare the new type as a version of the one that is stored, or give the table \
         another name"
    )]
    OtherTypes(String),
    /// The store has what the program neither has nor gives up. Nothing was changed.
    #[error(
        "the store was opened by a program that this one does not know: {0}; or deploy that \
         program again"
    )]
    NotKnown(String),
    /// A replay came to another state than the one that was answered. Nothing was changed that
    /// counts.
    #[error(
        "replay of epoch {epoch} comes to another state than the one that was answered: {what}; a \
         procedure was changed, or is not deterministic: give what was changed another version and \
         keep the one before, or open the store once with the program that wrote it and close it"
    )]
    OtherPast {
        /// The epoch that was replayed.
        epoch: EpochNumber,
        /// Which states, and which procedures ran.
        what: String,
    },
    /// A call failed in replay when it was too late to take its writes back.
    #[error(
        "replay of epoch {epoch} is stopped by call {position}: {what}; if the program is the one \
         that wrote the store, and the epoch was never answered, leave the call out with \
         `nvcaracal recover --skip-call {epoch}:{position} PATH`"
    )]
    StuckCall {
        /// The epoch.
        epoch: EpochNumber,
        /// Position of the call in it.
        position: Position,
        /// Procedure, arguments and what happened.
        what: String,
    },
    /// A snapshot needed more memory than there is for all of them.
    #[error(
        "the snapshot of epoch {epoch} has ended: what was overwritten since would take more than \
         the {bytes_max} bytes of snapshot_bytes_max; take another one, or raise the limit"
    )]
    SnapshotEnded {
        /// Epoch of the snapshot.
        epoch: EpochNumber,
        /// The limit, for all snapshots.
        bytes_max: u64,
    },
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
    /// Whether data on the device is damaged.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Storage(e) if e.is_corrupt())
    }

    /// Whether space or another limit is exhausted; nothing was lost or half-done.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Limit(_) | Self::SnapshotEnded { .. } => true,
            Self::Storage(e) => e.is_limit(),
            _ => false,
        }
    }
}

/// Result of this crate.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// What is said about a mistake, behind one thin pointer: so a [`Stop`](crate::Stop) comes back in
/// registers, and what has room for one is not copied in halves that were written apart, which a
/// processor waits for.
pub(crate) type Words = Box<String>;

/// The first bytes of arguments or of a value, for messages.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    let shown: String = bytes.iter().take(BYTES_MAX).map(|byte| format!("{byte:02x}")).collect();
    match bytes.len() {
        0 => "none".into(),
        len if len <= BYTES_MAX => shown,
        len => format!("{shown}... ({len} bytes)"),
    }
}
