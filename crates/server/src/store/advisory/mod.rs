//! Advisory locks: in memory, of sessions and of transactions. No call knows them.
//!
//! A query that would wait ends and gives its thread back; when it has the lock it runs again, and
//! finds what its functions came to before (`services`).

mod session;
mod table;

pub(super) use session::{LockEnd, SessionLocks};
pub(super) use table::{Key, LockTable};
