//! The units in which processors and media work.

/// Bytes of one CPU cache line: the unit of flushing.
pub const LINE_BYTES: u64 = 64;
/// One cache line.
pub type Line = [u8; LINE_BYTES as usize];
/// Bytes of one access of the persistent device (Intel Optane's internal granularity, NV 5.3).
pub const BLOCK_BYTES: u64 = 256;

/// How many aligned units of `unit` bytes a range touches.
#[inline]
pub(crate) fn units(offset: u64, len: u64, unit: u64) -> u64 {
    if len == 0 { 0 } else { (offset % unit + len).div_ceil(unit) }
}
