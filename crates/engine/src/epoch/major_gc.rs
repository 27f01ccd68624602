//! The major collector (NV 4.4, 5.5): frees the stale external values of rows written before the
//! last checkpoint. These frees are never reverted, because their pointers are overwritten:
//! 1. append the pool slots to the free list; flush; fence;
//! 2. make the new tail final; flush; fence;
//! 3. clear the stale slots in the row headers; flush; fence.
//!
//! A crash after 2 leaves pointers that are already on the free list: recovery knows them (O-36).
//! Stale inline versions need none of this: the final write overwrites them (minor collection),
//! unless that is switched off ([`crate::Lab::minor_collection`]).

use pmem::Device;
use storage::format::TABLES_MAX;
use storage::{SerialId, SubPool, ValuePointer, class_of, class_pool, row};

use crate::index::EntryId;
use crate::version::clear_stale;
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let list = std::mem::take(&mut worker.collect);
    // Only the first collection after a recovery can meet what one before the crash freed.
    let already_collected = std::mem::take(&mut worker.already_collected);
    if list.is_empty() {
        return Ok(());
    }
    assert!(
        epoch.store.device().takes_snapshots() || epoch.is_durable(),
        "on memory the epoch is committed before it collects for good (O-36)"
    );
    debug_assert!(is_each_once(&list), "a row is collected once an epoch");
    let segments = epoch.store.segments();
    let mut clear = Vec::with_capacity(list.len());
    for (id, generation) in list {
        let entry = epoch.core.entry(id);
        // Deleted since: its values were freed with it (O-37).
        if entry.generation() != generation || !entry.persistent_version().is_value() {
            continue;
        }
        let (at, slot) = (entry.row(), 1 - entry.persistent_version().slot());
        // Each row is on the list once, so that no line is read twice.
        worker.row_store.port.charge_load(at, row::VERSIONS_BYTES);
        let versions = row::versions(worker.row_store.port.device().as_ref(), at);
        let (stale, latest) = (versions[slot], versions[1 - slot]);
        let pointer = ValuePointer(stale.pointer);
        let sid = SerialId(stale.serial_id);
        let checkpointed = sid.0 != 0 && sid.epoch() <= epoch.checkpoint_epoch;
        if !checkpointed {
            continue;
        }
        assert!(stale.serial_id < latest.serial_id, "what is collected was replaced");
        let replaced_in = SerialId(latest.serial_id).epoch();
        assert!(replaced_in <= epoch.checkpoint_epoch, "by a version of the checkpoint (O-33)");
        debug_assert!(entry.version_count(epoch.number) == 0, "no row is claimed before E8");
        match pointer.external_offset() {
            Some(offset) if !already_collected.contains(&offset) => {
                let pool = class_pool(class_of(pointer.value_bytes())) as usize;
                worker.row_store.free(pool, offset, segments)?;
                worker.local.work.major_collections += 1;
            }
            Some(_) => {}
            // Inline versions come here where there is no minor collection.
            None => worker.local.work.major_collections += 1,
        }
        clear.push((at, slot));
    }
    let (port, sub_pools) = (&mut worker.row_store.port, &mut worker.row_store.sub_pools);
    for sub_pool in of_values(sub_pools) {
        sub_pool.flush(port, segments);
    }
    port.fence();
    for sub_pool in of_values(sub_pools) {
        sub_pool.collected(port);
    }
    port.fence();
    clear.into_iter().for_each(|(at, slot)| clear_stale(port, at, slot));
    port.fence();
    port.end_step();
    Ok(())
}

fn is_each_once(list: &[(EntryId, u32)]) -> bool {
    let mut ids: Vec<u32> = list.iter().map(|(id, _)| id.0).collect();
    ids.sort_unstable();
    ids.windows(2).all(|two| two[0] != two[1])
}

/// The sub-pools of values that this worker frees slots to: the first of each pool.
fn of_values(pools: &mut [Vec<SubPool>]) -> impl Iterator<Item = &mut SubPool> {
    pools.iter_mut().skip(TABLES_MAX).filter_map(|sub_pools| sub_pools.first_mut())
}
