//! After execution: row that ended as a tombstone, and rows whose inserters all aborted, leave the
//! indexes (O-18), and secondary indexes become what the epoch has made of them. Slots of rows go
//! to the free list, which counts from the next checkpoint on.

use crate::epoch::index_changes::{self, Change};
use crate::epoch::page_in;
use crate::table::order_word;
use crate::version::DeadRow;
use crate::worker::{Epoch, IndexChanges, Leave, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let dead_rows = share_evenly(epoch, worker)?;
    let mut changes =
        epoch.shared.removed[worker.local.worker.index()].write().expect("no panic while locked");
    assert!(changes.iter().all(Vec::is_empty), "keys of the epoch before left the indexes");
    assert!(epoch.core.gate.is_closed(), "no reader is inside while rows leave (O-106)");
    apply_to_secondary(epoch, worker);
    page_in::dead_rows(epoch, &mut worker.local, &dead_rows);
    for row in &dead_rows {
        remove_one(epoch, worker, &mut changes, row)?;
    }
    index_changes::sort(epoch, worker, &mut changes);
    drop(changes);
    epoch.barrier()?;
    index_changes::apply(epoch, worker, Change::Remove)?;
    let live = |row: &DeadRow| epoch.core.entries.get(row.id).persistent_version().is_value();
    debug_assert!(!dead_rows.iter().any(live), "no row comes back before its entry is free");
    for row in dead_rows {
        epoch.core.entries.give_back(row.id);
    }
    Ok(())
}

/// What calls of the parallel part changed in secondary indexes takes place: each worker changes
/// some of the indexes.
fn apply_to_secondary(epoch: &Epoch<'_>, worker: &Worker) {
    let secondary = &epoch.core.secondary;
    if secondary.is_empty() {
        return;
    }
    let overlay = epoch.shared.overlay.read().expect("no panic while locked");
    let newest_snapshot = overlay.index_undo.newest_snapshot();
    secondary.apply_pending(worker.local.worker, epoch.workers, epoch.number, newest_snapshot);
}

/// This worker's share of the rows of each table that were deleted, whichever worker ran
/// their last writers: rows are created by all workers alike, so their slots must be freed by all
/// alike.
fn share_evenly(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<Vec<DeadRow>, Leave> {
    let mine = worker.local.worker.index();
    *epoch.shared.dead_rows[mine].write().expect("no panic while locked") =
        std::mem::take(&mut worker.row_store.dead_rows);
    // Bodies have ended, and with them what readers see.
    epoch.close_gate(worker);
    epoch.barrier()?;
    let mut share = Vec::new();
    let mut numbers = vec![0; epoch.core.tables.len()];
    for list in &epoch.shared.dead_rows {
        for row in list.read().expect("no panic while locked").iter() {
            let number = &mut numbers[row.table.index()];
            if *number % epoch.workers == mine {
                share.push(*row);
            }
            *number += 1;
        }
    }
    debug_assert!(is_each_once(&share), "a row dies once in an epoch");
    Ok(share)
}

fn is_each_once(rows: &[DeadRow]) -> bool {
    let mut ids: Vec<u32> = rows.iter().map(|row| row.id.0).collect();
    ids.sort_unstable();
    ids.windows(2).all(|two| two[0] != two[1])
}

/// Takes a row out of the hash index and frees its slot.
fn remove_one(
    epoch: &Epoch<'_>,
    worker: &mut Worker,
    changes: &mut IndexChanges,
    row: &DeadRow,
) -> Result<(), Leave> {
    let t = &epoch.core.tables[row.table.index()];
    let entry = epoch.core.entries.get(row.id);
    assert!(!entry.persistent_version().is_value(), "a dead row has no value");
    let mut room = [0; 8];
    let key = epoch.core.key(t, row.word, row.id, &mut room, &worker.local.reads);
    let word = t.word(key).expect("it was checked when the row was inserted");
    assert!(t.hash.remove(word.hash, row.id), "a row that is deleted was in the index");
    if t.ordered.is_some() {
        changes[row.table.index()].push((order_word(key), row.id));
    }
    if let Some(cached) = entry.cached() {
        entry.set_cached(None);
        worker.local.cache.retire(cached);
    }
    worker.local.reads.account_charged(&mut worker.row_store.port, epoch.core.image_base);
    worker.row_store.free(row.table.index(), entry.row(), epoch.store.segments())?;
    worker.local.work.rows_removed += 1;
    Ok(())
}
