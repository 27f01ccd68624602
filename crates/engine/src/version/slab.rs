//! The slab that holds all row entries, and the supplies from which workers take them.

// Only hands out ids, and is read by debug assertions everywhere: no place for an explorer.
use std::sync::atomic::{AtomicU32, Ordering};

use pmem::{DeviceError, Mapping};

use super::RowEntry;
use crate::index::EntryId;

/// All row entries of an engine: one reservation, so that an id is an address. Entries are handed
/// out to workers in runs and reused through per-worker free lists.
pub(crate) struct EntrySlab {
    memory: Mapping,
    used: AtomicU32,
}

/// One worker's supply of entries.
#[derive(Debug, Default)]
pub(crate) struct EntrySupply {
    free: Vec<EntryId>,
    fresh: std::ops::Range<u32>,
}

/// Entries allocated from the slab at a time.
const SUPPLY_ENTRIES: u32 = 1024;

/// How far ahead fresh entries are fetched: they were never touched, and are written one by one.
const FRESH_AHEAD: u32 = 8;

impl EntrySlab {
    pub(crate) fn new() -> Result<Self, DeviceError> {
        // Address space for every id, unless the system allows less; zeros are a valid entry.
        let entry = size_of::<RowEntry>() as u64;
        let memory = Mapping::reserve_up_to((1 << 32) * entry, (1 << 20) * entry)?;
        Ok(Self { memory, used: AtomicU32::new(0) })
    }

    /// The entry with an id.
    #[inline]
    pub(crate) fn get(&self, id: EntryId) -> &RowEntry {
        debug_assert!(id.0 < self.used.load(Ordering::Relaxed), "an id of this slab");
        // SAFETY: ids come from `take`, which stays inside the mapping; entries consist of atomics,
        // for which zeros are valid, and live as long as the slab.
        unsafe { &*self.memory.base().cast::<RowEntry>().add(id.0 as usize) }
    }

    /// The id of an entry, by its address.
    pub(crate) fn id_at(&self, address: usize) -> EntryId {
        let offset = address - self.memory.base() as usize;
        assert!(offset.is_multiple_of(size_of::<RowEntry>()), "an entry of this slab");
        let id = EntryId((offset / size_of::<RowEntry>()) as u32);
        assert!(id.0 < self.used.load(Ordering::Relaxed), "an entry that was handed out");
        id
    }

    #[inline]
    pub(crate) fn prefetch(&self, id: EntryId) {
        super::prefetch(self.memory.base() as usize + id.0 as usize * size_of::<RowEntry>());
    }

    /// Takes an entry.
    ///
    /// # Panics
    /// If 2^32 rows exist, or as many as the address space has room for.
    #[inline]
    pub(crate) fn take(&self, supply: &mut EntrySupply) -> EntryId {
        if let Some(id) = supply.free.pop() {
            return id;
        }
        if supply.fresh.is_empty() {
            self.refill(supply);
        }
        let id = supply.fresh.start;
        supply.fresh.start += 1;
        self.prefetch(EntryId(id + FRESH_AHEAD));
        EntryId(id)
    }

    #[inline(never)]
    fn refill(&self, supply: &mut EntrySupply) {
        let first = self.used.fetch_add(SUPPLY_ENTRIES, Ordering::Relaxed);
        let end = u64::from(first) + 2 * u64::from(SUPPLY_ENTRIES);
        let most = (self.memory.len() / size_of::<RowEntry>() as u64).min(1 << 32);
        assert!(end <= most, "more than {most} rows");
        supply.fresh = first..first + SUPPLY_ENTRIES;
        // Touched by a store first: a page that is read first is faulted in twice.
        self.get(EntryId(first)).touch();
    }

    /// Makes the pages of so many fresh entries present.
    pub(crate) fn populate(&self, count: u64) {
        let entry = size_of::<RowEntry>() as u64;
        let first = u64::from(self.used.load(Ordering::Relaxed)) * entry;
        self.memory.populate(first, (count * entry).min(self.memory.len() - first));
    }

    /// Gives an entry back; after execution only.
    pub(crate) fn give_back(&self, supply: &mut EntrySupply, id: EntryId) {
        debug_assert!(supply.free.last() != Some(&id), "an entry is given back once");
        self.get(id).retire();
        supply.free.push(id);
    }

    /// Bytes of DRAM in use.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.used.load(Ordering::Relaxed)) * size_of::<RowEntry>() as u64
    }
}
