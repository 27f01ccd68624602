//! Functions that do something beside computing: in queries that write nothing, as no replay may
//! do it once more.

use serde::{Deserialize, Serialize};

/// What a function does with advisory locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdvisoryAction {
    /// Takes a lock, and waits for it.
    Lock(AdvisoryMode),
    /// Takes a lock unless it would have to wait; answers whether it did.
    Try(AdvisoryMode),
    /// Gives a lock of the session back, shared or not; answers whether there was one.
    Unlock {
        /// Whether the lock is shared.
        is_shared: bool,
    },
    /// Gives all locks of the session back.
    UnlockAll,
}

/// How an advisory lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdvisoryMode {
    /// Whether others may share it.
    pub is_shared: bool,
    /// Whether it ends with the transaction; else with the session.
    pub is_of_transaction: bool,
}

/// How the argument of a function says how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SleepForm {
    /// `pg_sleep`: seconds
    Seconds,
    /// `pg_sleep_for`: an interval
    For,
    /// `pg_sleep_until`: a point in time
    Until,
}
