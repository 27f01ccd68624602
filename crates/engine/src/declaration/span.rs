//! Ranges of lists.

use std::ops::Range;

/// A range of a worker's list.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Span {
    pub(crate) const EMPTY: Self = Self { from: 0, to: 0 };

    /// From one length of a list up to another.
    pub(crate) fn up_to(from: usize, to: usize) -> Self {
        Self { from: from as u32, to: to as u32 }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.from as usize..self.to as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.from == self.to
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        (self.to - self.from) as usize
    }
}
