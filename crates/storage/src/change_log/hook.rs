//! What tests see of the change log's calls to the file system.

use std::fmt::Debug;
use std::io;

/// A call that the change log is about to make, or has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeLogCall {
    /// A record is about to be appended.
    Append,
    /// The last file is about to be synced.
    Sync,
    /// All files are durable as they are.
    Synced,
}

/// Watches the calls of a change log, for tests.
pub trait ChangeLogHook: Debug + Send + Sync {
    /// Called at `call`.
    ///
    /// # Errors
    /// What the call is to fail with.
    fn reach(&self, call: ChangeLogCall) -> io::Result<()>;
}
