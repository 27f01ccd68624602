//! Room on the disk for the next snapshot, found before an epoch is logged (O-56, S21), and given
//! back when no epoch needs it any more.

use super::disk::Files;
use super::format::{DATA_MAGIC, Root};
use super::slots::FIRST_SLOT;
use super::table::table_bytes;
use crate::device::FileUse;
use crate::failure::{DeviceError, Health, lock};
use crate::memory::PAGE_BYTES;
use crate::sync::background::Mutex;

/// The files grow by this part of them at least, so that a growing store does not pay for each
/// epoch.
const GROWTH_PART: u64 = 8;

/// So many pages of a snapshot are kept for those that free space, and this part of the image if
/// that is more. Where the image has fewer, all of it can change.
const KEPT_PAGES_MIN: u64 = 4096;
const KEPT_PAGES_PART: u64 = 16;

/// Of the pages of recent snapshots this part is forgotten with each new one.
const FORGOTTEN_PART: u64 = 8;

/// `data` becomes shorter when more than this part of it is not needed, and more than so many
/// slots: one that changes its length all the time would gain nothing.
const SLACK_PART: u64 = 16;
const SLACK_SLOTS: u64 = 16;

/// Pages of a snapshot that are kept for those that free space.
pub(super) fn kept_pages(image_bytes: u64) -> u64 {
    KEPT_PAGES_MIN.max(image_bytes / PAGE_BYTES / KEPT_PAGES_PART)
}

/// How large the files are, and what they have to hold. One thread at a time makes room; the writer
/// of snapshots tells what it has used, and gives room back.
#[derive(Debug)]
pub(super) struct Room {
    instance: u64,
    state: Mutex<State>,
    /// Held while a file changes its length, so that what is promised is never cut off.
    changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of the image, as the head of `data` has them.
    image_bytes: u64,
    /// Slots of `data`, the head's included.
    slots: u64,
    table_bytes: u64,
    /// Where the entries of the newest snapshot end.
    entries_end: u64,
    /// Pages of the snapshot that is being written.
    in_flight: u64,
    /// Most pages that room was made for since a snapshot was handed over.
    promised: u64,
    /// Pages of the snapshots of late.
    recent: u64,
    /// Bytes of log that the newest root names, and the one that is being written.
    log_named: [u64; 2],
    /// Bytes of log that the next roots name, if they are fewer than there are.
    log_end: Option<u64>,
    use_of_files: FileUse,
}

impl State {
    /// Slots for an image of so many pages and a snapshot of so many more.
    fn slots_for(&self, image_pages: u64, changed: u64) -> u64 {
        FIRST_SLOT + image_pages + self.in_flight.max(changed.min(image_pages))
    }

    /// How many bytes of a log the next root names: no more than will be left of it.
    fn name_log(&mut self, log_bytes: u64) -> u64 {
        let named = self.log_end.map_or(log_bytes, |end| end.min(log_bytes));
        self.log_named[1] = named;
        named
    }

    /// Slots that are kept while the store is open: what is promised, and what snapshots of late
    /// have used with what is kept for those that free space.
    fn slots_kept(&self) -> u64 {
        let used = self.recent + kept_pages(self.image_bytes);
        self.slots_for(self.image_bytes.div_ceil(PAGE_BYTES), self.promised.max(used))
    }
}

/// Slots beyond those that are needed with which a file is as long as it should be.
fn slack(needed: u64) -> u64 {
    needed / SLACK_PART + SLACK_SLOTS
}

impl Room {
    /// What the files have; `head` is that of `data`.
    pub(super) fn of(
        files: &Files,
        head: &Root,
        newest: &Root,
        pages: u64,
    ) -> Result<Self, DeviceError> {
        let state = State {
            image_bytes: head.image_bytes,
            slots: files.data.len()? / PAGE_BYTES,
            table_bytes: files.table.len()?,
            entries_end: newest.entries.end(),
            log_named: [newest.log_bytes, 0],
            use_of_files: FileUse { pages, ..FileUse::default() },
            ..State::default()
        };
        let (instance, changing) = (newest.instance, Mutex::new(()));
        Ok(Self { instance, state: Mutex::new(state), changing })
    }

    pub(super) fn slots(&self) -> u64 {
        lock(&self.state).slots
    }

    /// `data` has so many slots now.
    pub(super) fn grown(&self, slots: u64) {
        let mut state = lock(&self.state);
        state.slots = state.slots.max(slots);
    }

    /// A snapshot of so many pages is handed to the writer, when the log has so many bytes. Returns
    /// how many of them its root names: no more than will be left of the log.
    pub(super) fn submitted(&self, pages: u64, log_bytes: u64) -> u64 {
        let mut state = lock(&self.state);
        state.in_flight = pages;
        state.promised = 0;
        state.recent = pages.max(state.recent - state.recent / FORGOTTEN_PART);
        state.name_log(log_bytes)
    }

    /// The newest snapshot is saved again. Returns what [`Room::submitted`] does.
    pub(super) fn named_again(&self, log_bytes: u64) -> u64 {
        lock(&self.state).name_log(log_bytes)
    }

    /// A snapshot is committed: its root, pages with a slot, and how many of those it has moved.
    pub(super) fn committed(&self, root: &Root, pages: u64, moved: u64) {
        let mut state = lock(&self.state);
        state.entries_end = root.entries.end();
        state.use_of_files.pages = pages;
        state.use_of_files.pages_written += state.in_flight;
        state.use_of_files.pages_moved += moved;
        state.in_flight = 0;
        state.log_named = [root.log_bytes, 0];
    }

    /// What the files were used for.
    pub(super) fn use_of_files(&self, log_bytes: u64) -> FileUse {
        let state = lock(&self.state);
        FileUse { data_bytes: state.slots * PAGE_BYTES, log_bytes, ..state.use_of_files.clone() }
    }

    /// A page could not be moved, and why.
    pub(super) fn not_moved(&self, why: &DeviceError) {
        lock(&self.state).use_of_files.not_moved = Some(why.to_string());
    }

    /// Slots that `data` keeps; `None` if it is not worth to make it shorter.
    pub(super) fn slots_kept(&self) -> Option<u64> {
        let state = lock(&self.state);
        let kept = state.slots_kept();
        (state.slots > kept + slack(kept)).then_some(kept)
    }

    /// Whether saving the newest snapshot again would let something be given back.
    pub(super) fn has_excess(&self) -> bool {
        let is_named = {
            let state = lock(&self.state);
            state.log_end.is_some_and(|end| state.log_named.iter().any(|named| *named > end))
        };
        is_named || self.slots_kept().is_some()
    }

    /// Gives the last slots of `data` back to the file system, which the newest root has nothing
    /// in: all behind `needed` but those that are kept while the store is open, if it is. Returns
    /// how many slots there are then.
    pub(super) fn shorten(
        &self,
        files: &Files,
        needed: u64,
        is_open: bool,
    ) -> Result<u64, DeviceError> {
        let _changing = lock(&self.changing);
        let (old, end) = {
            let mut state = lock(&self.state);
            let kept = if is_open { needed.max(state.slots_kept()) } else { needed };
            let worth = if is_open { slack(kept) } else { 0 };
            if state.slots <= kept + worth {
                return Ok(state.slots);
            }
            // From now on what goes is not promised to an epoch.
            (std::mem::replace(&mut state.slots, kept), kept)
        };
        files.data.truncate(end * PAGE_BYTES)?;
        lock(&self.state).use_of_files.data_given_back_bytes += (old - end) * PAGE_BYTES;
        Ok(end)
    }

    /// Whether the log can be cut there, because no root that may be the newest names more. If not,
    /// the next one does not.
    pub(super) fn may_cut_log(&self, bytes: u64) -> bool {
        let mut state = lock(&self.state);
        state.log_end = Some(bytes);
        state.log_named.iter().all(|named| *named <= bytes)
    }

    /// The log was cut by so many bytes, or has grown by none.
    pub(super) fn log_changed(&self, given_back: u64) {
        let mut state = lock(&self.state);
        state.log_end = None;
        state.use_of_files.log_given_back_bytes += given_back;
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
        if self.has(image_bytes, changed) {
            return Ok(());
        }
        // Waits while `data` becomes shorter.
        let _changing = lock(&self.changing);
        let (old, wanted, is_larger) = {
            let state = lock(&self.state);
            let old = [state.slots * PAGE_BYTES, state.table_bytes];
            (old, state.wanted(image_pages, changed), image_bytes > state.image_bytes)
        };
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
        if is_larger {
            let head = Root { instance: self.instance, image_bytes, ..Root::default() };
            health.note(files.data.write_all_at(0, &head.encode(DATA_MAGIC)))?;
            health.note(files.data.sync())?;
        }
        let mut state = lock(&self.state);
        state.slots = state.slots.max(grown[0] / PAGE_BYTES);
        state.table_bytes = state.table_bytes.max(grown[1]);
        state.image_bytes = state.image_bytes.max(image_bytes);
        state.promised = state.promised.max(changed);
        Ok(())
    }

    /// Whether there is that room; then it is promised.
    fn has(&self, image_bytes: u64, changed: u64) -> bool {
        let mut state = lock(&self.state);
        let [data, table] = state.wanted(image_bytes.div_ceil(PAGE_BYTES), changed);
        let has = data <= state.slots * PAGE_BYTES
            && table <= state.table_bytes
            && image_bytes <= state.image_bytes;
        if has {
            state.promised = state.promised.max(changed);
        }
        has
    }
}

impl State {
    /// Bytes of `data` and `table` for an image of which so many pages change.
    fn wanted(&self, image_pages: u64, changed: u64) -> [u64; 2] {
        // The table never has more than two lists of two entries a page each, of which those that a
        // snapshot moves are some.
        let new = self.in_flight + changed.min(image_pages);
        let table = table_bytes(self.entries_end, image_pages, new);
        let data = self.slots_for(image_pages, changed) * PAGE_BYTES;
        [data, table.next_multiple_of(PAGE_BYTES)]
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
