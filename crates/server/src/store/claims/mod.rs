//! Claims: rows and tables that open blocks keep from each other, in the memory of the server.
//!
//! 1. A statement with FOR UPDATE runs, and says which rows of its answer it claims. If other
//!    blocks have none of them (`table`), the block has them until it ends (`holding`).
//! 2. If one has, the statement undoes what it did, waits for the claim on no thread, and runs
//!    again. The claim of a block that commits ends with the answer to COMMIT, so the next
//!    statement reads what it wrote. Of blocks that wait in a circle the youngest goes on without
//!    the claim.
//! 3. SKIP LOCKED passes by claimed rows. Their keys are logged with the statement, so that COMMIT
//!    and a replay pass by the same (`reads`).
//!
//! Nothing depends on claims but who waits for whom: a call never asks for them, what does not ask
//! for claims is not kept from anything, and COMMIT compares as without them. Statements outside of
//! blocks wait and pass by, and claim nothing for longer than they run (`alone`).

mod alone;
mod holding;
mod reads;
mod refused;
mod table;

pub(super) use holding::{Claimed, Claims, Holding, Wanted, Woken};
pub(super) use reads::Claiming;
pub(super) use refused::refused;
pub(super) use table::{Mode, Target};
