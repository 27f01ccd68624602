//! One epoch: every worker runs [`run`], which names the phases in order (NV Algorithm 1).
//!
//! The papers log first. Here the write sets are declared before, so that an epoch for which there
//! is no space is refused while nothing is logged yet (O-43); the log still is durable before a
//! final write reaches the device, and before any answer (O-13). docs/epoch.md has the steps and
//! what a crash in each leaves behind.

mod append;
mod batch;
mod checkpoint;
mod contention;
mod declare;
mod dispatch;
mod evict_cache;
mod execute;
mod handover;
mod index_changes;
mod insert;
mod log_inputs;
mod major_gc;
mod page_in;
mod piece;
mod prefetch;
mod publish;
mod remove;
mod reserve;
mod reuse;
mod sequences;
mod serial;
mod split;
pub(crate) mod workers;

use storage::format::EPOCH_CALLS_MAX;

pub(crate) use log_inputs::{decode_calls, decode_deferred_calls, encode_deferred_calls};

use crate::stats::Phase;
use crate::worker::{Epoch, Leave, Worker};

/// What the first step takes for granted: the epoch before has left nothing half done.
fn assert_begins(epoch: &Epoch<'_>, worker: &Worker) {
    let row_store = &worker.row_store;
    assert!(worker.local.worker.index() < epoch.workers, "the worker has a part in the epoch");
    assert!(epoch.shared.barrier.parties() == epoch.workers, "all workers meet at the barrier");
    assert!(epoch.checkpoint_epoch < epoch.number, "the checkpoint is of an epoch before");
    assert!(epoch.calls.len() as u64 <= EPOCH_CALLS_MAX, "serial ids have room for all positions");
    assert!(
        epoch.calls.deferred() <= epoch.calls.serial(),
        "deferred calls are for the serial part"
    );
    assert!(
        epoch.ends_in_checkpoint || !epoch.ends_in_image_snapshot,
        "an image snapshot is of a checkpoint"
    );
    assert!(
        epoch.still_deferred.is_empty() || epoch.calls.deferred() == epoch.calls.len(),
        "where deferred calls are left, no other call runs"
    );
    debug_assert!(epoch.core.secondary.is_nothing_pending(), "the indexes are what the rows are");
    let is_first = epoch.checkpoint_epoch.next() == epoch.number;
    assert!(
        row_store.stale.is_empty() || !is_first,
        "values that a checkpoint made stale are in the collector's list"
    );
    assert!(row_store.hidden.is_empty(), "no final write of the epoch before is hidden");
    assert!(row_store.dead_rows.is_empty(), "dead rows of the epoch before left the indexes");
    assert!(row_store.handed_pools.is_empty(), "slots that were handed over were put back");
    assert!(row_store.rows == 0, "rows of the epoch before were added up");
    assert!(worker.local.chains.is_empty(), "all appends of the epoch before are in arrays");
}

/// Runs one epoch as one of its workers.
pub(crate) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    assert_begins(epoch, worker);
    epoch.start_clock(worker);
    worker.local.start_epoch();
    contention::begin(epoch, worker);

    epoch.begin(worker, Phase::Serial);
    serial::run(epoch, worker)?;
    epoch.lap(worker, Phase::Serial);

    epoch.begin(worker, Phase::Declare);
    assert!(worker.local.lists.txns.is_empty(), "no call has declared before E1");
    sequences::run(epoch, worker)?;
    declare::run(epoch, worker)?;
    epoch.lap(worker, Phase::Declare);

    epoch.begin(worker, Phase::LogInputs);
    log_inputs::run(epoch, worker)?;
    epoch.lap(worker, Phase::LogInputs);

    epoch.begin(worker, Phase::Insert);
    page_in::rows(epoch, worker)?;
    insert::run(epoch, worker)?;
    epoch.lap(worker, Phase::Insert);

    epoch.begin(worker, Phase::MajorGc);
    major_gc::run(epoch, worker)?;
    page_in::let_entries_go(epoch, worker)?;
    epoch.lap(worker, Phase::MajorGc);

    epoch.begin(worker, Phase::EvictCache);
    evict_cache::run(epoch, worker);
    epoch.barrier()?;
    epoch.lap(worker, Phase::EvictCache);

    epoch.begin(worker, Phase::Append);
    append::run(epoch, worker)?;
    page_in::values(epoch, worker);
    epoch.barrier()?;
    epoch.open_gate(worker, epoch.number.previous());
    split::run(epoch, worker)?;
    epoch.lap(worker, Phase::Append);

    epoch.begin(worker, Phase::Execute);
    execute::run(epoch, worker)?;
    contention::find(epoch, worker);
    epoch.lap(worker, Phase::Execute);

    epoch.begin(worker, Phase::LogInputs);
    log_inputs::wait_until_durable(epoch, worker)?;
    epoch.lap(worker, Phase::LogInputs);

    epoch.begin(worker, Phase::Remove);
    remove::run(epoch, worker)?;
    epoch.lap(worker, Phase::Remove);

    epoch.begin(worker, Phase::Checkpoint);
    checkpoint::run(epoch, worker)?;
    epoch.lap(worker, Phase::Checkpoint);
    Ok(())
}
