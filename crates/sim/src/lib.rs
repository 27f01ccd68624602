//! The crash lab: runs small random histories on the engine next to a serial oracle, and tries to
//! break it with crashes, faults and schedules.
//!
//! Everything here follows from a seed: the same seed finds the same failure.
#![forbid(unsafe_code)]

pub mod crash;
pub mod damage;
pub mod disk;
pub mod fuzz;
pub mod history;
mod seeds;
