//! What is chosen when a store is created.

use crate::input_log::format::SEGMENT_BYTES_DEFAULT;

/// Choices that are fixed when a store is created.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Bytes of a segment: the unit in which pools get space. A power of two, 4 KiB to 64 MiB;
    /// default 256 KiB.
    pub segment_bytes: u64,
    /// Bytes of a segment of the input log. A power of two, 4 KiB to 16 MiB; default 4 KiB.
    pub log_segment_bytes: u64,
    /// Whether to create a store where there is none; default true.
    pub create: bool,
    /// Random number that a new store gets.
    pub instance: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 256 << 10,
            log_segment_bytes: SEGMENT_BYTES_DEFAULT,
            create: true,
            instance: 1,
        }
    }
}
