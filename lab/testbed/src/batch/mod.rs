//! Deterministic rivals over DRAM (CA 2): engines that take a batch of calls whose order, or whose
//! rule for an order, is fixed before they run.
//!
//! | engine | what it is |
//! |---|---|
//! | [`Serial`] | one thread, one call after the other |
//! | [`Calvin`] | one thread requests all locks in the order of the batch, the others run calls |
//! | [`Orthrus`] | the same with several lock managers, each with a part of the keys |
//! | [`Bohm`] | owners of keys make pending versions; a reader runs the call that it waits for |
//! | [`Caracal`] | the same with version arrays that stay, as Caracal has them; a reader waits |
//! | [`Granola`] | each worker runs the pieces of its partition in the order of the batch |
//! | [`Pwv`] | each worker runs the pieces of its partition as its dependency graph lets it |
//! | [`Aria`] | calls run on one state; reservations decide which commit; a fall-back under locks |
//! | [`Bcdb`] | calls run on one state; one thread decides by serializable snapshot isolation |
//!
//! They differ from the other rivals, which commit calls one by one and write them to a device:
//! nothing here is durable, and no inputs are logged. All have one flat index, one allocator and
//! one form of rows (`tables.rs`), one way in which calls declare what they access (`declare.rs`),
//! and run the same bodies (`bodies.rs`), so that a comparison is about concurrency control alone.
//! A batch is what NVCaracal calls an epoch, with the same stream, the same numbers of sequences
//! and the same state at its end.
//!
//! Phases (`phases.rs`) separate what changes from what is only read; a thread that waits in one
//! gives up when another fails. [`run_batches`] measures an engine and compares it with the oracle.

mod bodies;
mod bohm;
mod declare;
mod division;
mod ended;
mod engine;
mod flat;
mod footprint;
mod inplace;
mod locking;
mod partitions;
mod phases;
mod rows;
mod run;
mod runner;
mod sequences;
mod serial;
mod snapshot;
mod tables;

pub use bohm::{Bohm, Caracal};
pub use engine::{BatchCounts, BatchEngine, EachAnswer, Order};
pub use locking::{Calvin, Orthrus};
pub use partitions::{Granola, Pwv};
pub use phases::Waits;
pub use run::{BatchReport, run_batches};
pub use serial::Serial;
pub use snapshot::{Aria, Bcdb};
