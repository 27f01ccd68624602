//! The bytes of both spaces, and which space is meant.

use super::adversary::SpaceKind;
use crate::memory::{Memory, PAGE_BYTES, Space};

impl Memory {
    /// The space of a kind.
    pub(super) fn space(&self, kind: SpaceKind) -> &Space {
        match kind {
            SpaceKind::Image => &self.image,
            SpaceKind::Log => &self.log,
        }
    }
}

/// The usable bytes of both spaces.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Contents {
    pub(super) image: Vec<u8>,
    pub(super) log: Vec<u8>,
}

impl Contents {
    /// What a memory holds. Its device makes every store under a lock that the caller holds.
    pub(super) fn of(memory: &Memory) -> Self {
        let bytes = |space: &Space| {
            // SAFETY: mapped, and not stored to, because the caller holds the lock.
            unsafe { space.mapping.slice(0, space.usable.bytes()) }.to_vec()
        };
        Self { image: bytes(&memory.image), log: bytes(&memory.log) }
    }

    pub(super) fn space(&self, kind: SpaceKind) -> &Vec<u8> {
        match kind {
            SpaceKind::Image => &self.image,
            SpaceKind::Log => &self.log,
        }
    }

    pub(super) fn space_mut(&mut self, kind: SpaceKind) -> &mut Vec<u8> {
        match kind {
            SpaceKind::Image => &mut self.image,
            SpaceKind::Log => &mut self.log,
        }
    }

    /// The bytes of a page; those past the end of the space are zero.
    pub(super) fn page(&self, kind: SpaceKind, page: u64) -> &[u8] {
        const ZERO: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];
        let start = (page * PAGE_BYTES) as usize;
        self.space(kind).get(start..start + ZERO.len()).unwrap_or(&ZERO)
    }
}
