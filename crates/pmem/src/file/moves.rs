//! How many pages a snapshot moves to the front of the file.

/// A snapshot moves so many pages, and one for each so many that it writes.
const MOVED_PAGES: u64 = 256;
const MOVED_PART: u64 = 8;

/// How many pages a snapshot may move, and how much room it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moves {
    /// At most so many pages.
    pub(super) most: u64,
    /// Whether the store is open, so that the snapshots to come need room.
    pub(super) is_open: bool,
}

impl Moves {
    /// Those beside so many pages that are written anyway: few, so that a checkpoint writes little
    /// more than what has changed.
    pub(super) fn beside(pages: u64) -> Self {
        let most = if pages == 0 { 0 } else { MOVED_PAGES + pages / MOVED_PART };
        Self { most, is_open: true }
    }

    /// So many, and no room is left.
    pub(super) fn all_but_room(most: u64) -> Self {
        Self { most, is_open: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_moves_few_pages_beside_many_and_none_beside_none() {
        let most = [0, 1, 8, 80, 8000].map(|pages| Moves::beside(pages).most);
        assert_eq!(most, [0, 256, 257, 266, 1256]);
        assert!(Moves::beside(1).is_open && !Moves::all_but_room(1).is_open);
    }
}
