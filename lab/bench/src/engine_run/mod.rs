//! Workloads on the engine alone: the run, beside the oracle if asked for, and its recovery.

pub mod adapter;
mod counts;
mod recover;
mod run;
mod verify;

#[cfg(test)]
mod commit_points;

pub(crate) use counts::RunCounts;
pub use recover::recover;
pub use run::run;
