//! What a model's steps cost.

use serde::Serialize;

/// Nanoseconds of steps, unless it says otherwise. Names are a promise to scripts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    /// What an engine does before execution for each access: declaring, dealing, graphs, locks.
    pub control_ns: f64,
    /// Appending a version; what is left of the part before execution.
    pub append_ns: f64,
    /// Moving a version in a sorted array.
    pub move_ns: f64,
    /// Executing one access of a call.
    pub execute_ns: f64,
    /// A cache line that another core wrote last.
    pub line_ns: f64,
    /// Bytes that one core loads and stores in a nanosecond, at most.
    pub bytes_per_ns: f64,
}

/// Messages of a line: those of a queue lie one after the other.
const MESSAGES_PER_LINE: f64 = 4.0;
/// How much of a line's time each line after the first of a value takes: they are prefetched.
const NEXT_LINE: f64 = 0.125;
/// The memory of a large machine serves so many cores at once that do nothing but copy.
const MEMORY_CORES: usize = 16;
/// Bytes of a cache line.
const LINE_BYTES: f64 = 64.0;

impl Costs {
    /// A message that another core put into a queue.
    pub(super) fn message_ns(&self) -> f64 {
        self.line_ns / MESSAGES_PER_LINE
    }

    /// A value of so many lines that another core wrote last.
    pub(super) fn value_ns(&self, lines: u32) -> f64 {
        self.line_ns * (1.0 + NEXT_LINE * f64::from(lines.saturating_sub(1)))
    }

    /// The least time in which cores load and store the lines of so many accesses. One core takes
    /// no longer than it was measured to take, which is less where lines are in its caches.
    pub(super) fn memory_ns(&self, lines: f64, accesses: f64, cores: usize) -> f64 {
        let alone = (lines * LINE_BYTES / self.bytes_per_ns).min(accesses * self.execute_ns);
        alone / cores.min(MEMORY_CORES) as f64
    }

    /// A barrier of so many cores: a tree of hand-overs.
    pub(super) fn barrier_ns(&self, cores: usize) -> f64 {
        2.0 * self.line_ns * f64::from(usize::BITS - (cores - 1).leading_zeros())
    }
}
