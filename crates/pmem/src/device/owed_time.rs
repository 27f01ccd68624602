//! What a port owes an emulated device: time that it has not waited for yet.

/// A port owes at most this much before it waits.
pub(crate) const PAY_ABOVE_NS: u64 = 1_000;

/// What a port owes, in nanoseconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwedTime {
    /// Waiting of its own.
    pub(crate) latency_ns: u64,
    /// Time of the device for reads ...
    pub(crate) reading_ns: u64,
    /// ... and for writes.
    pub(crate) writing_ns: u64,
}

impl OwedTime {
    /// Whether it is so much that the port has to wait.
    #[inline]
    pub(crate) fn is_due(self) -> bool {
        self.latency_ns.max(self.reading_ns).max(self.writing_ns) > PAY_ABOVE_NS
    }
}
