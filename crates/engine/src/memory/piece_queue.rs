//! The contended pieces that a worker runs, whichever workers own their calls (CA 3.4).

use storage::Position;

/// The pieces that one worker runs in an epoch, in serial order.
#[derive(Debug, Default)]
pub(crate) struct PieceQueue {
    pieces: Vec<QueuedPiece>,
    next: usize,
}

impl PieceQueue {
    /// Takes the pieces of an epoch.
    pub(crate) fn fill(&mut self, pieces: &mut Vec<QueuedPiece>) {
        assert!(self.pieces.is_empty(), "the pieces of an epoch come once");
        self.pieces.append(pieces);
        // Those of each worker's calls are in order, which this sort makes use of.
        self.pieces.sort();
        debug_assert!(
            self.pieces.windows(2).all(|two| two[0] < two[1]),
            "a piece is in the queue of a worker once"
        );
    }

    /// Forgets the epoch before.
    pub(super) fn clear(&mut self) {
        assert!(self.front().is_none(), "every piece of the epoch before has run");
        self.pieces.clear();
        self.next = 0;
    }

    /// The next one to run.
    pub(crate) fn front(&self) -> Option<QueuedPiece> {
        self.pieces.get(self.next).copied()
    }

    /// The next one to run, if it comes before another.
    pub(crate) fn front_before(&self, end: QueuedPiece) -> Option<QueuedPiece> {
        self.front().filter(|&next| next < end)
    }

    /// The next one is being run.
    pub(crate) fn advance(&mut self) {
        debug_assert!(self.next < self.pieces.len(), "a piece that runs is in the queue");
        self.next += 1;
    }
}

/// A piece of a call in the queue of a worker: position of the call, and which of its pieces.
/// Sorted as they have to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuedPiece {
    pub(crate) position: Position,
    pub(crate) number: u32,
}

impl QueuedPiece {
    /// The first one of the call at a position.
    pub(crate) fn first_of(position: Position) -> Self {
        Self { position, number: 0 }
    }

    /// The one behind it, of the same call.
    pub(crate) fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }
}
