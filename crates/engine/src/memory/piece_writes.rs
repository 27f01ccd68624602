//! What a running piece has written, before it is published.

use crate::declaration::Span;
use crate::version::ValueWord;

/// The private writes of a running piece, by its keys, the one that may be contended first, then by
/// members of its ranges.
#[derive(Debug, Default)]
pub(crate) struct PieceWrites {
    pub(crate) writes: Vec<PieceWrite>,
    /// Where values are.
    pub(crate) values: Vec<u8>,
}

impl PieceWrites {
    /// A piece with so many rows begins.
    pub(crate) fn begin(&mut self, rows: usize) {
        self.writes.clear();
        self.writes.resize(rows, PieceWrite::None);
        self.values.clear();
    }

    /// A value that was written.
    pub(crate) fn value(&self, span: Span) -> &[u8] {
        &self.values[span.range()]
    }

    /// Keeps a value.
    pub(crate) fn keep(&mut self, value: &[u8]) -> Span {
        let from = self.values.len();
        self.values.extend_from_slice(value);
        Span::up_to(from, self.values.len())
    }
}

/// What a piece has done to one of its rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PieceWrite {
    /// Nothing.
    None,
    /// Given it a value.
    Value(Span),
    /// Replaced lines of the value that it saw, from an offset on.
    Lines { seen: ValueWord, at: u32, lines: Span },
    /// Deleted it.
    Tombstone,
}
