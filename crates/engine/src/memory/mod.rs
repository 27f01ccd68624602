//! What one worker keeps of an epoch in memory, whatever the device: what its calls declared, the
//! private writes of the one that runs, the pieces in its queue, its answers.

mod piece_queue;
mod piece_writes;
mod private;
mod worker;

pub(crate) use piece_queue::{PieceQueue, QueuedPiece};
pub(crate) use piece_writes::{PieceWrite, PieceWrites};
pub(crate) use private::{PrivatePart, PrivateWrite};
pub(crate) use worker::{Local, PrefetchedRow};
