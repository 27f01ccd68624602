//! Where the image may be larger than memory: pages that an epoch declared are read, many at once,
//! before calls touch them and while they run. What was not declared is read when it is touched.
//!
//! Which pages are in memory changes no answer (S15).

use pmem::Device;

use crate::declaration::NO_ENTRY;
use crate::worker::{Epoch, Leave, Worker};

/// Pages that are asked for at once: the lists of several workers take turns.
const ASKED: usize = 32;

/// Asks for the rows that this worker's calls declared, and for their values (after E8, which finds
/// the rows, and touches none of them).
pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) {
    let device = epoch.store.device();
    if !device.has_memory_limit() {
        return;
    }
    let missing = &mut worker.local.missing_pages;
    for declared in worker.local.lists.declared.iter().filter(|key| key.id != NO_ENTRY) {
        let bytes = epoch.core.tables[declared.table.index()].layout.row_bytes;
        let entry = epoch.core.entries.get(declared.id);
        device.want_pages(entry.row(), bytes, missing);
        let value = entry.persistent_version();
        if value.is_value() && value.is_persistent() {
            let at = (value.address() - epoch.core.image_base) as u64;
            device.want_pages(at, value.len() as u64, missing);
        }
        if missing.len() >= ASKED {
            device.fetch_pages(missing);
        }
    }
    device.fetch_pages(missing);
}

/// Lets pages go that are too many in memory. Nothing is stored between the barrier and the start
/// of the next epoch (S8).
pub(super) fn evict<D: Device>(epoch: &Epoch<'_, D>, worker: &Worker<D>) -> Result<(), Leave> {
    let device = epoch.store.device();
    if device.has_memory_limit() {
        epoch.barrier()?;
        device.evict_part(worker.local.worker.index(), epoch.workers);
    }
    Ok(())
}
