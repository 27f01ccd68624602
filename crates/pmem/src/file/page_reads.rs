//! Reading pages from their slots: many at once, in the order of the file, each checked.

use super::disk::{DiskHandle, PIECE_BYTES};
use super::format::{Entry, page_crc};
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;

/// Slots that no page has are read, too, if a run of them is not longer than this: that takes less
/// time than another read.
const SKIPPED_SLOTS_MIN: u64 = 64;

/// Pages whose slots are near each other, in the order of the slots; at least one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'e> {
    entries: &'e [Entry],
}

impl<'e> Run<'e> {
    /// These entries; `None` if there is none.
    pub(super) fn of(entries: &'e [Entry]) -> Option<Self> {
        (!entries.is_empty()).then_some(Self { entries })
    }

    /// Cuts entries, in the order of their slots, into runs, none of which is longer than so many
    /// slots.
    pub(super) fn all(mut left: &'e [Entry], slots_max: u64) -> impl Iterator<Item = Self> {
        std::iter::from_fn(move || {
            let first = left.first()?.slot;
            let mut end = first;
            let near = |entry: &&Entry| {
                let is_near =
                    entry.slot < end + SKIPPED_SLOTS_MIN && entry.slot - first < slots_max;
                end = if is_near { entry.slot + 1 } else { end };
                is_near
            };
            let (entries, rest) = left.split_at(left.iter().take_while(near).count());
            left = rest;
            Self::of(entries)
        })
    }

    pub(super) fn entries(self) -> &'e [Entry] {
        self.entries
    }

    /// Reads the slots from the first one to the last one.
    pub(super) fn read(self, data: &DiskHandle, into: &mut Vec<u8>) -> Result<(), DeviceError> {
        let (first, last) = (self.first_slot(), self.entries[self.entries.len() - 1].slot);
        let len = ((last + 1 - first) * PAGE_BYTES) as usize;
        if into.len() < len {
            into.resize(len, 0);
        }
        data.read_exact_at(first * PAGE_BYTES, &mut into[..len])
    }

    /// The bytes of one of the slots, of those that [`Run::read`] has read.
    pub(super) fn bytes_of(self, entry: &Entry, read: &'e [u8]) -> &'e [u8] {
        let at = ((entry.slot - self.first_slot()) * PAGE_BYTES) as usize;
        &read[at..][..PAGE_BYTES as usize]
    }

    fn first_slot(self) -> u64 {
        self.entries[0].slot
    }
}

/// Reads pages, each checked as it is read, in the order of their slots: a disk reads in order
/// fastest.
pub(super) fn read_pages(
    data: &DiskHandle,
    mut entries: Vec<Entry>,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    entries.sort_unstable_by_key(|entry| entry.slot);
    let mut buffer = vec![0; PIECE_BYTES.min(entries.len() * PAGE_BYTES as usize * 2)];
    for run in Run::all(&entries, PIECE_BYTES as u64 / PAGE_BYTES) {
        run.read(data, &mut buffer)?;
        for entry in run.entries() {
            let bytes = run.bytes_of(entry, &buffer);
            check_page(data, entry, bytes)?;
            each(entry.page, bytes)?;
        }
    }
    Ok(())
}

/// Checks the bytes of a slot against the entry of its page.
pub(super) fn check_page(
    data: &DiskHandle,
    entry: &Entry,
    bytes: &[u8],
) -> Result<(), DeviceError> {
    let Entry { page, slot, crc } = entry;
    let found = page_crc(*page, bytes);
    if found == *crc {
        return Ok(());
    }
    let what = format!(
        "page {page}, in slot {slot}, has checksum {found:08x} and not {crc:08x}: it is damaged, \
         or of another moment than the other files; restore the whole directory from a copy"
    );
    Err(DeviceError::corrupt(data.path(), what))
}
