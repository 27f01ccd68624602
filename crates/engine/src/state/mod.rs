//! What all workers share: tables with their indexes and row entries, sequences, the settings.

pub(crate) mod config;
pub(crate) mod core;
pub(crate) mod read_gate;
pub(crate) mod running;
pub(crate) mod watch;
