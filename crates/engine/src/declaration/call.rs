//! One call of a worker's lists.

use storage::{Position, TableId};

use super::{Declarations, Declared, DeclaredRange, Extra, Member, PieceState, Span};
use crate::call::answers::Failure;
use crate::version::Access;

/// One call and the lists that its spans refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallView<'d> {
    pub(crate) lists: &'d Declarations,
    pub(crate) position: Position,
    pub(crate) declared: &'d [Declared],
    pub(crate) extra: &'d Extra,
    /// What is known of the rows that it declared by key; empty where there was no look-up.
    pub(crate) plan: &'d [Access],
}

impl<'d> CallView<'d> {
    /// A call of a worker's list.
    #[inline]
    pub(crate) fn new(lists: &'d Declarations, index: usize, plan: &'d [Access]) -> Self {
        let txn = &lists.txns[index];
        let declared = &lists.declared[txn.declared.range()];
        Self { lists, position: txn.position, declared, extra: lists.extra(txn), plan }
    }

    /// What is known of a row: of the declared key with a number.
    #[inline]
    pub(crate) fn access(&self, number: usize) -> Access {
        self.plan.get(number).copied().unwrap_or(Access::UNKNOWN)
    }

    #[inline]
    pub(crate) fn members(&self) -> &'d [Member] {
        &self.lists.members[self.extra.members.range()]
    }

    pub(crate) fn pieces(&self) -> &'d [PieceState] {
        &self.lists.pieces[self.extra.pieces.range()]
    }

    /// The key of the row of one of its pieces that may be contended.
    pub(crate) fn declared_of(&self, piece: &PieceState) -> &'d Declared {
        &self.lists.declared[piece.declared as usize]
    }

    /// All keys of one of its pieces, that one first.
    pub(crate) fn keys_of(
        &self,
        piece: &PieceState,
    ) -> impl Iterator<Item = &'d Declared> + Clone + use<'d> {
        let lists = self.lists;
        let others = &lists.piece_keys[piece.keys.range()];
        let all = std::iter::once(piece.declared).chain(others.iter().copied());
        all.map(|at| &lists.declared[at as usize])
    }

    /// The rows of the ranges of one of its pieces.
    pub(crate) fn members_of(&self, piece: &PieceState) -> &'d [Member] {
        &self.lists.piece_members[piece.members.range()]
    }

    /// Whether a range covers a key that its body declared ([`NO_PIECE`]) or one of its pieces.
    pub(crate) fn is_in_range(&self, piece: u32, table: TableId, key: &[u8]) -> bool {
        self.ranges_around(table, key).any(|range| range.piece == piece)
    }

    /// The declared ranges that cover a key.
    pub(crate) fn ranges_around(
        &self,
        table: TableId,
        key: &[u8],
    ) -> impl Iterator<Item = &'d DeclaredRange> {
        let ranges = &self.lists.ranges[self.extra.ranges.range()];
        ranges.iter().filter(move |range| {
            range.table == table && self.key(range.low) <= key && key < self.key(range.high)
        })
    }

    /// A declared key; `room` is for one that is a word.
    pub(crate) fn key_of<'k>(&self, of: &Declared, room: &'k mut [u8; 8]) -> &'k [u8]
    where
        'd: 'k,
    {
        self.lists.key_of(of, room)
    }

    pub(crate) fn key(&self, span: Span) -> &'d [u8] {
        &self.lists.keys[span.range()]
    }

    /// The answer to a call whose declaration ended it.
    pub(crate) fn early(&self) -> Option<&'d Failure> {
        if !self.extra.ends_early {
            return None;
        }
        let early = &self.lists.early;
        let at = early.binary_search_by_key(&self.position, |&(position, _)| position);
        assert!(at.is_ok(), "call {} ended early, without an answer", self.position);
        at.ok().map(|at| &early[at].1)
    }
}
