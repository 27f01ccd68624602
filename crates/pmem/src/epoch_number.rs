//! The number of an epoch, which every layer counts in.

use std::fmt::{Display, Formatter};

/// The number of an epoch. Epochs count from 1; 0 is the state of an empty store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EpochNumber(pub u64);

impl EpochNumber {
    /// Before the first epoch.
    pub const ZERO: Self = Self(0);

    /// The epoch after this one.
    #[inline]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The epoch before this one; that of [`EpochNumber::ZERO`] is itself.
    #[inline]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl Display for EpochNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
