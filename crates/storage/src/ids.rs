//! Identifiers that the format and every layer above it share.

use std::fmt::{Display, Formatter};

pub use pmem::EpochNumber;

/// A table: its position in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TableId(pub u16);

impl TableId {
    /// The table as a position in a list of all tables.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Display for TableId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of a call in its epoch: the low part of its [`crate::SerialId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Position(pub u32);

impl Position {
    /// Behind the last call of any epoch.
    pub const END: Self = Self(u32::MAX);

    /// The position of a call in a list of the epoch's calls.
    #[inline]
    pub const fn from_index(index: usize) -> Self {
        Self(index as u32)
    }

    /// The position behind this one.
    #[inline]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The position as an index into a list of the epoch's calls.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
