//! Step two of the declarations: write sets. A call of the serial part has run already; it declares
//! the rows whose last writer there it is (O-73).

use pmem::sync::atomic::Ordering;
use storage::Position;

use crate::call::answers::{Abort, Failure};

use crate::call::batch::{Calls, owned, owner};
use crate::call::panics::{PanicText, caught};
use crate::declaration::declare::{Declaration, WriteSet};
use crate::declaration::demand::{Change, Decided, Written};
use crate::declaration::overlay::{Overlay, OverlayRow};
use crate::declaration::{
    AllocatingCall, Declarations, Declared, DeclaredKind, Extra, NO_ENTRY, Span, Txn, may_change,
};
use crate::epoch::{handover, log_inputs, reserve, sequences};
use crate::error::Words;
use crate::memory::Local;
use crate::secondary::SecondaryIndexes;
use crate::state::core::Core;
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let mut allocating_calls = std::mem::take(&mut worker.local.allocating_calls);
    let mut allocation = allocating_calls.iter_mut().peekable();
    let overlay = epoch.shared.overlay.read().expect("no panic while locked");
    for position in owned(worker.local.worker, epoch.workers, epoch.calls.len()) {
        if position < epoch.calls.serial() {
            declare_written(
                epoch.core,
                &mut worker.local.lists,
                Position::from_index(position),
                &overlay,
            );
            continue;
        }
        let allocating_call =
            allocation.next_if(|allocating_call| allocating_call.position.index() == position);
        declare_one(epoch, &mut worker.local, position, allocating_call);
        let reads = &mut worker.local.reads;
        reads.account_charged(&mut worker.row_store.port, epoch.core.image_base);
    }
    drop(overlay);
    if epoch.calls.are_ordered() {
        mark_ordered(epoch.calls, &mut worker.local.lists);
    }
    assert!(allocation.next().is_none(), "each call that allocated has declared");
    assert_declared(&worker.local.lists);
    assert_found(epoch, worker);
    allocating_calls.clear();
    worker.local.allocating_calls = allocating_calls;
    if !worker.local.lists.pieces.is_empty() {
        epoch.shared.has_pieces.store(true, Ordering::Relaxed);
    }
    reserve::count_demand(epoch, worker);
    epoch.shared.deferred_bytes.fetch_add(deferred_bytes(epoch, worker), Ordering::Relaxed);
    epoch.barrier()?;
    if epoch.leads(worker)
        && let Err(error) = reserve::reserve(epoch, worker)
    {
        sequences::undo(epoch, worker);
        undo_indexes(epoch);
        *epoch.shared.refused.lock().expect("no panic while locked") = Some(error);
    }
    epoch.barrier()?;
    if epoch.shared.refused.lock().expect("no panic while locked").is_some() {
        return Err(Leave::Refused);
    }
    handover::run(epoch, worker)
}

/// Notes which calls keep an order with others.
fn mark_ordered(calls: &Calls, lists: &mut Declarations) {
    let Declarations { txns, extras, .. } = lists;
    for txn in txns.iter_mut().filter(|txn| txn.position.index() >= calls.serial()) {
        if calls.call(txn.position.index()).submitter == 0 {
            continue;
        }
        if txn.extra == Txn::NO_EXTRA {
            txn.extra = extras.len() as u32;
            extras.push(Extra::default());
        }
        extras[txn.extra as usize].is_ordered = true;
    }
}

/// What the steps up to execution take for granted of a worker's lists.
fn assert_declared(lists: &Declarations) {
    let most = u32::MAX as usize;
    assert!(lists.declared.len() < most, "spans of declared keys have 32 bits");
    assert!(lists.keys.len() < most, "spans of key bytes have 32 bits");
    assert!(lists.lookups.len() < most, "spans of lookups have 32 bits");
    assert!(lists.extras.len() < most, "the place of what few calls have has 32 bits");
    assert!(lists.members.is_empty(), "members are found in the append step");
    let position = |txn: &Txn| txn.position;
    debug_assert!(lists.txns.is_sorted_by_key(position), "calls declare in serial order");
    debug_assert!(lists.early.is_sorted_by_key(|early| early.0), "calls end early in serial order");
}

/// Execution finds a call by its place among those that its owner declared.
fn assert_found(epoch: &Epoch<'_>, worker: &Worker) {
    let txns = &worker.local.lists.txns;
    let place = txns.last().map(|last| owner(last.position.index(), epoch.workers));
    let expected = txns.len().checked_sub(1).map(|last| (worker.local.worker, last));
    assert!(place == expected, "each call that a worker owns is in its list, at its place");
}

/// Takes all that the serial part of a refused epoch did to secondary indexes back.
fn undo_indexes(epoch: &Epoch<'_>) {
    if epoch.core.secondary.is_empty() || epoch.calls.serial() == 0 {
        return;
    }
    let mut overlay = epoch.shared.overlay.write().expect("no panic while locked");
    epoch.core.secondary.roll_back(&mut overlay.index_undo, true);
}

/// Declares what a call of the serial part wrote last.
fn declare_written(core: &Core, lists: &mut Declarations, position: Position, overlay: &Overlay) {
    let (from, inserts_from) = (lists.declared.len(), lists.inserts.len());
    for row in overlay.written_by(position) {
        let key = match row.is_word {
            true => Span::EMPTY,
            false => lists.keep_key(overlay.key(row, &mut [0; 8])),
        };
        let kind = match row.id {
            NO_ENTRY => DeclaredKind::Insert,
            _ => DeclaredKind::Update,
        };
        if kind == DeclaredKind::Insert {
            lists.inserts.push(lists.declared.len() as u32);
        }
        let &OverlayRow { word, table, is_word, id, .. } = row;
        if core.tables[table.index()].layout.may_be_external() {
            decide(core, &mut lists.decided, row);
        }
        lists.declared.push(Declared { word, key, table, kind, is_word, appended: false, id });
    }
    let declared = Span::up_to(from, lists.declared.len());
    let inserts = Span::up_to(inserts_from, lists.inserts.len());
    let extra = if inserts.is_empty() {
        Txn::NO_EXTRA
    } else {
        lists.extras.push(Extra { inserts, ..Extra::default() });
        lists.extras.len() as u32 - 1
    };
    lists.txns.push(Txn { position, declared, extra });
}

/// Counts what the serial part wrote to a row whose value may not be inline.
fn decide(core: &Core, decided: &mut Decided, row: &OverlayRow) {
    let (table, layout) = (row.table.index(), &core.tables[row.table.index()].layout);
    let is_new = row.id == NO_ENTRY;
    let Some(bytes) = row.value_bytes() else {
        return decided.write(table, Written::Deleted, None, Change::Frees);
    };
    let is_inline = if is_new { layout.fits_alone(bytes) } else { layout.fits_always(bytes) };
    let before = || core.entry(row.id).persistent_version().len() as u64;
    let change = match is_inline {
        true => Change::Frees,
        false if !is_new && bytes <= before() => Change::Shortens,
        false => Change::Grows,
    };
    let written = if is_new { Written::New } else { Written::Changed };
    decided.write(table, written, (!is_inline).then_some(bytes), change);
}

fn declare_one(
    epoch: &Epoch<'_>,
    local: &mut Local,
    position: usize,
    step_one: Option<&mut AllocatingCall>,
) {
    let Local { worker, lists, reads, .. } = local;
    let (declared_from, ranges_from) = (lists.declared.len(), lists.ranges.len());
    let (lookups_from, pieces_from) = (lists.lookups.len(), lists.pieces.len());
    let inserts_from = lists.inserts.len();
    let (mut allocations, mut lookups, mut early) = Default::default();
    if let Some(step) = step_one {
        (allocations, lookups, early) = (step.allocations, step.lookups, step.early.take());
    }
    early = early.or_else(|| epoch.skips(position).then(|| Failure::Failed(LEFT_OUT.into())));
    if early.is_none() {
        let (number, arguments) = epoch.calls.get(position);
        let procedure = epoch.procedures.get(number).expect("checked before the epoch began");
        let declaration = Declaration::new(epoch.state_before(), lists, reads);
        let mut set = WriteSet::new(declaration, allocations);
        let declare = || caught(|| procedure.write_set(arguments, &mut set));
        let result = epoch.noting(*worker, Position::from_index(position), number, declare);
        let mut mistake = set.declaration.mistake.take();
        let is_unknown = set.declaration.is_unknown;
        if lists.pieces.len() > pieces_from && !procedure.steps.pieces {
            mistake.get_or_insert_with(|| Box::new(PIECES_WITHOUT_FUNCTION.into()));
        }
        if is_unknown {
            early = Some(Failure::Deferred);
        } else if !matches!((&result, &mistake), (Ok(Ok(())), None)) {
            early = ending(result, mistake);
        }
    }
    if early.is_some() {
        lists.forget_from(declared_from, inserts_from, ranges_from, pieces_from);
    }
    let (position, declared) =
        (Position::from_index(position), Span::up_to(declared_from, lists.declared.len()));
    note_index_writer(&epoch.core.secondary, lists, position, declared, ranges_from);
    let nothing_else = allocations.is_empty()
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
        is_ordered: false,
        allocations,
        inserts: Span::up_to(inserts_from, lists.inserts.len()),
        ranges: Span::up_to(ranges_from, lists.ranges.len()),
        members: Span::EMPTY,
        lookups: if more_lookups.is_empty() { lookups } else { more_lookups },
        pieces: Span::up_to(pieces_from, lists.pieces.len()),
    };
    lists.txns.push(Txn { position, declared, extra: lists.extras.len() as u32 });
    lists.extras.push(extra);
    lists.early.extend(early.map(|answer| (position, answer)));
}

/// Notes a call that may change a secondary index.
#[inline]
fn note_index_writer(
    indexes: &SecondaryIndexes,
    lists: &mut Declarations,
    position: Position,
    declared: Span,
    ranges_from: usize,
) {
    if indexes.is_empty() {
        return;
    }
    let Declarations { declared: all, ranges, index_writers, .. } = lists;
    if may_change(indexes, &all[declared.range()], &ranges[ranges_from..]) {
        index_writers.push(position);
    }
}

pub(super) const LEFT_OUT: &str = "a verdict in the log says that it must not run";
pub(super) const PIECES_WITHOUT_FUNCTION: &str = "it declares a piece and has no function for it";

/// How a step of a declaration ended, if it ended the call: with its first mistake, whatever came
/// after that.
#[inline]
pub(super) fn ending(
    result: std::result::Result<std::result::Result<(), Abort>, PanicText>,
    mistake: Option<Words>,
) -> Option<Failure> {
    match (result, mistake) {
        (_, Some(what)) => Some(Failure::Failed(*what)),
        (Err(panic), None) => Some(Failure::Failed(panic_text(&panic))),
        (Ok(Err(abort)), None) => Some(Failure::Aborted(abort)),
        (Ok(Ok(())), None) => None,
    }
}

/// What a panic said.
pub(super) fn panic_text(panic: &str) -> String {
    format!("the procedure panicked: {panic}")
}

/// Bytes of the calls that might be deferred: all but those of the serial part (O-78).
fn deferred_bytes(epoch: &Epoch<'_>, worker: &Worker) -> u64 {
    let of_worker = worker.local.lists.txns.iter().map(|txn| txn.position.index());
    let parallel = of_worker.filter(|&position| position >= epoch.calls.serial());
    parallel.map(|position| log_inputs::record_bytes(epoch.calls.get(position).1.len())).sum()
}
