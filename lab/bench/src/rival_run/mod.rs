//! Workloads on the rival engines of `testbed`.

mod batches;
mod dbx;
mod deterministic;
mod device;
mod rivals;
mod run;

pub use batches::{BatchRivalReport, run_deterministic};
pub use dbx::Dbx;
pub use deterministic::Deterministic;
pub(crate) use deterministic::run_typed as run_typed_batches;
pub(crate) use device::RivalDevice;
pub use rivals::Rival;
pub(crate) use rivals::run_typed;
pub use run::{RIVAL_CACHE_BYTES, RivalReport, run_rival};
