//! Slots of the image: pages are used by all workers, slots by each from its own lists.
//!
//! Two levels: a page is entered on the device once, for one table, with one fence. Slots are given
//! out and given back in DRAM alone: a scan after a crash tells which hold the newest committed
//! version of a row, and all others are free.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{Device, Port};
use workloads::TableSpec;

use crate::grace::Padded;
use crate::image::layout::{
    Layout, PAGE_HEADER_WORDS, SLOTS_AT, SUPERBLOCK_WORDS, layouts, page_header, superblock,
    table_of_page,
};
use crate::memory::{WORD_BYTES, load_words, store_words};
use crate::{Error, Result};

/// The pages of an image.
pub(crate) struct Heap<D: Device> {
    device: Arc<D>,
    page_bytes: u64,
    pub(crate) layouts: Vec<Layout>,
    next_page: Padded<AtomicU64>,
}

/// A page in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub(crate) table: usize,
    pub(crate) offset: u64,
}

impl<D: Device> Heap<D> {
    /// Makes an empty heap of an engine of some kind.
    pub(crate) fn create(
        device: Arc<D>,
        kind: u64,
        specs: &[TableSpec],
        page_bytes: u64,
    ) -> Result<Self> {
        require_fences(&*device)?;
        let layouts = layouts(specs, page_bytes)?;
        device.grow_image(page_bytes)?;
        let mut port = Port::new(Arc::clone(&device), 0);
        let words = superblock(kind, page_bytes, specs);
        // The number that says what this is comes last: they are in one line.
        store_words(&mut port, WORD_BYTES, &words[1..]);
        store_words(&mut port, 0, &words[..1]);
        port.flush(0, SUPERBLOCK_WORDS as u64 * WORD_BYTES);
        port.fence();
        Ok(Self { device, page_bytes, layouts, next_page: Padded(AtomicU64::new(1)) })
    }

    /// Opens the heap that such an engine made; its superblock comes along.
    pub(crate) fn open(
        device: Arc<D>,
        kind: u64,
        specs: &[TableSpec],
        page_bytes: u64,
    ) -> Result<(Self, Vec<u64>)> {
        require_fences(&*device)?;
        let layouts = layouts(specs, page_bytes)?;
        let mut port = Port::new(Arc::clone(&device), 0);
        let (mut words, expected) = (Vec::new(), superblock(kind, page_bytes, specs));
        if device.image_bytes() >= page_bytes {
            load_words(&mut port, 0, SUPERBLOCK_WORDS, &mut words);
        }
        if words.get(..4) != Some(&expected[..4]) {
            let what = "the image has no store of this engine with these tables and pages";
            return Err(Error::Corrupt(what.into()));
        }
        Ok((Self { device, page_bytes, layouts, next_page: Padded(AtomicU64::new(1)) }, words))
    }

    /// Before recovery: what it reads must not be less durable than what is built on it.
    pub(crate) fn make_durable(&self, port: &mut Port<D>) {
        if self.device.may_show_undurable() {
            port.flush(0, self.device.image_bytes());
            port.fence();
        }
    }

    /// The pages in use. Pages for the future come after them.
    pub(crate) fn find_pages(&self, port: &mut Port<D>) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        let mut header = Vec::new();
        for number in 1..self.device.image_bytes() / self.page_bytes {
            let offset = number * self.page_bytes;
            header.clear();
            load_words(port, offset, PAGE_HEADER_WORDS, &mut header);
            if let Some(table) = table_of_page(&header, self.layouts.len())? {
                pages.push(Page { table, offset });
                self.next_page.0.store(number + 1, Ordering::Relaxed);
            }
        }
        Ok(pages)
    }

    /// Offsets of all slots of a page.
    pub(crate) fn slots(&self, page: Page) -> impl Iterator<Item = u64> + use<D> {
        let slot_bytes = self.layouts[page.table].slot_bytes;
        let count = (self.page_bytes - SLOTS_AT) / slot_bytes;
        (0..count).map(move |slot| page.offset + SLOTS_AT + slot * slot_bytes)
    }

    /// Counts the read of a whole page, front to back.
    pub(crate) fn count_read(&self, port: &mut Port<D>, page: Page) {
        port.count_load(page.offset, self.page_bytes);
    }

    /// Enters a new page of a table on the device; its offset.
    fn take_page(&self, port: &mut Port<D>, table: usize) -> Result<u64> {
        let number = self.next_page.0.fetch_add(1, Ordering::Relaxed);
        let offset = number * self.page_bytes;
        self.device.grow_image(offset + self.page_bytes)?;
        let header = page_header(table);
        store_words(port, offset + WORD_BYTES, &header[1..]);
        store_words(port, offset, &header[..1]);
        port.flush(offset, PAGE_HEADER_WORDS as u64 * WORD_BYTES);
        port.fence();
        Ok(offset)
    }
}

/// Fails on a device whose fences make nothing durable by themselves: nothing here image snapshots.
fn require_fences<D: Device>(device: &D) -> Result<()> {
    if device.takes_snapshots() {
        let name = device.description().name;
        return Err(Error::Limit(format!("fences of {name} do not make stores durable")));
    }
    Ok(())
}

/// The slots that one worker may write.
#[derive(Debug)]
pub(crate) struct Slots {
    tables: Box<[TableSlots]>,
}

#[derive(Debug, Default)]
struct TableSlots {
    free: Vec<u64>,
    /// Slots of the newest page that were never used.
    next: u64,
    end: u64,
}

impl Slots {
    pub(crate) fn new(tables: usize) -> Self {
        Self { tables: (0..tables).map(|_| TableSlots::default()).collect() }
    }

    /// A slot of a table that is not in use: the one that was freed last, whose lines may still be
    /// in the processor's cache, or the next one of the newest page.
    pub(crate) fn take<D: Device>(
        &mut self,
        heap: &Heap<D>,
        port: &mut Port<D>,
        table: usize,
    ) -> Result<u64> {
        let slots = &mut self.tables[table];
        if let Some(slot) = slots.free.pop() {
            return Ok(slot);
        }
        let slot_bytes = heap.layouts[table].slot_bytes;
        if slots.next + slot_bytes > slots.end {
            let page = heap.take_page(port, table)?;
            (slots.next, slots.end) = (page + SLOTS_AT, page + heap.page_bytes);
        }
        let slot = slots.next;
        slots.next += slot_bytes;
        Ok(slot)
    }

    /// Takes a slot back that no transaction needs any more.
    pub(crate) fn give_back(&mut self, table: usize, slot: u64) {
        self.tables[table].free.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::{Dram, File, FileOptions};
    use workloads::IndexKind;

    fn specs(value_bytes_max: u32) -> Vec<TableSpec> {
        vec![TableSpec { name: "t", index: IndexKind::Hash, key_bytes_max: 8, value_bytes_max }]
    }

    #[test]
    fn a_device_that_must_save_snapshots_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let device = File::open(dir.path(), &FileOptions::new(1 << 20, 1 << 20)).unwrap();
        let error = Heap::create(Arc::new(device), 1, &specs(8), 8192).err().unwrap();
        assert!(error.to_string().contains("do not make stores durable"), "{error}");
    }

    #[test]
    fn only_the_store_that_was_made_is_opened() {
        let device = Arc::new(Dram::new(1 << 20, 0).unwrap());
        let open = |kind, specs: &[TableSpec], page_bytes| {
            Heap::open(Arc::clone(&device), kind, specs, page_bytes).map(|_| ())
        };
        assert!(open(1, &specs(8), 8192).is_err());
        Heap::create(Arc::clone(&device), 1, &specs(8), 8192).unwrap();
        assert!(open(1, &specs(8), 8192).is_ok());
        for other in [open(2, &specs(8), 8192), open(1, &specs(9), 8192), open(1, &specs(8), 4096)]
        {
            assert!(matches!(other, Err(Error::Corrupt(_))));
        }
    }

    #[test]
    fn pages_come_back_and_slots_are_given_out_once() {
        let device = Arc::new(Dram::new(1 << 20, 0).unwrap());
        let mut port = Port::new(Arc::clone(&device), 1);
        let heap = Heap::create(Arc::clone(&device), 1, &specs(1000), 8192).unwrap();
        let mut slots = Slots::new(1);
        let mut taken: Vec<u64> =
            (0..20).map(|_| slots.take(&heap, &mut port, 0).unwrap()).collect();
        slots.give_back(0, taken[3]);
        assert_eq!(slots.take(&heap, &mut port, 0).unwrap(), taken[3]);
        let pages = heap.find_pages(&mut port).unwrap();
        let all: Vec<u64> = pages.iter().flat_map(|page| heap.slots(*page)).collect();
        assert!(taken.iter().all(|slot| all.contains(slot)));
        taken.dedup();
        assert_eq!((taken.len(), pages.len()), (20, 3));
    }
}
