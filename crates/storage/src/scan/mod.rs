//! Visits every row that the checkpoint holds, in parallel pieces (NV 4.3, O-41).
//!
//! A row exists if its slot is below the bump offset, not on the free list, and has a version that
//! is not younger than the checkpoint. Everything else in its place is a leftover of a crash.

mod visit;

mod owners;
pub mod rows;

pub use owners::Owners;
pub use visit::{ScanPlan, ScanUnit, ScannedRow, count_row, plan, visit};

pub(crate) use visit::leads_to_a_value;
