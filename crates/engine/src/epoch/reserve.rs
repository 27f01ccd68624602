//! Reserving space: an epoch that might run out of it is refused before anything is logged (O-43).
//!
//! Rows are created by the worker that declared them, so their demand adds up. Values are written,
//! and slots freed, by whoever runs the call: the bound holds for every way to spread the work. A
//! worker that does all of it finds least at hand in the lanes of the poorest one, and every
//! worker, and every class of values, may begin a segment.

use pmem::Device;
use pmem::sync::atomic::Ordering;
use storage::format::CLASSES;
use storage::input_log::Demand;
use storage::{class_of, class_pool};

use crate::demand::SpaceDemand;
use crate::local::DeclaredKind;
use crate::worker::{Epoch, Worker};
use crate::{EngineError, Result};

/// Adds what this worker's calls declared.
pub(super) fn tally<D: Device>(epoch: &Epoch<'_, D>, worker: &Worker<D>) {
    let tables = epoch.core.tables.len();
    let (mut inserts, mut writes) = (vec![0u64; tables], vec![0u64; tables]);
    for declared in worker.local.lists.declared.iter().filter(|d| d.kind != DeclaredKind::Read) {
        writes[declared.table as usize] += 1;
        inserts[declared.table as usize] += u64::from(declared.kind == DeclaredKind::Insert);
    }
    if epoch.leads(worker) {
        for changed in &worker.local.sequences {
            inserts[changed.table as usize] += u64::from(changed.before.is_none());
        }
    }
    let mut demand = epoch.shared.demand.lock().expect("no panic while locked");
    for table in 0..tables {
        demand.inserts[table] += inserts[table];
        demand.writes[table] += writes[table];
        demand.row_segments += row_segments(worker, table, inserts[table]);
    }
    for range in &worker.local.lists.ranges {
        demand.covered[range.table as usize] = true;
    }
    demand.collected += worker.collect.len() as u64;
    for (pool, lanes) in worker.medium.lanes.iter().enumerate() {
        let slots = lanes.iter().map(|l| l.available() + l.room()).sum();
        let entries = lanes.first().map_or(0, storage::LanePool::free_list_room);
        demand.slots_at_hand[pool] = demand.slots_at_hand[pool].min(slots);
        demand.entries_at_hand[pool] = demand.entries_at_hand[pool].min(entries);
    }
}

/// Segments that a worker must take to create rows.
fn row_segments<D: Device>(worker: &Worker<D>, table: usize, rows: u64) -> u64 {
    let lanes = &worker.medium.lanes[table];
    let at_hand: u64 = lanes.iter().map(|l| l.available() + l.room()).sum();
    rows.saturating_sub(at_hand).div_ceil(lanes[0].slots_per_segment())
}

/// Makes sure that the epoch cannot run out of space once it is logged.
///
/// # Errors
/// `Full` of the device or the log; nothing has changed then.
pub(super) fn reserve<D: Device>(epoch: &Epoch<'_, D>) -> Result<()> {
    let segments = segments_needed(epoch);
    let reserved = epoch.store.segments().reserve(epoch.store.device().as_ref(), segments);
    // A single worker that replays has all lanes, and with them every segment that the run before
    // the crash took; it needs no more, whatever the estimate says.
    if !(epoch.replay.is_some() && epoch.workers == 1) {
        reserved?;
    }
    if epoch.replay.is_none() {
        let demand = Demand {
            streams: epoch.workers as u16,
            bytes: epoch.calls.records_bytes() as u64,
            carry_bytes: epoch.shared.carry_bytes.load(Ordering::Relaxed),
        };
        epoch.store.log().begin(epoch.number, demand).map_err(EngineError::from)?;
    }
    Ok(())
}

/// Most segments that the epoch may take, however its calls are spread over the workers.
fn segments_needed<D: Device>(epoch: &Epoch<'_, D>) -> u64 {
    let demand = epoch.shared.demand.lock().expect("no panic while locked");
    let entries = epoch.store.segments().segment_bytes() / 8;
    let mut segments = demand.row_segments;
    let (mut external, mut largest) = (0, 0);
    for (index, table) in epoch.core.tables.iter().enumerate() {
        // A row is written and freed once, however many ranges cover it.
        let in_ranges = table.hash.len() as u64 + demand.inserts[index];
        let writes = demand.writes[index] + u64::from(demand.covered[index]) * in_ranges;
        let (most, begun) = spread(epoch, writes, demand.entries_at_hand[index], entries);
        segments += most + begun;
        if !table.layout.is_inline(table.layout.value_bytes_max) {
            external += writes;
            largest = largest.max(table.layout.value_bytes_max);
        }
    }
    if external > 0 || demand.collected > 0 {
        segments += value_segments(epoch, &demand, external, largest);
    }
    segments
}

/// Most segments for `external` values of unknown lengths up to `largest`. Their cost is convex in
/// how they are spread over the classes, so it is largest where all are of one class, but for the
/// segments that each class begins.
fn value_segments<D: Device>(
    epoch: &Epoch<'_, D>,
    demand: &SpaceDemand,
    external: u64,
    largest: u64,
) -> u64 {
    let segment_bytes = epoch.store.segments().segment_bytes();
    let frees = 2 * external + demand.collected;
    let (mut slots_most, mut entries_most, mut begun) = (0, 0, 0);
    // What the collector frees may be of any class that fits a segment.
    let classes = if demand.collected > 0 { CLASSES } else { class_of(largest) + 1 };
    for class in (0..classes).filter(|&c| storage::class_bytes(c) <= segment_bytes) {
        let pool = class_pool(class) as usize;
        let per_segment = segment_bytes / storage::class_bytes(class);
        let slots = spread(epoch, external, demand.slots_at_hand[pool], per_segment);
        let entries = spread(epoch, frees, demand.entries_at_hand[pool], segment_bytes / 8);
        slots_most = slots_most.max(slots.0);
        entries_most = entries_most.max(entries.0);
        begun += slots.1 + entries.1 + u64::from(slots.0 > 0) + u64::from(entries.0 > 0);
    }
    slots_most + entries_most + begun
}

/// Segments for `count` things of which every worker has room for `at_hand`: those that one worker
/// needs that gets all of them, and those that the others may begin besides.
fn spread<D: Device>(
    epoch: &Epoch<'_, D>,
    count: u64,
    at_hand: u64,
    per_segment: u64,
) -> (u64, u64) {
    let beyond = count.saturating_sub(at_hand);
    if beyond == 0 { (0, 0) } else { (beyond.div_ceil(per_segment), epoch.workers as u64 - 1) }
}
