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
use crate::local::{CallView, Declarations, Declared, DeclaredKind, Local, Member, NO_ENTRY, Txn};
use crate::version::{Fetched, LINE, NO_PLACE, prefetch};
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

/// The calls that a worker took and did not run yet, in runs, in serial order. A run's rows are
/// fetched in three steps, each of which needs what the one before asked for: the row entries when
/// it is taken, values and version arrays half-way, what the arrays lead to when it is next. What a
/// call declared lies beside what the next one declared, so each step is one loop over a run.
pub(super) struct Ahead<'a, 'e, D: Device> {
    epoch: &'a Epoch<'e, D>,
    lists: &'a [RwLockReadGuard<'a, Declarations>],
    /// How many positions are handed out at once.
    run_calls: usize,
    /// The run that was begun, with the calls that did not run yet.
    current: Run<'a>,
    /// The runs taken: number n, counted from the first of the epoch, is in place n of the ring.
    ring: [Run<'a>; RING],
    /// The number of the next run to begin, of the next one in whose version arrays is looked, of
    /// the next one whose values are fetched, and of the next one to take.
    next: usize,
    unplaced: usize,
    unfetched: usize,
    end: usize,
    /// Rows of the calls in the ring, and lines of values that were asked for for them.
    rows: usize,
    lines: usize,
}

/// Places of the ring: more than are ever taken.
const RING: usize = 16;
const _: () = assert!(RING > CALLS_AHEAD_MAX + 1 && RING.is_power_of_two());

/// Calls that follow each other in serial order, and in the list of a worker.
#[derive(Clone)]
struct Run<'a> {
    lists: &'a Declarations,
    /// Indexes in that list.
    calls: Range<usize>,
    /// What the calls declared, in the list.
    declared: Range<usize>,
    /// Rows that they declared.
    rows: usize,
    /// Whether any of these are members of ranges.
    has_members: bool,
    /// Nothing is taken behind it.
    is_long: bool,
    /// A bit for each row by key that has a version array, the last one for all from there on; and
    /// whether any member of a range has one.
    arrays: u64,
    has_member_arrays: bool,
    /// Lines of values that were asked for.
    lines: usize,
    /// How many things were wanted when all of its were.
    wanted: u64,
}

impl<'a> Run<'a> {
    #[inline(always)]
    fn new(lists: &'a Declarations, calls: Range<usize>) -> Self {
        let declared = lists.declared_by(calls.clone());
        let (mut rows, mut is_long, mut has_members) = (declared.len(), false, false);
        for txn in &lists.txns[calls.clone()] {
            let mut of_call = txn.declared.range().len();
            if txn.extra != Txn::NO_EXTRA {
                let members = lists.extra(txn).members.range().len();
                has_members |= members > 0;
                rows += members;
                of_call += members;
            }
            is_long |= of_call == 0 || of_call > ROWS_LONG;
        }
        Self {
            lists,
            calls,
            declared,
            rows,
            has_members,
            is_long,
            arrays: 0,
            has_member_arrays: false,
            lines: 0,
            wanted: 0,
        }
    }

    #[inline(always)]
    fn declared(&self) -> &'a [Declared] {
        &self.lists.declared[self.declared.clone()]
    }

    /// The rows that its calls declared by ranges, with the positions of the calls.
    #[inline(always)]
    fn members(&self) -> impl Iterator<Item = (u32, &'a Member)> + use<'a> {
        let (lists, calls) = (self.lists, if self.has_members { self.calls.clone() } else { 0..0 });
        lists.txns[calls].iter().flat_map(move |txn| {
            let members = &lists.members[lists.extra(txn).members.range()];
            members.iter().map(|member| (txn.position, member))
        })
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
        let none = Run::new(&lists[0], 0..0);
        Self {
            epoch,
            lists,
            run_calls: if are_small && are_many { RUN_CALLS } else { 1 },
            current: none.clone(),
            ring: std::array::from_fn(|_| none.clone()),
            next: 0,
            unplaced: 0,
            unfetched: 0,
            end: 0,
            rows: 0,
            lines: 0,
        }
    }

    /// The position of the next call to run.
    pub(super) fn next_position(&self) -> Option<u32> {
        let is_begun = !self.current.calls.is_empty();
        let run = if is_begun { &self.current } else { &self.ring[self.next % RING] };
        (is_begun || self.next < self.end).then(|| run.lists.txns[run.calls.start].position)
    }

    /// The next call to run, of those taken.
    #[inline(always)]
    pub(super) fn next(&mut self, local: &mut Local) -> Option<CallView<'a>> {
        if self.current.calls.is_empty() {
            self.begin_run(local);
        }
        let Run { lists, calls, declared, .. } = &mut self.current;
        let (lists, index) = (*lists, calls.next()?);
        local.places.from = lists.txns[index].declared.from as usize - declared.start;
        Some(CallView::new(lists, index))
    }

    /// Takes runs, if the one before is over, and fetches the row entries that they declared.
    #[inline(always)]
    pub(super) fn take(&mut self) {
        if self.current.calls.is_empty() {
            while self.takes_more() && self.take_run() {}
        }
    }

    #[inline(always)]
    fn takes_more(&self) -> bool {
        let taken = (self.end - self.next) * self.run_calls;
        taken == 0
            || (taken <= CALLS_AHEAD_MIN || self.rows < ROWS_AHEAD && taken <= CALLS_AHEAD_MAX)
                && !self.ring[(self.end - 1) % RING].is_long
    }

    /// Takes the next run, if there is one left.
    #[inline(always)]
    fn take_run(&mut self) -> bool {
        let all = self.epoch.calls.len();
        let first = self.epoch.shared.next_call.0.fetch_add(self.run_calls, Ordering::Relaxed);
        if first >= all {
            return false;
        }
        self.fetch_lists(first);
        let end = (first + self.run_calls).min(all);
        // They were read last when they were logged.
        fetch_all(self.epoch.calls.records(first..end));
        let (worker, index) = owner(first, self.lists.len());
        let run = Run::new(&self.lists[worker], index..index + (end - first));
        let entries = &self.epoch.core.entries;
        run.declared().iter().for_each(|declared| entries.prefetch(declared.id));
        run.members().for_each(|(_, member)| entries.prefetch(member.id));
        self.rows += run.rows;
        self.ring[self.end % RING] = run;
        self.end += 1;
        true
    }

    /// Begins the next run, if there is one.
    #[inline(always)]
    fn begin_run(&mut self, local: &mut Local) {
        let at = self.next;
        if at == self.end {
            return;
        }
        if self.unfetched == at {
            // Nothing was taken ahead behind a long call: its misses overlap at least.
            self.fetch_values(&mut local.fetching);
        }
        if self.unplaced == at {
            self.fetch_from_arrays(&mut local.places.of_next);
        }
        self.next += 1;
        std::mem::swap(&mut local.places.of_next, &mut local.places.of_run);
        self.current.clone_from(&self.ring[at % RING]);
        self.rows -= self.current.rows;
        self.lines -= self.current.lines;
        local.fetching.up_to(self.current.wanted);
        if self.next < self.unfetched {
            self.fetch_from_arrays(&mut local.places.of_next);
        }
        while self.fetches_more() {
            self.fetch_values(&mut local.fetching);
        }
    }

    /// Whether it is time to fetch the values of one more run: its row entries should be there by
    /// now, so not the one taken last, unless none will be taken behind it.
    #[inline(always)]
    fn fetches_more(&self) -> bool {
        self.lines < LINES_AHEAD
            && (self.unfetched + 1 < self.end
                || self.unfetched < self.end && self.ring[self.unfetched % RING].is_long)
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

    /// Fetches what the calls of the next run read, and the headers of the persistent rows that
    /// they write.
    #[inline(always)]
    fn fetch_values(&mut self, fetching: &mut Fetching) {
        let run = &mut self.ring[self.unfetched % RING];
        self.unfetched += 1;
        // What is there depends little on where in the run a call is.
        let position = run.lists.txns[run.calls.start].position;
        let sid = SerialId::new(self.epoch.number, u64::from(position));
        let core = self.epoch.core;
        let mut lines = 0;
        let mut fetch_row = |id: EntryId, is_written: bool| {
            let entry = core.entries.get(id);
            if is_written {
                prefetch(core.image_base + entry.row() as usize);
            }
            match entry.fetch(sid) {
                Fetched::Value(word) => {
                    lines += fetching.want(word);
                    false
                }
                Fetched::Array => true,
            }
        };
        for (number, declared) in run.declared().iter().enumerate() {
            if declared.id != NO_ENTRY {
                // A new row is written as a whole, non-temporally.
                let is_read = declared.kind == DeclaredKind::Read || declared.appended;
                let is_array = fetch_row(declared.id, !is_read);
                run.arrays |= u64::from(is_array) << number.min(LAST_BIT);
            }
        }
        for (_, member) in run.members() {
            run.has_member_arrays |= fetch_row(member.id, true);
        }
        (run.lines, run.wanted) = (lines, fetching.wanted());
        self.lines += lines;
    }

    /// Finds the places in version arrays of the rows of the next run, and fetches what they lead
    /// to.
    #[inline(always)]
    fn fetch_from_arrays(&mut self, places: &mut Vec<u32>) {
        let run = &self.ring[self.unplaced % RING];
        self.unplaced += 1;
        places.clear();
        let entries = &self.epoch.core.entries;
        let sid_at = |position: u32| SerialId::new(self.epoch.number, u64::from(position));
        if run.arrays != 0 {
            places.resize(run.declared.len(), NO_PLACE);
            for txn in &run.lists.txns[run.calls.clone()] {
                let sid = sid_at(txn.position);
                let mut find = |number: usize| {
                    let declared = &run.lists.declared[run.declared.start + number];
                    if declared.id != NO_ENTRY {
                        let is_written = declared.kind != DeclaredKind::Read;
                        let entry = entries.get(declared.id);
                        places[number] = entry.fetch_from_array(sid, is_written);
                    }
                };
                let Range { start, end } = txn.declared.range();
                let (first, end) = (start - run.declared.start, end - run.declared.start);
                let mut left = run.arrays & ((1 << end.min(LAST_BIT)) - 1);
                left = left >> first.min(LAST_BIT) << first.min(LAST_BIT);
                while left != 0 {
                    find(left.trailing_zeros() as usize);
                    left &= left - 1;
                }
                // The last bit stands for all from there on.
                (first.max(LAST_BIT)..end).for_each(find);
            }
        }
        if run.has_member_arrays {
            for (position, member) in run.members() {
                entries.get(member.id).fetch_from_array(sid_at(position), true);
            }
        }
    }
}

/// The last bit of a mask of rows.
const LAST_BIT: usize = u64::BITS as usize - 1;

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
