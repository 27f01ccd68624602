//! Numbers that calls take from sequences.

use storage::{Position, TableId};

use super::Span;
use crate::call::answers::Failure;

/// A number allocated from a sequence, or only looked at, or that a sequence is set to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocation {
    pub(crate) position: Position,
    pub(crate) table: TableId,
    pub(crate) kind: AllocationKind,
    pub(crate) key: u64,
    /// The number; of one that is set it is there before.
    pub(crate) value: u64,
}

/// What an allocation makes of its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    /// The next call that allocates gets the number after this one.
    Allocate,
    /// The number stays for the next call that allocates.
    Peek,
    /// The next call that allocates gets the number that it is set to.
    Set,
}

impl Allocation {
    /// Gives the allocation its number, if `next` is the one to be allocated; the next number
    /// afterwards, if that is set by this.
    pub(crate) fn number(&mut self, next: u64) -> Option<u64> {
        if self.kind == AllocationKind::Set {
            return Some(self.value);
        }
        self.value = next;
        (self.kind == AllocationKind::Allocate).then_some(next + 1)
    }
}

/// A call that went through step one of its declaration.
#[derive(Debug)]
pub(crate) struct AllocatingCall {
    pub(crate) position: Position,
    pub(crate) allocations: Span,
    pub(crate) lookups: Span,
    /// The step ended the call.
    pub(crate) early: Option<Failure>,
}

/// A sequence that was allocated from in this epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangedSequence {
    pub(crate) table: TableId,
    pub(crate) key: u64,
    pub(crate) before: Option<u64>,
    pub(crate) next: u64,
    pub(crate) position: Position,
}
