//! What all workers share: tables with their indexes and row entries, sequences, the settings.

mod bring;
pub(crate) mod config;
pub(crate) mod core;
pub(crate) mod read_gate;
pub(crate) mod row_cache;
pub(crate) mod running;
pub(crate) mod watch;
