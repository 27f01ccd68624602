//! Versions of rows: the transient ones of the running epoch, the cached ones, and the final write
//! that makes one of them persistent.
//!
//! This module and `index` are the only ones of the crate with unsafe code. What makes it sound are
//! the phases of an epoch, separated by barriers:
//! - *append*: version arrays grow, each under its row's lock, or are made by the one worker that
//!   its row's appends were given to; no value is read.
//! - *execute*: arrays do not change; a value cell is written once, by the owner of its serial id,
//!   with release, and read with acquire. A row's persistent slot is written by the owner of the
//!   row's last version only (O-14), and it is never the slot that smaller serial ids still read:
//!   where it is, these read a copy.
//!   A transient version's memory is reclaimed when a newer one is published and every call has
//!   ended that could see the older one (`pool.rs`, `epoch/reuse.rs`).
//! - *between*: transient memory is reset when no body runs; cached versions are freed only in the
//!   initialization phase (O-15).

mod array;
mod batch;
pub(crate) mod before_images;
mod cached;
pub(crate) mod changes;
mod entry;
mod final_write;
mod pool;
pub(crate) mod prefetch_policy;
mod publication;
mod read;
mod row_store;
mod slab;
mod write;

pub(crate) use batch::{Appended, Buffers, Chains};
pub(crate) use cached::CachePool;
#[cfg(test)]
pub(crate) use entry::KeepPersistent;
#[cfg(all(test, feature = "loom"))]
pub(crate) use entry::Versions;
pub(crate) use entry::{AppendedBy, Claim, Claimed, RowEntry, RowPlace};
pub(crate) use pmem::prefetch;
pub(crate) use pool::TransientPool;
#[cfg(test)]
pub(crate) use read::TestValues;
pub(crate) use read::{
    Access, HoldsValues, Pending, ReadPhase, Seen, Stopped, Waiter, newest_version, persistent_word,
};
pub(crate) use row_store::{DeadRow, Idle, RowStore, clear_stale, initialise_row, version_epoch};
pub(crate) use slab::{EntrySlab, KeptIds};
pub(crate) use write::{Publication, Publisher, Write};

use crate::reads::Reads;

/// Where a value is, in one word: bits 0-1 its place, bits 2-19 its length, bits 20-63 its address
/// in 8-byte units. With address 0 it is a marker and not a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueWord(pub(crate) u64);

/// Where a value's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum ValuePlace {
    /// In the transient pool.
    Transient = 0,
    /// In the cache.
    Cached = 1,
    /// On the device, in version slot 0 of the persistent row.
    Persistent0 = 2,
    /// On the device, in version slot 1.
    Persistent1 = 3,
}

impl ValuePlace {
    /// On the device, in a version slot of the persistent row.
    #[inline]
    pub(crate) fn persistent(slot: usize) -> Self {
        if slot == 0 { Self::Persistent0 } else { Self::Persistent1 }
    }
}

impl ValueWord {
    /// Not written yet. As the initial version of a row: the row does not exist.
    pub(crate) const PENDING: Self = Self(0);
    /// The writer aborted or chose not to write.
    pub(crate) const IGNORE: Self = Self(1 << 2);
    /// The row is deleted.
    pub(crate) const TOMBSTONE: Self = Self(2 << 2);

    #[inline]
    pub(crate) fn new(place: ValuePlace, address: usize, len: usize) -> Self {
        debug_assert!(address != 0 && address.is_multiple_of(8) && len < 1 << 18);
        Self(place as u64 | (len as u64) << 2 | (address as u64 / 8) << 20)
    }

    /// Whether there is a value.
    #[inline]
    pub(crate) fn is_value(self) -> bool {
        self.0 >= 1 << 20
    }

    /// It is read, wherever it is, by something else than the body of a call.
    #[inline]
    pub(crate) fn charge(self, reads: &Reads) {
        if reads.are_charged() && self.is_persistent() {
            reads.charge(self.address(), self.len());
        }
    }

    #[inline]
    pub(crate) fn is_persistent(self) -> bool {
        self.0 & ValuePlace::Persistent0 as u64 != 0
    }

    #[inline]
    pub(crate) fn is_transient(self) -> bool {
        self.0 & 3 == ValuePlace::Transient as u64 && self.is_value()
    }

    #[inline]
    pub(crate) fn is_cached(self) -> bool {
        self.0 & 3 == ValuePlace::Cached as u64
    }

    /// The version slot of a value on the device.
    #[inline]
    pub(crate) fn slot(self) -> usize {
        debug_assert!(self.is_persistent());
        (self.0 & 1) as usize
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        (self.0 >> 2 & 0x3ffff) as usize
    }

    #[inline]
    pub(crate) fn address(self) -> usize {
        (self.0 >> 20) as usize * 8
    }

    /// Hints that the whole value will be read soon.
    #[inline]
    pub(crate) fn prefetch(self) {
        for index in 0..self.lines_to_fetch() {
            prefetch(self.address() + index * LINE);
        }
    }

    /// Lines to ask for before the whole value is read.
    #[inline]
    pub(crate) fn lines_to_fetch(self) -> usize {
        if self.is_value() { self.lines().min(LINES_WHOLE) } else { 0 }
    }

    /// Hints that a value will be read soon by someone who often wants little of it, and reads one
    /// after the other: the processor fetches the rest of a long one by itself.
    #[inline]
    pub(crate) fn prefetch_head(self) {
        if self.is_value() {
            prefetch(self.address());
            if self.lines() == 2 {
                prefetch(self.address() + LINE);
            }
        }
    }

    /// Lines in which the value lies.
    #[inline]
    fn lines(self) -> usize {
        (self.address() % LINE + self.len()).div_ceil(LINE).max(1)
    }
}

/// No place in a version array: it has to be searched for, if there is an array.
pub(crate) const NO_PLACE: u32 = u32::MAX;
/// In an access plan: the call's version is the only one of its row.
pub(crate) const ONLY: u32 = u32::MAX - 1;
/// In an access plan: the row has a version array that was not searched yet.
pub(crate) const IN_ARRAY: u32 = u32::MAX - 2;

/// Bytes of a cache line.
pub(crate) const LINE: usize = pmem::LINE_BYTES as usize;

/// Of longer values no more lines are fetched.
const LINES_WHOLE: usize = 16;

/// The bytes of whole words.
pub(crate) fn bytes_of_words(words: &[u64]) -> &[u8] {
    // SAFETY: any initialised words are initialised bytes, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
