//! The database as its users hold it: opening, calls, reads, closing.

mod archiving;
pub(crate) mod backup;
pub(crate) mod batch;
pub(crate) mod changes;
pub(crate) mod closing;
pub(crate) mod consumer;
pub(crate) mod handle;
mod numbers;
pub(crate) mod options;
mod pending;
pub(crate) mod ranges;
mod raw;
mod schema_options;
pub(crate) mod snapshot;
pub(crate) mod submitter;
pub(crate) mod tuning;
pub(crate) mod way;
