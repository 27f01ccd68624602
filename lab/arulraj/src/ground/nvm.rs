//! A device of one partition: memory, allocator and files.

use std::collections::HashSet;
use std::sync::Arc;

use pmem::{Counters, Device};

use super::cache::{CacheCounts, CacheShape};
use super::files::Files;
use super::heap::{Area, Footprint, HEADER_BYTES, Heap, Reclaimed};
use super::ledger::{Ledger, Part, Task};
use super::memory::Memory;
use crate::Result;

/// What is modelled beside the device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Modelled {
    /// The processor's cache, if it is.
    pub cache: Option<CacheShape>,
    /// Nanoseconds that a system call of the filesystem interface takes beside its copy.
    pub system_call_ns: u64,
    /// Whether the time of tasks is measured, which takes time itself.
    pub is_timed: bool,
}

/// What went to and from a device.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// What went through the port; where a cache is modelled, only what it let through.
    pub counters: Counters,
    /// Misses and write-backs of the modelled cache; zeros if there is none.
    pub cache: CacheCounts,
    /// Fences, each of which waits for what was flushed before.
    pub syncs: u64,
    /// System calls of the filesystem interface.
    pub system_calls: u64,
    /// Bytes that those copied.
    pub copied_bytes: u64,
    /// Bytes that engines wrote, by the columns of the paper's Table 3.
    pub written: Written,
    /// Lines by structure, where a cache is modelled; what tasks took.
    pub ledger: Ledger,
}

impl Traffic {
    /// What went since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let (new, old) = (&self.counters, &earlier.counters);
        let counters = Counters {
            lines_read: new.lines_read - old.lines_read,
            blocks_read: new.blocks_read - old.blocks_read,
            bytes_stored: new.bytes_stored - old.bytes_stored,
            bytes_stored_nt: new.bytes_stored_nt - old.bytes_stored_nt,
            lines_written: new.lines_written - old.lines_written,
            blocks_written: new.blocks_written - old.blocks_written,
            flushes: new.flushes - old.flushes,
            fences: new.fences - old.fences,
            log_bytes: new.log_bytes - old.log_bytes,
            store_orders: new.store_orders - old.store_orders,
            media_bytes_written: new.media_bytes_written - old.media_bytes_written,
            added_ns: new.added_ns - old.added_ns,
        };
        Self {
            counters,
            cache: CacheCounts {
                loads: self.cache.loads - earlier.cache.loads,
                stores: self.cache.stores - earlier.cache.stores,
            },
            syncs: self.syncs - earlier.syncs,
            system_calls: self.system_calls - earlier.system_calls,
            copied_bytes: self.copied_bytes - earlier.copied_bytes,
            written: Written {
                memory: self.written.memory - earlier.written.memory,
                log: self.written.log - earlier.written.log,
                table: self.written.table - earlier.written.table,
            },
            ledger: self.ledger.since(&earlier.ledger),
        }
    }
}

/// Bytes that an engine writes, as the paper's Table 3 divides them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Into memory: tuples, fields, pages before they go to a file.
    pub memory: u64,
    /// Into a log.
    pub log: u64,
    /// Into the table's durable form: files, directories.
    pub table: u64,
}

/// A partition's device.
pub(crate) struct Nvm<D: Device> {
    pub(crate) memory: Memory<D>,
    pub(crate) heap: Heap,
    pub(super) files: Files,
    pub(crate) written: Written,
}

impl<D: Device> Nvm<D> {
    /// Makes an empty device; `magic` says what its store is.
    pub(crate) fn create(device: Arc<D>, magic: u64, modelled: Modelled) -> Result<Self> {
        let mut memory = Memory::new(device, modelled.cache, modelled.is_timed);
        let heap = Heap::create(&mut memory, magic)?;
        Ok(Self {
            memory,
            heap,
            files: Files::empty(modelled.system_call_ns),
            written: Written::default(),
        })
    }

    /// Opens what was left: files can be used, memory only be read and undone until
    /// [`Self::reclaim`].
    pub(crate) fn open(device: Arc<D>, magic: u64, modelled: Modelled) -> Result<Self> {
        let mut memory = Memory::new(device, modelled.cache, modelled.is_timed);
        let heap = Heap::open(&mut memory, magic)?;
        let files = Files::open(&mut memory, modelled.system_call_ns)?;
        Ok(Self { memory, heap, files, written: Written::default() })
    }

    /// Frees what was not persisted.
    pub(crate) fn reclaim(&mut self) -> Reclaimed {
        let extents: HashSet<u64> = self.files.extents().collect();
        self.heap.reclaim(&mut self.memory, &extents)
    }

    pub(crate) fn allocate(&mut self, len: u64, area: Area) -> Result<u64> {
        self.heap.allocate(&mut self.memory, len, area)
    }

    pub(crate) fn recycle(&mut self, slot: u64) {
        self.heap.recycle(&mut self.memory, slot);
    }

    pub(crate) fn recycle_all(&mut self, slots: impl IntoIterator<Item = u64>) {
        slots.into_iter().for_each(|slot| self.recycle(slot));
    }

    pub(crate) fn mark_persisted(&mut self, slot: u64) {
        self.heap.mark_persisted(&mut self.memory, slot);
    }

    /// Flushes a new slot with the mark that it is persisted: a line once. For slots that
    /// something durable leads to, which recovery looks at.
    pub(crate) fn sync_persisted(&mut self, slot: u64, len: u64) {
        self.heap.set_persisted(&mut self.memory, slot);
        self.memory.flush(slot - HEADER_BYTES, HEADER_BYTES + len);
    }

    pub(crate) fn mark_free(&mut self, slot: u64) {
        self.heap.mark_free(&mut self.memory, slot);
    }

    /// The value of a named root; 0 if it was never set.
    pub(crate) fn root(&mut self, name: &[u8; 8]) -> u64 {
        let at = self.root_at(name);
        self.memory.load_u64(at)
    }

    /// Where the value of a named root is.
    pub(crate) fn root_at(&mut self, name: &[u8; 8]) -> u64 {
        Heap::root_at(&mut self.memory, u64::from_le_bytes(*name))
    }

    pub(crate) fn set_root(&mut self, name: &[u8; 8], value: u64) {
        let at = self.root_at(name);
        self.memory.sync_u64(at, value);
    }

    /// How many slots are marked persisted.
    #[cfg(test)]
    pub(crate) fn persisted_slots(&mut self) -> u64 {
        self.heap.persisted_slots(&mut self.memory)
    }

    /// How many extents files have.
    #[cfg(test)]
    pub(crate) fn extents_count(&self) -> u64 {
        self.files.extents().count() as u64
    }

    pub(crate) fn used(&self) -> Footprint {
        self.heap.used()
    }

    pub(crate) fn peak(&self) -> Footprint {
        self.heap.peak()
    }

    /// Does something whose accesses are of a structure.
    pub(crate) fn within<T>(&mut self, part: Part, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.memory.enter(part);
        let done = work(self);
        self.memory.enter(before);
        done
    }

    /// What follows is of a task, whatever the structure; what was before.
    pub(crate) fn begin(&mut self, task: Option<Task>) -> Option<Task> {
        self.memory.begin(task)
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            counters: self.memory.counters().clone(),
            cache: self.memory.cache_counts(),
            syncs: self.memory.syncs(),
            system_calls: self.files.system_calls,
            copied_bytes: self.files.copied_bytes,
            written: self.written,
            ledger: self.memory.ledger(),
        }
    }
}
