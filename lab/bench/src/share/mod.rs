//! Which share of the machine's limit a run reached.

mod measure;
mod table;

pub(crate) use measure::measure;
pub use measure::{Measuring, Parts, PhaseShare, Share};
pub(crate) use table::render;
