//! Names of the files of engines: a kind, and a number that tells files of a kind apart.

const NUMBER_BITS: u32 = 32;

/// What a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Wal = 1,
    Checkpoint = 2,
    Table = 3,
    Manifest = 4,
    Pages = 5,
}

impl FileKind {
    /// The name of the file with a number.
    pub(super) fn name(self, number: u64) -> u64 {
        debug_assert!(number >> NUMBER_BITS == 0);
        (self as u64) << NUMBER_BITS | number
    }

    /// Whether that is the name of such a file.
    pub(super) fn has(self, name: u64) -> bool {
        name >> NUMBER_BITS == self as u64
    }
}

/// The number in a name.
pub(super) fn number_of(name: u64) -> u64 {
    name & ((1 << NUMBER_BITS) - 1)
}
