//! Optimistic concurrency control, as in Silo, for engines that keep versions of rows in slots.
//!
//! A transaction reads rows with their versions and keeps its writes to itself. To commit it
//!
//! 1. locks the records of what it writes, in one order for all transactions,
//! 2. takes its place in the serial order,
//! 3. reads again the versions of what it read, and of the index nodes in which it did not find
//!    something,
//! 4. lets the engine put the new versions where they are durable, or will be,
//! 5. gives the records their new versions, which unlocks them.
//!
//! The serial order is that of step 2: one that reads what another wrote does so after its step 5;
//! one that overwrites what another read locks it after the other's step 3. The place in the order
//! comes from one counter for all workers, where Silo makes it from the versions that were read; it
//! costs one shared word for each transaction, and tells a check the order that it must compare
//! with.
//!
//! With snapshots, a transaction reads the state as it was when it began, until it asks for its
//! first write. If it never does, it has its place in the serial order right behind the last
//! transaction before its beginning, needs no validation and meets no conflict. If it does, it
//! reads the newest versions from then on, and is validated as above: what it read before must then
//! be the newest. A row's old versions stay as long as a transaction may read them ([`versions`]),
//! and so does the record of a row that was deleted, and its key in the index.
//!
//! Private writes, scans and changes of rows are those of all transactions (`transaction`);
//! `access` says how rows are found and read here. What engines differ in is in [`Steps`]
//! (`shared.rs`). Nothing here knows when a version is durable.

mod access;
mod commit;
mod pool;
mod records;
mod scan;
mod session;
mod shared;
mod versions;
mod write;

pub(crate) use scan::{newest, recover_rows};
pub(crate) use session::OccSession;
pub(crate) use shared::{Between, Old, Putting, Shared, Steps};
pub(crate) use write::Write;
