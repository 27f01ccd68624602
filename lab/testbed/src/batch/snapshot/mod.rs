//! What engines share that need no write sets (NV 7): calls run on the state before them, keep
//! their writes to themselves, and only then it is decided which of them commit.
//!
//! A round: every call that is left runs on the same state, with all workers (`round.rs`); what it
//! read and wrote is in the log of its worker (`log.rs`). Then the engine's rule decides. Calls
//! that must not commit run again in the next round, in the order of the batch. Where the originals
//! let such calls lead the next batch, the rounds here are within one batch, so that each batch
//! ends with all its answers.
//!
//! What a call looked for and did not find has a row, too, which does not exist: so an insert of it
//! is noticed. A scan reads a granule, and a write in an ordered table touches the granule of its
//! row, which stands for keys that come and go (`footprint.rs` has the words).

mod access;
mod aria;
mod bcdb;
mod log;
mod round;

pub use aria::Aria;
pub use bcdb::Bcdb;
