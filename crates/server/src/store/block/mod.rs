//! Blocks: BEGIN to COMMIT by running again.
//!
//! 1. Each statement runs at once, on the newest state or the block's snapshot and what the block
//!    has written itself (`state`). Its client is told the result, and the block keeps statement,
//!    values and a digest of the result (`form`).
//! 2. COMMIT is one call, in which all statements run once more at its place in the serial order
//!    (`run`). If one has another result than its client was told, nothing happens: 40001.
//!
//! So what a client saw is what it would have seen alone at that place. A block that writes nothing
//! is no call.

pub(super) mod form;
mod numbers;
mod operate;
mod run;
mod state;

pub(super) use numbers::Stock;
pub use operate::{BlockOperation, Modes};
pub(super) use operate::{Operation, Run};
pub(super) use state::BlockState;
