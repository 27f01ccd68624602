//! An entry of a secondary index, and its key.

use storage::EpochNumber;

/// A row in an index. Its key there is followed by the row's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Bytes of the key in the index.
    pub(crate) prefix: u16,
    /// The epoch since which it is there.
    pub(crate) since: EpochNumber,
}

/// An entry that was removed, for snapshots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removed {
    pub(crate) entry: IndexEntry,
    /// The epoch that took it out.
    pub(super) until: EpochNumber,
}

/// The key of an entry.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryKey {
    pub(crate) bytes: Box<[u8]>,
    /// How much of it is that of the index.
    pub(crate) prefix: u16,
}
