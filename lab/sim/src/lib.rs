//! The crash lab: runs small random histories on the engine next to a serial oracle, and tries to
//! break it with crashes, faults and schedules.
//!
//! Everything here follows from a seed: the same seed finds the same failure.
#![forbid(unsafe_code)]

#[cfg(not(feature = "bare"))]
pub mod crash;
#[cfg(not(any(feature = "bare", feature = "seeds")))]
pub mod damage;
#[cfg(not(any(feature = "bare", feature = "seeds")))]
pub mod disk;
#[cfg(not(any(feature = "bare", feature = "seeds")))]
pub mod fuzz;
pub mod history;
#[cfg(not(any(feature = "bare", feature = "seeds")))]
pub mod product;
#[cfg(not(feature = "bare"))]
mod seeds;
#[cfg(not(any(feature = "bare", feature = "seeds")))]
pub mod serializable;
