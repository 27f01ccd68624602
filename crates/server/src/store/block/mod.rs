//! Blocks: BEGIN to COMMIT by running again.
//!
//! 1. Each statement runs at once, on the newest state or the block's snapshot and what the block
//!    has written itself (`state`). Its client is told the result, and the block keeps statement,
//!    values and a digest of the result (`form`).
//! 2. COMMIT is one call, in which all statements run once more at its place in the serial order
//!    (`run`). If one has another result than its client was told, nothing happens: 40001.
//!
//! Statements that arrive together are a call without digests (`together`): nothing of them was
//! seen, so they cannot conflict.
//!
//! Definitions change a catalog of the block's own (`defined`). COMMIT of such a block runs it
//! again on the server, as nothing else runs then, and is a call of what that wrote.
//!
//! A COPY of more rows than a block may hold writes them at once, under ids that the block's own
//! catalog has and no other (`load`).
//!
//! So what a client saw is what it would have seen alone at that place. A block that writes nothing
//! is no call.

mod answers;
mod checks;
mod constraints;
mod defined;
pub(super) mod form;
mod load;
mod loaded;
mod locks;
mod numbers;
mod operate;
mod operation;
mod reads;
mod run;
mod state;
mod temporary;
mod together;
mod whole;

pub(super) use numbers::Stock;
pub use operation::{BlockOperation, Modes, Results};
pub(super) use operation::{Operation, Run, Together};
pub(super) use state::BlockState;
