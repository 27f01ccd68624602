//! What a person may decide about a store that recovery refuses: to give up the end of a damaged
//! log, or to leave out a call that stops every replay. Each is one step that changes nothing
//! unless it can be done whole, and afterwards the store opens as any other.

use std::sync::Arc;

use pmem::{AnyDevice, Device, Port};

use crate::error::{Result, StorageError};
use crate::format::SerialId;
use crate::ids::{EpochNumber, Position};
use crate::input_log::{CommittedRange, GivenUp, InputLog, LogError, Verdict};
use crate::scan::ScanPlan;
use crate::store::{EndMark, Opened, Store, StoreOptions, checkpoint, superblock};
use crate::{row, scan};

/// Gives up everything after an epoch: the log is damaged there, or known to have lost something.
///
/// # Errors
/// `Limit` for an epoch before the checkpoint; `Log` if what is to be kept cannot be read back,
/// with nothing changed; `Missing`, `Foreign`, `Corrupt`, `Device`.
pub fn accept_loss(device: &Arc<AnyDevice>, last: EpochNumber) -> Result<GivenUp> {
    let name = device.description().name;
    let superblock = superblock::read_superblock(device.as_ref())?;
    let superblock = superblock.ok_or(StorageError::Missing(name))?;
    let current = checkpoint::read(device.as_ref())?;
    if last < EpochNumber(current.epoch) {
        return Err(StorageError::Limit(format!(
            "the checkpoint is of epoch {}: only what comes after it can be given up, not what \
             comes after epoch {last}",
            current.epoch
        )));
    }
    let (instance, segment_bytes) = (superblock.instance, superblock.log_segment_bytes);
    let kept = CommittedRange { checkpoint: EpochNumber(current.epoch), last };
    let given_up = InputLog::give_up(device, instance, segment_bytes, kept);
    let given_up = given_up.map_err(|error| not_kept(error, last))?;
    if last == EpochNumber(current.epoch) && current.deferred_calls > 0 {
        keep_no_deferred_record(device, instance, segment_bytes, last)?;
    }
    EndMark { epoch: last, hash: None }.write(device.as_ref())?;
    if !device.takes_snapshots() {
        forget_versions(device, last)?;
    }
    Ok(given_up)
}

/// An epoch that is to be kept and that the log does not have is named as that.
fn not_kept(error: LogError, last: EpochNumber) -> StorageError {
    match error {
        LogError::NotLogged { epoch } => StorageError::Limit(format!(
            "epoch {epoch} is not in the input log, so not all up to {last} can be kept: the last \
             one that can be is {}",
            epoch.previous()
        )),
        error => error.into(),
    }
}

/// On memory the epochs that are given up have left versions in the rows, as a crash leaves them.
/// No replay will write them again, and their numbers will be reused: so they are cleared.
/// After a crash in between the store is refused because of them, and the same decision clears
/// them.
fn forget_versions(device: &Arc<AnyDevice>, last: EpochNumber) -> Result<()> {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let Opened { store, sub_pools, log, .. } = Store::open(Arc::clone(device), &options)?;
    let checkpoint = store.checkpoint_epoch();
    assert!(last >= checkpoint, "versions up to epoch {checkpoint} are those of the checkpoint");
    clear_versions(&store, &scan::plan(&store, &sub_pools, &log), last);
    Ok(())
}

/// Clears the versions of all epochs after `last` in the rows of a plan, durably. A crash on the
/// way leaves some of them, which count as little as before.
pub fn clear_versions(store: &Store, plan: &ScanPlan, last: EpochNumber) {
    let device = store.device();
    let mut port = Port::new(Arc::clone(device), u32::MAX);
    for unit in &plan.units {
        let row_bytes = store.tables()[unit.table.index()].layout.row_bytes;
        let first = store.segments().offset(unit.segment);
        let rows = (0..unit.slots).map(|slot| first + slot * row_bytes);
        for row in rows.filter(|row| plan.free.binary_search(row).is_err()) {
            let versions = row::versions(device.as_ref(), row);
            for slot in (0..2).filter(|&slot| SerialId(versions[slot].serial_id).epoch() > last) {
                // SAFETY: the store is not in use by anybody else, and owned by this thread.
                unsafe { row::clear_version(&mut port, row, slot) };
            }
        }
    }
    port.fence();
}

/// The calls that the checkpoint hands over to the next epoch, none of them answered, are given up,
/// too, if they are not in the log any more.
fn keep_no_deferred_record(
    device: &Arc<AnyDevice>,
    instance: u64,
    segment_bytes: u64,
    last: EpochNumber,
) -> Result<()> {
    let (log, _) = InputLog::open(Arc::clone(device), instance, segment_bytes, last)?;
    if log.deferred_calls(last.next())?.is_none() {
        log.write_deferred_calls(&mut Port::new(Arc::clone(device), u32::MAX), last.next(), &[])?;
        log.make_durable()?;
    }
    Ok(())
}

/// Leaves a call of the last committed epoch out of every replay: it will count as failed.
///
/// # Errors
/// `Limit` if the epoch is not the last of the log, is known to have ended, so that its answers may
/// have been given, or has no such call; as [`Store::open`].
pub fn skip_call(device: &Arc<AnyDevice>, epoch: EpochNumber, position: Position) -> Result<()> {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let Opened { store, log, end_mark, .. } = Store::open(Arc::clone(device), &options)?;
    let refuse = |what: String| Err(StorageError::Limit(what));
    let last = log.last(store.checkpoint_epoch());
    let Some(committed) = log.committed.last().filter(|committed| committed.epoch == epoch) else {
        return refuse(format!(
            "a call can be left out of the last epoch of the log only, which is {last}, not \
             {epoch}: those before it have ended, and were answered"
        ));
    };
    if end_mark.is_some_and(|mark| mark.epoch >= epoch) {
        return refuse(format!(
            "epoch {epoch} had ended, and may have been answered: none of its calls can be left out"
        ));
    }
    if u64::from(position.0) >= committed.calls {
        return refuse(format!("epoch {epoch} has {} calls, none at {position}", committed.calls));
    }
    if log.verdicts.iter().any(|of| (of.epoch, of.position) == (epoch, position)) {
        // The same was decided before, and the log was made durable when it was opened.
        return Ok(());
    }
    device.accept()?;
    let verdict = Verdict { epoch, position, reason: "left out by command".to_string() };
    let mut port = Port::new(Arc::clone(device), u32::MAX);
    Ok(store.log().write_verdict(&mut port, &verdict)?)
}
