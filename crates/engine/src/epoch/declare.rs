//! Step two of the declarations: write sets.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pmem::Device;
use pmem::sync::atomic::Ordering;

use crate::calls::{Abort, Failure, owned};
use crate::declare::{Declaration, WriteSet};
use crate::epoch::{draw, log_inputs, reserve};
use crate::local::{Declarations, Drawer, Extra, Local, Span, Txn};
use crate::reads::Reads;
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    let mut drawers = std::mem::take(&mut worker.local.drawers);
    let mut drawn = drawers.iter_mut().peekable();
    for position in owned(worker.local.worker, epoch.workers, epoch.calls.len()) {
        let drawer = drawn.next_if(|drawer| drawer.position as usize == position);
        let Local { lists, reads, .. } = &mut worker.local;
        declare_one(epoch, (lists, reads), position, drawer);
        reads.account_charged(&mut worker.medium.port, epoch.core.image_base);
    }
    drawers.clear();
    worker.local.drawers = drawers;
    if !worker.local.lists.pieces.is_empty() {
        epoch.shared.has_pieces.store(true, Ordering::Relaxed);
    }
    reserve::tally(epoch, worker);
    epoch.shared.carry_bytes.fetch_add(carry_bytes(epoch, worker), Ordering::Relaxed);
    epoch.barrier()?;
    if epoch.leads(worker)
        && let Err(error) = reserve::reserve(epoch)
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

fn declare_one<D: Device>(
    epoch: &Epoch<'_, D>,
    (lists, reads): (&mut Declarations, &Reads),
    position: usize,
    drawer: Option<&mut Drawer>,
) {
    let (declared_from, ranges_from) = (lists.declared.len(), lists.ranges.len());
    let (lookups_from, pieces_from) = (lists.lookups.len(), lists.pieces.len());
    let inserts_from = lists.inserts.len();
    let (mut draws, mut lookups, mut early) = Default::default();
    if let Some(drawer) = drawer {
        (draws, lookups, early) = (drawer.draws, drawer.lookups, drawer.early.take());
    }
    if epoch.skips(position) {
        early = Some(Failure::Failed("a verdict in the log says that it must not run".into()));
    }
    if early.is_none() {
        let (number, arguments) = epoch.calls.get(position);
        let procedure = epoch.procedures.get(number).expect("checked before the epoch began");
        let declaration = Declaration::new(epoch.core, lists, reads, epoch.number);
        let mut set = WriteSet { declaration, draws };
        let result = catch_unwind(AssertUnwindSafe(|| (procedure.write_set)(arguments, &mut set)));
        let mut mistake = set.declaration.mistake.take();
        if lists.pieces.len() > pieces_from && procedure.pieces.is_none() {
            mistake.get_or_insert_with(|| "it declares a piece and has no function for it".into());
        }
        if !matches!((&result, &mistake), (Ok(Ok(())), None)) {
            early = ending(result, mistake);
        }
    }
    if early.is_some() {
        lists.declared.truncate(declared_from);
        lists.inserts.truncate(inserts_from);
        lists.ranges.truncate(ranges_from);
        lists.pieces.truncate(pieces_from);
    }
    let (position, declared) = (position as u32, Span::up_to(declared_from, lists.declared.len()));
    let nothing_else = draws.is_empty()
        && lookups.is_empty()
        && early.is_none()
        && lists.inserts.len() == inserts_from
        && lists.ranges.len() == ranges_from
        && lists.lookups.len() == lookups_from
        && lists.pieces.len() == pieces_from;
    if nothing_else {
        lists.txns.push(Txn { position, declared, extra: Txn::NO_EXTRA });
        return;
    }
    // Lookups of both steps lie together unless another call looked up in between: then copy the
    // first ones.
    if !lookups.is_empty() && lists.lookups.len() > lookups_from {
        lists.lookups.extend_from_within(lookups.range());
    }
    let more_lookups = Span::up_to(lookups_from, lists.lookups.len());
    let extra = Extra {
        ends_early: early.is_some(),
        draws,
        inserts: Span::up_to(inserts_from, lists.inserts.len()),
        ranges: Span::up_to(ranges_from, lists.ranges.len()),
        members: Span::EMPTY,
        lookups: if more_lookups.is_empty() { lookups } else { more_lookups },
        pieces: Span::up_to(pieces_from, lists.pieces.len()),
    };
    lists.txns.push(Txn { position, declared, extra: lists.extras.len() as u32 });
    lists.extras.push(extra);
    if let Some(answer) = early {
        lists.early.push((position, answer));
    }
}

/// How a step of a declaration ended, if it ended the call: with its first mistake, whatever came
/// after that.
#[inline]
pub(super) fn ending(
    result: std::result::Result<std::result::Result<(), Abort>, Box<dyn Any + Send>>,
    mistake: Option<String>,
) -> Option<Failure> {
    match (result, mistake) {
        (_, Some(what)) => Some(Failure::Failed(what)),
        (Err(panic), None) => Some(Failure::Failed(panic_text(panic.as_ref()))),
        (Ok(Err(abort)), None) => Some(Failure::Aborted(abort)),
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
    let lists = &worker.local.lists;
    if lists.lookups.is_empty() {
        return 0;
    }
    let looked = lists.txns.iter().filter(|txn| !lists.extra(txn).lookups.is_empty());
    looked.map(|t| log_inputs::record_bytes(epoch.calls.get(t.position as usize).1.len())).sum()
}
