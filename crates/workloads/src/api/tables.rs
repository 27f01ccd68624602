//! What an engine must know of the tables of a workload.

/// A table of a workload: its position in [`Workload::tables`](crate::Workload::tables).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u16);

/// How rows of a table are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// Point reads only.
    Hash,
    /// Point reads and scans in both directions.
    Ordered,
    /// Not rows but a family of sequences, each named by an 8-byte key, allocated with
    /// [`Allocate::allocate`](crate::Allocate::allocate). The first call that allocates from a
    /// sequence gets 0.
    Sequence,
}

/// What an engine must know of a table before it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    /// Unique name.
    pub name: &'static str,
    /// How rows are found.
    pub index: IndexKind,
    /// Longest key in bytes. Exactly 8 means that every key has 8 bytes.
    pub key_bytes_max: u32,
    /// Longest value in bytes.
    pub value_bytes_max: u32,
}
