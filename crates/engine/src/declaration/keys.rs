//! What one call may name: keys, ranges, the rows in them, and what it read to find them.

use storage::TableId;

use super::Span;
use crate::index::EntryId;

/// What a declaration says about a key. Bits tell what that means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum DeclaredKind {
    /// Only a hint.
    Read = 0,
    /// May be updated or deleted if it exists.
    Update = 1,
    /// May be inserted, too.
    Insert = Self::INSERTS,
    /// May be updated or deleted by a piece of the call, and be written by nothing else.
    PieceUpdate = Self::OF_PIECE | 1,
    /// May be inserted by it, too.
    PieceInsert = Self::OF_PIECE | Self::INSERTS,
}

impl DeclaredKind {
    const INSERTS: u8 = 2;
    const OF_PIECE: u8 = 4;

    /// Whether a row is made for the key if there is none.
    #[inline]
    pub(crate) fn inserts(self) -> bool {
        self as u8 & Self::INSERTS != 0
    }

    /// Whether the row belongs to a piece of the call.
    #[inline]
    pub(crate) fn is_of_piece(self) -> bool {
        self as u8 & Self::OF_PIECE != 0
    }

    /// Whether the body of the call may write the row.
    #[inline]
    pub(crate) fn is_of_body(self) -> bool {
        matches!(self, Self::Update | Self::Insert)
    }
}

/// No row has the key.
pub(crate) const NO_ENTRY: EntryId = EntryId(u32::MAX);

/// One declared key of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Declared {
    /// Word of the hash index.
    pub(crate) word: u64,
    /// Key bytes in the worker's list.
    pub(crate) key: Span,
    pub(crate) table: TableId,
    pub(crate) kind: DeclaredKind,
    /// All of the key is in the word.
    pub(crate) is_word: bool,
    /// This call created the row, so its pending version is there already.
    pub(crate) appended: bool,
    /// Row entry, once it is looked up; [`NO_ENTRY`] if there is none.
    pub(crate) id: EntryId,
}

/// The body of a call.
pub(crate) const NO_PIECE: u32 = u32::MAX;

/// One declared range of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeclaredRange {
    pub(crate) table: TableId,
    /// The piece of the call to which its rows belong, by number; [`NO_PIECE`]: the body.
    pub(crate) piece: u32,
    pub(crate) low: Span,
    pub(crate) high: Span,
}

/// A row that a declared range covers, found in the append step. Sorted, so that it is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) table: TableId,
    /// The first 8 bytes of the key.
    pub(crate) word: u64,
    pub(crate) id: EntryId,
}

/// What reconnaissance read, so that it can be checked again at execution (O-10).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lookup {
    /// A row.
    Row(EntryId),
    /// A key that had no row.
    NoRow { table: TableId, key: Span },
    /// The rows from `low` up to, and without, `high`.
    Scan {
        table: TableId,
        low: Span,
        high: Span,
        is_descending: bool,
        /// Rows visited before the visitor had enough; `u64::MAX`: all.
        visited: u64,
        /// Hash of everything that was seen.
        fingerprint: u64,
    },
    /// The entries of a secondary index from `low` up to, and without, `high`.
    Index {
        index: u16,
        low: Span,
        high: Span,
        is_descending: bool,
        /// As of a scan.
        visited: u64,
        /// As of a scan.
        fingerprint: u64,
    },
}
