//! The allocator: slots whose offsets stay valid, with a durable state each.
//!
//! The image is a superblock with the names of roots, the directory of files, and chunks. A chunk
//! has slots of one class; a class is a multiple of a line, so that no two slots share one. A slot
//! begins with a header word: its state, what it is for, and how many bytes were asked for. Its
//! address is that of the first byte behind the header.
//!
//! The policy is a rotating best fit: of the smallest class that fits, the slot that has been free
//! for the longest time. The lists of free slots are rebuilt at an open: slots that were not marked
//! persisted become free. They are in DRAM and not charged.

use std::collections::{BTreeMap, HashSet, VecDeque};

use pmem::{Device, LINE_BYTES};

use super::ledger::Part;
use super::memory::Memory;
use crate::{Error, Result};

pub(crate) const HEADER_BYTES: u64 = 8;
/// Where the files' directory begins.
pub(super) const DIRECTORY_AT: u64 = 4096;
const CHUNKS_AT: u64 = 64 << 10;
const CHUNK_BYTES: u64 = 64 << 10;
/// Most bytes of a slot.
pub(crate) const SLOT_BYTES_MAX: u64 = CHUNK_BYTES - LINE_BYTES - HEADER_BYTES;
/// Larger slots have a chunk each.
const SMALL_MAX: u64 = 8 << 10;

const MAGIC_AT: u64 = 0;
const ROOTS_AT: u64 = 64;
const ROOTS_COUNT: u64 = 64;

const FREE: u64 = 0;
const ALLOCATED: u64 = 1;
const PERSISTED: u64 = 2;
const STATE: u64 = 0xff;

/// What a slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Tuples and their fields, pages of tuples.
    Table,
    /// Trees and filters.
    Index,
    /// Logs of pointers.
    Log,
    /// Pages of files that are kept in memory.
    Cache,
    /// Extents of files.
    File,
    /// Directories, lists of what a batch makes.
    Other,
}

impl Area {
    /// All areas.
    pub const ALL: [Self; 6] =
        [Self::Table, Self::Index, Self::Log, Self::Cache, Self::File, Self::Other];
}

/// Bytes in use by area.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Footprint([u64; Area::ALL.len()]);

impl Footprint {
    /// Bytes of one area.
    #[must_use]
    pub fn of(&self, area: Area) -> u64 {
        self.0[area as usize]
    }

    /// Bytes of all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// What an open found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    /// Slots that were looked at.
    pub(crate) slots: u64,
    /// Of these, the ones that had not been persisted.
    pub(crate) freed: u64,
}

/// The allocator of a device.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    chunks: u64,
    /// By class.
    free: BTreeMap<u64, VecDeque<u64>>,
    used: Footprint,
    peak: Footprint,
}

fn class_of(len: u64) -> Result<u64> {
    match len + HEADER_BYTES {
        bytes if bytes <= SMALL_MAX => Ok(bytes.next_multiple_of(LINE_BYTES)),
        _ if len <= SLOT_BYTES_MAX => Ok(CHUNK_BYTES - LINE_BYTES),
        _ => Err(Error::Limit(format!("{len} bytes in one slot, {SLOT_BYTES_MAX} fit"))),
    }
}

fn chunk_at(chunk: u64) -> u64 {
    CHUNKS_AT + chunk * CHUNK_BYTES
}

/// The addresses of a chunk's slots.
fn slots(chunk: u64, class: u64) -> impl Iterator<Item = u64> {
    let first = chunk_at(chunk) + LINE_BYTES + HEADER_BYTES;
    let count = (CHUNK_BYTES - LINE_BYTES) / class;
    (0..count).map(move |slot| first + slot * class)
}

impl Heap {
    /// An empty heap on a device, whatever it held; `magic` says what its store is.
    pub(super) fn create<D: Device>(memory: &mut Memory<D>, magic: u64) -> Result<Self> {
        memory.device().grow_image(CHUNKS_AT)?;
        // What another store left would pass for directories and headers of slots.
        let used = memory.device().image_bytes();
        for at in (0..used).step_by(LINE_BYTES as usize) {
            if memory.load(at, LINE_BYTES).iter().any(|byte| *byte != 0) {
                memory.store(at, &[0; LINE_BYTES as usize]);
                memory.flush(at, LINE_BYTES);
            }
        }
        memory.fence();
        memory.sync_u64(MAGIC_AT, magic);
        Ok(Self::default())
    }

    /// The heap of a device, whose slots are as they were left. Nothing can be allocated before
    /// [`Self::reclaim`].
    pub(super) fn open<D: Device>(memory: &mut Memory<D>, magic: u64) -> Result<Self> {
        let bytes = memory.device().image_bytes();
        let found = if bytes < CHUNKS_AT { 0 } else { memory.load_u64(MAGIC_AT) };
        if found != magic {
            return Err(Error::Corrupt(format!("no such store: {found:x} instead of {magic:x}")));
        }
        let mut heap = Self::default();
        while chunk_at(heap.chunks + 1) <= bytes && memory.load_u64(chunk_at(heap.chunks)) != 0 {
            heap.chunks += 1;
        }
        Ok(heap)
    }

    /// Frees what was not persisted, and extents of files that do not have them.
    pub(super) fn reclaim<D: Device>(
        &mut self,
        memory: &mut Memory<D>,
        extents: &HashSet<u64>,
    ) -> Reclaimed {
        let mut reclaimed = Reclaimed::default();
        (self.used, self.free) = Default::default();
        for chunk in 0..self.chunks {
            let class = memory.load_u64(chunk_at(chunk));
            for slot in slots(chunk, class) {
                reclaimed.slots += 1;
                let header = memory.load_u64(slot - HEADER_BYTES);
                let is_file = header >> 8 & 0xff == Area::File as u64;
                if header & STATE == PERSISTED && (!is_file || extents.contains(&slot)) {
                    self.used.0[(header >> 8 & 0xff) as usize] += class;
                    continue;
                }
                if header & STATE != FREE {
                    reclaimed.freed += 1;
                    self.mark_free(memory, slot);
                }
                self.free.entry(class).or_default().push_back(slot);
            }
        }
        memory.fence();
        self.peak = self.used;
        reclaimed
    }

    /// A slot for so many bytes, not persisted.
    pub(crate) fn allocate<D: Device>(
        &mut self,
        memory: &mut Memory<D>,
        len: u64,
        area: Area,
    ) -> Result<u64> {
        let class = class_of(len)?;
        if self.free.get(&class).is_none_or(VecDeque::is_empty) {
            self.add_chunk(memory, class)?;
        }
        let slot = self.free.get_mut(&class).and_then(VecDeque::pop_front);
        let slot = slot.expect("a chunk has slots");
        let header = len << 16 | (area as u64) << 8 | ALLOCATED;
        Self::store_header(memory, slot, header);
        self.used.0[area as usize] += class;
        if self.used.total() > self.peak.total() {
            self.peak = self.used;
        }
        Ok(slot)
    }

    fn add_chunk<D: Device>(&mut self, memory: &mut Memory<D>, class: u64) -> Result<()> {
        memory.device().grow_image(chunk_at(self.chunks + 1))?;
        memory.sync_u64(chunk_at(self.chunks), class);
        self.free.entry(class).or_default().extend(slots(self.chunks, class));
        self.chunks += 1;
        Ok(())
    }

    fn store_header<D: Device>(memory: &mut Memory<D>, slot: u64, header: u64) {
        let before = memory.enter(Part::Mark);
        memory.store_u64(slot - HEADER_BYTES, header);
        memory.enter(before);
    }

    /// Changes a slot's state; it is durable once the slot's first line is.
    fn set_state<D: Device>(memory: &mut Memory<D>, slot: u64, state: u64) {
        let header = memory.load_u64(slot - HEADER_BYTES);
        Self::store_header(memory, slot, header & !STATE | state);
    }

    /// Marks a slot persisted, whose first line is yet to be flushed.
    pub(crate) fn set_persisted<D: Device>(&self, memory: &mut Memory<D>, slot: u64) {
        Self::set_state(memory, slot, PERSISTED);
    }

    /// Marks a slot persisted: durable after the next fence.
    pub(crate) fn mark_persisted<D: Device>(&self, memory: &mut Memory<D>, slot: u64) {
        Self::set_state(memory, slot, PERSISTED);
        memory.flush(slot - HEADER_BYTES, 8);
    }

    /// Marks a slot free, but does not use it yet: durable after the next fence.
    pub(crate) fn mark_free<D: Device>(&self, memory: &mut Memory<D>, slot: u64) {
        Self::set_state(memory, slot, FREE);
        memory.flush(slot - HEADER_BYTES, 8);
    }

    #[cfg(test)]
    pub(super) fn persisted_slots<D: Device>(&self, memory: &mut Memory<D>) -> u64 {
        let mut count = 0;
        for chunk in 0..self.chunks {
            let class = memory.load_u64(chunk_at(chunk));
            let persisted = slots(chunk, class).filter(|slot| self.is_persisted(memory, *slot));
            count += persisted.count() as u64;
        }
        count
    }

    /// Whether the slot is marked persisted.
    pub(crate) fn is_persisted<D: Device>(&self, memory: &mut Memory<D>, slot: u64) -> bool {
        memory.load_u64(slot - HEADER_BYTES) & STATE == PERSISTED
    }

    /// The slot may be used again; it was never persisted, or is marked free.
    pub(crate) fn recycle<D: Device>(&mut self, memory: &mut Memory<D>, slot: u64) {
        let at = slot - HEADER_BYTES;
        let header = memory.load_u64(at);
        debug_assert_ne!(header & STATE, PERSISTED, "a persisted slot is marked free first");
        if header & STATE == ALLOCATED {
            Self::store_header(memory, slot, header & !STATE);
        }
        let class = class_of(header >> 16).expect("it was allocated");
        self.used.0[(header >> 8 & 0xff) as usize] -= class;
        self.free.entry(class).or_default().push_back(slot);
    }

    /// Bytes that were asked for.
    pub(crate) fn len<D: Device>(&self, memory: &mut Memory<D>, slot: u64) -> u64 {
        memory.load_u64(slot - HEADER_BYTES) >> 16
    }

    pub(crate) fn used(&self) -> Footprint {
        self.used
    }

    pub(crate) fn peak(&self) -> Footprint {
        self.peak
    }

    /// Where the value of a named root is.
    ///
    /// # Panics
    /// If there are more than 64 names.
    pub(crate) fn root_at<D: Device>(memory: &mut Memory<D>, name: u64) -> u64 {
        for root in 0..ROOTS_COUNT {
            let at = ROOTS_AT + root * 16;
            match memory.load_u64(at) {
                0 => {
                    memory.sync_u64(at, name);
                    return at + 8;
                }
                found if found == name => return at + 8,
                _ => {}
            }
        }
        panic!("more than {ROOTS_COUNT} named roots");
    }
}

const _: () = assert!(ROOTS_AT + ROOTS_COUNT * 16 <= DIRECTORY_AT);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pmem::{AllOldest, Crash};

    use super::*;

    fn memory(device: Crash) -> Memory<Crash> {
        Memory::new(Arc::new(device), None, false)
    }

    #[test]
    fn slots_rotate_within_the_class_that_fits_best() {
        let mut memory = memory(Crash::new(1 << 20, 0).unwrap());
        let mut heap = Heap::create(&mut memory, 7).unwrap();
        let first = heap.allocate(&mut memory, 56, Area::Table).unwrap();
        let second = heap.allocate(&mut memory, 20, Area::Table).unwrap();
        assert_eq!(second - first, 64);
        heap.recycle(&mut memory, first);
        let third = heap.allocate(&mut memory, 56, Area::Table).unwrap();
        assert_eq!(third - second, 64, "the slot that was freed last comes last");
        let large = heap.allocate(&mut memory, 57, Area::Index).unwrap();
        assert!(large > third + 1024, "another class");
        assert_eq!((heap.used().of(Area::Table), heap.used().total()), (128, 256));
        assert!(heap.allocate(&mut memory, CHUNK_BYTES, Area::Table).is_err());
    }

    #[test]
    fn a_restart_frees_what_was_not_persisted_and_keeps_names() {
        let mut memory = memory(Crash::new(1 << 20, 0).unwrap());
        let mut heap = Heap::create(&mut memory, 7).unwrap();
        let kept = heap.allocate(&mut memory, 100, Area::Table).unwrap();
        let lost = heap.allocate(&mut memory, 100, Area::Table).unwrap();
        memory.store(kept, &[5; 100]);
        memory.flush(kept, 100);
        heap.mark_persisted(&mut memory, kept);
        memory.flush(lost - 8, 8);
        memory.fence();
        let root = Heap::root_at(&mut memory, 99);
        memory.sync_u64(root, kept);
        let after = memory.device().image_after_power_cut(&mut AllOldest);
        let mut memory = self::memory(after);
        assert!(Heap::open(&mut memory, 8).is_err());
        let mut heap = Heap::open(&mut memory, 7).unwrap();
        let reclaimed = heap.reclaim(&mut memory, &HashSet::new());
        assert_eq!(reclaimed.freed, 1);
        let root = Heap::root_at(&mut memory, 99);
        assert_eq!(memory.load_u64(root), kept);
        assert_eq!(heap.persisted_slots(&mut memory), 1);
        assert_eq!(heap.len(&mut memory, kept), 100);
        assert_eq!(memory.load(kept, 100), [5; 100]);
        let slots = reclaimed.slots;
        let mut again: Vec<u64> =
            (1..slots).map(|_| heap.allocate(&mut memory, 100, Area::Table).unwrap()).collect();
        again.sort_unstable();
        again.dedup();
        assert_eq!((again.len() as u64, again.contains(&kept)), (slots - 1, false));
        Heap::create(&mut memory, 9).unwrap();
        let mut heap = Heap::open(&mut memory, 9).unwrap();
        assert_eq!(heap.reclaim(&mut memory, &HashSet::new()).slots, 0, "nothing is left of it");
    }
}
