//! Workloads on the rival engines of `testbed`.

mod rivals;
mod run;

pub use rivals::Rival;
pub(crate) use rivals::run_typed;
pub use run::{RIVAL_CACHE_BYTES, RivalReport, run_rival};
