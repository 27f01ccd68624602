//! Runs of a workload's calls on an engine that takes them one by one: the calls (`calls`), their
//! procedures as transactions of a session (`procedure`), and a run that is measured (`measure`).

pub(crate) mod calls;
mod measure;
pub(crate) mod procedure;

pub use measure::{Report, Settings, run};
