//! The end of an epoch (NV 4.3): everything it wrote becomes durable, then its number does.
//!
//! 1. Every worker puts free slots that it was handed and did not use into its lists, flushes these
//!    and, if a checkpoint is due, its pools' offsets; then it fences its own port (O-22).
//! 2. After the barrier, the first worker compares the state of a replayed epoch with the one that
//!    the epoch came to before; it appends to the change log; it makes deferred calls durable, then
//!    writes the checkpoint record, and before an image snapshot the root of the kept indexes.
//! 3. Freed slots may be reused, stale external values are handed to the major collector.
//! 4. On devices that snapshot, and if an image snapshot is due, every worker lets that have
//!    the changed pages of its share.

use std::collections::BTreeMap;

use pmem::{Device, Port};
use storage::StateHash;
use storage::format::EPOCH_CALLS_MAX;

use crate::call::batch::Part;
use crate::epoch::log_inputs::encode_deferred_calls;
use crate::error::EngineError;
use crate::kept::Indexes;
use crate::state::core::Core;
use crate::state::watch::Moment;
use crate::worker::{Epoch, Leave, Past, Totals, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    fence_own(epoch, worker)?;
    add_totals(epoch, worker);
    name_stale_rows(epoch, worker);
    epoch.barrier()?;
    // All values are there for all threads now, also those that were stored non-temporally.
    epoch.open_gate(worker, epoch.number);
    epoch.reach(worker, Moment::Fenced);
    if epoch.leads(worker) {
        commit(epoch, worker)?;
    }
    epoch.reach(worker, Moment::Committed);
    epoch.barrier()?;
    if epoch.ends_in_checkpoint {
        worker.row_store.checkpointed();
        worker.collect.append(&mut worker.row_store.stale);
    }
    if epoch.ends_in_image_snapshot {
        let in_image = epoch.store.checkpoint_epoch();
        assert!(in_image == epoch.number, "the image that is saved ends in a checkpoint record");
        epoch.store.device().snapshot_part(worker.local.worker.index(), epoch.workers)?;
        epoch.barrier()?;
        if epoch.leads(worker) {
            epoch.store.device().snapshot_commit(epoch.number)?;
        }
    }
    Ok(())
}

/// Step 1.
fn fence_own(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let sequence = epoch.ends_in_checkpoint.then(|| epoch.store.next_sequence());
    assert!(worker.row_store.hidden.is_empty(), "nothing is written behind the last fence");
    worker.row_store.put_back(epoch.store.segments())?;
    worker.row_store.save(epoch.store.segments(), sequence);
    worker.row_store.port.fence();
    Ok(())
}

fn add_totals(epoch: &Epoch<'_>, worker: &mut Worker) {
    let mut totals = epoch.shared.totals.lock().expect("no panic while locked");
    totals.hash.merge(std::mem::take(&mut worker.row_store.hash));
    totals.rows += std::mem::take(&mut worker.row_store.rows);
    let mut deferred = epoch.shared.deferred.lock().expect("no panic while locked");
    deferred.append(&mut worker.local.deferred);
    drop(deferred);
    let own = &mut worker.row_store.changes;
    if own.are_any() {
        epoch.shared.changes.lock().expect("no panic while locked").add(own.take());
    }
}

/// Leaves what was changed with the change log. The inputs are durable, so a replay comes to the
/// same changes. A replay writes nothing before the device is accepted.
fn log_changes(epoch: &Epoch<'_>) -> Result<(), Leave> {
    let Some(log) = &epoch.core.config.change_log else { return Ok(()) };
    let mut changes = epoch.shared.changes.lock().expect("no panic while locked");
    changes.logged.sort();
    log.add(epoch.number, &changes.logged, epoch.replay.is_none_or(|past| past.last))?;
    if epoch.ends_in_image_snapshot {
        log.settle(epoch.number)?;
    }
    Ok(())
}

/// The root of kept indexes names the rows that the next epoch collects.
fn name_stale_rows(epoch: &Epoch<'_>, worker: &Worker) {
    if epoch.ends_in_image_snapshot && epoch.core.kept.is_some() {
        let mut stale = epoch.shared.stale.lock().expect("no panic while locked");
        stale.extend(worker.stale_rows(epoch.core));
    }
}

/// Writes the root of kept indexes.
fn save_indexes(epoch: &Epoch<'_>, port: &mut Port) {
    let Some(kept) = &epoch.core.kept else { return };
    let stale = std::mem::take(&mut *epoch.shared.stale.lock().expect("no panic while locked"));
    let Core { tables, entries, .. } = epoch.core;
    let indexes = Indexes { tables, entries, stale: &stale };
    kept.save(&indexes, epoch.store, port, epoch.number);
}

/// A replayed epoch must come to the state that it came to before the crash. Only then, and before
/// the last one is made durable, does the device change what it keeps.
fn verify(epoch: &Epoch<'_>, past: Past<'_>, hash: Option<StateHash>) -> Result<(), Leave> {
    epoch.core.check_missing()?;
    if let (Some(was), Some(is)) = (past.hash, hash)
        && was != is
    {
        let what = format!("state hash {is}, not {was}; it ran {}", procedures(epoch));
        return Err(Leave::Failed(EngineError::OtherPast { epoch: epoch.number, what }));
    }
    if past.last {
        assert!(epoch.ends_in_checkpoint, "the next recovery starts where this replay ends");
        epoch.store.device().accept()?;
    }
    Ok(())
}

/// Which procedures the calls of an epoch are of, and how often.
fn procedures(epoch: &Epoch<'_>) -> String {
    let mut counts = BTreeMap::<u16, u64>::new();
    for position in 0..epoch.calls.len() {
        *counts.entry(epoch.calls.get(position).0).or_default() += 1;
    }
    let name = |number| epoch.procedures.get(number).map_or("?", |procedure| procedure.name());
    let parts: Vec<String> =
        counts.iter().map(|(&number, count)| format!("{} ({count} calls)", name(number))).collect();
    if parts.is_empty() { "no calls".into() } else { parts.join(", ") }
}

/// Step 2.
fn commit(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let Totals { hash, rows } = *epoch.shared.totals.lock().expect("no panic while locked");
    let mut sum = epoch.before;
    sum.hash.merge(hash);
    sum.rows += rows;
    let hash = epoch.core.config.lab.state_hash.then_some(sum.hash);
    if let Some(past) = epoch.replay {
        verify(epoch, past, hash)?;
    }
    log_changes(epoch)?;
    let port = &mut worker.row_store.port;
    let store = epoch.store;
    let mut deferred = epoch.shared.deferred.lock().expect("no panic while locked");
    deferred.sort_unstable();
    assert!(deferred.windows(2).all(|two| two[0] != two[1]), "a call is deferred once");
    assert!(
        deferred.last().is_none_or(|last| last.index() < epoch.calls.len()),
        "calls of this epoch are deferred"
    );
    assert!(
        deferred.first().is_none_or(|first| first.index() >= epoch.calls.serial()),
        "no call of the serial part is deferred (O-75)"
    );
    debug_assert!(epoch.core.secondary.is_nothing_pending(), "E11 has changed the indexes (O-97)");
    assert!(sum.rows >= 0, "no more rows are deleted than there are");
    let takes_snapshots = store.device().takes_snapshots();
    let recovery_starts_here =
        if takes_snapshots { epoch.ends_in_image_snapshot } else { epoch.ends_in_checkpoint };
    let logs = epoch.core.config.lab.design.logs();
    // Without a log a crash loses calls that are deferred, as it does those that wait.
    let deferred_on = if logs { epoch.still_deferred.len() + deferred.len() } else { 0 };
    assert!(deferred_on as u64 <= EPOCH_CALLS_MAX, "deferred calls fit into the next epoch");
    if recovery_starts_here && deferred_on > 0 {
        let mut deferred_calls = epoch.still_deferred.clone();
        for &position in deferred.iter() {
            let (procedure, arguments) = epoch.calls.get(position.index());
            deferred_calls.push_to(Part::Deferred, procedure, arguments)?;
        }
        let bytes = encode_deferred_calls(&deferred_calls);
        store.log().write_deferred_calls(port, epoch.number.next(), &bytes)?;
        store.log().make_durable()?;
    }
    if epoch.ends_in_checkpoint {
        assert!(store.checkpoint_epoch() < epoch.number, "checkpoints go forward (O-23)");
        store.commit(port, epoch.number, hash, sum.rows as u64, deferred_on as u32);
    }
    if epoch.ends_in_image_snapshot {
        save_indexes(epoch, port);
    }
    let durable = if takes_snapshots {
        store.device().snapshot_epoch()
    } else {
        Some(store.checkpoint_epoch())
    };
    if let Some(durable) = durable
        && logs
    {
        assert!(durable <= epoch.number, "no log of an epoch to come is released");
        store.log().release(durable);
    }
    Ok(())
}
