//! A copy of a database directory, made while its process goes on.
//!
//! A lock on `table` *pins* the newest snapshot: while it is there, slots that later snapshots
//! replace are kept as they are (writing, step 5). So the pages of one snapshot can be read at
//! leisure. Log segments are not kept: the log is copied first, and counts if the snapshot is still
//! the newest then, because only a newer one would have let them be written over. What the log
//! means, and where it ends, is the caller's affair.
//!
//! A new copy is made beside its place, in a directory whose name ends in `.incomplete`, and
//! renamed when all of it is durable: what has the name of a copy is whole. A copy that is there is
//! brought up to date as a snapshot is written: pages that changed go into free slots, then
//! entries, then the root.

mod origin;
mod pinned;

mod base;
mod unfinished;

pub(super) use origin::is_copy;
pub use pinned::PinnedSnapshot;
pub use unfinished::{Replaced, UnfinishedCopy};
