//! The execution phase (NV 3.1.2, 4.1). Whoever is free takes the next call in serial order, a few
//! calls ahead of the one it runs, so that their rows are fetched into its own cache. A worker runs
//! what it took in serial order, and reads wait for pending versions of smaller serial ids only:
//! the smallest unfinished call is the next one of whoever took it, so it can always run (O-11).
//!
//! For each call: check its lookups again (O-10), run its body, publish its writes or IGNORE for
//! all of them (O-03). Pieces of contended rows run apart from their calls (CA 3.4): `piece.rs`.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pmem::Device;
use pmem::sync::RwLockReadGuard;
use pmem::sync::atomic::Ordering;
use storage::{Segments, SerialId};

use crate::EngineError;
use crate::calls::{Failure, owner};
use crate::core::Core;
use crate::declare::{ALL, LookupError, fold};
use crate::epoch::declare::panic_text;
use crate::epoch::piece;
use crate::index::EntryId;
use crate::local::{CallView, Declarations, DeclaredKind, Local, Lookup, NO_ENTRY, PrivateWrite};
use crate::transaction::{PublishNow, Stop, Transaction};
use crate::version::{
    Fetched, LINES_WHOLE, Medium, Publication, Publisher, ReadPhase, Stopped, Waiter, Write,
    prefetch,
};
use crate::worker::{Epoch, Leave, Worker};

/// How far a worker takes calls ahead of the one it runs: until so many calls, or so many of their
/// rows, are on their way into its cache, but always a few calls.
const CALLS_AHEAD_MIN: usize = 3;
const CALLS_AHEAD_MAX: usize = 8;
const ROWS_AHEAD: usize = 32;
/// Of the calls taken, the values of a few are fetched: until so many lines are on their way, which
/// leaves most of the nearest cache to the call that runs.
const LINES_AHEAD: usize = 128;
/// Nothing is taken behind a call that may be long, because it would wait there: one with more rows
/// than this, or one that does not say what it reads.
const ROWS_LONG: usize = 64;

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    let Worker { local, medium, .. } = worker;
    let mine = &epoch.shared.declarations[local.worker];
    std::mem::swap(&mut *mine.write().expect("no panic while locked"), &mut local.lists);
    epoch.barrier()?;
    let lists: Vec<_> = epoch
        .shared
        .declarations
        .iter()
        .map(|lists| lists.read().expect("no panic while locked"))
        .collect();
    let mut runner =
        Runner { epoch, lists: &lists, medium, segments: epoch.store.segments(), failure: None };
    if local.worker == 0 {
        runner.persist_sequences(local);
    }
    local.answers.reserve(epoch.calls.len() / epoch.workers);
    let result = run_calls(local, &mut runner);
    count_answers(local);
    result?;
    epoch.barrier()?;
    piece::finish_answers(epoch, local, &lists)?;
    drop(lists);
    std::mem::swap(&mut *mine.write().expect("no panic while locked"), &mut local.lists);
    Ok(())
}

/// Takes calls in serial order until there is none left, and runs the pieces in this worker's
/// queue.
fn run_calls<D: Device>(local: &mut Local, runner: &mut Runner<'_, '_, D>) -> Result<(), Leave> {
    let (epoch, lists) = (runner.epoch, runner.lists);
    let mut ahead = Ahead { epoch, lists, taken: VecDeque::new(), rows: 0, fetched: 0, lines: 0 };
    loop {
        ahead.take();
        if local.pieces.front().is_some()
            && let Some(next) = ahead.next_position()
        {
            let ran = runner.run_ready_pieces(local, next);
            runner.check(ran)?;
        }
        let Some(call) = ahead.next() else { break };
        match run_call(epoch, local, runner, call)? {
            Ok(()) => piece::commit_answer(epoch, local, call)?,
            Err(failure) => local.answers.fail(call.txn.position, failure),
        }
        local.reads.account(&mut runner.medium.port, epoch.core.image_base);
    }
    let drained = runner.drain_pieces(local, u32::MAX);
    local.reads.account(&mut runner.medium.port, epoch.core.image_base);
    runner.check(drained)
}

/// The calls that a worker took and did not run yet, in serial order. Their rows are fetched in
/// three steps, each of which needs what the one before asked for: the row entries when a call is
/// taken, values and version arrays half-way, what the arrays lead to when it is next.
struct Ahead<'a, 'e, D: Device> {
    epoch: &'a Epoch<'e, D>,
    lists: &'a [RwLockReadGuard<'a, Declarations>],
    taken: VecDeque<Taken<'a>>,
    /// Rows that the taken calls declared.
    rows: usize,
    /// How many of the taken calls have got their values fetched, and how many lines these are.
    fetched: usize,
    lines: usize,
}

/// A call that waits to be run.
struct Taken<'a> {
    call: CallView<'a>,
    /// A bit for each of its first rows whose version array was asked for.
    arrays: u64,
    /// Lines of values that were asked for.
    lines: usize,
}

impl<'a, D: Device> Ahead<'a, '_, D> {
    /// The next call to run, of those taken.
    fn next(&mut self) -> Option<CallView<'a>> {
        let Taken { call, lines, .. } = self.taken.pop_front()?;
        // Or a call could wait for one that its own worker runs later.
        let next = self.taken.front();
        debug_assert!(next.is_none_or(|next| call.txn.position < next.call.txn.position));
        self.rows -= rows_count(call);
        self.fetched = self.fetched.saturating_sub(1);
        self.lines -= lines;
        if let Some(next) = next {
            self.fetch_from_arrays(next);
        }
        while self.fetched + 1 < self.taken.len() && self.lines < LINES_AHEAD {
            let call = self.taken[self.fetched].call;
            let (arrays, lines) = self.fetch_values(call);
            self.taken[self.fetched] = Taken { call, arrays, lines };
            self.lines += lines;
            self.fetched += 1;
        }
        Some(call)
    }

    /// The position of the next call to run.
    fn next_position(&self) -> Option<u32> {
        self.taken.front().map(|taken| taken.call.txn.position)
    }

    /// Takes calls, and fetches the row entries that they declared; without prefetching one call at
    /// a time.
    fn take(&mut self) {
        let prefetch = self.epoch.core.config.techniques.prefetch;
        while !self.taken.back().is_some_and(|taken| is_long(taken.call) || !prefetch)
            && (self.taken.len() <= CALLS_AHEAD_MIN
                || self.rows < ROWS_AHEAD && self.taken.len() <= CALLS_AHEAD_MAX)
        {
            let position = self.epoch.shared.next_call.fetch_add(1, Ordering::Relaxed);
            if position >= self.epoch.calls.len() {
                return;
            }
            let call = call_at(self.lists, position);
            if prefetch {
                rows(call).for_each(|row| self.epoch.core.entries.prefetch(row.id));
            }
            self.rows += rows_count(call);
            self.taken.push_back(Taken { call, arrays: 0, lines: 0 });
        }
    }

    /// Fetches what a call reads, and the persistent rows that it writes: a bit for each row whose
    /// version array it asked for instead, and the number of lines.
    fn fetch_values(&self, call: CallView<'_>) -> (u64, usize) {
        let core = self.epoch.core;
        let sid = SerialId::new(self.epoch.number, u64::from(call.txn.position));
        let (mut arrays, mut lines) = (0, 0);
        for (index, row) in rows(call).enumerate() {
            let entry = core.entries.get(row.id);
            match entry.fetch(sid, LINES_WHOLE) {
                Fetched::Lines(of_value) => lines += of_value,
                // A call with more rows than bits is long, and what is too many is fetched late.
                Fetched::Array => arrays |= 1_u64.checked_shl(index as u32).unwrap_or(0),
            }
            if let Some(table) = row.written {
                let layout = &core.tables[table as usize].layout;
                if row.is_new && layout.has_exact_keys() && core.config.techniques.past_cache {
                    // Nothing of it is read to be written.
                    continue;
                }
                let row = core.image_base + entry.row() as usize;
                prefetch(row);
                if layout.half_bytes < pmem::LINE_BYTES {
                    prefetch(row + layout.heap_offset as usize);
                }
            }
        }
        (arrays, lines)
    }

    /// Fetches what the version arrays of a call's rows lead to.
    fn fetch_from_arrays(&self, taken: &Taken<'_>) {
        if taken.arrays == 0 {
            return;
        }
        let sid = SerialId::new(self.epoch.number, u64::from(taken.call.txn.position));
        for (index, row) in rows(taken.call).take(u64::BITS as usize).enumerate() {
            if taken.arrays >> index & 1 != 0 {
                self.epoch.core.entries.get(row.id).fetch_from_array(sid, LINES_WHOLE);
            }
        }
    }
}

fn rows_count(call: CallView<'_>) -> usize {
    call.declared().len() + call.members().len()
}

fn is_long(call: CallView<'_>) -> bool {
    let rows = rows_count(call);
    rows == 0 || rows > ROWS_LONG
}

/// A row that a call will need.
struct Row {
    id: EntryId,
    /// The table, if the call may write the row.
    written: Option<u16>,
    /// The call created it.
    is_new: bool,
}

/// The rows that a call declared.
#[inline(always)]
fn rows(call: CallView<'_>) -> impl Iterator<Item = Row> {
    let declared = call.declared().iter().filter(|d| d.id != NO_ENTRY);
    let declared = declared.map(|d| {
        let written = (d.kind != DeclaredKind::Read).then_some(d.table);
        Row { id: d.id, written, is_new: d.appended }
    });
    let members = call.members().iter();
    declared.chain(members.map(|m| Row { id: m.id, written: Some(m.table), is_new: false }))
}

/// The declarations of the call at a position.
pub(super) fn call_at<'l>(
    lists: &'l [RwLockReadGuard<'_, Declarations>],
    position: usize,
) -> CallView<'l> {
    let (worker, index) = owner(position, lists.len());
    CallView { lists: &lists[worker], txn: &lists[worker].txns[index] }
}

fn run_call<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    runner: &mut Runner<'_, '_, D>,
    call: CallView<'_>,
) -> Result<Result<(), Failure>, Leave> {
    let position = call.txn.position;
    local.writes.clear();
    local.writes.resize(call.declared().len() + call.members().len(), PrivateWrite::None);
    local.scratch.clear();
    let sid = SerialId::new(epoch.number, u64::from(position));

    let holds = call.txn.lookups.is_empty() || {
        // They wait without running pieces.
        let drained = runner.drain_pieces(local, position);
        runner.check(drained)?;
        let mut waiter = Waiter::new(epoch.core.stopped());
        let holds = lookups_hold(epoch.core, call, sid, &mut waiter)?;
        local.work.waits += waiter.waits;
        holds
    };
    if !holds {
        runner.publish(local, call, Mode::Abort)?;
        return Ok(Err(resubmit(epoch, local, position)));
    }
    if let Some(answer) = call.early() {
        return Ok(Err(answer.clone()));
    }
    let ended = run_body(epoch, local, runner, call);
    match runner.failure.take() {
        Some(failure) => Err(Leave::Failed(failure)),
        None => ended,
    }
}

/// The running transaction of a call, at its beginning.
pub(super) fn begin<'t, D: Device>(
    epoch: &Epoch<'t, D>,
    local: &'t mut Local,
    publisher: &'t mut dyn PublishNow,
    call: CallView<'t>,
) -> Transaction<'t> {
    Transaction {
        core: epoch.core,
        local,
        publisher,
        phase: ReadPhase::begin(),
        waiter: Waiter::new(epoch.core.stopped()),
        call,
        next_declared: 0,
        next_member: 0,
        sid: SerialId::new(epoch.number, u64::from(call.txn.position)),
        timestamp_ns: epoch.info.timestamp_ns,
        seed: epoch.info.seed,
        committed: false,
    }
}

fn run_body<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    runner: &mut Runner<'_, '_, D>,
    call: CallView<'_>,
) -> Result<Result<(), Failure>, Leave> {
    let (number, arguments) = epoch.calls.get(call.txn.position as usize);
    let procedure = epoch.core.procedures.get(number).expect("checked before the epoch began");
    let mut tx = begin(epoch, local, runner, call);
    let result = catch_unwind(AssertUnwindSafe(|| (procedure.body)(arguments, &mut tx)));
    let (waits, committed) = (tx.waiter.waits, tx.committed);
    local.work.waits += waits;
    let failure = match result {
        Ok(Ok(())) => {
            runner.publish(local, call, Mode::Commit)?;
            return Ok(Ok(()));
        }
        Ok(Err(Stop::Stopped)) => return Err(Leave::Stopped),
        Ok(Err(Stop::Abort(abort))) => Failure::Aborted(abort),
        Ok(Err(Stop::Mistake(what))) => Failure::Failed(what),
        Err(panic) => Failure::Failed(panic_text(panic.as_ref())),
    };
    if committed {
        // Half of it was seen by others: nothing consistent can follow (O-49).
        return Err(Leave::Failed(EngineError::Poisoned(format!(
            "call {} of epoch {} ({}) ended after its commit point without committing: {}",
            call.txn.position,
            epoch.number,
            procedure.name,
            text(&failure),
        ))));
    }
    runner.publish(local, call, Mode::Abort)?;
    Ok(Err(failure))
}

fn text(failure: &Failure) -> String {
    match failure {
        Failure::Aborted(abort) => abort.to_string(),
        Failure::Failed(what) => what.clone(),
        Failure::Resubmitted => String::new(),
    }
}

/// Reads again what the declaration read; false if it would see something else at its serial
/// position.
fn lookups_hold(
    core: &Core,
    call: CallView<'_>,
    sid: SerialId,
    waiter: &mut Waiter<'_>,
) -> Result<bool, Leave> {
    let phase = ReadPhase::begin();
    for lookup in &call.lists.lookups[call.txn.lookups.range()] {
        let result = match lookup {
            Lookup::Row(id) => {
                core.entries.get(*id).is_as_before(sid, phase, waiter).map_err(LookupError::from)
            }
            Lookup::NoRow { table, key } => {
                let t = &core.tables[*table as usize];
                let value = core.look_up_in(phase, t, call.key(*key), sid, waiter);
                value.map(|value| value.is_none())
            }
            Lookup::Scan { .. } => scan_again(core, phase, call, lookup, sid, waiter),
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

fn scan_again(
    core: &Core,
    phase: ReadPhase<'_>,
    call: CallView<'_>,
    lookup: &Lookup,
    sid: SerialId,
    waiter: &mut Waiter<'_>,
) -> Result<bool, LookupError> {
    let Lookup::Scan { table, low, high, visited: visited_before, fingerprint: before } = *lookup
    else {
        unreachable!("called for scans");
    };
    let (mut fingerprint, mut seen) = (0, 0);
    let bounds = (call.key(low), call.key(high));
    let visited = core.look_through(phase, table, bounds, sid, waiter, &mut |key, value| {
        fingerprint = fold(fingerprint, key, value);
        seen += 1;
        if seen == visited_before {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    })?;
    // A visitor that had enough after n rows has enough again; one that never had saw the end.
    let same_length = if visited_before == ALL { visited == ALL } else { seen == visited_before };
    Ok(same_length && fingerprint == before)
}

/// What a call gets whose lookups went stale: another try in the next epoch, or an error (design
/// 3.3).
fn resubmit<D: Device>(epoch: &Epoch<'_, D>, local: &mut Local, position: u32) -> Failure {
    let attempt = epoch.calls.call(position as usize).attempt + 1;
    if attempt > epoch.core.config.resubmissions_max {
        return Failure::Failed(format!(
            "what the declaration read changed before each of {attempt} executions"
        ));
    }
    local.carried.push((position, attempt));
    Failure::Resubmitted
}

fn count_answers(local: &mut Local) {
    let failures = local.answers.failures();
    local.work.committed += (local.answers.len() - failures.len()) as u64;
    for failure in failures {
        match failure {
            Failure::Aborted(_) => local.work.aborted += 1,
            Failure::Resubmitted => local.work.resubmitted += 1,
            Failure::Failed(_) => local.work.failed += 1,
        }
    }
}

/// Whether a call publishes IGNORE for any of its rows.
fn leaves_untouched(call: CallView<'_>, writes: &[PrivateWrite], mode: Mode) -> bool {
    let of_body = call.declared().iter().map(|d| d.kind.is_of_body());
    let mut of_body = of_body.chain(call.members().iter().map(|_| true));
    let untouched = |write| matches!(write, PrivateWrite::None | PrivateWrite::Seen);
    match mode {
        Mode::Written => false,
        Mode::Abort => of_body.any(|of_body| of_body),
        Mode::Commit => of_body.zip(writes).any(|(of_body, &write)| of_body && untouched(write)),
    }
}

/// Which of a call's declared writes are published, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// All: what is not written becomes IGNORE.
    Commit,
    /// All, as IGNORE.
    Abort,
    /// Only what is written (commit point).
    Written,
}

/// Runs calls and pieces, and publishes with the device at hand.
pub(super) struct Runner<'r, 'e, D: Device> {
    pub(super) epoch: &'r Epoch<'e, D>,
    /// What the calls of each worker declared.
    pub(super) lists: &'r [RwLockReadGuard<'r, Declarations>],
    medium: &'r mut Medium<D>,
    segments: &'r Segments,
    /// Why the engine must stop: a piece that failed within the body of some other call.
    pub(super) failure: Option<EngineError>,
}

impl<D: Device> PublishNow for Runner<'_, '_, D> {
    fn publish_written(&mut self, local: &mut Local, call: CallView<'_>) -> Result<(), Stopped> {
        self.publish(local, call, Mode::Written)?;
        call.pieces().iter().filter(|piece| piece.is_split).for_each(|piece| piece.decide(true));
        Ok(())
    }

    fn run_pieces_before(&mut self, local: &mut Local, position: u32) -> Result<bool, Stopped> {
        self.run_ready_pieces(local, position)
    }

    fn piece_result(
        &mut self,
        local: &mut Local,
        call: CallView<'_>,
        number: usize,
    ) -> Result<u64, Stopped> {
        self.wait_for_piece(local, call, number)
    }
}

impl<D: Device> Runner<'_, '_, D> {
    /// What stopped the running of pieces, if it was one of them.
    fn check<T>(&mut self, result: Result<T, Stopped>) -> Result<T, Leave> {
        result.map_err(|stopped| self.failure.take().map_or(stopped.into(), Leave::Failed))
    }

    /// Publishes what a call wrote, and lets its pieces run.
    fn publish(
        &mut self,
        local: &mut Local,
        call: CallView<'_>,
        mode: Mode,
    ) -> Result<(), Stopped> {
        if local.pieces.front().is_some() && leaves_untouched(call, &local.writes, mode) {
            // The owner of a last version that becomes IGNORE waits for those before.
            self.drain_pieces(local, call.txn.position)?;
        }
        let core = self.epoch.core;
        let sid = SerialId::new(self.epoch.number, u64::from(call.txn.position));
        let Local { writes, scratch, pool, cache, work, .. } = local;
        let with = &mut Publisher {
            segments: self.segments,
            checkpoint_epoch: self.epoch.checkpoint_epoch,
            pool,
            cache,
            work,
            waiter: Waiter::new(core.stopped()),
        };
        let (keys, members) = writes.split_at_mut(call.declared().len());
        for (d, write) in call.declared().iter().zip(keys) {
            if d.id != NO_ENTRY && d.kind.is_of_body() {
                self.publish_write((d.id, d.table, d.word), sid, mode, (write, scratch), with)?;
            }
        }
        for (m, write) in call.members().iter().zip(members) {
            self.publish_write((m.id, m.table, m.word), sid, mode, (write, scratch), with)?;
        }
        self.reveal();
        if mode != Mode::Written && !call.pieces().is_empty() {
            self.settle_pieces(local, call, mode == Mode::Commit)?;
        }
        Ok(())
    }

    /// Publishes what a body wrote to a row.
    #[inline(always)]
    fn publish_write(
        &mut self,
        (id, table, word): (EntryId, u16, u64),
        sid: SerialId,
        mode: Mode,
        (private, scratch): (&mut PrivateWrite, &[u8]),
        with: &mut Publisher<'_, '_>,
    ) -> Result<(), Stopped> {
        let write = match (mode, *private) {
            (_, PrivateWrite::Published)
            | (Mode::Written, PrivateWrite::None | PrivateWrite::Seen) => return Ok(()),
            (Mode::Abort, _) | (Mode::Commit, PrivateWrite::None | PrivateWrite::Seen) => {
                Write::Ignore
            }
            (_, PrivateWrite::Tombstone) => Write::Tombstone,
            (_, PrivateWrite::Value(span)) => Write::Value(&scratch[span.range()]),
        };
        let core = self.epoch.core;
        let layout = &core.tables[table as usize].layout;
        let to = Publication { id, word, entry: core.entries.get(id), layout, sid };
        *private = PrivateWrite::Published;
        self.medium.publish(&to, write, with)
    }

    /// Publishes what a piece wrote.
    pub(super) fn publish_piece(
        &mut self,
        local: &mut Local,
        to: &Publication<'_>,
        write: Write<'_>,
    ) -> Result<(), Stopped> {
        let Local { pool, cache, work, .. } = local;
        let mut with = Publisher {
            segments: self.segments,
            checkpoint_epoch: self.epoch.checkpoint_epoch,
            pool,
            cache,
            work,
            waiter: Waiter::new(self.epoch.core.stopped()),
        };
        self.medium.publish(to, write, &mut with)
    }

    /// Publishes the final writes that still hide.
    pub(super) fn reveal(&mut self) {
        self.medium.reveal(&self.epoch.core.entries, self.epoch.number);
    }

    /// The new numbers of sequences, as final writes of their rows.
    fn persist_sequences(&mut self, local: &mut Local) {
        let core = self.epoch.core;
        let sequences = core.sequences.read().expect("no panic while locked");
        let Local { sequences: changed, pool, cache, work, .. } = local;
        for change in changed.iter() {
            let id = sequences[&(change.table, change.key)].id.expect("inserted before");
            let sid = SerialId::new(self.epoch.number, u64::from(change.position));
            let to = Publication {
                id,
                word: change.key,
                entry: core.entries.get(id),
                layout: &core.tables[change.table as usize].layout,
                sid,
            };
            let mut with = Publisher {
                segments: self.segments,
                checkpoint_epoch: self.epoch.checkpoint_epoch,
                pool,
                cache,
                work,
                waiter: Waiter::new(core.stopped()),
            };
            self.medium.persist(&to, sid, &change.next.to_le_bytes(), None, &mut with);
        }
    }
}
