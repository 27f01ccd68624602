//! Room on the disk for the next snapshot, found before an epoch is logged (O-56, S21).

use std::sync::atomic::{AtomicU64, Ordering};

use super::disk::Files;
use super::format::{DATA_MAGIC, Root};
use super::slots::FIRST_SLOT;
use super::table::table_bytes;
use crate::failure::{DeviceError, Health};
use crate::memory::PAGE_BYTES;

/// The files grow by this part of them at least, so that a growing store does not pay for each
/// epoch.
const GROWTH_PART: u64 = 8;

/// So many pages of a snapshot are kept for those that free space, and this part of the image if
/// that is more. Where the image has fewer, all of it can change.
const KEPT_PAGES_MIN: u64 = 4096;
const KEPT_PAGES_PART: u64 = 16;

/// Pages of a snapshot that are kept for those that free space.
pub(super) fn kept_pages(image_bytes: u64) -> u64 {
    KEPT_PAGES_MIN.max(image_bytes / PAGE_BYTES / KEPT_PAGES_PART)
}

/// How large the files are, and what they have to hold. One thread at a time makes room; the writer
/// of snapshots tells what it has used.
#[derive(Debug)]
pub(super) struct Room {
    instance: u64,
    /// Bytes of the image, as the head of `data` has them.
    image_bytes: AtomicU64,
    /// Slots of `data`, the head's included.
    slots: AtomicU64,
    table_bytes: AtomicU64,
    /// Where the entries of the newest snapshot end.
    entries_end: AtomicU64,
    /// Pages of the snapshot that is being written.
    in_flight: AtomicU64,
}

impl Room {
    /// What the files have; `head` is that of `data`.
    pub(super) fn of(files: &Files, head: &Root, newest: &Root) -> Result<Self, DeviceError> {
        Ok(Self {
            instance: newest.instance,
            image_bytes: AtomicU64::new(head.image_bytes),
            slots: AtomicU64::new(files.data.len()? / PAGE_BYTES),
            table_bytes: AtomicU64::new(files.table.len()?),
            entries_end: AtomicU64::new(newest.entries.end()),
            in_flight: AtomicU64::new(0),
        })
    }

    pub(super) fn slots(&self) -> u64 {
        self.slots.load(Ordering::Acquire)
    }

    /// `data` has so many slots now.
    pub(super) fn grown(&self, slots: u64) {
        self.slots.fetch_max(slots, Ordering::AcqRel);
    }

    /// A snapshot of so many pages is handed to the writer.
    pub(super) fn submitted(&self, pages: u64) {
        self.in_flight.store(pages, Ordering::Release);
    }

    /// It is committed, and its entries end there.
    pub(super) fn committed(&self, entries_end: u64) {
        self.entries_end.store(entries_end, Ordering::Release);
        self.in_flight.store(0, Ordering::Release);
    }

    /// Makes room for an image of so many bytes, of whose pages so many have changed or will, until
    /// the next snapshot. That one needs no room beside the snapshot that is being written: it
    /// comes when that one counts, and the slots are free that it has replaced.
    ///
    /// # Errors
    /// `Full` where the disk has no room; what was there is as before.
    pub(super) fn make(
        &self,
        files: &Files,
        health: &Health,
        image_bytes: u64,
        changed: u64,
    ) -> Result<(), DeviceError> {
        let image_pages = image_bytes.div_ceil(PAGE_BYTES);
        let (in_flight, changed) =
            (self.in_flight.load(Ordering::Acquire), changed.min(image_pages));
        let slots = FIRST_SLOT + image_pages + in_flight.max(changed);
        let entries_end = self.entries_end.load(Ordering::Acquire);
        let table = table_bytes(entries_end, image_pages, in_flight + changed);
        let old = [self.slots() * PAGE_BYTES, self.table_bytes.load(Ordering::Acquire)];
        let wanted = [slots * PAGE_BYTES, table.next_multiple_of(PAGE_BYTES)];
        let is_larger = image_bytes > self.image_bytes.load(Ordering::Acquire);
        if wanted[0] <= old[0] && wanted[1] <= old[1] && !is_larger {
            return Ok(());
        }
        health.note(files.check_place())?;
        let roomy = [0, 1].map(|file| {
            let (wanted, old): (u64, u64) = (wanted[file], old[file]);
            let more = old + (old / GROWTH_PART).next_multiple_of(PAGE_BYTES);
            if wanted <= old { old } else { wanted.max(more) }
        });
        let grown = match extend(files, health, roomy) {
            Err(error) if error.is_limit() => extend(files, health, wanted).map(|()| wanted)?,
            other => other.map(|()| roomy)?,
        };
        self.grown(grown[0] / PAGE_BYTES);
        self.table_bytes.fetch_max(grown[1], Ordering::AcqRel);
        if is_larger {
            let head = Root { instance: self.instance, image_bytes, ..Root::default() };
            health.note(files.data.write_all_at(0, &head.encode(DATA_MAGIC)))?;
            health.note(files.data.sync())?;
            self.image_bytes.store(image_bytes, Ordering::Release);
        }
        Ok(())
    }
}

/// Makes `data` and `table` so large, durably.
fn extend(files: &Files, health: &Health, bytes: [u64; 2]) -> Result<(), DeviceError> {
    for (file, bytes) in [&files.data, &files.table].into_iter().zip(bytes) {
        if health.note_growth(file.allocate(bytes))? {
            health.note(file.sync())?;
        }
    }
    Ok(())
}
