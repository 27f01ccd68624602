//! Where the image may be larger than memory, or is still being read: pages that an epoch declared
//! are read, many at once, before calls touch them and while they run. What was not declared is
//! read when it is touched.
//!
//! Which pages are in memory changes no answer (S15).

use pmem::{Device, LINE_BYTES};
use storage::TableId;

use crate::declaration::{Declared, Member, NO_ENTRY};
use crate::index::EntryId;
use crate::worker::{Epoch, Leave, Worker};

/// Pages that are asked for at once: the lists of several workers take turns.
const ASKED: usize = 32;

/// Row entries may have this part of the limit of memory before those are let go that can be
/// filled again.
const ENTRIES_PART: u64 = 32;

/// Asks for the rows that this worker's calls declared by key, while the log is written: the steps
/// behind this one look at their heads, and compare their keys.
pub(super) fn rows<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    if !epoch.asks_for_pages {
        return Ok(());
    }
    let missing = &mut worker.local.missing_pages;
    if epoch.core.kept.is_some() {
        want_buckets(epoch, &worker.local.lists.declared, missing);
    }
    for declared in &worker.local.lists.declared {
        let hash = &epoch.core.tables[declared.table.index()].hash;
        // The words of two keys are hardly ever the same.
        if let Some(id) = hash.find(declared.word, |_| true) {
            want_row(epoch, declared.table, id, missing);
        }
    }
    epoch.store.device().fetch_pages(missing);
    // The indexes change next.
    Ok(epoch.barrier()?)
}

/// Asks for the parts of kept indexes where keys are looked up.
fn want_buckets<D: Device>(epoch: &Epoch<'_, D>, declared: &[Declared], missing: &mut Vec<u64>) {
    let (core, device) = (epoch.core, epoch.store.device());
    for key in declared {
        let bucket = core.tables[key.table.index()].hash.address_of(key.word);
        let offset = bucket.wrapping_sub(core.image_base) as u64;
        if offset < device.image_bytes() {
            device.want_pages(offset, LINE_BYTES, missing);
        }
        if missing.len() >= ASKED {
            device.fetch_pages(missing);
        }
    }
    device.fetch_pages(missing);
}

/// Asks for the rows of ranges.
pub(super) fn members<D: Device>(epoch: &Epoch<'_, D>, members: &[Member], missing: &mut Vec<u64>) {
    if epoch.asks_for_pages {
        members.iter().for_each(|member| want_row(epoch, member.table, member.id, missing));
        epoch.store.device().fetch_pages(missing);
    }
}

fn want_row<D: Device>(epoch: &Epoch<'_, D>, table: TableId, id: EntryId, missing: &mut Vec<u64>) {
    let (core, device) = (epoch.core, epoch.store.device());
    let row_bytes = core.tables[table.index()].layout.row_bytes;
    device.want_pages(core.entries.row_of(id), row_bytes, missing);
    if missing.len() >= ASKED {
        device.fetch_pages(missing);
    }
}

/// Asks for the values of declared rows that are not in the rows themselves (after E8, which finds
/// the rows).
pub(super) fn values<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) {
    let device = epoch.store.device();
    if !epoch.asks_for_pages {
        return;
    }
    let missing = &mut worker.local.missing_pages;
    for declared in worker.local.lists.declared.iter().filter(|key| key.id != NO_ENTRY) {
        let value = epoch.core.entry(declared.id).persistent_version();
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

/// Lets row entries go that are too many in memory (between E6 and E7). Those of rows that were
/// made in E5 stay. No call has claimed another, no list of the collector names any, and no reader
/// from outside is inside.
pub(super) fn let_entries_go<D: Device>(
    epoch: &Epoch<'_, D>,
    worker: &Worker<D>,
) -> Result<(), Leave> {
    let Some(pages) = epoch.store.device().page_use() else { return Ok(()) };
    let entries = &epoch.core.entries;
    let are_many = entries.bytes() > pages.limit_bytes / ENTRIES_PART;
    epoch.barrier()?;
    assert!(epoch.core.gate.is_closed(), "no reader is inside while entries go");
    assert!(worker.collect.is_empty() && worker.row_store.stale.is_empty(), "no list names rows");
    if are_many {
        entries.let_go(epoch.number, worker.local.worker.index(), epoch.workers);
    }
    Ok(())
}
