//! The execution phase (NV 3.1.2, 4.1). Whoever is free takes the next call in serial order, a few
//! calls ahead of the one it runs, so that their rows are fetched into its own cache. A worker runs
//! what it took in serial order, and reads wait for pending versions of smaller serial ids only:
//! the smallest unfinished call is the next one of whoever took it, so it can always run (O-11).
//!
//! For each call: check its lookups again (O-10), run its body, publish its writes or IGNORE for
//! all of them (O-03). The place of split-on-demand (CA 3.4) is `run_call`.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pmem::Device;
use pmem::sync::RwLockReadGuard;
use pmem::sync::atomic::Ordering;
use storage::{Segments, SerialId};

use crate::EngineError;
use crate::calls::{Abort, StoredAnswer, owner};
use crate::core::Core;
use crate::declare::{ALL, LookupError, fold};
use crate::epoch::declare::panic_text;
use crate::index::EntryId;
use crate::local::{CallView, Declarations, DeclaredKind, Local, NO_ENTRY, PrivateWrite};
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
    let mut runner = Runner {
        core: epoch.core,
        medium,
        segments: epoch.store.segments(),
        checkpoint_epoch: epoch.checkpoint_epoch,
        epoch: epoch.number,
    };
    if local.worker == 0 {
        runner.persist_sequences(local);
    }
    let result = run_calls(epoch, local, &mut runner);
    count_answers(local);
    result?;
    epoch.barrier()?;
    std::mem::swap(&mut *mine.write().expect("no panic while locked"), &mut local.lists);
    Ok(())
}

/// Takes calls in serial order until there is none left.
fn run_calls<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    runner: &mut Runner<'_, D>,
) -> Result<(), Leave> {
    let lists: Vec<_> = epoch
        .shared
        .declarations
        .iter()
        .map(|lists| lists.read().expect("no panic while locked"))
        .collect();
    let mut ahead =
        Ahead { epoch, lists: &lists, taken: VecDeque::new(), rows: 0, fetched: 0, lines: 0 };
    while let Some(call) = ahead.next() {
        let answer = run_call(epoch, local, runner, call)?;
        local.answers.answers.push((call.txn.position, answer));
        local.reads.account(&mut runner.medium.port, epoch.core.image_base);
    }
    Ok(())
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
    /// The next call to run.
    fn next(&mut self) -> Option<CallView<'a>> {
        if !self.epoch.core.config.techniques.prefetch {
            return self.claim();
        }
        self.take();
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

    /// Takes calls, and fetches the row entries that they declared.
    fn take(&mut self) {
        while !self.taken.back().is_some_and(|taken| is_long(taken.call))
            && (self.taken.len() <= CALLS_AHEAD_MIN
                || self.rows < ROWS_AHEAD && self.taken.len() <= CALLS_AHEAD_MAX)
        {
            let Some(call) = self.claim() else { return };
            rows(call).for_each(|row| self.epoch.core.entries.prefetch(row.id));
            self.rows += rows_count(call);
            self.taken.push_back(Taken { call, arrays: 0, lines: 0 });
        }
    }

    /// The next call in serial order that nobody has taken.
    fn claim(&self) -> Option<CallView<'a>> {
        let position = self.epoch.shared.next_call.fetch_add(1, Ordering::Relaxed);
        (position < self.epoch.calls.len()).then(|| call_at(self.lists, position))
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
fn call_at<'l>(lists: &'l [RwLockReadGuard<'_, Declarations>], position: usize) -> CallView<'l> {
    let (worker, index) = owner(position, lists.len());
    CallView { lists: &lists[worker], txn: &lists[worker].txns[index] }
}

fn run_call<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    runner: &mut Runner<'_, D>,
    call: CallView<'_>,
) -> Result<StoredAnswer, Leave> {
    let position = call.txn.position;
    local.writes.clear();
    local.writes.resize(call.declared().len() + call.members().len(), PrivateWrite::None);
    local.scratch.clear();
    let sid = SerialId::new(epoch.number, u64::from(position));

    let mut waiter = Waiter::new(epoch.core.stopped());
    if !lookups_hold(epoch.core, call, sid, &mut waiter)? {
        runner.publish(local, call, Mode::Abort)?;
        return Ok(resubmit(epoch, local, position));
    }
    if let Some(answer) = &call.txn.early {
        return Ok(answer.clone());
    }
    run_body(epoch, local, runner, call, sid, waiter)
}

fn run_body<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    runner: &mut Runner<'_, D>,
    call: CallView<'_>,
    sid: SerialId,
    waiter: Waiter<'_>,
) -> Result<StoredAnswer, Leave> {
    let (number, arguments) = epoch.calls.get(sid.position() as usize);
    let procedure = epoch.core.procedures.get(number).expect("checked before the epoch began");
    let output_from = local.answers.output.len();
    let mut tx = Transaction {
        core: epoch.core,
        local,
        publisher: runner,
        phase: ReadPhase::begin(),
        waiter,
        call,
        last_declared: Cell::new(0),
        last_member: Cell::new(0),
        sid,
        timestamp_ns: epoch.info.timestamp_ns,
        seed: epoch.info.seed,
        committed: false,
    };
    let result = catch_unwind(AssertUnwindSafe(|| (procedure.body)(arguments, &mut tx)));
    let (waits, committed) = (tx.waiter.waits, tx.committed);
    local.work.waits += waits;
    let failure = match result {
        Ok(Ok(())) => {
            runner.publish(local, call, Mode::Commit)?;
            return Ok(StoredAnswer::Committed {
                from: output_from,
                to: local.answers.output.len(),
            });
        }
        Ok(Err(Stop::Stopped)) => return Err(Leave::Stopped),
        Ok(Err(Stop::Abort(abort))) => StoredAnswer::Aborted(abort),
        Ok(Err(Stop::Mistake(what))) => StoredAnswer::Failed(what),
        Err(panic) => StoredAnswer::Failed(panic_text(panic.as_ref())),
    };
    if committed {
        // Half of it was seen by others: nothing consistent can follow (O-49).
        return Err(Leave::Failed(EngineError::Poisoned(format!(
            "call {} of epoch {} ({}) ended after its commit point without committing: {}",
            sid.position(),
            sid.epoch(),
            procedure.name,
            text(&failure),
        ))));
    }
    local.answers.output.truncate(output_from);
    runner.publish(local, call, Mode::Abort)?;
    Ok(failure)
}

fn text(answer: &StoredAnswer) -> String {
    match answer {
        StoredAnswer::Aborted(abort) => abort.to_string(),
        StoredAnswer::Failed(what) => what.clone(),
        StoredAnswer::Committed { .. } | StoredAnswer::Resubmitted => String::new(),
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
        let low = call.key(lookup.low);
        let result = match lookup.high {
            None => core
                .look_up(phase, lookup.table, low, sid, waiter)
                .map(|value| fold(0, low, value) == lookup.fingerprint),
            Some(high) => scan_again(core, phase, lookup, (low, call.key(high)), sid, waiter),
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
    lookup: &crate::local::Lookup,
    bounds: (&[u8], &[u8]),
    sid: SerialId,
    waiter: &mut Waiter<'_>,
) -> Result<bool, LookupError> {
    let (mut fingerprint, mut seen) = (0, 0);
    let visited =
        core.look_through(phase, lookup.table, bounds, sid, waiter, &mut |key, value| {
            fingerprint = fold(fingerprint, key, Some(value));
            seen += 1;
            if seen == lookup.visited {
                std::ops::ControlFlow::Break(())
            } else {
                std::ops::ControlFlow::Continue(())
            }
        })?;
    // A visitor that had enough after n rows has enough again; one that never had saw the end.
    let same_length = if lookup.visited == ALL { visited == ALL } else { seen == lookup.visited };
    Ok(same_length && fingerprint == lookup.fingerprint)
}

/// What a call gets whose lookups went stale: another try in the next epoch, or an error (design
/// 3.3).
fn resubmit<D: Device>(epoch: &Epoch<'_, D>, local: &mut Local, position: u32) -> StoredAnswer {
    let attempt = epoch.calls.call(position as usize).attempt + 1;
    if attempt > epoch.core.config.resubmissions_max {
        return StoredAnswer::Failed(format!(
            "what the declaration read changed before each of {attempt} executions"
        ));
    }
    local.carried.push((position, attempt));
    StoredAnswer::Resubmitted
}

fn count_answers(local: &mut Local) {
    for (_, answer) in &local.answers.answers {
        match answer {
            StoredAnswer::Committed { .. } => local.work.committed += 1,
            StoredAnswer::Aborted(Abort { .. }) => local.work.aborted += 1,
            StoredAnswer::Resubmitted => local.work.resubmitted += 1,
            StoredAnswer::Failed(_) => local.work.failed += 1,
        }
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

/// Publishes with the device at hand.
struct Runner<'r, D: Device> {
    core: &'r Core,
    medium: &'r mut Medium<D>,
    segments: &'r Segments,
    checkpoint_epoch: u64,
    epoch: u64,
}

impl<D: Device> PublishNow for Runner<'_, D> {
    fn publish_written(&mut self, local: &mut Local, call: CallView<'_>) -> Result<(), Stopped> {
        self.publish(local, call, Mode::Written)
    }
}

impl<D: Device> Runner<'_, D> {
    fn publish(
        &mut self,
        local: &mut Local,
        call: CallView<'_>,
        mode: Mode,
    ) -> Result<(), Stopped> {
        let Local { writes, scratch, pool, cache, work, .. } = local;
        let sid = SerialId::new(self.epoch, u64::from(call.txn.position));
        let mut with = Publisher {
            segments: self.segments,
            checkpoint_epoch: self.checkpoint_epoch,
            pool,
            cache,
            work,
            waiter: Waiter::new(self.core.stopped()),
        };
        let declared = call.declared().iter();
        let keys = declared
            .map(|d| (d.id, d.table, d.word, d.kind != DeclaredKind::Read))
            .chain(call.members().iter().map(|m| (m.id, m.table, m.word, true)));
        for ((id, table, word, appended), private) in keys.zip(writes) {
            if id == NO_ENTRY || !appended {
                continue;
            }
            let write = match (mode, *private) {
                (_, PrivateWrite::Published) | (Mode::Written, PrivateWrite::None) => continue,
                (Mode::Abort, _) | (Mode::Commit, PrivateWrite::None) => Write::Ignore,
                (_, PrivateWrite::Tombstone) => Write::Tombstone,
                (_, PrivateWrite::Value(span)) => Write::Value(&scratch[span.range()]),
            };
            let to = Publication {
                id,
                word,
                entry: self.core.entries.get(id),
                layout: &self.core.tables[table as usize].layout,
                sid,
            };
            self.medium.publish(&to, write, &mut with)?;
            *private = PrivateWrite::Published;
        }
        self.medium.reveal(&self.core.entries, self.epoch);
        Ok(())
    }

    /// The new numbers of sequences, as final writes of their rows.
    fn persist_sequences(&mut self, local: &mut Local) {
        let sequences = self.core.sequences.read().expect("no panic while locked");
        let Local { sequences: changed, pool, cache, work, .. } = local;
        for change in changed.iter() {
            let id = sequences[&(change.table, change.key)].id.expect("inserted before");
            let sid = SerialId::new(self.epoch, u64::from(change.position));
            let to = Publication {
                id,
                word: change.key,
                entry: self.core.entries.get(id),
                layout: &self.core.tables[change.table as usize].layout,
                sid,
            };
            let mut with = Publisher {
                segments: self.segments,
                checkpoint_epoch: self.checkpoint_epoch,
                pool,
                cache,
                work,
                waiter: Waiter::new(self.core.stopped()),
            };
            self.medium.persist(&to, sid, &change.next.to_le_bytes(), None, &mut with);
        }
    }
}
