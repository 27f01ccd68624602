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
    /// Whether any of them has a version array.
    has_arrays: bool,
    /// Lines of values that it wants.
    lines: usize,
    /// How many things were wanted when all of its were.
    wanted: u64,
}

impl<'a> Taken<'a> {
    #[inline(always)]
    fn new(call: CallView<'a>) -> Self {
        let rows = call.declared.len() + call.members().len();
        Self { call, rows, has_arrays: false, lines: 0, wanted: 0 }
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
        let at = self.next;
        self.next += 1;
        if self.unfetched <= at {
            // Nothing was taken ahead behind a long call: its misses overlap at least.
            self.fetch_values(at, fetching);
            self.fetch_from_arrays(at);
            self.unfetched = self.next;
        }
        let Taken { call, rows, lines, wanted, .. } = self.ring[at % RING];
        self.rows -= rows;
        self.lines -= lines;
        fetching.up_to(wanted);
        if self.next < self.end {
            // Or a call could wait for one that its own worker runs later.
            debug_assert!(call.position < self.ring[self.next % RING].call.position);
            self.fetch_from_arrays(self.next);
        }
        while self.fetches_more() {
            self.fetch_values(self.unfetched, fetching);
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

    /// Takes calls, and fetches the row entries that they declared.
    #[inline(always)]
    pub(super) fn take(&mut self) {
        while self.takes_more() {
            let Some(position) = self.next_of_run() else { return };
            let taken = Taken::new(call_at(self.lists, position));
            // They were read last when they were logged.
            fetch_all(self.epoch.calls.record(position));
            let entries = &self.epoch.core.entries;
            taken.call.declared.iter().for_each(|declared| entries.prefetch(declared.id));
            taken.call.members().iter().for_each(|member| entries.prefetch(member.id));
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
        (taken <= CALLS_AHEAD_MIN || self.rows < ROWS_AHEAD && taken <= CALLS_AHEAD_MAX)
            && !self.ring[(self.end - 1) % RING].is_long()
    }

    /// The next position that is this worker's, if there is one left.
    #[inline(always)]
    fn next_of_run(&mut self) -> Option<usize> {
        if self.run.is_empty() {
            let first = self.epoch.shared.next_call.0.fetch_add(self.run_calls, Ordering::Relaxed);
            self.run = first..(first + self.run_calls).min(self.epoch.calls.len());
            self.fetch_lists(first);
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

    /// Fetches what a call reads, and the headers of the persistent rows that it writes.
    #[inline(always)]
    fn fetch_values(&mut self, number: usize, fetching: &mut Fetching) {
        let taken = &mut self.ring[number % RING];
        let sid = SerialId::new(self.epoch.number, u64::from(taken.call.position));
        let core = self.epoch.core;
        let (mut lines, mut has_arrays) = (0, false);
        let mut fetch_row = |id: EntryId, is_written: bool| {
            let entry = core.entries.get(id);
            match entry.fetch(sid) {
                Fetched::Value(word) => lines += fetching.want(word),
                Fetched::Array => has_arrays = true,
            }
            if is_written {
                prefetch(core.image_base + entry.row() as usize);
            }
        };
        for declared in taken.call.declared {
            if declared.id != NO_ENTRY {
                // A new row is written as a whole, past the cache.
                let is_new = declared.appended;
                fetch_row(declared.id, declared.kind != DeclaredKind::Read && !is_new);
            }
        }
        taken.call.members().iter().for_each(|member| fetch_row(member.id, true));
        (taken.lines, taken.has_arrays, taken.wanted) = (lines, has_arrays, fetching.wanted());
        self.lines += lines;
    }

    /// Fetches what the version arrays of a call's rows lead to.
    #[inline(always)]
    fn fetch_from_arrays(&self, number: usize) {
        let Taken { call, has_arrays, .. } = &self.ring[number % RING];
        if !has_arrays {
            return;
        }
        let sid = SerialId::new(self.epoch.number, u64::from(call.position));
        let entries = &self.epoch.core.entries;
        for declared in call.declared.iter().filter(|declared| declared.id != NO_ENTRY) {
            let is_written = declared.kind != DeclaredKind::Read;
            entries.get(declared.id).fetch_from_array(sid, is_written);
        }
        for member in call.members() {
            entries.get(member.id).fetch_from_array(sid, true);
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

/// The declarations of the call at a position.
pub(super) fn call_at<'l>(
    lists: &'l [RwLockReadGuard<'_, Declarations>],
    position: usize,
) -> CallView<'l> {
    let (worker, index) = owner(position, lists.len());
    CallView::new(&lists[worker], index)
}
