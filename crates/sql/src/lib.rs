//! From the text of a statement to a plan, and from a plan to its effects and answer.
//!
//! ```text
//! text -> parse -> bind (with the catalog) -> ir::Plan -> run (with Rows) -> Answer
//! ```
//!
//! All but [`run`] happens outside of calls: the log holds plans and parameters, so a replay never
//! parses, binds or plans. Knows no sockets, no clocks and no randomness; what is now comes in with
//! the call.

#![forbid(unsafe_code)]

pub mod bind;
pub mod catalog;
pub mod copy;
mod ddl;
pub mod ir;
mod memory;
pub mod parse;
mod prepared;
pub mod run;
pub mod system;

pub use bind::{OutputColumn, Prepared, prepare};
pub use ddl::{Definition, check_database_options, define, described, dropped_on_commit};
pub use memory::{FREE_BYTES, Grant, MemoryPool};
pub use prepared::{Explained, Measured, arguments, explain, parameter_types};
