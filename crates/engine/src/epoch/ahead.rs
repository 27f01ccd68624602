//! Taking calls a little ahead of the one that runs, so that their rows are fetched into the cache
//! of the worker that runs them (decision 9).

use std::collections::VecDeque;

use pmem::Device;
use pmem::sync::RwLockReadGuard;
use pmem::sync::atomic::Ordering;
use storage::SerialId;

use crate::calls::owner;
use crate::fetching::Fetching;
use crate::index::EntryId;
use crate::local::{CallView, Declarations, DeclaredKind, NO_ENTRY};
use crate::version::{Fetched, LINE, prefetch};
use crate::worker::Epoch;

/// How far a worker takes calls ahead of the one it runs: until so many calls, or so many of their
/// rows, are on their way into its cache, but always a few calls.
const CALLS_AHEAD_MIN: usize = 3;
const CALLS_AHEAD_MAX: usize = 8;
const ROWS_AHEAD: usize = 32;
/// Of the calls taken, the values of a few are fetched: until so many lines are on their way, which
/// leaves most of the nearest cache to the call that runs.
const LINES_AHEAD: usize = 128;
/// Bytes of its arguments that are fetched when a call is taken.
const ARGUMENTS_AHEAD: usize = 20 * LINE;
/// Nothing is taken behind a call that may be long, because it would wait there: one with more rows
/// than this, or one that does not say what it reads.
const ROWS_LONG: usize = 64;

/// The calls that a worker took and did not run yet, in serial order. Their rows are fetched in
/// three steps, each of which needs what the one before asked for: the row entries when a call is
/// taken, values and version arrays half-way, what the arrays lead to when it is next.
pub(super) struct Ahead<'a, 'e, D: Device> {
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
    /// Lines of values that it wants.
    lines: usize,
    /// How many things were wanted when all of its were.
    wanted: u64,
}

impl<'a, 'e, D: Device> Ahead<'a, 'e, D> {
    pub(super) fn new(
        epoch: &'a Epoch<'e, D>,
        lists: &'a [RwLockReadGuard<'a, Declarations>],
    ) -> Self {
        Self { epoch, lists, taken: VecDeque::new(), rows: 0, fetched: 0, lines: 0 }
    }

    /// The next call to run, of those taken.
    pub(super) fn next(&mut self, fetching: &mut Fetching) -> Option<CallView<'a>> {
        let Taken { call, lines, wanted, .. } = self.taken.pop_front()?;
        // Or a call could wait for one that its own worker runs later.
        let next = self.taken.front();
        debug_assert!(next.is_none_or(|next| call.txn.position < next.call.txn.position));
        self.rows -= rows_count(call);
        self.lines -= lines;
        if let Some(next) = next {
            self.fetch_from_arrays(next);
        }
        if self.fetched > 0 {
            self.fetched -= 1;
        } else if self.epoch.core.config.techniques.prefetch {
            self.fetch_late(call, fetching);
        }
        fetching.up_to(wanted);
        while self.fetches_more() {
            let call = self.taken[self.fetched].call;
            let (arrays, lines) = self.fetch_values(call, fetching);
            self.taken[self.fetched] = Taken { call, arrays, lines, wanted: fetching.wanted() };
            self.lines += lines;
            self.fetched += 1;
        }
        Some(call)
    }

    /// Whether it is time to fetch the values of one more call: its row entries should be there by
    /// now, so not the one taken last, unless none will be taken behind it.
    fn fetches_more(&self) -> bool {
        let is_last = self.fetched + 1 == self.taken.len();
        self.lines < LINES_AHEAD
            && self.taken.get(self.fetched).is_some_and(|taken| !is_last || is_long(taken.call))
    }

    /// The position of the next call to run.
    pub(super) fn next_position(&self) -> Option<u32> {
        self.taken.front().map(|taken| taken.call.txn.position)
    }

    /// Takes calls, and fetches the row entries that they declared; without prefetching one call at
    /// a time.
    pub(super) fn take(&mut self) {
        let fetches = self.epoch.core.config.techniques.prefetch;
        while !self.taken.back().is_some_and(|taken| is_long(taken.call) || !fetches)
            && (self.taken.len() <= CALLS_AHEAD_MIN
                || self.rows < ROWS_AHEAD && self.taken.len() <= CALLS_AHEAD_MAX)
        {
            let position = self.epoch.shared.next_call.fetch_add(1, Ordering::Relaxed);
            if position >= self.epoch.calls.len() {
                return;
            }
            let call = call_at(self.lists, position);
            if fetches {
                fetch_arguments(self.epoch.calls.record(position));
                rows(call).for_each(|row| self.epoch.core.entries.prefetch(row.id));
            }
            self.rows += rows_count(call);
            self.taken.push_back(Taken { call, arrays: 0, lines: 0, wanted: 0 });
        }
    }

    /// Fetches for a call that is about to run, because nothing was taken ahead behind a long one:
    /// its misses overlap at least.
    #[inline(never)]
    fn fetch_late(&self, call: CallView<'a>, fetching: &mut Fetching) {
        let (arrays, lines) = self.fetch_values(call, fetching);
        let wanted = fetching.wanted();
        fetching.up_to(wanted);
        self.fetch_from_arrays(&Taken { call, arrays, lines, wanted });
    }

    /// Fetches what a call reads, and the persistent rows that it writes: a bit for each row whose
    /// version array it asked for instead, and the number of lines.
    #[inline(always)]
    fn fetch_values(&self, call: CallView<'_>, fetching: &mut Fetching) -> (u64, usize) {
        let core = self.epoch.core;
        let sid = SerialId::new(self.epoch.number, u64::from(call.txn.position));
        let (mut arrays, mut lines) = (0, 0);
        for (index, row) in rows(call).enumerate() {
            let entry = core.entries.get(row.id);
            match entry.fetch(sid) {
                Fetched::Value(word) => lines += fetching.want(word),
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
    #[inline(always)]
    fn fetch_from_arrays(&self, taken: &Taken<'_>) {
        if taken.arrays == 0 {
            return;
        }
        let sid = SerialId::new(self.epoch.number, u64::from(taken.call.txn.position));
        for (index, row) in rows(taken.call).take(u64::BITS as usize).enumerate() {
            if taken.arrays >> index & 1 != 0 {
                let is_written = row.written.is_some();
                self.epoch.core.entries.get(row.id).fetch_from_array(sid, is_written);
            }
        }
    }
}

/// Asks for the arguments of a call: they were read last when it was logged.
fn fetch_arguments(record: &[u8]) {
    let address = record.as_ptr().addr();
    for at in (0..record.len().min(ARGUMENTS_AHEAD)).step_by(LINE) {
        prefetch(address + at);
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
