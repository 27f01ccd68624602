//! What calls declare before they run: sequence numbers, write sets, what was looked up for them,
//! and the space that they need. Filled by the worker that owns a call in the initialization phase,
//! read by all workers in the execution phase, because others may run the call.
//!
//! The overlay has what the serial part has written, which is declared by having run.

mod call;
pub(crate) mod declare;
pub(crate) mod demand;
mod index_writers;
mod keys;
mod lists;
mod numbers;
pub(crate) mod overlay;
mod piece;
mod places;
mod span;

pub(crate) use call::CallView;
pub(crate) use index_writers::{IndexWriters, may_change};
pub(crate) use keys::{Declared, DeclaredKind, DeclaredRange, Lookup, Member, NO_ENTRY, NO_PIECE};
pub(crate) use lists::{Declarations, Extra, Txn};
pub(crate) use numbers::{AllocatingCall, Allocation, AllocationKind, ChangedSequence};
pub use piece::PieceResult;
pub(crate) use piece::PieceState;
pub(crate) use span::Span;
