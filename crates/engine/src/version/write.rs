//! What is published, and where: the words in which publishing and the final write speak.

use pmem::AnyDevice;
use pmem::sync::atomic::AtomicU64;
use storage::{EpochNumber, NewValue, RowLayout, Segments, SerialId, row};

use super::{CachePool, RowEntry, TransientPool, ValueWord, Waiter};
use crate::index::EntryId;
use crate::stats::WorkCounts;

/// What a transaction leaves in one declared version.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write<'v> {
    /// Nothing.
    Ignore,
    /// The row is deleted.
    Tombstone,
    /// A new value.
    Value(NewValue<'v>),
}

/// Where a version goes: one declared write of one transaction.
#[derive(Clone, Copy)]
pub(crate) struct Publication<'e> {
    pub(crate) id: EntryId,
    /// The key, where all keys have 8 bytes.
    pub(crate) word: u64,
    pub(crate) entry: &'e RowEntry,
    pub(crate) layout: &'e RowLayout,
    pub(crate) sid: SerialId,
    /// What the row was before this epoch.
    pub(crate) initial: ValueWord,
    /// Place of the version in the version array, if it is known.
    pub(crate) place: u32,
}

/// Everything of a worker that publishing touches besides the device.
pub(crate) struct Publisher<'w, 's> {
    pub(crate) segments: &'s Segments,
    pub(crate) checkpoint_epoch: EpochNumber,
    pub(crate) pool: &'w mut TransientPool,
    pub(crate) cache: &'w mut CachePool,
    pub(crate) work: &'w mut WorkCounts,
    pub(crate) waiter: Waiter<'s>,
}

/// A final write that no reader is led to yet: the cell of its version, and where the value lies.
pub(crate) struct Hidden {
    pub(super) cell: *const AtomicU64,
    pub(super) word: ValueWord,
}

// SAFETY: only the worker that keeps the list uses it; the pointer names a cell that all workers
// share as an atomic.
unsafe impl Send for Hidden {}

/// What a row was before this epoch.
#[inline]
pub(super) fn value_before<'e>(to: &Publication<'e>) -> &'e [u8] {
    // SAFETY: the initial version stays readable until the epoch ends: the final write overwrites
    // only what it does not need.
    unsafe { std::slice::from_raw_parts(to.initial.address() as *const u8, to.initial.len()) }
}

/// The key of a row that is being written.
#[inline]
pub(super) fn key_of<'k>(
    device: &'k AnyDevice,
    to: &Publication<'_>,
    exact: &'k [u8; 8],
) -> &'k [u8] {
    if to.layout.has_exact_keys() {
        exact
    } else {
        // SAFETY: the row is initialised and its key never changes.
        unsafe { row::key(device, to.entry.row()) }
    }
}
