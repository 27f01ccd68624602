//! Opening: find the newest snapshot, verify it, load it. Changes no file.

use std::path::Path;
use std::sync::Arc;

use super::directory::open_files;
use super::disk::{DiskHandle, Files, PIECE_BYTES};
use super::format::{Entry, Root, page_crc};
use super::mark::Marks;
use super::meta::{check_heads, find_newest};
use super::options::FileOptions;
use super::residency::Residency;
use super::room::Room;
use super::slots::FreeSlots;
use super::table::PageTable;
use crate::failure::DeviceError;
use crate::memory::{Mapping, PAGE_BYTES, Pages, page_ceil};

/// Slots that no page has are read, too, if a run of them is not longer than this: that takes less
/// time than another read.
const SKIPPED_SLOTS_MIN: u64 = 64;

/// What opening found.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) files: Arc<Files>,
    pub(super) image: Mapping,
    /// Where the image may be larger than memory.
    pub(super) residency: Option<Residency>,
    /// Those of the newest snapshot, and what the image grew to since.
    pub(super) image_bytes: u64,
    pub(super) log_bytes: u64,
    pub(super) state: State,
    pub(super) marks: Marks,
    pub(super) room: Arc<Room>,
}

/// The state.
#[derive(Debug)]
pub(super) struct State {
    /// The snapshot that memory holds.
    pub(super) newest: Root,
    pub(super) table: PageTable,
    /// The slots that no page has.
    pub(super) free: FreeSlots,
}

/// The state, before its pages are read.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) files: Arc<Files>,
    /// That of `data`.
    pub(super) head: Root,
    pub(super) state: State,
    /// Of the log.
    pub(super) log_bytes: u64,
}

/// Finds the state of a database, in files that have all of it.
pub(super) fn open_state(dir: &Path, options: &FileOptions) -> Result<Found, DeviceError> {
    let files = open_files(dir, options)?;
    if !options.read_only {
        // Opening, step 1: what can be read is on the device.
        for file in [&files.meta, &files.data, &files.table, &files.log, &files.directory] {
            file.sync()?;
        }
    }
    let newest = find_newest(&files.meta)?;
    let head = check_heads(&files, &newest)?;
    let log_bytes = files.log.len()? / PAGE_BYTES * PAGE_BYTES;
    check_lengths(&files, &newest, log_bytes, options.lost_log)?;
    let table = PageTable::read(&files, &newest)?;
    let free = table.free_slots(&files, newest.data_bytes / PAGE_BYTES)?;
    Ok(Found { files, head, state: State { newest, table, free }, log_bytes })
}

pub(super) fn open(dir: &Path, options: &FileOptions) -> Result<Opened, DeviceError> {
    let Found { files, head, state, log_bytes } = open_state(dir, options)?;
    let State { newest, table, .. } = &state;
    let image_bytes = newest.image_bytes.max(head.image_bytes);
    check_limit("image (the existing one)", image_bytes, options.image_limit_bytes)?;
    check_limit("log (the existing file)", log_bytes, options.log_limit_bytes)?;
    let address_bytes = page_ceil(options.image_limit_bytes);
    let pages = options.memory_limit_bytes.map_or(Pages::Huge, |_| Pages::Small);
    let image = Mapping::anonymous(address_bytes, pages)?;
    assert!(image.len() >= image_bytes, "an image within its limit fits its mapping");
    let residency = match options.memory_limit_bytes {
        Some(limit) => {
            // SAFETY: the device drops it before the mapping, whose pages nothing has touched.
            Some(unsafe { Residency::over(&image, &files, table, image_bytes, limit) }?)
        }
        None => {
            // SAFETY: the mapping is not shared yet.
            unsafe { load_image(&files.data, table, &image) }?;
            None
        }
    };
    let marks = Marks::read(&files.meta, newest.instance)?;
    let room = Arc::new(Room::of(&files, &head, newest, table.used())?);
    Ok(Opened { files, image, residency, image_bytes, log_bytes, state, marks, room })
}

fn check_limit(what: &'static str, bytes: u64, limit_bytes: u64) -> Result<(), DeviceError> {
    if bytes > page_ceil(limit_bytes) {
        return Err(DeviceError::Full { what: what.into(), wanted_bytes: bytes, limit_bytes });
    }
    Ok(())
}

/// Checks that the files have the lengths that the snapshot needs.
fn check_lengths(
    files: &Files,
    newest: &Root,
    log_bytes: u64,
    lost_log: bool,
) -> Result<(), DeviceError> {
    let too_short = |file: &DiskHandle, there: u64, saved: u64, more: &str| {
        let what = format!("{there} bytes, but {saved} were saved: truncated?{more}");
        Err(DeviceError::corrupt(file.path(), what))
    };
    let data_bytes = files.data.len()?;
    if data_bytes < newest.data_bytes {
        return too_short(&files.data, data_bytes, newest.data_bytes, "");
    }
    if log_bytes < newest.log_bytes && !lost_log {
        let epoch = newest.epoch.unwrap_or_default();
        let more = format!(
            " Restore it, or accept the loss of everything after epoch {epoch} with \
             `nvcaracal recover --accept-loss-after {epoch} PATH`"
        );
        return too_short(&files.log, log_bytes, newest.log_bytes, &more);
    }
    Ok(())
}

/// Loads all pages.
///
/// # Safety
/// The mapping is owned by the caller.
unsafe fn load_image(
    data: &DiskHandle,
    table: &PageTable,
    image: &Mapping,
) -> Result<(), DeviceError> {
    read_pages(data, table.entries().collect(), |page, bytes| {
        // SAFETY: owned by the caller; the table has pages of the image only.
        unsafe { image.store_bytes(page * PAGE_BYTES, bytes) };
        Ok(())
    })
}

/// Reads pages, each checked as it is read, in the order of their slots: a disk reads in order
/// fastest.
pub(super) fn read_pages(
    data: &DiskHandle,
    mut entries: Vec<Entry>,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    entries.sort_unstable_by_key(|entry| entry.slot);
    let most = PIECE_BYTES as u64 / PAGE_BYTES;
    let mut buffer = vec![0; PIECE_BYTES.min(entries.len() * PAGE_BYTES as usize * 2)];
    let mut left = entries.as_slice();
    while let Some(first) = left.first().map(|entry| entry.slot) {
        let mut end = first;
        let near = |entry: &&Entry| {
            let is_near = entry.slot < end + SKIPPED_SLOTS_MIN && entry.slot - first < most;
            end = if is_near { entry.slot + 1 } else { end };
            is_near
        };
        let (piece, rest) = left.split_at(left.iter().take_while(near).count());
        left = rest;
        let last = piece.last().expect("the first is near itself").slot;
        let len = ((last + 1 - first) * PAGE_BYTES) as usize;
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        data.read_exact_at(first * PAGE_BYTES, &mut buffer[..len])?;
        for entry in piece {
            let at = ((entry.slot - first) * PAGE_BYTES) as usize;
            let bytes = &buffer[at..][..PAGE_BYTES as usize];
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
