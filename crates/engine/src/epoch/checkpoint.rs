//! The end of an epoch (NV 4.3): everything it wrote becomes durable, then its number does.
//!
//! 1. Every worker flushes its free lists and, if a checkpoint is due, its pools' offsets; then it
//!    fences its own port (O-22).
//! 2. After the barrier, the first worker makes carried calls durable, then writes the checkpoint
//!    record.
//! 3. Freed slots may be reused, stale external values are handed to the major collector.
//! 4. On devices that capture, and if a capture is due, every worker copies its share of the image
//!    aside.

use pmem::Device;
use storage::plant::Plant;

use crate::epoch::log_inputs::encode_carry;
use crate::watch::Moment;
use crate::worker::{Epoch, Leave, Totals, Worker};

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    fence_own(epoch, worker);
    add_totals(epoch, worker);
    epoch.barrier()?;
    epoch.reach(worker, Moment::Fenced);
    if epoch.leads(worker) {
        commit(epoch, worker)?;
    }
    epoch.reach(worker, Moment::Committed);
    epoch.barrier()?;
    if epoch.ends_in_checkpoint {
        worker.medium.lanes.iter_mut().flatten().for_each(storage::LanePool::checkpointed);
        worker.medium.refill();
        worker.collect.append(&mut worker.medium.stale);
    }
    if epoch.ends_in_capture {
        epoch.store.device().capture_part(worker.local.worker, epoch.workers)?;
        epoch.barrier()?;
        if epoch.leads(worker) {
            epoch.store.device().capture_commit(epoch.number)?;
        }
    }
    Ok(())
}

/// Step 1.
fn fence_own<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) {
    let segments = epoch.store.segments();
    let sequence = epoch.store.next_sequence();
    let port = &mut worker.medium.port;
    for lane in worker.medium.lanes.iter_mut().flatten() {
        lane.flush(port, segments);
        if epoch.ends_in_checkpoint {
            lane.save(port, sequence);
        }
    }
    let unfenced = epoch.planted(Plant::SkipFence)
        || epoch.planted(Plant::FirstWorkerFences) && worker.local.worker > 0;
    if !unfenced {
        port.fence();
    }
}

fn add_totals<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) {
    let mut totals = epoch.shared.totals.lock().expect("no panic while locked");
    totals.hash.merge(std::mem::take(&mut worker.medium.hash));
    totals.rows += std::mem::take(&mut worker.medium.rows);
    let mut carried = epoch.shared.carried.lock().expect("no panic while locked");
    carried.append(&mut worker.local.carried);
}

/// Step 2.
fn commit<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    let port = &mut worker.medium.port;
    let store = epoch.store;
    let mut carried = epoch.shared.carried.lock().expect("no panic while locked");
    carried.sort_unstable();
    let captures = store.device().captures();
    let recovery_starts_here =
        if captures { epoch.ends_in_capture } else { epoch.ends_in_checkpoint };
    if recovery_starts_here && !carried.is_empty() {
        let bytes = encode_carry(&epoch.core.procedures, epoch.calls, &carried);
        store.log().write_carry(port, epoch.number + 1, &bytes)?;
        store.log().make_durable()?;
    }
    if epoch.ends_in_checkpoint {
        let Totals { hash, rows } = *epoch.shared.totals.lock().expect("no panic while locked");
        let mut sum = epoch.before;
        sum.hash.merge(hash);
        sum.rows += rows;
        let hash = epoch.core.config.techniques.state_hash.then_some(sum.hash);
        store.commit(port, epoch.number, hash, sum.rows as u64, carried.len() as u32);
    }
    let durable =
        if captures { store.device().captured_epoch() } else { Some(store.checkpoint_epoch()) };
    if let Some(durable) = durable {
        store.log().release(durable);
    }
    Ok(())
}
