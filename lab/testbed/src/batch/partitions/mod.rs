//! What engines share whose data are divided among the workers (CA 2): the pieces that calls are
//! cut into. `cut.rs` has them.
//!
//! A call is cut as far as its procedure says:
//!
//! - A call that touches one partition is one piece there.
//! - The updates that a procedure leaves to pieces are pieces of their partitions, independent of
//!   each other, if its body accesses no rows: whether it gives up is known at once. The last one
//!   makes the answer.
//! - Any other call is dependent: it runs when all its partitions have come to it, in all of them
//!   at once (a rendezvous point of CA 5.2).

mod cut;
mod granola;
mod graph;
mod pwv;

pub use granola::Granola;
pub use pwv::Pwv;
