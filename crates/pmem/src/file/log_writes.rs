//! Writes to the log that are durable when they return.
//!
//! A write and a sync are two calls, and the second one waits for a command of its own. A write
//! that goes past the memory of the system (`O_DIRECT`) and is durable at its end (`O_DSYNC`) is
//! one of both. It is made where a small epoch is one record, because the caller would only wait;
//! larger epochs write in parallel and sync once, beside execution.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::disk::DiskHandle;
use crate::failure::{DeviceError, lock};
use crate::memory::{Mapping, PAGE_BYTES, Pages};
use crate::sync::background::Mutex;

/// Longer writes go the usual way: copied into the memory of the system, and written by a sync.
const BYTES_MAX: u64 = 64 << 10;
/// The unit of nearly all disks. Direct writes are multiples of it; where a disk has a larger one
/// they are refused, and are multiples of a page from then on.
const SECTOR_BYTES: u64 = 512;

/// What was written to a log and is not durable, and room for what is made durable at once.
#[derive(Debug)]
pub(super) struct LogWrites {
    /// What a process before has written may not be durable either.
    needs_sync: AtomicBool,
    /// What direct writes are multiples of.
    unit: AtomicU64,
    /// Direct writes are from aligned memory.
    room: Mutex<Mapping>,
}

impl LogWrites {
    pub(super) fn new(log: &DiskHandle) -> Result<Self, DeviceError> {
        let room = Mutex::new(Mapping::anonymous(BYTES_MAX, Pages::Small)?);
        let unit = if log.writes_durably() { SECTOR_BYTES } else { PAGE_BYTES };
        Ok(Self { needs_sync: AtomicBool::new(true), unit: unit.into(), room })
    }

    /// Bytes that a write which is durable at once is a multiple of.
    pub(super) fn unit(&self) -> u64 {
        self.unit.load(Ordering::Relaxed)
    }

    /// Writes bytes; they are durable after [`LogWrites::sync`].
    pub(super) fn write(
        &self,
        log: &DiskHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        log.write_all_at(offset, bytes)?;
        self.needs_sync.store(true, Ordering::Release);
        Ok(())
    }

    /// The same of whole units that are synced next.
    pub(super) fn write_now(
        &self,
        log: &DiskHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let len = bytes.len() as u64;
        let is_whole = offset.is_multiple_of(self.unit()) && len.is_multiple_of(self.unit());
        if !is_whole || len > BYTES_MAX || self.needs_sync.load(Ordering::Acquire) {
            return self.write(log, offset, bytes);
        }
        let room = lock(&self.room);
        // SAFETY: the room is as long, and its lock is held.
        let aligned = unsafe {
            room.store_bytes(0, bytes);
            room.slice(0, len)
        };
        if !log.write_durably(offset, aligned)? {
            self.unit.store(PAGE_BYTES, Ordering::Relaxed);
            self.needs_sync.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Makes all that was written durable.
    pub(super) fn sync(&self, log: &DiskHandle) -> Result<(), DeviceError> {
        if self.needs_sync.swap(false, Ordering::AcqRel) {
            return log.sync();
        }
        Ok(())
    }
}
