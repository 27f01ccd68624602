//! The library as an application uses it.

mod bytes;
mod common;
mod contention;
mod context;
mod deaths;
mod determinism;
mod failures;
mod forks;
mod functions;
mod indexes;
mod mistakes;
mod order;
mod parts;
mod past;
mod pieces;
mod read_only;
mod readable;
mod reentrance;
mod reopen;
mod schema;
mod snapshots;
mod submit;
mod tasks;
mod turns;
mod types;
