//! The clock of reports. Nothing that is computed depends on it.

use std::sync::OnceLock;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the first call in this process.
#[must_use]
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Nanoseconds that all threads of this process have run. Unlike [`now_ns`] they hardly depend on
/// who else uses the machine's processors.
#[must_use]
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds as seconds.
#[must_use]
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
