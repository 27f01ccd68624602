//! The page table: which slot of `data` holds each page of the image, and its checksum.

use std::collections::BTreeSet;

use super::disk::{Files, PIECE_BYTES};
use super::format::{ENTRY_BYTES, Entries, Entry, HEAD_BYTES, Root};
use super::slots::{FIRST_SLOT, FreeSlots};
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;

/// More entries than this beside two for each page, and the table is written anew.
const EXTRA_ENTRIES: u64 = 4096;

/// The newest entry of each page; slot 0 where a page was never stored to.
#[derive(Debug, Default)]
pub(super) struct PageTable {
    slots: Vec<u64>,
    crcs: Vec<u32>,
    /// Pages with a slot.
    used: u64,
}

/// A table that was read.
#[derive(Debug, Default)]
pub(super) struct TableRead {
    pub(super) table: PageTable,
    /// Pages that got entries since those that were asked for were all.
    pub(super) changed: Option<BTreeSet<u64>>,
}

impl TableRead {
    #[inline]
    fn add(&mut self, entry: Entry) {
        self.table.set(entry);
        if let Some(changed) = &mut self.changed {
            changed.insert(entry.page);
        }
    }
}

impl PageTable {
    /// Without entries, and with places for those of so many pages.
    fn of_pages(pages: u64) -> Self {
        Self { slots: vec![0; pages as usize], crcs: vec![0; pages as usize], used: 0 }
    }

    /// Replaces the entry of a page; returns the slot that it had.
    #[inline]
    pub(super) fn set(&mut self, entry: Entry) -> Option<u64> {
        let at = entry.page as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, 0);
            self.crcs.resize(at + 1, 0);
        }
        let old = std::mem::replace(&mut self.slots[at], entry.slot);
        self.crcs[at] = entry.crc;
        self.used += u64::from(old == 0);
        (old != 0).then_some(old)
    }

    /// Pages with a slot.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The number of slots of the shortest file that has all pages.
    pub(super) fn slots_end(&self) -> u64 {
        self.slots.iter().max().map_or(FIRST_SLOT, |last| FIRST_SLOT.max(last + 1))
    }

    /// The entries of the pages in the last slots, from one on, the last ones first; no more than
    /// so many.
    pub(super) fn last_entries(&self, from: u64, most: u64) -> Vec<Entry> {
        let mut last: Vec<Entry> = self.entries().filter(|entry| entry.slot >= from).collect();
        last.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.slot));
        last.truncate(most as usize);
        last
    }

    /// The entry of a page; `None` if it was never stored to.
    pub(super) fn entry(&self, page: u64) -> Option<Entry> {
        let slot = *self.slots.get(page as usize).filter(|slot| **slot != 0)?;
        Some(Entry { page, slot, crc: self.crcs[page as usize] })
    }

    /// The entries of all pages that have a slot, in the order of the pages.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let slots = (0..).zip(&self.slots).zip(&self.crcs);
        slots.filter(|((_, slot), _)| **slot != 0).map(|((page, slot), crc)| Entry {
            page,
            slot: *slot,
            crc: *crc,
        })
    }

    /// Reads the table of a snapshot.
    ///
    /// # Errors
    /// `Corrupt` if the entries are not those of the root.
    pub(super) fn read(files: &Files, root: &Root) -> Result<Self, DeviceError> {
        Ok(Self::read_since(files, root, None)?.table)
    }

    /// The same, with the pages that got entries since others were all, if those still are the
    /// first ones: the table was not written anew.
    pub(super) fn read_since(
        files: &Files,
        root: &Root,
        before: Option<&Entries>,
    ) -> Result<TableRead, DeviceError> {
        let (table, entries) = (&files.table, root.entries);
        let corrupt = |what| Err(DeviceError::corrupt(table.path(), what));
        let len = table.len()?;
        if len < entries.end() || len < HEAD_BYTES {
            let what = format!("{len} bytes, but {} were saved: truncated?", entries.end());
            return corrupt(what);
        }
        let before = before.filter(|old| old.start == entries.start && old.count <= entries.count);
        let (image_pages, slots) = (root.image_bytes / PAGE_BYTES, root.data_bytes / PAGE_BYTES);
        // There are about as many, or the image has pages that were never stored to.
        let expected = image_pages.min(entries.count);
        let mut read = TableRead { table: Self::of_pages(expected), changed: None };
        let mut crc = crc32fast::Hasher::new();
        let mut at = entries.start;
        let mut buffer = vec![0; PIECE_BYTES.min((entries.end() - at) as usize)];
        let mut outside = None;
        loop {
            if before.is_some_and(|old| old.end() == at && old.crc == crc.clone().finalize()) {
                read.changed = Some(BTreeSet::new());
            }
            let end = before.map(Entries::end).filter(|end| at < *end).unwrap_or(entries.end());
            if at == end {
                break;
            }
            let piece = &mut buffer[..PIECE_BYTES.min((end - at) as usize)];
            table.read_exact_at(at, piece)?;
            at += piece.len() as u64;
            crc.update(piece);
            for entry in piece.as_chunks::<ENTRY_BYTES>().0.iter().map(Entry::decode) {
                // A slot of an entry that was replaced may have been given back since.
                if entry.page >= image_pages || entry.slot == 0 {
                    outside = outside.or(Some(entry));
                } else {
                    read.add(entry);
                }
            }
        }
        let (found, wanted) = (crc.finalize(), entries.crc);
        if found != wanted {
            return corrupt(format!(
                "its checksum is {found:08x}, that of snapshot {} is {wanted:08x}: it is damaged, \
                 or of another moment than the other files; restore the whole directory from a \
                 copy",
                root.sequence
            ));
        }
        let is_there = |entry: &Entry| entry.slot < slots;
        let missing = || read.table.entries().find(|entry| !is_there(entry));
        if let Some(Entry { page, slot, .. }) = outside.or_else(missing) {
            return corrupt(format!(
                "page {page} of an image of {image_pages} pages, slot {slot} of {slots}"
            ));
        }
        Ok(read)
    }

    /// The slots that no page has.
    ///
    /// # Errors
    /// `Corrupt` if two pages have one slot (S20).
    pub(super) fn free_slots(&self, files: &Files, slots: u64) -> Result<FreeSlots, DeviceError> {
        let mut free = FreeSlots::all(slots);
        match self.entries().find(|entry| !free.take(entry.slot)) {
            None => Ok(free),
            Some(Entry { page, slot, .. }) => {
                let what = format!("page {page} and another one have slot {slot}");
                Err(DeviceError::corrupt(files.table.path(), what))
            }
        }
    }

    /// Where the entries of the next snapshot go, and which they are: those that are new, behind
    /// those of the snapshot before; or all of them, where too many were replaced since. Those of
    /// the snapshot before are never written over.
    pub(super) fn place(&self, before: &Entries, new: &[Entry]) -> Placed {
        let appended = before.count + new.len() as u64;
        if appended <= 2 * self.used + EXTRA_ENTRIES {
            let start = if before.start == 0 { HEAD_BYTES } else { before.start };
            let entries = Entries { start, ..*before };
            return Placed { before: entries, bytes: encode(new.iter().copied()) };
        }
        let bytes = encode(self.entries());
        let fits = HEAD_BYTES + bytes.len() as u64 <= before.start;
        let start = if fits { HEAD_BYTES } else { before.end() };
        Placed { before: Entries { start, count: 0, crc: 0 }, bytes }
    }
}

/// Entries that are to be written.
pub(super) struct Placed {
    /// Those that they follow.
    before: Entries,
    bytes: Vec<u8>,
}

impl Placed {
    /// Writes them, without a sync; returns which entries count then.
    pub(super) fn write(&self, files: &Files) -> Result<Entries, DeviceError> {
        let Self { before, bytes } = self;
        // Reserved before; a file system that does not keep such promises fails here.
        files.table.allocate(before.end() + bytes.len() as u64)?;
        files.table.write_all_at(before.end(), bytes)?;
        let mut crc = crc32fast::Hasher::new_with_initial(before.crc);
        crc.update(bytes);
        let count = before.count + (bytes.len() / ENTRY_BYTES) as u64;
        Ok(Entries { start: before.start, count, crc: crc.finalize() })
    }
}

fn encode(entries: impl Iterator<Item = Entry>) -> Vec<u8> {
    entries.flat_map(Entry::encode).collect()
}

/// The least length of `table` that has room for so many entries behind `end`, or for all of them
/// anew; and for two tables of an image of this size, as long as they get.
pub(super) fn table_bytes(end: u64, image_pages: u64, new: u64) -> u64 {
    let longest = 2 * image_pages + EXTRA_ENTRIES;
    let appended = end.max(HEAD_BYTES) + (image_pages + new) * ENTRY_BYTES as u64;
    appended.max(HEAD_BYTES + 2 * longest * ENTRY_BYTES as u64)
}

#[cfg(test)]
mod tests;
