//! The command line, run as a user runs it.
//!
//! Tests of runs that survive kills and signals are those of the laboratory's binary, too
//! (`lab/cli/tests/all/main.rs`): the same text, for the binary that the crate's root names.

mod actors;
mod backup;
mod bad_input;
mod clients;
mod compact;
mod contention;
mod dump;
mod interrupt;
mod kill;
mod load;
mod refused;
mod repair;
mod resume;
mod salvage;
mod serve;
mod serve_databases;
mod serve_failures;
mod serve_history;
mod serve_kills;
mod serve_kills_definitions;
mod serve_log;
mod serve_memory;
mod served;
mod store;
mod stream;
mod support;
mod wire;

/// The program that is run.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_nvcaracal");
/// Where its golden files are.
pub(crate) const GOLDEN: &str = "crates/cli/tests/golden";
