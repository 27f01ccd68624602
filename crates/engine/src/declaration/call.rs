//! One call of a worker's lists.

use storage::Position;

use super::{Declarations, Declared, Extra, Member, PieceState, Span};
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

    /// The key of one of its pieces.
    pub(crate) fn declared_of(&self, piece: &PieceState) -> &'d Declared {
        &self.lists.declared[piece.declared as usize]
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
