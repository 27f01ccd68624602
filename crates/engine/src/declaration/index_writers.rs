//! Calls of the parallel part that may change a secondary index, and which of them have ended.
//!
//! A call that reads an index waits for those before it (O-96): the smallest unfinished call waits
//! for none (O-11).

use pmem::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use storage::Position;

use super::{Declared, DeclaredKind, DeclaredRange};
use crate::secondary::SecondaryIndexes;

/// Whether a call may change an index that declared these keys and ranges.
pub(crate) fn may_change(
    indexes: &SecondaryIndexes,
    declared: &[Declared],
    ranges: &[DeclaredRange],
) -> bool {
    let declared = declared.iter().filter(|declared| declared.kind != DeclaredKind::Read);
    let mut tables = declared.map(|d| d.table).chain(ranges.iter().map(|range| range.table));
    tables.any(|table| indexes.are_of(table))
}

/// A call that may change an index.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    position: Position,
    has_ended: AtomicBool,
}

impl IndexWriter {
    /// Whether it has ended, in whatever way: what it changed is there.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

/// Those of the calls that one worker declared, in serial order. All workers say which have ended.
#[derive(Debug, Default)]
pub(crate) struct IndexWriters {
    calls: Vec<IndexWriter>,
    /// How many of the first have ended, at least.
    ended: AtomicUsize,
}

impl IndexWriters {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        *self.ended.get_mut() = 0;
    }

    /// The call at a position may change an index.
    pub(crate) fn push(&mut self, position: Position) {
        let is_next = self.calls.last().is_none_or(|last| last.position < position);
        assert!(is_next, "a worker declares its calls in serial order");
        self.calls.push(IndexWriter { position, has_ended: AtomicBool::new(false) });
    }

    /// The call at a position has ended, if it is one of these. What it changed is published.
    #[inline]
    pub(crate) fn end(&self, position: Position) {
        if let Ok(at) = self.calls.binary_search_by_key(&position, |call| call.position) {
            // Release: who sees it sees what the call changed.
            self.calls[at].has_ended.store(true, Ordering::Release);
        }
    }

    /// The first call before a position that has not ended.
    #[inline]
    pub(crate) fn unended_before(&self, position: Position) -> Option<&IndexWriter> {
        // Acquire: another reader saw these end.
        let from = self.ended.load(Ordering::Acquire);
        let mut at = from;
        while self.calls.get(at).is_some_and(|call| call.position < position && call.has_ended()) {
            at += 1;
        }
        if at > from {
            // Another reader may have come further, and looks at some once more.
            self.ended.store(at, Ordering::Release);
        }
        self.calls.get(at).filter(|call| call.position < position)
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn o_96_a_reader_waits_for_calls_before_it_that_have_not_ended() {
        let mut writers = IndexWriters::default();
        [2, 5, 9].map(Position).into_iter().for_each(|position| writers.push(position));
        let first = |position| writers.unended_before(Position(position)).map(|w| w.position.0);
        assert_eq!([2, 3, 9, 100].map(first), [None, Some(2), Some(2), Some(2)]);
        writers.end(Position(5));
        writers.end(Position(4));
        assert_eq!([5, 9].map(first), [Some(2), Some(2)], "the one before has not ended");
        writers.end(Position(2));
        assert_eq!([9, 10].map(first), [None, Some(9)]);
        writers.end(Position(9));
        assert_eq!(first(100), None);
        writers.clear();
        writers.push(Position(1));
        assert_eq!(writers.unended_before(Position(2)).map(|w| w.position.0), Some(1));
    }
}
