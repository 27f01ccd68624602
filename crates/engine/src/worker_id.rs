//! The number of a worker, which every layer of the engine counts in.

use std::fmt::{Display, Formatter};

/// Most workers.
pub const WORKERS_MAX: usize = storage::format::SUB_POOLS;

/// A worker of an engine, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct WorkerId(pub(crate) u32);

impl WorkerId {
    /// The first worker, which also does what is done once.
    pub(crate) const LEADER: Self = Self(0);

    /// The worker with a place in a list of all workers.
    #[inline]
    pub(crate) const fn from_index(index: usize) -> Self {
        Self(index as u32)
    }

    /// The worker's place in a list of all workers.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Display for WorkerId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
