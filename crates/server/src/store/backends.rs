//! What a session may know of others, and do to them: `pg_stat_activity`, `pg_cancel_backend` and
//! `pg_terminate_backend`.

use sql::system::SessionActivity;
use std::sync::{Arc, OnceLock};

/// The sessions of a server, by `pg_backend_pid()`.
pub(crate) trait Backends: Send + Sync {
    /// Ends what a session does; whether there is such a session.
    fn cancel(&self, process: i32) -> bool;

    /// Ends a session; whether there is one.
    fn terminate(&self, process: i32) -> bool;

    /// What all sessions do.
    fn activity(&self) -> Vec<SessionActivity>;

    /// The names of the server's databases; none if it has one store alone.
    fn databases(&self) -> Vec<String>;
}

/// The sessions of the server that a store has, if it has one.
pub(super) type Served = OnceLock<Arc<dyn Backends>>;
