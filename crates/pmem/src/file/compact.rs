//! Making a database that is not open as short as it can be.

use std::path::Path;
use std::sync::Arc;

use super::checkpoint::{ImageSnapshot, SnapshotWriter};
use super::disk::DiskHook;
use super::moves::Moves;
use super::open::{Found, open_state};
use super::options::FileOptions;
use super::room::Room;
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;

/// Pages that are moved before a root is written.
const ROUND_PAGES: u64 = 4096;

/// What became of `data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// Its length before.
    pub bytes_before: u64,
    /// Its length now.
    pub bytes_after: u64,
    /// Bytes of the pages that are in use.
    pub bytes_used: u64,
    /// Bytes of pages that were moved.
    pub moved_bytes: u64,
    /// Why a page could not be moved, if there was one: it is damaged, and the file is as short as
    /// it can be with it.
    pub not_moved: Option<String>,
}

/// Moves the pages of a database that is not open to the front of `data`, and makes it as short as
/// they are. Its state and its log stay as they are. Calls `progress` with the bytes that are given
/// back, and all that will be. May end at any moment: what has become shorter stays so.
///
/// # Errors
/// As [`crate::File::open`]; [`DeviceError::Copying`] while a copy is made of it.
pub fn compact(
    dir: &Path,
    hook: Option<Arc<dyn DiskHook>>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Compacted, DeviceError> {
    let options = FileOptions { create: false, hook, ..FileOptions::new(u64::MAX, u64::MAX) };
    let Found { files, head, state, lost_log, .. } = open_state(dir, &options)?;
    if let Some(what) = lost_log {
        return Err(DeviceError::corrupt(files.log.path(), what));
    }
    if files.table.is_locked()? {
        return Err(DeviceError::Copying { path: dir.to_path_buf() });
    }
    let room = Room::of(&files, &head, &state.newest, state.table.used())?;
    let (room, newest) = (Arc::new(room), state.newest);
    let bytes_before = files.data.len()?;
    let Some(epoch) = newest.epoch else {
        // Nothing was ever saved.
        return Ok(Compacted {
            bytes_before,
            bytes_after: bytes_before,
            bytes_used: 0,
            moved_bytes: 0,
            not_moved: None,
        });
    };
    let bytes_used = state.table.used() * PAGE_BYTES;
    let goal = bytes_before.saturating_sub(bytes_used + PAGE_BYTES);
    let mut writer =
        SnapshotWriter::new(Arc::clone(&files), newest, state.table, state.free, Arc::clone(&room));
    // What is free at the end goes first: a full disk gets the room that the rest needs.
    let mut most = 0;
    let used = loop {
        let before = room.use_of_files(0);
        writer.write(
            &mut ImageSnapshot {
                epoch,
                image_bytes: newest.image_bytes,
                log_bytes: newest.log_bytes,
                parts: Vec::new(),
                moves: Moves::all_but_room(most),
            },
            || {},
        )?;
        let used = room.use_of_files(0);
        progress(bytes_before.saturating_sub(used.data_bytes), goal);
        if most > 0 && used.pages_moved == before.pages_moved {
            break used;
        }
        most = ROUND_PAGES;
    };
    // The lengths are durable.
    files.data.sync()?;
    files.directory.sync()?;
    Ok(Compacted {
        bytes_before,
        bytes_after: used.data_bytes,
        bytes_used,
        moved_bytes: used.pages_moved * PAGE_BYTES,
        not_moved: used.not_moved,
    })
}
