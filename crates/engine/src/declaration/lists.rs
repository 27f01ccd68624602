//! The lists of what the calls of one worker declared, and which parts of them are a call's.

use std::ops::Range;

use storage::Position;

use super::{Allocation, Declared, DeclaredRange, IndexWriters, Lookup, Member, PieceState, Span};
use crate::call::answers::Failure;
use crate::declaration::demand::Decided;

/// What the calls of one worker declared. The worker fills it in the initialization phase; in the
/// execution phase all workers read it, because others may run the calls.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) txns: Vec<Txn>,
    pub(crate) extras: Vec<Extra>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) declared: Vec<Declared>,
    /// Which of the declared keys may be inserted.
    pub(crate) inserts: Vec<u32>,
    pub(crate) ranges: Vec<DeclaredRange>,
    pub(crate) members: Vec<Member>,
    pub(crate) lookups: Vec<Lookup>,
    pub(crate) pieces: Vec<PieceState>,
    /// Which of the declared keys belong to pieces, besides the rows that may be contended.
    pub(crate) piece_keys: Vec<u32>,
    /// Rows of declared ranges that belong to pieces.
    pub(crate) piece_members: Vec<Member>,
    /// Calls that may change a secondary index.
    pub(crate) index_writers: IndexWriters,
    /// Key bytes of tables whose keys are not words, and range bounds.
    pub(crate) keys: Vec<u8>,
    /// What calls of the serial part wrote to tables whose values may not be inline.
    pub(crate) decided: Decided,
    /// Answers to the calls whose declaration ended them, by position, in order.
    pub(crate) early: Vec<(Position, Failure)>,
}

impl Declarations {
    /// What some calls declared that follow each other.
    #[inline]
    pub(crate) fn declared_by(&self, calls: Range<usize>) -> Range<usize> {
        match &self.txns[calls] {
            [] => 0..0,
            [only] => only.declared.range(),
            [first, .., last] => first.declared.from as usize..last.declared.to as usize,
        }
    }

    /// What else a call declared.
    #[inline]
    pub(crate) fn extra(&self, txn: &Txn) -> &Extra {
        match txn.extra {
            Txn::NO_EXTRA => Extra::NONE,
            extra => &self.extras[extra as usize],
        }
    }

    /// Forgets the epoch before and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.txns.clear();
        self.extras.clear();
        self.allocations.clear();
        self.declared.clear();
        self.inserts.clear();
        self.ranges.clear();
        self.members.clear();
        self.lookups.clear();
        self.pieces.clear();
        self.piece_keys.clear();
        self.piece_members.clear();
        self.index_writers.clear();
        self.keys.clear();
        self.early.clear();
        self.decided.clear();
    }

    /// Forgets what a call declared that ends early, from these places of the lists on.
    pub(crate) fn forget_from(
        &mut self,
        declared: usize,
        inserts: usize,
        ranges: usize,
        pieces: usize,
    ) {
        debug_assert!(declared <= self.declared.len(), "keys of calls before stay declared");
        debug_assert!(pieces <= self.pieces.len(), "pieces of calls before stay declared");
        self.declared.truncate(declared);
        self.inserts.truncate(inserts);
        self.ranges.truncate(ranges);
        if let Some(first) = self.pieces.get(pieces) {
            self.piece_keys.truncate(first.keys.from as usize);
        }
        self.pieces.truncate(pieces);
    }

    /// A declared key; `room` is for one that is a word.
    pub(crate) fn key_of<'k>(&'k self, of: &Declared, room: &'k mut [u8; 8]) -> &'k [u8] {
        if !of.is_word {
            return &self.keys[of.key.range()];
        }
        *room = of.word.to_be_bytes();
        room
    }

    /// Copies key bytes.
    pub(crate) fn keep_key(&mut self, key: &[u8]) -> Span {
        let from = self.keys.len() as u32;
        self.keys.extend_from_slice(key);
        Span { from, to: self.keys.len() as u32 }
    }
}

/// One call of the epoch. The spans of a worker's calls lie one after the other.
///
/// Every phase goes through all of them, so what few calls have lies apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Txn {
    pub(crate) position: Position,
    pub(crate) declared: Span,
    /// Which of [`Declarations::extras`]; [`Txn::NO_EXTRA`]: it has none.
    pub(crate) extra: u32,
}

impl Txn {
    pub(crate) const NO_EXTRA: u32 = u32::MAX;
}

/// What a call declared besides keys that may be updated or are read.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    /// The declaration itself ended the call; still subject to the check of its lookups.
    pub(crate) ends_early: bool,
    /// It keeps an order with others (`call/order.rs`).
    pub(crate) is_ordered: bool,
    /// Those of the declared keys that may be inserted.
    pub(crate) inserts: Span,
    pub(crate) allocations: Span,
    pub(crate) ranges: Span,
    pub(crate) members: Span,
    pub(crate) lookups: Span,
    pub(crate) pieces: Span,
}

impl Extra {
    /// Of a call that has none of it.
    const NONE: &Self = &Self {
        ends_early: false,
        is_ordered: false,
        inserts: Span::EMPTY,
        allocations: Span::EMPTY,
        ranges: Span::EMPTY,
        members: Span::EMPTY,
        lookups: Span::EMPTY,
        pieces: Span::EMPTY,
    };
}
