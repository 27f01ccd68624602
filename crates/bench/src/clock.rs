//! The clock of reports. Nothing that is computed depends on it.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the first call in this process.
#[must_use]
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Nanoseconds as seconds.
#[must_use]
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
