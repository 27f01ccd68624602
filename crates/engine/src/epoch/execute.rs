//! The execution phase (NV 3.1.2, 4.1). A worker takes calls in serial order, its own where they
//! are small, else the next one (`dispatch.rs`), and does so a few calls ahead of the one it runs
//! (`prefetch.rs`). It runs what it took in that order, and reads wait for pending versions of
//! smaller serial ids only, so the smallest unfinished call can always run (O-11).
//!
//! For each call: check its lookups again (O-10), run its body, publish its writes or IGNORE for
//! all of them (O-03, `publish.rs`). Calls of the serial part have run before (`serial.rs`): theirs
//! are published only. Pieces of contended rows run apart from their calls (CA 3.4, `piece.rs`).

use std::ops::ControlFlow;

use pmem::Device;
use pmem::sync::atomic::Ordering;
use storage::Position;

use crate::call::answers::{Abort, Failure};
use crate::call::panics::{PanicText, caught};
use crate::contention::lost;
use crate::declaration::declare::{ALL, IndexScan, LookupError, Reader, fold};
use crate::declaration::{CallView, Lookup, NO_ENTRY};
use crate::epoch::declare::panic_text;
use crate::epoch::piece;
use crate::epoch::prefetch::PrefetchQueue;
use crate::epoch::publish::{Mode, Runner};
use crate::epoch::reuse;
use crate::error::EngineError;
use crate::memory::{Local, PrivateWrite, QueuedPiece};
use crate::reads::KeyRange;
use crate::secondary::CallIndexChanges;
use crate::state::core::Core;
use crate::transaction::{FirstError, PublishNow, Stop, Transaction};
use crate::version::{ReadPhase, Waiter};
use crate::worker::{Epoch, Leave, Progress, Worker};
use crate::worker_id::WorkerId;

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let Worker { local, row_store, .. } = worker;
    let mine = &epoch.shared.declarations[local.worker.index()];
    assert!(
        mine.read().expect("no panic while locked").txns.is_empty(),
        "lists of the epoch before were given back"
    );
    assert!(
        epoch.store.device().takes_snapshots() || epoch.is_durable(),
        "the log is durable before a final write reaches the device (O-13)"
    );
    assert_undone(epoch, local);
    std::mem::swap(&mut *mine.write().expect("no panic while locked"), &mut local.lists);
    epoch.barrier()?;
    assert!(!epoch.core.gate.is_closed(), "readers see the end of the epoch before (O-106)");
    let lists: Vec<_> = epoch
        .shared
        .declarations
        .iter()
        .map(|lists| lists.read().expect("no panic while locked"))
        .collect();
    let has_cache = local.cache.is_on();
    row_store.begin_final_writes(has_cache, epoch.checkpoint_epoch, epoch.number);
    let overlay = epoch.shared.overlay.read().expect("no panic while locked");
    let mut runner = Runner { epoch, lists: &lists, overlay: &overlay, row_store };
    if local.worker == WorkerId::LEADER {
        runner.persist_sequences(local);
    }
    // Answers are about as long as those of the epoch before.
    local.answers.reserve(epoch.calls.len() / epoch.workers, local.answer_bytes);
    let result = run_calls(local, &mut runner);
    local.answer_bytes = local.answers.output.len();
    count_answers(local);
    result?;
    assert!(local.pieces.front().is_none(), "every piece of the queue has run");
    assert!(runner.row_store.hidden.is_empty(), "every final write is published");
    epoch.barrier()?;
    let is_over = Progress::of_all(&epoch.shared.progress) == Position::END;
    let has_pieces = epoch.shared.has_pieces.load(Ordering::Relaxed);
    assert!(is_over || has_pieces, "answers are made when every call has ended");
    piece::finish_answers(epoch, local, &lists)?;
    drop(lists);
    std::mem::swap(&mut *mine.write().expect("no panic while locked"), &mut local.lists);
    Ok(())
}

/// No call but those of the serial part has run before the phase.
fn assert_undone(epoch: &Epoch<'_>, local: &Local) {
    assert!(local.chains.is_empty(), "all appends are in version arrays");
    let unfinished = epoch.shared.progress[local.worker.index()].unfinished();
    assert!(unfinished == Position(0), "a worker begins with the first call");
    let is_leader = local.worker == WorkerId::LEADER;
    let of_serial_part = if is_leader { epoch.calls.serial() } else { 0 };
    assert!(local.answers.len() == of_serial_part, "answers before E10 are of the serial part");
}

/// Takes calls in serial order until there is none left, and runs the pieces in this worker's
/// queue.
fn run_calls(local: &mut Local, runner: &mut Runner<'_, '_>) -> Result<(), Leave> {
    let (epoch, lists) = (runner.epoch, runner.lists);
    if epoch.workers > 1 {
        lost::begin(epoch.core.config.clock);
    }
    let has_index_writers = lists.iter().any(|lists| !lists.index_writers.is_empty());
    let mut queue = PrefetchQueue::new(epoch, lists, local);
    while queue.begin_next(&mut local.fetching) {
        if let Some(first) = queue.next_position() {
            reuse::note_progress(epoch, local, first);
        }
        loop {
            if local.pieces.front().is_some()
                && let Some(next) = queue.next_position()
            {
                runner.run_ready_pieces(local, QueuedPiece::first_of(next))?;
            }
            let Some(call) = queue.next() else { break };
            run_call(epoch, local, runner, &call)?;
            if has_index_writers {
                call.lists.index_writers.end(call.position);
            }
            local.reads.account_charged(&mut runner.row_store.port, epoch.core.image_base);
        }
    }
    local.work.rests_taken += u64::from(queue.takes_rest());
    queue.give_back(local);
    reuse::note_progress(epoch, local, Position::END);
    runner.drain_pieces(local, Position::END)?;
    local.reads.account(&mut runner.row_store.port, epoch.core.image_base);
    Ok(())
}

/// Runs a call, and notes its answer.
#[inline]
fn run_call(
    epoch: &Epoch<'_>,
    local: &mut Local,
    runner: &mut Runner<'_, '_>,
    call: &CallView<'_>,
) -> Result<(), Leave> {
    if call.position.index() < epoch.calls.serial() {
        return Ok(runner.publish_serial(local, call)?);
    }
    if epoch.core.config.lab.design.is_all_nvmm() {
        charge_version_arrays(epoch, local, call);
    }
    debug_assert!(runner.row_store.hidden.is_empty(), "the call before has published its writes");
    debug_assert!(!local.index_changes.are_some(), "and what it changed in indexes (O-97)");
    local.writes.clear();
    local.writes.resize(call.declared.len() + call.members().len(), PrivateWrite::None);
    local.scratch.clear();
    local.parts.clear();
    let is_special = call.extra.ends_early | call.extra.is_ordered;
    if !call.extra.lookups.is_empty() || is_special {
        if call.extra.is_ordered {
            return run_in_order(epoch, local, runner, call);
        }
        let failure = look_again(epoch, local, runner, call)?;
        if let Some(failure) = failure {
            local.answers.fail(call.position, failure);
            return Ok(());
        }
    }
    run_body(epoch, local, runner, call)
}

/// Runs a call that keeps an order with others: not if the one before it is deferred.
#[inline(never)]
fn run_in_order(
    epoch: &Epoch<'_>,
    local: &mut Local,
    runner: &mut Runner<'_, '_>,
    call: &CallView<'_>,
) -> Result<(), Leave> {
    // It waits without running pieces.
    runner.drain_pieces(local, call.position)?;
    let mut waiter = Waiter::new(epoch.core.stopped());
    let failure = if epoch.order.wait_for_before(call.position, &mut waiter)? {
        runner.publish(local, call, Mode::Abort)?;
        Some(defer(local, call.position))
    } else {
        look_again(epoch, local, runner, call)?
    };
    match failure {
        Some(failure) => local.answers.fail(call.position, failure),
        None => run_body(epoch, local, runner, call)?,
    }
    let is_deferred = local.deferred.last() == Some(&call.position);
    epoch.order.note(call.position, is_deferred);
    Ok(())
}

/// Version arrays are on the device: a call looks into those of the rows that it declared.
#[inline(never)]
fn charge_version_arrays(epoch: &Epoch<'_>, local: &Local, call: &CallView<'_>) {
    let ids = call.declared.iter().map(|declared| declared.id);
    let of_pieces = call.pieces().iter().flat_map(|piece| call.members_of(piece));
    for id in ids.chain(call.members().iter().chain(of_pieces).map(|member| member.id)) {
        if id != NO_ENTRY {
            let entry = epoch.core.entries.get(id);
            let sid = epoch.sid_at(call.position);
            for (address, len) in entry.search_reads(sid) {
                local.reads.charge(address, len);
            }
        }
    }
}

/// What a call comes to that cannot run: what its declaration read has changed, or the declaration
/// itself ended it.
#[inline(never)]
fn look_again(
    epoch: &Epoch<'_>,
    local: &mut Local,
    runner: &mut Runner<'_, '_>,
    call: &CallView<'_>,
) -> Result<Option<Failure>, Leave> {
    if !call.extra.lookups.is_empty() {
        // They wait without running pieces.
        runner.drain_pieces(local, call.position)?;
        let sid = epoch.sid_at(call.position);
        let mut waiter = Waiter::new(epoch.core.stopped());
        let (phase, reads) = (ReadPhase::of(epoch), &local.reads);
        let reader = Reader { phase, sid, waiter: &mut waiter, reads };
        let holds = lookups_hold(epoch.core, call, reader)?;
        local.work.waits += waiter.waits;
        if !holds || !index_lookups_hold(epoch.core, local, runner, call)? {
            runner.publish(local, call, Mode::Abort)?;
            return Ok(Some(defer(local, call.position)));
        }
    }
    let early = call.early().cloned();
    if matches!(early, Some(Failure::Deferred)) {
        defer(local, call.position);
    }
    Ok(early)
}

/// The running transaction of a call, at its beginning.
pub(super) fn begin<'t>(
    epoch: &'t Epoch<'t>,
    local: &'t mut Local,
    publisher: &'t mut dyn PublishNow,
    call: &'t CallView<'t>,
    first_error: &'t FirstError,
) -> Transaction<'t> {
    Transaction {
        core: epoch.core,
        local,
        publisher,
        phase: ReadPhase::of(epoch),
        waiter: Waiter::new(epoch.core.stopped()),
        call,
        next_declared: 0,
        next_member: 0,
        serial: None,
        sid: epoch.sid_at(call.position),
        timestamp_ns: epoch.info.timestamp_ns,
        seed: epoch.info.seed,
        committed: false,
        first_error,
    }
}

#[inline]
fn run_body(
    epoch: &Epoch<'_>,
    local: &mut Local,
    runner: &mut Runner<'_, '_>,
    call: &CallView<'_>,
) -> Result<(), Leave> {
    let (number, arguments) = epoch.calls.get(call.position.index());
    let procedure = epoch.procedures.get(number).expect("checked before the epoch began");
    let first_error = FirstError::default();
    let worker = local.worker;
    let mut tx = begin(epoch, local, runner, call, &first_error);
    let body = || caught(|| procedure.run(arguments, &mut tx));
    let result = epoch.noting(worker, call.position, number, body);
    let (waits, committed) = (tx.waiter.waits, tx.committed);
    local.work.waits += waits;
    if local.index_changes.are_some()
        && let Some(abort) = end_index_changes(epoch.core, local, runner, call.position, || {
            matches!(result, Ok(Ok(()))) && first_error.is_clean()
        })?
    {
        return take_back(epoch, local, runner, call, Ok(Err(abort.into())), committed);
    }
    match result {
        Ok(Ok(())) if first_error.is_clean() => {
            runner.publish(local, call, Mode::Commit)?;
            piece::commit_answer(epoch, local, call, procedure)
        }
        // What a function of the transaction failed with counts more than what the body made of it.
        result => {
            let ended = first_error.take().map_or(result, |stop| Ok(Err(stop)));
            take_back(epoch, local, runner, call, ended, committed)
        }
    }
}

/// The body of a call has ended that changed secondary indexes. If it commits, what it changed is
/// there for those behind it, unless it has left two rows under one key of a unique one (O-98):
/// then this returns the abort.
#[cold]
#[inline(never)]
fn end_index_changes(
    core: &Core,
    local: &mut Local,
    runner: &mut Runner<'_, '_>,
    position: Position,
    commits: impl FnOnce() -> bool,
) -> Result<Option<Abort>, Leave> {
    let secondary = &core.secondary;
    let mut abort = None;
    if commits() {
        if secondary.adds_to_unique(&local.index_changes) {
            runner.wait_for_index_writers(local, position)?;
            abort = secondary.check_unique_at(position, &local.index_changes).err();
        }
        if abort.is_none() {
            secondary.publish(local.worker, position, &mut local.index_changes);
        }
    }
    local.index_changes.forget();
    Ok(abort)
}

/// The body of a call did not commit.
#[cold]
#[inline(never)]
fn take_back(
    epoch: &Epoch<'_>,
    local: &mut Local,
    runner: &mut Runner<'_, '_>,
    call: &CallView<'_>,
    ended: Result<Result<(), Stop>, PanicText>,
    committed: bool,
) -> Result<(), Leave> {
    let failure = match ended {
        Ok(Ok(())) => unreachable!("it would have committed"),
        Ok(Err(Stop::Stopped)) => return Err(Leave::Stopped),
        Ok(Err(Stop::Abort(abort))) => Failure::Aborted(*abort),
        Ok(Err(Stop::Code(code))) => Failure::Aborted(Abort::code(code)),
        Ok(Err(Stop::Mistake(what))) => Failure::Failed(*what),
        Ok(Err(Stop::Deferred)) => defer(local, call.position),
        Err(panic) => Failure::Failed(panic_text(&panic)),
    };
    if committed {
        // Half of it was seen by others: nothing consistent can follow (O-49).
        let what = format!("ended after its commit point without committing: {}", text(&failure));
        let what = epoch.poison(call.position, &what);
        return Err(Leave::Failed(EngineError::Poisoned(what)));
    }
    runner.publish(local, call, Mode::Abort)?;
    local.answers.fail(call.position, failure);
    Ok(())
}

fn text(failure: &Failure) -> String {
    match failure {
        Failure::Aborted(abort) => abort.to_string(),
        Failure::Failed(what) => what.clone(),
        Failure::Deferred => Stop::Deferred.to_string(),
    }
}

/// Reads again what the declaration read; false if it would see something else at its serial
/// position.
fn lookups_hold(core: &Core, call: &CallView<'_>, reader: Reader<'_, '_>) -> Result<bool, Leave> {
    let Reader { phase, sid, waiter, reads } = reader;
    for lookup in &call.lists.lookups[call.extra.lookups.range()] {
        let result = match lookup {
            Lookup::Row(id) => {
                let entry = core.entry(*id);
                entry.is_as_before(sid, phase, waiter, reads).map_err(LookupError::from)
            }
            Lookup::NoRow { table, key } => {
                let t = &core.tables[table.index()];
                let value = core.look_up_in(phase, t, call.key(*key), sid, waiter, reads);
                value.map(|value| value.is_none())
            }
            // See `index_lookups_hold`.
            Lookup::Index { .. } => Ok(true),
            Lookup::Scan { .. } => {
                let waiter = &mut *waiter;
                scan_again(core, call, lookup, Reader { phase, sid, waiter, reads })
            }
        };
        match result {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(LookupError::Stopped) => return Err(Leave::Stopped),
            Err(LookupError::Mistake(what)) => {
                return Err(Leave::Failed(EngineError::Poisoned(format!(
                    "a lookup that worked at declaration fails at execution: {what}"
                ))));
            }
        }
    }
    Ok(true)
}

/// Whether the declaration would see the same entries of secondary indexes at the call's serial
/// position. Where no call of the epoch may change an index there is nothing to check.
fn index_lookups_hold(
    core: &Core,
    local: &mut Local,
    runner: &mut Runner<'_, '_>,
    call: &CallView<'_>,
) -> Result<bool, Leave> {
    let own = CallIndexChanges::default();
    for lookup in &call.lists.lookups[call.extra.lookups.range()] {
        let Lookup::Index { index, low, high, is_descending, visited, fingerprint } = *lookup
        else {
            continue;
        };
        if !runner.wait_for_index_writers(local, call.position)? {
            return Ok(true);
        }
        let keys = KeyRange { low: call.key(low), high: call.key(high), is_descending };
        let mut scan = IndexScan::default();
        let mut each = |key: &[u8], _: &[u8]| {
            let is_enough = scan.visited + 1 == visited;
            scan.visit(
                key,
                if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) },
            )
        };
        let scanned = core.secondary.scan_at(index, keys, call.position, &own, &mut each);
        scanned.expect("the index was there at declaration");
        let now = scan.finish();
        if (now.visited, now.fingerprint) != (visited, fingerprint) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn scan_again(
    core: &Core,
    call: &CallView<'_>,
    lookup: &Lookup,
    reader: Reader<'_, '_>,
) -> Result<bool, LookupError> {
    let Lookup::Scan { table, low, high, is_descending, visited, fingerprint: before } = *lookup
    else {
        unreachable!("called for scans");
    };
    let visited_before = visited;
    let (mut fingerprint, mut seen) = (0, 0);
    let keys = KeyRange { low: call.key(low), high: call.key(high), is_descending };
    let visited = core.look_through(table, keys, reader, &mut |key, value| {
        fingerprint = fold(fingerprint, key, value);
        seen += 1;
        if seen == visited_before { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    // A visitor that had enough after n rows has enough again; one that never had saw the end.
    let same_length = if visited_before == ALL { visited == ALL } else { seen == visited_before };
    Ok(same_length && fingerprint == before)
}

/// The call runs again in the serial part of the next epoch, where it comes to its end.
fn defer(local: &mut Local, position: Position) -> Failure {
    let is_next = local.deferred.last().is_none_or(|&last| last < position);
    assert!(is_next, "a worker defers calls in serial order");
    local.deferred.push(position);
    Failure::Deferred
}

fn count_answers(local: &mut Local) {
    let failures = local.answers.failures();
    assert!(failures.len() <= local.answers.len(), "a call that failed has an answer");
    local.work.committed += (local.answers.len() - failures.len()) as u64;
    for failure in failures {
        match failure {
            Failure::Aborted(_) => local.work.aborted += 1,
            Failure::Deferred => local.work.deferred += 1,
            Failure::Failed(_) => local.work.failed += 1,
        }
    }
}
