//! Writing a snapshot. The steps are those of README.md.

use std::sync::Arc;

use super::disk::Files;
use super::format::{Entries, Entry, Root, TABLE_MAGIC, page_crc};
use super::meta::write_root;
use super::moves::Moves;
use super::residency::Saved;
use super::room::Room;
use super::slots::FreeSlots;
use super::table::PageTable;
use crate::epoch_number::EpochNumber;
use crate::failure::DeviceError;
use crate::memory::{PAGE_BYTES, PagesToSave};

/// Pages that are copied before they are written together.
const BATCH_PAGES: usize = 256;

/// What a snapshot consists of, handed to the background writer.
#[derive(Debug)]
pub(super) struct ImageSnapshot {
    pub(super) epoch: EpochNumber,
    pub(super) image_bytes: u64,
    pub(super) log_bytes: u64,
    pub(super) parts: Vec<PagesToSave>,
    pub(super) moves: Moves,
}

/// Writes snapshots. Used by one thread.
#[derive(Debug)]
pub(super) struct SnapshotWriter {
    pub(super) files: Arc<Files>,
    /// The newest snapshot.
    pub(super) newest: Root,
    /// Its page table. Ahead of it after a failure, which is final.
    pub(super) table: PageTable,
    /// The slots that it does not need.
    pub(super) free: FreeSlots,
    /// Slots that it does not need either, and a copy may.
    pub(super) kept: Vec<u64>,
    /// This process has written none yet, and knows of no slots that a copy may need.
    is_first: bool,
    /// Whether pages are moved: until one cannot be read.
    pub(super) moves: bool,
    pub(super) room: Arc<Room>,
    saved: Saved,
    /// Pages that are written next, and room to align them: what is long goes by direct I/O.
    batch: Vec<u8>,
}

impl SnapshotWriter {
    pub(super) fn new(
        files: Arc<Files>,
        newest: Root,
        table: PageTable,
        free: FreeSlots,
        room: Arc<Room>,
    ) -> Self {
        Self {
            files,
            newest,
            table,
            free,
            kept: Vec::new(),
            is_first: true,
            moves: true,
            room,
            saved: Saved::default(),
            batch: vec![0; (BATCH_PAGES + 1) * PAGE_BYTES as usize],
        }
    }

    /// The same, and it tells where pages were saved.
    pub(super) fn telling(self, saved: Saved) -> Self {
        Self { saved, ..self }
    }

    /// Makes a snapshot durable. Calls `committed` as soon as it would survive a power cut.
    pub(super) fn write(
        &mut self,
        snapshot: &mut ImageSnapshot,
        committed: impl FnOnce(),
    ) -> Result<(), DeviceError> {
        let (before, now) = (self.newest.image_bytes, snapshot.image_bytes);
        assert!(before <= now, "an image of {before} bytes shrinks to {now}");
        snapshot.parts.sort_by_key(|part| part.pages.first().copied());
        if std::mem::take(&mut self.is_first) && self.files.table.is_locked()? {
            self.give_up_copies()?;
        }
        let mut new = self.write_pages(snapshot)?;
        let mut replaced: Vec<u64> = new.iter().filter_map(|at| self.table.set(*at)).collect();
        let moved = self.move_pages(snapshot.moves)?;
        replaced.extend(moved.iter().filter_map(|entry| self.table.set(*entry)));
        new.extend(&moved);
        if !new.is_empty() {
            // Step 2.
            self.files.data.sync()?;
            self.saved.tell(&new);
        }
        let root = Root {
            sequence: self.newest.sequence + 1,
            epoch: Some(snapshot.epoch),
            image_bytes: snapshot.image_bytes,
            log_bytes: snapshot.log_bytes,
            data_bytes: self.slots_named(snapshot.moves) * PAGE_BYTES,
            entries: self.write_entries(&new)?,
            ..self.newest
        };
        // Step 4: the commit point.
        write_root(&self.files, &root)?;
        self.newest = root;
        self.room.committed(&root, self.table.used(), moved.len() as u64);
        committed();
        // Step 5: no root that can still be the newest needs them (S6).
        self.kept.extend(replaced);
        if !self.files.table.is_locked()? {
            self.release_kept();
            self.shorten(snapshot.moves)?;
        } else if self.kept.len() as u64 > self.newest.image_bytes / PAGE_BYTES {
            // A copy that has stopped must not fill the disk.
            self.give_up_copies()?;
        }
        Ok(())
    }

    /// Slots that copies may be reading will be written over: a root says so first, and who copies
    /// looks at that in the end.
    fn give_up_copies(&mut self) -> Result<(), DeviceError> {
        let Root { sequence, given_up, .. } = self.newest;
        let root = Root { sequence: sequence + 1, given_up: given_up + 1, ..self.newest };
        write_root(&self.files, &root)?;
        self.newest = root;
        self.release_kept();
        Ok(())
    }

    fn release_kept(&mut self) {
        self.kept.drain(..).for_each(|slot| self.free.release(slot));
    }

    /// Step 1, first half: the pages, in slots that the newest snapshot does not need.
    fn write_pages(&mut self, snapshot: &ImageSnapshot) -> Result<Vec<Entry>, DeviceError> {
        let count: u64 = snapshot.parts.iter().map(|part| part.pages.len() as u64).sum();
        let most = snapshot.image_bytes / PAGE_BYTES;
        assert!(count <= most, "{count} pages of {most}: some are there twice");
        self.make_room(count)?;
        let mut new = Vec::with_capacity(count as usize);
        for part in &snapshot.parts {
            debug_assert!(part.pages.is_sorted_by(|one, next| one < next), "pages come in order");
            let mut rest = &part.pages[..];
            for run in self.free.take_first(rest.len() as u64) {
                for first in run.clone().step_by(BATCH_PAGES) {
                    let pages;
                    (pages, rest) = rest.split_at(BATCH_PAGES.min((run.end - first) as usize));
                    self.write_batch(part, pages, first, &mut new)?;
                }
            }
        }
        Ok(new)
    }

    /// Copies pages, and writes them to slots in a row.
    fn write_batch(
        &mut self,
        part: &PagesToSave,
        pages: &[u64],
        first_slot: u64,
        new: &mut Vec<Entry>,
    ) -> Result<(), DeviceError> {
        assert!(!pages.is_empty(), "a batch has pages");
        let page_bytes = PAGE_BYTES as usize;
        let start = self.batch.as_ptr().align_offset(page_bytes);
        let copies = &mut self.batch[start..][..pages.len() * page_bytes];
        for ((&page, slot), copy) in
            pages.iter().zip(first_slot..).zip(copies.chunks_mut(page_bytes))
        {
            part.copy(page, copy);
            new.push(Entry { page, slot, crc: page_crc(page, copy) });
        }
        self.files.data.write_all_at(first_slot * PAGE_BYTES, copies)
    }

    /// Takes notice of slots that were added to the file, and adds those that are missing: what was
    /// not reserved, or is kept for a copy. Where the disk has no room the copy has to begin anew.
    fn make_room(&mut self, pages: u64) -> Result<(), DeviceError> {
        self.free.grow(self.room.slots());
        let missing = pages.saturating_sub(self.free.count());
        if missing == 0 {
            return Ok(());
        }
        let slots = self.free.end() + missing;
        match self.files.data.allocate(slots * PAGE_BYTES) {
            Err(error) if error.is_limit() && self.kept.len() as u64 >= missing => {
                self.give_up_copies()?;
            }
            other => {
                other?;
                self.free.grow(slots);
                self.room.grown(slots);
            }
        }
        Ok(())
    }

    /// Step 3: the entries of the pages.
    fn write_entries(&self, new: &[Entry]) -> Result<Entries, DeviceError> {
        let Root { instance, sequence, entries: before, .. } = self.newest;
        if new.is_empty() {
            return Ok(before);
        }
        let entries = self.table.place(&before, new).write(&self.files)?;
        let head = Root { instance, sequence: sequence + 1, ..Root::default() };
        self.files.table.write_all_at(0, &head.encode(TABLE_MAGIC))?;
        self.files.table.sync()?;
        Ok(entries)
    }
}
