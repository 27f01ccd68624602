//! `meta`: which snapshot is the state.

use super::disk::{DiskHandle, Files};
use super::format::{
    DATA_MAGIC, Found, META_BYTES, META_MAGIC, ROOT_BYTES, Root, TABLE_MAGIC, root_offset,
};
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;

/// Refuses a file that is not ours before anything else of the directory is looked at.
pub(super) fn check_is_ours(meta: &DiskHandle) -> Result<(), DeviceError> {
    find_newest(meta).map(drop)
}

/// The newest root. One that is damaged may have been newer than the other: then it is not known
/// what the state is (O-54).
pub(super) fn find_newest(meta: &DiskHandle) -> Result<Root, DeviceError> {
    let slot = |offset| Ok(Root::decode(&read_root(meta, offset)?, META_MAGIC));
    let slots: [Found; 2] = [slot(0)?, slot(PAGE_BYTES)?];
    let corrupt = |what: &str| Err(DeviceError::corrupt(meta.path(), what));
    let found = match slots {
        [Found::Root(a), Found::Root(b)] => {
            if a.instance != b.instance || a.sequence.abs_diff(b.sequence) != 1 {
                return corrupt("its two slots do not belong together");
            }
            if a.sequence > b.sequence { a } else { b }
        }
        [Found::Root(a), Found::Zero] if a.sequence == 0 => a,
        [Found::Foreign(what), _] | [_, Found::Foreign(what)] => {
            return Err(DeviceError::foreign(meta.path(), what));
        }
        [Found::Damaged(what), _] | [_, Found::Damaged(what)] => {
            return corrupt(&format!("a slot is damaged ({what}): restore it from a copy"));
        }
        _ => return corrupt("a slot is missing"),
    };
    let len = meta.len()?;
    if len < META_BYTES {
        return corrupt(&format!("it has {len} bytes, not {META_BYTES}: truncated?"));
    }
    Ok(found)
}

/// Writes a root over that of the snapshot before the last, and syncs it: the commit point.
pub(super) fn write_root(files: &Files, root: &Root) -> Result<(), DeviceError> {
    files.meta.write_all_at(root_offset(root.sequence), &root.encode(META_MAGIC))?;
    files.meta.sync()
}

/// Reads a root or a head; a file that is too short reads as zeros.
fn read_root(file: &DiskHandle, offset: u64) -> Result<[u8; ROOT_BYTES], DeviceError> {
    let mut bytes = [0; ROOT_BYTES];
    let there = file.len()?.saturating_sub(offset).min(ROOT_BYTES as u64) as usize;
    file.read_exact_at(offset, &mut bytes[..there])?;
    Ok(bytes)
}

/// Checks that `data` and `table` belong to `meta`, and that it is not older than they are. The
/// snapshot for which entries were written last may have no root; the one before it has. Returns
/// the head of `data`.
pub(super) fn check_heads(files: &Files, newest: &Root) -> Result<Root, DeviceError> {
    let head = check_head(&files.data, DATA_MAGIC, newest.instance, newest.image_bytes > 0)?;
    let has_entries = newest.entries.count > 0;
    let written = check_head(&files.table, TABLE_MAGIC, newest.instance, has_entries)?.sequence;
    if written > newest.sequence + 1 {
        let what = format!(
            "it names snapshot {}, but there are entries of snapshot {written}: it is of another \
             moment or copy, put the one back that belongs to the other files",
            newest.sequence
        );
        return Err(DeviceError::corrupt(files.meta.path(), what));
    }
    Ok(head)
}

/// Reads a head. It may be missing where nothing of the state is in the file.
fn check_head(
    file: &DiskHandle,
    magic: [u8; 8],
    instance: u64,
    is_needed: bool,
) -> Result<Root, DeviceError> {
    match Root::decode(&read_root(file, 0)?, magic) {
        Found::Root(head) if head.instance == instance => Ok(head),
        Found::Zero if !is_needed => Ok(Root { instance, ..Root::default() }),
        Found::Root(_) => {
            let what = "it belongs to another database than meta: put the right one back";
            Err(DeviceError::foreign(file.path(), what))
        }
        Found::Foreign(what) => Err(DeviceError::foreign(file.path(), what)),
        Found::Damaged(what) => Err(DeviceError::corrupt(file.path(), format!("its head: {what}"))),
        Found::Zero => Err(DeviceError::corrupt(file.path(), "its head is empty: truncated?")),
    }
}
