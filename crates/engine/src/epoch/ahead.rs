//! Taking calls a little ahead of the one that runs, so that their rows are fetched into the cache
//! of the worker that runs them (decision 9).

use std::ops::Range;

use pmem::Device;
use pmem::sync::RwLockReadGuard;
use pmem::sync::atomic::Ordering;
use storage::SerialId;

use crate::calls::{RUN_CALLS, owner};
use crate::fetching::Fetching;
use crate::index::EntryId;
use crate::local::{CallView, Declarations, DeclaredKind, Member, NO_ENTRY};
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
/// Bytes that are fetched of the arguments of a call, and of what calls declared.
const LIST_AHEAD: usize = 20 * LINE;
/// Nothing is taken behind a call that may be long, because it would wait there: one with more rows
/// than this, or one that does not say what it reads.
const ROWS_LONG: usize = 64;
/// Where calls declare at least one row and at most so many, on average, a run of them is handed
/// out at once, because workers would contend for the counter ...
const ROWS_SMALL: usize = 6;
/// ... if every worker gets so many runs, or the last ones would leave some without work.
const RUNS_MIN: usize = 8;

/// The calls that a worker took and did not run yet, in serial order. Their rows are fetched in
/// three steps, each of which needs what the one before asked for: the row entries when a call is
/// taken, values and version arrays half-way, what the arrays lead to when it is next.
pub(super) struct Ahead<'a, 'e, D: Device> {
    epoch: &'a Epoch<'e, D>,
    lists: &'a [RwLockReadGuard<'a, Declarations>],
    /// Whether anything is fetched, and so more than one call taken.
    fetches: bool,
    /// Positions that are this worker's, and of which no call is taken yet.
    run: Range<usize>,
    /// How many positions are handed out at once.
    run_calls: usize,
    /// The calls taken: number n, counted from the first of the epoch, is in place n of the ring.
    ring: [Taken<'a>; RING],
    /// The number of the next call to run, of the next one whose values are to be fetched, and of
    /// the next one to take.
    next: usize,
    unfetched: usize,
    end: usize,
    /// Rows that the taken calls declared.
    rows: usize,
    /// Lines of values that were asked for.
    lines: usize,
}

/// Places of the ring: more than are ever taken.
const RING: usize = 16;
const _: () = assert!(RING > CALLS_AHEAD_MAX + 1 && RING.is_power_of_two());

/// A call that waits to be run.
#[derive(Clone, Copy)]
struct Taken<'a> {
    call: CallView<'a>,
    /// Rows that it declared.
    rows: usize,
    /// A bit for each of its first rows whose version array was asked for.
    arrays: u64,
    /// Lines of values that it wants.
    lines: usize,
    /// How many things were wanted when all of its were.
    wanted: u64,
}

impl<'a> Taken<'a> {
    #[inline(always)]
    fn new(call: CallView<'a>) -> Self {
        let rows = call.declared.len() + call.members().len();
        Self { call, rows, arrays: 0, lines: 0, wanted: 0 }
    }

    /// Nothing is taken behind it.
    #[inline(always)]
    fn is_long(&self) -> bool {
        self.rows == 0 || self.rows > ROWS_LONG
    }
}

impl<'a, 'e, D: Device> Ahead<'a, 'e, D> {
    pub(super) fn new(
        epoch: &'a Epoch<'e, D>,
        lists: &'a [RwLockReadGuard<'a, Declarations>],
    ) -> Self {
        let (calls, workers) = (epoch.calls.len(), lists.len());
        let declared: usize = lists.iter().map(|lists| lists.declared.len()).sum();
        let are_small = (calls..=calls * ROWS_SMALL).contains(&declared);
        let are_many = calls >= workers * RUN_CALLS * RUNS_MIN;
        Self {
            epoch,
            lists,
            fetches: epoch.core.config.techniques.prefetch,
            run: 0..0,
            run_calls: if are_small && are_many { RUN_CALLS } else { 1 },
            ring: [Taken::new(CallView::none(&lists[0])); RING],
            next: 0,
            unfetched: 0,
            end: 0,
            rows: 0,
            lines: 0,
        }
    }

    /// The next call to run, of those taken.
    #[inline(always)]
    pub(super) fn next(&mut self, fetching: &mut Fetching) -> Option<CallView<'a>> {
        if self.next == self.end {
            return None;
        }
        let Taken { call, rows, lines, wanted, .. } = self.ring[self.next % RING];
        self.next += 1;
        self.rows -= rows;
        self.lines -= lines;
        if self.next < self.end {
            let next = &self.ring[self.next % RING];
            // Or a call could wait for one that its own worker runs later.
            debug_assert!(call.position < next.call.position);
            self.fetch_from_arrays(next);
        }
        if self.unfetched < self.next {
            self.unfetched = self.next;
            if self.fetches {
                self.fetch_late(call, fetching);
            }
        }
        fetching.up_to(wanted);
        while self.fetches_more() {
            let call = self.ring[self.unfetched % RING].call;
            let (arrays, lines) = self.fetch_values(call, fetching);
            let taken = &mut self.ring[self.unfetched % RING];
            (taken.arrays, taken.lines, taken.wanted) = (arrays, lines, fetching.wanted());
            self.lines += lines;
            self.unfetched += 1;
        }
        Some(call)
    }

    /// Whether it is time to fetch the values of one more call: its row entries should be there by
    /// now, so not the one taken last, unless none will be taken behind it.
    #[inline(always)]
    fn fetches_more(&self) -> bool {
        self.lines < LINES_AHEAD
            && (self.unfetched + 1 < self.end
                || self.unfetched < self.end && self.ring[self.unfetched % RING].is_long())
    }

    /// The position of the next call to run.
    pub(super) fn next_position(&self) -> Option<u32> {
        (self.next < self.end).then(|| self.ring[self.next % RING].call.position)
    }

    /// Takes calls, and fetches the row entries that they declared; without prefetching one call at
    /// a time.
    #[inline(always)]
    pub(super) fn take(&mut self) {
        while self.takes_more() {
            let Some(position) = self.next_of_run() else { return };
            let taken = Taken::new(call_at(self.lists, position));
            if self.fetches {
                // They were read last when they were logged.
                fetch_all(self.epoch.calls.record(position));
                let entries = &self.epoch.core.entries;
                rows_by_key(taken.call).for_each(|(_, row)| entries.prefetch(row.id));
                taken.call.members().iter().for_each(|member| entries.prefetch(member.id));
            }
            self.rows += taken.rows;
            self.ring[self.end % RING] = taken;
            self.end += 1;
        }
    }

    #[inline(always)]
    fn takes_more(&self) -> bool {
        let taken = self.end - self.next;
        if taken == 0 {
            return true;
        }
        self.fetches
            && (taken <= CALLS_AHEAD_MIN || self.rows < ROWS_AHEAD && taken <= CALLS_AHEAD_MAX)
            && !self.ring[(self.end - 1) % RING].is_long()
    }

    /// The next position that is this worker's, if there is one left.
    #[inline(always)]
    fn next_of_run(&mut self) -> Option<usize> {
        if self.run.is_empty() {
            let first = self.epoch.shared.next_call.0.fetch_add(self.run_calls, Ordering::Relaxed);
            self.run = first..(first + self.run_calls).min(self.epoch.calls.len());
            if self.fetches {
                self.fetch_lists(first);
            }
        }
        self.run.next()
    }

    /// Asks for what the run of calls declared that this worker is likely to get next, if all
    /// workers are equally fast, and for the list of the calls of the one after.
    #[inline(always)]
    fn fetch_lists(&self, first: usize) {
        let step = self.run_calls * self.epoch.workers;
        if first + 2 * step + self.run_calls > self.epoch.calls.len() {
            return;
        }
        let run = |position| {
            let (worker, index) = owner(position, self.lists.len());
            (&*self.lists[worker], index..index + self.run_calls)
        };
        let (lists, calls) = run(first + 2 * step);
        fetch_all(&lists.txns[calls]);
        let (lists, calls) = run(first + step);
        fetch_all(&lists.declared[lists.declared_by(calls)]);
    }

    /// Fetches for a call that is about to run, because nothing was taken ahead behind a long one:
    /// its misses overlap at least.
    #[inline(never)]
    fn fetch_late(&self, call: CallView<'a>, fetching: &mut Fetching) {
        let (arrays, lines) = self.fetch_values(call, fetching);
        let wanted = fetching.wanted();
        fetching.up_to(wanted);
        self.fetch_from_arrays(&Taken { arrays, lines, wanted, ..Taken::new(call) });
    }

    /// Fetches what a call reads, and the persistent rows that it writes: a bit for each row whose
    /// version array it asked for instead, and the number of lines.
    #[inline(always)]
    fn fetch_values(&self, call: CallView<'_>, fetching: &mut Fetching) -> (u64, usize) {
        let sid = SerialId::new(self.epoch.number, u64::from(call.position));
        let (mut arrays, mut lines) = (0, 0);
        let mut note = |index: usize, found| match found {
            Some(more) => lines += more,
            // A call with more rows than bits is long, and what is too many is fetched late.
            None => arrays |= 1_u64.checked_shl(index as u32).unwrap_or(0),
        };
        for (index, row) in rows_by_key(call) {
            note(index, self.fetch_row(&row, sid, fetching));
        }
        for (index, row) in rows_of_ranges(call) {
            note(index, self.fetch_row(&row, sid, fetching));
        }
        (arrays, lines)
    }

    /// Fetches what a call needs of a row: so many lines of its value, or, if none, its version
    /// array.
    #[inline(always)]
    fn fetch_row(&self, row: &Row, sid: SerialId, fetching: &mut Fetching) -> Option<usize> {
        let core = self.epoch.core;
        let entry = core.entries.get(row.id);
        let found = match entry.fetch(sid) {
            Fetched::Value(word) => Some(fetching.want(word)),
            Fetched::Array => None,
        };
        if let Some(table) = row.written {
            let layout = &core.tables[table as usize].layout;
            let is_read =
                !row.is_new || !layout.has_exact_keys() || !core.config.techniques.past_cache;
            if is_read {
                let row = core.image_base + entry.row() as usize;
                prefetch(row);
                if layout.half_bytes < pmem::LINE_BYTES {
                    prefetch(row + layout.heap_offset as usize);
                }
            }
        }
        found
    }

    /// Fetches what the version arrays of a call's rows lead to.
    #[inline(always)]
    fn fetch_from_arrays(&self, taken: &Taken<'_>) {
        if taken.arrays == 0 {
            return;
        }
        let sid = SerialId::new(self.epoch.number, u64::from(taken.call.position));
        for (index, row) in rows_by_key(taken.call).chain(rows_of_ranges(taken.call)) {
            if index < u64::BITS as usize && taken.arrays >> index & 1 != 0 {
                let is_written = row.written.is_some();
                self.epoch.core.entries.get(row.id).fetch_from_array(sid, is_written);
            }
        }
    }
}

/// Asks for the first lines of a list.
#[inline(always)]
fn fetch_all<T>(list: &[T]) {
    let (address, mut at) = (list.as_ptr().addr(), 0);
    while at < size_of_val(list).min(LIST_AHEAD) {
        prefetch(address + at);
        at += LINE;
    }
}

/// A row that a call will need.
struct Row {
    id: EntryId,
    /// The table, if the call may write the row.
    written: Option<u16>,
    /// The call created it.
    is_new: bool,
}

/// The rows that a call declared by key, with their numbers among all that it declared.
#[inline(always)]
fn rows_by_key(call: CallView<'_>) -> impl Iterator<Item = (usize, Row)> {
    let found = call.declared.iter().enumerate().filter(|(_, d)| d.id != NO_ENTRY);
    found.map(|(index, d)| {
        let written = (d.kind != DeclaredKind::Read).then_some(d.table);
        (index, Row { id: d.id, written, is_new: d.appended })
    })
}

/// The rows in the ranges that a call declared, numbered after those by key.
#[inline(always)]
fn rows_of_ranges(call: CallView<'_>) -> impl Iterator<Item = (usize, Row)> {
    let row = |m: &Member| Row { id: m.id, written: Some(m.table), is_new: false };
    call.members().iter().map(row).enumerate().map(move |(i, row)| (call.declared.len() + i, row))
}

/// The declarations of the call at a position.
pub(super) fn call_at<'l>(
    lists: &'l [RwLockReadGuard<'_, Declarations>],
    position: usize,
) -> CallView<'l> {
    let (worker, index) = owner(position, lists.len());
    CallView::new(&lists[worker], index)
}
