//! What an open refuses: files of two stores, a log that lost something, sizes that cannot be.

use pmem::{AnyDevice, Device};

use crate::error::{Result, StorageError};
use crate::format::{CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, Superblock};
use crate::ids::EpochNumber;
use crate::input_log::{InputLog, LogError, Recovered, first_logged};
use crate::pool::Segments;
use crate::store::{EndMark, checkpoint};

/// Most entries of a segment directory.
pub(super) const SEGMENTS_MAX: u64 = 1 << 22;

/// An image without a superblock is that of a creation that was cut short, or was lost. Nothing but
/// records of programs is logged before the superblock is durable, so any other record in the log
/// is evidence of a loss. So are an end mark and a checkpoint of a later epoch than the first.
pub(super) fn check_nothing_is_lost(device: &AnyDevice) -> Result<()> {
    let lost = |what: String| {
        Err(StorageError::Corrupt(format!(
            "the image is empty, but {what}: its newest snapshot was lost; put back the files \
             that belong together, or remove all of them to begin anew"
        )))
    };
    if let Some(epoch) = first_logged(device)? {
        return lost(format!("the log holds records of epoch {epoch}"));
    }
    if let Some(EndMark { epoch, .. }) = EndMark::read(device) {
        return lost(format!("epoch {epoch} had ended"));
    }
    let has_records = device.image_bytes() >= CHECKPOINTS_OFFSET + 2 * CHECKPOINT_STRIDE;
    let checkpoint = if has_records { checkpoint::read(device).ok() } else { None };
    match checkpoint {
        Some(record) if record.epoch > 0 => {
            lost(format!("it has a checkpoint of epoch {}", record.epoch))
        }
        _ => Ok(()),
    }
}

/// An image snapshot is made at a checkpoint: a device that names another epoch holds another
/// image.
pub(super) fn check_snapshot(device: &AnyDevice) -> Result<()> {
    let epoch = checkpoint::read(device)?.epoch;
    match device.snapshot_epoch() {
        Some(saved) if saved != EpochNumber(epoch) => Err(StorageError::Corrupt(format!(
            "the image was saved at epoch {saved}, but its checkpoint is of epoch {epoch}"
        ))),
        _ => Ok(()),
    }
}

/// The image must belong to the same store as the device's own files.
pub(super) fn check_instance(superblock: &Superblock, device: &AnyDevice) -> Result<()> {
    match device.instance() {
        Some(instance) if instance != superblock.instance => Err(StorageError::Foreign(format!(
            "the image belongs to store {:016x}, the other files to store {instance:016x}: files \
             of two stores were mixed",
            superblock.instance
        ))),
        _ => Ok(()),
    }
}

/// The log must hold what is known to have been in it: a program, because that is durable before
/// the superblock is, and every epoch that ended; and it must not have been cut off.
pub(super) fn check_log(
    device: &AnyDevice,
    log: &InputLog,
    found: &Recovered,
    checkpoint: EpochNumber,
) -> Result<()> {
    let last = found.last(checkpoint);
    if log.program().is_none() {
        return Err(match found.foreign {
            Some(other) => {
                let what = format!("it belongs to another store ({other:016x})");
                LogError::Lost { last, what }
            }
            None => LogError::emptied(last),
        }
        .into());
    }
    let marked = EndMark::read(device).map(|mark| mark.epoch);
    // What an opening found was durable before that was noted.
    let found = device.openings().and_then(|openings| openings.found_last());
    match (marked.max(found), device.lost_log()) {
        (Some(ended), _) if ended > last => Err(LogError::ended(last, ended).into()),
        (_, Some(what)) => Err(LogError::Lost { last, what }.into()),
        _ => Ok(()),
    }
}

pub(super) fn check_geometry(superblock: &Superblock, device: &AnyDevice) -> Result<()> {
    let Superblock { segment_bytes, segments_max, log_segment_bytes, .. } = *superblock;
    let sizes = [(segment_bytes, 64 << 20), (log_segment_bytes, 16 << 20)];
    let wrong = |(bytes, max)| !u64::is_power_of_two(bytes) || !(4096..=max).contains(&bytes);
    if sizes.into_iter().any(wrong) || !(1..=SEGMENTS_MAX).contains(&segments_max) {
        return Err(StorageError::Corrupt(format!(
            "the superblock has {segments_max} segments of {segment_bytes} bytes, and \
             {log_segment_bytes} in the log"
        )));
    }
    let segments = Segments::new(superblock.segment_bytes, superblock.segments_max);
    let needed = segments.image_bytes(0);
    if device.image_bytes() < needed {
        return Err(StorageError::Corrupt(format!(
            "the image has {} bytes, its own superblock asks for {needed} at least",
            device.image_bytes()
        )));
    }
    if device.image().len() < segments.image_bytes(superblock.segments_max.min(1)) {
        return Err(StorageError::Limit("the device's limit is smaller than the store".into()));
    }
    Ok(())
}
