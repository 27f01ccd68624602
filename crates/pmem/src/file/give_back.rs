//! Space that is given back: pages at the end of `data` go to its front, and the file becomes
//! shorter. The steps are those of README.md.

use super::checkpoint::SnapshotWriter;
use super::format::{Entry, page_crc};
use super::moves::Moves;
use super::page_reads::read_pages;
use super::slots::FIRST_SLOT;
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;

impl SnapshotWriter {
    /// Slots that the file keeps; `None` if it is not to become shorter.
    fn slots_kept(&self, moves: Moves) -> Option<u64> {
        if moves.is_open {
            return self.room.slots_kept();
        }
        let used = FIRST_SLOT + self.table.used();
        (self.free.end() > used).then_some(used)
    }

    /// Step 1, second half: writes pages of the last slots, which have not changed, into free slots
    /// that stay. Returns their entries. A page that cannot be read stays where it is, as do the
    /// others from then on.
    pub(super) fn move_pages(&mut self, moves: Moves) -> Result<Vec<Entry>, DeviceError> {
        let Some(end) = self.slots_kept(moves).filter(|_| moves.most > 0 && self.moves) else {
            return Ok(Vec::new());
        };
        if !self.kept.is_empty() || self.files.table.is_locked()? {
            // What is moved would be kept twice.
            return Ok(Vec::new());
        }
        let most = moves.most.min(self.free.count_before(end));
        let last = self.table.last_entries(end, most);
        let mut pages = Vec::with_capacity(last.len());
        let mut bytes = Vec::with_capacity(last.len() * PAGE_BYTES as usize);
        let read = read_pages(&self.files.data, last, |page, content| {
            pages.push(page);
            bytes.extend_from_slice(content);
            Ok(())
        });
        if let Err(error) = read {
            self.room.not_moved(&error);
            self.moves = false;
        }
        let mut at = 0;
        let mut moved = Vec::with_capacity(pages.len());
        for run in self.free.take_first(pages.len() as u64) {
            assert!(run.end <= end, "a page is moved towards the front");
            let len = ((run.end - run.start) * PAGE_BYTES) as usize;
            let content = &bytes[at..at + len];
            self.files.data.write_all_at(run.start * PAGE_BYTES, content)?;
            let pages = pages[at / PAGE_BYTES as usize..].iter();
            let pages = pages.zip(content.chunks(PAGE_BYTES as usize));
            moved.extend(run.zip(pages).map(|(slot, (&page, bytes))| Entry {
                page,
                slot,
                crc: page_crc(page, bytes),
            }));
            at += len;
        }
        Ok(moved)
    }

    /// Slots that the root of the snapshot names: those up to its last page, if the file is to
    /// become shorter.
    pub(super) fn slots_named(&self, moves: Moves) -> u64 {
        match self.slots_kept(moves) {
            Some(_) => self.table.slots_end(),
            None => self.free.end(),
        }
    }

    /// Step 6: the root that is durable has nothing in the last slots, and no copy has.
    pub(super) fn shorten(&mut self, moves: Moves) -> Result<(), DeviceError> {
        let needed = self.newest.data_bytes / PAGE_BYTES;
        if needed >= self.room.slots() {
            return Ok(());
        }
        assert!(self.kept.is_empty(), "no copy needs a slot");
        let end = self.room.shorten(&self.files, needed, moves.is_open)?;
        self.free.shrink(end);
        Ok(())
    }
}
