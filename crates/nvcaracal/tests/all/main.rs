//! The library as an application uses it.

mod added_field;
mod bytes;
mod common;
mod contention;
mod context;
mod deaths;
mod determinism;
mod failures;
mod functions;
mod hot_rows;
mod indexes;
mod longer_values;
mod mistakes;
mod order;
mod parts;
mod past;
mod pieces;
mod read_only;
mod reopen;
mod schema;
mod snapshots;
mod submit;
mod tasks;
mod turns;
mod types;
