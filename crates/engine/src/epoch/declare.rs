//! Step two of the declarations: write sets, and the space that the epoch may need at most (O-43).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use pmem::Device;
use storage::format::CLASSES;
use storage::input_log::Demand;
use storage::{class_of, class_pool};

use crate::calls::{Abort, StoredAnswer};
use crate::declare::{Declaration, WriteSet};
use crate::epoch::{draw, log_inputs};
use crate::local::{DeclaredKind, Span};
use crate::version::ReadPhase;
use crate::worker::{Epoch, Leave, Worker};
use crate::{EngineError, Result};

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    for index in 0..worker.local.lists.txns.len() {
        // The spans of all calls lie one after the other, those of a call that declares nothing
        // too.
        let (declared, ranges) =
            (worker.local.lists.declared.len(), worker.local.lists.ranges.len());
        worker.local.lists.txns[index].declared =
            Span { from: declared as u32, to: declared as u32 };
        worker.local.lists.txns[index].ranges = Span { from: ranges as u32, to: ranges as u32 };
        if draw::goes_on(worker.local.lists.txns[index].early.as_ref()) {
            declare_one(epoch, worker, index);
        }
    }
    for declared in worker.local.lists.declared.iter().filter(|d| d.kind == DeclaredKind::Insert) {
        epoch.shared.inserts[declared.table as usize].fetch_add(1, Ordering::Relaxed);
    }
    epoch.barrier()?;
    epoch.shared.segments_needed.fetch_add(segments_needed(epoch, worker), Ordering::Relaxed);
    epoch.shared.carry_bytes.fetch_add(carry_bytes(epoch, worker), Ordering::Relaxed);
    epoch.barrier()?;
    if epoch.leads(worker)
        && let Err(error) = reserve(epoch)
    {
        draw::undo(epoch, worker);
        *epoch.shared.refused.lock().expect("no panic while locked") = Some(error);
    }
    epoch.barrier()?;
    if epoch.shared.refused.lock().expect("no panic while locked").is_some() {
        return Err(Leave::Refused);
    }
    Ok(())
}

fn declare_one<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>, index: usize) {
    let lists = &mut worker.local.lists;
    let (position, draws) = (lists.txns[index].position as usize, lists.txns[index].draws);
    let (number, arguments) = epoch.calls.get(position);
    let procedure = epoch.core.procedures.get(number).expect("checked before the epoch began");
    let declared_from = lists.declared.len();
    let ranges_from = lists.ranges.len();
    let lookups_from = lists.lookups.len();
    let declaration = Declaration {
        core: epoch.core,
        lists,
        phase: ReadPhase::begin(),
        epoch: epoch.number,
        first: declared_from,
        mistake: None,
    };
    let mut set = WriteSet { declaration, draws };
    let result = catch_unwind(AssertUnwindSafe(|| (procedure.write_set)(arguments, &mut set)));
    let early = ending(result, set.declaration.mistake.take());
    let lists = &mut worker.local.lists;
    if early.is_some() {
        lists.declared.truncate(declared_from);
        lists.ranges.truncate(ranges_from);
    }
    // Lookups of both steps lie together unless another call declared in between: then copy the
    // first ones.
    let drawn_lookups = lists.txns[index].lookups;
    if !drawn_lookups.is_empty() && lists.lookups.len() > lookups_from {
        lists.lookups.extend_from_within(drawn_lookups.range());
    }
    let lookups = if lists.lookups.len() > lookups_from {
        Span { from: lookups_from as u32, to: lists.lookups.len() as u32 }
    } else {
        drawn_lookups
    };
    let txn = &mut lists.txns[index];
    txn.declared = Span { from: declared_from as u32, to: lists.declared.len() as u32 };
    txn.ranges = Span { from: ranges_from as u32, to: lists.ranges.len() as u32 };
    txn.lookups = lookups;
    txn.early = early;
}

/// How a step of a declaration ended, if it ended the call.
pub(super) fn ending(
    result: std::result::Result<std::result::Result<(), Abort>, Box<dyn Any + Send>>,
    mistake: Option<String>,
) -> Option<StoredAnswer> {
    match (result, mistake) {
        (Err(panic), _) => Some(StoredAnswer::Failed(panic_text(panic.as_ref()))),
        (Ok(_), Some(what)) => Some(StoredAnswer::Failed(what)),
        (Ok(Err(abort)), None) => Some(StoredAnswer::Aborted(abort)),
        (Ok(Ok(())), None) => None,
    }
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into());
    format!("the procedure panicked: {text}")
}

/// Most segments that this worker may take in this epoch, for rows, values and free lists.
fn segments_needed<D: Device>(epoch: &Epoch<'_, D>, worker: &Worker<D>) -> u64 {
    let tables = epoch.core.tables.len();
    let (mut inserts, mut writes) = (vec![0u64; tables], vec![0u64; tables]);
    let mut covered = vec![false; tables];
    for declared in worker.local.lists.declared.iter().filter(|d| d.kind != DeclaredKind::Read) {
        writes[declared.table as usize] += 1;
        inserts[declared.table as usize] += u64::from(declared.kind == DeclaredKind::Insert);
    }
    for table in worker.local.lists.ranges.iter().map(|r| r.table as usize) {
        // A range may cover every row that there is and every row that this epoch inserts; a row is
        // written and freed once, however many ranges cover it.
        if !covered[table] {
            let born = epoch.shared.inserts[table].load(Ordering::Relaxed);
            writes[table] += epoch.core.tables[table].hash.len() as u64 + born;
            covered[table] = true;
        }
    }
    if epoch.leads(worker) {
        for changed in &worker.local.sequences {
            inserts[changed.table as usize] += u64::from(changed.before.is_none());
        }
    }
    let mut segments = 0;
    let mut external = 0;
    for table in 0..tables {
        let layout = &epoch.core.tables[table].layout;
        segments += slot_segments(worker, table, inserts[table]);
        segments += free_list_segments(epoch, worker, table, writes[table]);
        if !layout.is_inline(layout.value_bytes_max) {
            external += writes[table];
        }
    }
    if external > 0 {
        segments += value_segments(epoch, worker, external);
    }
    segments
}

/// Segments that a worker must take to allocate `wanted` slots of a pool.
fn slot_segments<D: Device>(worker: &Worker<D>, pool: usize, wanted: u64) -> u64 {
    let lanes = &worker.medium.lanes[pool];
    let at_hand: u64 = lanes.iter().map(|l| l.available() + l.room()).sum();
    wanted.saturating_sub(at_hand).div_ceil(lanes[0].slots_per_segment())
}

/// Segments that a worker must take to free `frees` slots of a pool.
fn free_list_segments<D: Device>(
    epoch: &Epoch<'_, D>,
    worker: &Worker<D>,
    pool: usize,
    frees: u64,
) -> u64 {
    let entries = epoch.store.segments().segment_bytes() / 8;
    frees.saturating_sub(worker.medium.lanes[pool][0].free_list_room()).div_ceil(entries)
}

/// Most segments for `external` values of unknown lengths. Their cost is convex in how they are
/// spread over the classes, so it is largest where all are of one class, but for the segments that
/// each class begins.
fn value_segments<D: Device>(epoch: &Epoch<'_, D>, worker: &Worker<D>, external: u64) -> u64 {
    let largest = epoch.core.tables.iter().map(|t| t.layout.value_bytes_max).max().unwrap_or(0);
    let pools = (0..CLASSES.min(class_of(largest) + 1)).map(|class| class_pool(class) as usize);
    let frees = 2 * external + worker.collect.len() as u64;
    let (mut most, mut begun) = ([0; 2], [0; 2]);
    for pool in pools {
        let needed =
            [slot_segments(worker, pool, external), free_list_segments(epoch, worker, pool, frees)];
        for (kind, segments) in needed.into_iter().enumerate() {
            most[kind] = most[kind].max(segments);
            begun[kind] += u64::from(segments > 0);
        }
    }
    most.iter().sum::<u64>() + begun.iter().sum::<u64>()
}

/// Bytes of calls that might be re-submitted: those that looked something up.
fn carry_bytes<D: Device>(epoch: &Epoch<'_, D>, worker: &Worker<D>) -> u64 {
    let looked = worker.local.lists.txns.iter().filter(|t| !t.lookups.is_empty());
    looked.map(|t| log_inputs::record_bytes(epoch.calls.get(t.position as usize).1.len())).sum()
}

/// Makes sure that the epoch cannot run out of space once it is logged.
fn reserve<D: Device>(epoch: &Epoch<'_, D>) -> Result<()> {
    let segments = epoch.shared.segments_needed.load(Ordering::Relaxed);
    let reserved = epoch.store.segments().reserve(epoch.store.device().as_ref(), segments);
    // A single worker that replays has all lanes, and with them every segment that the run before
    // the crash took; it needs no more, whatever the estimate says.
    if !(epoch.replay && epoch.workers == 1) {
        reserved?;
    }
    if !epoch.replay {
        let demand = Demand {
            streams: epoch.workers as u16,
            bytes: log_inputs::epoch_bytes(epoch.calls, epoch.workers),
            carry_bytes: match epoch.shared.carry_bytes.load(Ordering::Relaxed) {
                0 => 0,
                records => records + log_inputs::CARRY_EXTRA_BYTES,
            },
        };
        epoch.store.log().begin(epoch.number, demand).map_err(EngineError::from)?;
    }
    Ok(())
}
