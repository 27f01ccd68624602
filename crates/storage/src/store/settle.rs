//! Makes durable what a store shows when it is opened, before anything is built on it.
//!
//! A killed process loses no store: the next one sees all of them, also those that are in the
//! processor's cache and nowhere else, and that would not be flushed any more. A power cut could
//! undo each of them later, when slots, log and versions were reused because of it. So open flushes
//! and fences all that it trusts: superblocks, checkpoint records, catalogs, pool states and
//! segment directory as soon as there is a superblock; entries of free lists when it has read them;
//! the header of each row, whose stale version may have been cleared, when it has scanned it. That
//! writes the bytes that are there, so that an open that is refused still changes nothing.
//!
//! What else a killed process may have left undurable is not trusted: values of epochs after the
//! checkpoint are written again by replay, and the log is hardened by itself
//! ([`crate::input_log::InputLog::harden`]). Only memory that outlives a process needs any of this.

use std::sync::Arc;

use pmem::{AnyDevice, Device, LINE_BYTES, Port};

use crate::format::{
    CATALOGS_OFFSET, CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, DIRECTORY_OFFSET, POOL_STATES_OFFSET,
    POOLS, ROW_HEADER_BYTES, SUB_POOLS, SUPERBLOCK_STRIDE, SUPERBLOCKS_OFFSET,
};
use crate::pool::{Segments, SubPool};

/// Makes durable all that lies in front of the segments.
pub(crate) fn metadata(port: &mut Port, segments: &Segments) {
    if !port.device().may_show_undurable() {
        return;
    }
    let places = segments.places(port.device().as_ref());
    let parts = [
        (SUPERBLOCKS_OFFSET, 2 * SUPERBLOCK_STRIDE),
        (CHECKPOINTS_OFFSET, 2 * CHECKPOINT_STRIDE),
        (CATALOGS_OFFSET, POOL_STATES_OFFSET - CATALOGS_OFFSET),
        (POOL_STATES_OFFSET, (SUB_POOLS * POOLS * 64) as u64),
        (DIRECTORY_OFFSET, places * 8),
    ];
    for (offset, bytes) in parts {
        port.flush(offset, bytes);
    }
    port.fence();
}

/// Makes the entries of free lists durable.
pub(crate) fn free_lists(port: &mut Port, segments: &Segments, sub_pools: &[SubPool]) {
    if port.device().may_show_undurable() {
        sub_pools.iter().for_each(|sub_pool| sub_pool.flush_entries(port, segments));
        port.fence();
    }
}

/// Makes the headers of scanned rows durable: one for each thread that scans, because a fence
/// covers the flushes of its own port only (O-22).
pub struct SettleRows {
    port: Option<Port>,
}

impl SettleRows {
    /// For the thread with a number.
    #[must_use]
    pub fn new(device: &Arc<AnyDevice>, thread: usize) -> Self {
        // The last number is that of the port that opens the store.
        let id = u32::MAX - 1 - thread as u32;
        Self { port: device.may_show_undurable().then(|| Port::new(Arc::clone(device), id)) }
    }

    /// The row at an offset was scanned.
    #[inline]
    pub fn scanned(&mut self, row: u64) {
        debug_assert!(row.is_multiple_of(LINE_BYTES), "a row begins with a line");
        if let Some(port) = &mut self.port {
            port.flush(row, ROW_HEADER_BYTES);
        }
    }

    /// All headers are durable after this.
    pub fn finish(mut self) {
        if let Some(port) = &mut self.port {
            port.fence();
        }
    }
}
