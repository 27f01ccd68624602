//! Step two of the declarations: write sets.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pmem::Device;
use pmem::sync::atomic::Ordering;
use storage::plant::Plant;

use crate::calls::{Abort, StoredAnswer};
use crate::declare::{Declaration, KeyFilter, WriteSet};
use crate::epoch::{draw, log_inputs, reserve};
use crate::local::Span;
use crate::version::ReadPhase;
use crate::worker::{Epoch, Leave, Worker};

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
    if !worker.local.lists.pieces.is_empty() {
        epoch.shared.has_pieces.store(true, Ordering::Relaxed);
    }
    reserve::tally(epoch, worker);
    epoch.shared.carry_bytes.fetch_add(carry_bytes(epoch, worker), Ordering::Relaxed);
    epoch.barrier()?;
    if epoch.leads(worker)
        && let Err(error) = reserve::reserve(epoch)
    {
        if !epoch.planted(Plant::RefusedKeepsNumbers) {
            draw::undo(epoch, worker);
        }
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
    let (lookups_from, pieces_from) = (lists.lookups.len(), lists.pieces.len());
    let declaration = Declaration {
        core: epoch.core,
        lists,
        phase: ReadPhase::begin(),
        epoch: epoch.number,
        first: declared_from,
        filter: KeyFilter::default(),
        mistake: None,
    };
    let mut set = WriteSet { declaration, draws };
    let result = catch_unwind(AssertUnwindSafe(|| (procedure.write_set)(arguments, &mut set)));
    let mut mistake = set.declaration.mistake.take();
    if procedure.pieces.is_none() && worker.local.lists.pieces.len() > pieces_from {
        mistake.get_or_insert_with(|| "it declares a piece and has no function for it".into());
    }
    let early = ending(result, mistake);
    let lists = &mut worker.local.lists;
    if early.is_some() {
        lists.declared.truncate(declared_from);
        lists.ranges.truncate(ranges_from);
        lists.pieces.truncate(pieces_from);
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
    txn.pieces = Span { from: pieces_from as u32, to: lists.pieces.len() as u32 };
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

/// Bytes of calls that might be re-submitted: those that looked something up.
fn carry_bytes<D: Device>(epoch: &Epoch<'_, D>, worker: &Worker<D>) -> u64 {
    let looked = worker.local.lists.txns.iter().filter(|t| !t.lookups.is_empty());
    looked.map(|t| log_inputs::record_bytes(epoch.calls.get(t.position as usize).1.len())).sum()
}
