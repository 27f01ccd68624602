//! The server as clients see it, in memory: over TCP, with a driver and by single bytes.

mod advisory;
mod availability;
mod backends;
mod beside;
mod blocks;
mod cancel;
mod checkpoint;
mod claims;
mod copy;
mod cursors;
mod depth;
mod driver;
mod early_errors;
mod explain;
mod hostile;
mod levels;
mod modes;
mod notify;
mod passwords;
mod pg_dump;
mod pgbench;
mod portals;
mod protocol;
mod psql;
#[path = "../../../sql/tests/depth/rules.rs"]
mod rules;
mod settings;
mod support;
