//! Taking calls a little ahead of the one that runs, so that their rows are fetched into the cache
//! of the worker that runs them (decision 9).

use std::ops::Range;

use pmem::sync::RwLockReadGuard;
use storage::{Position, SerialId};

use crate::call::batch::owner;
use crate::declaration::{CallView, Declarations, Declared, DeclaredKind, Member, NO_ENTRY, Txn};
use crate::epoch::dispatch::Dispatch;
use crate::index::EntryId;
use crate::memory::Local;
use crate::version::prefetch_policy::PrefetchPolicy;
use crate::version::{Access, IN_ARRAY, LINE, prefetch};
use crate::worker::Epoch;

/// How far a worker takes calls ahead of the one it runs: until so many calls, or so many of their
/// rows, are on their way into its cache, but always a few calls.
const CALLS_AHEAD_MIN: usize = 3;
const CALLS_AHEAD_MAX: usize = 8;
const ROWS_AHEAD: usize = 32;
/// Of the calls claimed, the values of a few are fetched: until so many lines are on their way,
/// which leaves most of the nearest cache to the call that runs.
const LINES_AHEAD: usize = 128;
/// Bytes that are fetched of the arguments of a call, and of what calls declared.
const LIST_AHEAD: usize = 20 * LINE;
/// Nothing is claimed behind a call that may be long, because it would wait there: one with more
/// rows than this, or one that does not say what it reads.
const ROWS_LONG: usize = 64;

/// The calls that a worker took and did not run yet, in runs, in serial order. A run's rows are
/// fetched in three steps, each of which needs what the one before asked for: the row entries when
/// it is claimed, values and version arrays half-way, what the arrays lead to when it is next. What
/// the last two find is the access plan of the calls. What a call declared lies beside what the
/// next one declared, so each step is one loop over a run.
pub(super) struct PrefetchQueue<'a, 'e> {
    epoch: &'a Epoch<'e>,
    lists: &'a [RwLockReadGuard<'a, Declarations>],
    has_cache: bool,
    /// Calls wait for those before them, as those that change or read secondary indexes may:
    /// nothing is claimed behind a call, because it would wait there.
    one_by_one: bool,
    dispatch: Dispatch<'a>,
    /// How many positions are handed out at once.
    run_calls: usize,
    /// Calls of the run that was begun that did not run yet.
    current: Range<usize>,
    /// The runs claimed: number n, counted from the first of the epoch, is in place n of the ring.
    /// The one that was begun is before `next`.
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

/// Places of the ring: more than are ever claimed, and the one that was begun.
const RING: usize = 16;
const _: () = assert!(RING > CALLS_AHEAD_MAX + 2 && RING.is_power_of_two());

/// Calls that follow each other in serial order, and in the list of a worker.
struct Run<'a> {
    lists: &'a Declarations,
    /// Indexes in that list.
    calls: Range<usize>,
    /// What the calls declared, in the list.
    declared: Range<usize>,
    /// What is known of that.
    plan: Vec<Access>,
    /// Rows that they declared.
    rows: usize,
    /// Whether any of these are members of ranges.
    has_members: bool,
    /// Nothing is claimed behind it.
    is_long: bool,
    /// Whether a row has a version array, by key, and as a member of a range.
    has_arrays: bool,
    has_member_arrays: bool,
    /// Lines of values that were asked for.
    lines: usize,
    /// How many things were wanted when all of its were.
    wanted: u64,
}

impl<'a> Run<'a> {
    fn empty(lists: &'a Declarations, plan: Vec<Access>) -> Self {
        Self {
            lists,
            calls: 0..0,
            declared: 0..0,
            plan,
            rows: 0,
            has_members: false,
            is_long: false,
            has_arrays: false,
            has_member_arrays: false,
            lines: 0,
            wanted: 0,
        }
    }

    /// Takes the place of an older run.
    #[inline(always)]
    fn refill(&mut self, lists: &'a Declarations, calls: Range<usize>, serial: usize) {
        self.lists = lists;
        self.declared = lists.declared_by(calls.clone());
        self.plan.clear();
        self.rows = self.declared.len();
        (self.has_members, self.is_long) = (false, false);
        (self.has_arrays, self.has_member_arrays) = (false, false);
        for txn in &lists.txns[calls.clone()] {
            let mut of_call = txn.declared.len();
            if txn.extra != Txn::NO_EXTRA {
                let members = lists.extra(txn).members.len();
                self.has_members |= members > 0;
                self.rows += members;
                of_call += members;
            }
            // Calls of the serial part have run, and those without rows have nothing to do.
            let says_nothing = of_call == 0 && txn.position.index() >= serial;
            self.is_long |= says_nothing || of_call > ROWS_LONG;
        }
        self.calls = calls;
    }

    #[inline]
    fn declared(&self) -> &'a [Declared] {
        &self.lists.declared[self.declared.clone()]
    }

    /// The rows that its calls declared by ranges, with the positions of the calls.
    #[inline]
    fn members(&self) -> impl Iterator<Item = (Position, &'a Member)> + use<'a> {
        let (lists, calls) = (self.lists, if self.has_members { self.calls.clone() } else { 0..0 });
        lists.txns[calls].iter().flat_map(move |txn| {
            let members = &lists.members[lists.extra(txn).members.range()];
            members.iter().map(|member| (txn.position, member))
        })
    }

    /// One of its calls, with its part of the plan.
    #[inline(always)]
    fn call(&self, index: usize) -> CallView<'_> {
        let of_call = self.lists.txns[index].declared.range();
        let from = of_call.start - self.declared.start;
        CallView::new(self.lists, index, &self.plan[from..from + of_call.len()])
    }
}

impl<'a, 'e> PrefetchQueue<'a, 'e> {
    pub(super) fn new(
        epoch: &'a Epoch<'e>,
        lists: &'a [RwLockReadGuard<'a, Declarations>],
        local: &mut Local,
    ) -> Self {
        let declared = lists.iter().map(|lists| lists.declared.len()).sum();
        let (claimed, progress) = (&epoch.shared.claimed, &*epoch.shared.progress);
        let calls = epoch.calls.len();
        let one_by_one = lists.iter().any(|lists| !lists.index_writers.is_empty());
        let mut dispatch = Dispatch::new(claimed, progress, local.worker, calls, declared);
        if one_by_one {
            dispatch.hand_out_one_by_one();
        }
        Self {
            epoch,
            lists,
            has_cache: local.cache.is_on(),
            one_by_one,
            run_calls: dispatch.run_calls(),
            dispatch,
            current: 0..0,
            ring: std::array::from_fn(|_| {
                let plan = local.plans.pop();
                Run::empty(&lists[0], plan.unwrap_or_else(|| Vec::with_capacity(ROWS_LONG)))
            }),
            next: 0,
            unplaced: 0,
            unfetched: 0,
            end: 0,
            rows: 0,
            lines: 0,
        }
    }

    /// Gives the memory of the plans back, for the next epoch.
    pub(super) fn give_back(self, local: &mut Local) {
        assert!(self.current.is_empty(), "every call of a run has run");
        assert!(self.next == self.end, "every run that was claimed was begun");
        local.plans.extend(self.ring.map(|run| run.plan));
    }

    /// Whether this worker has claimed the rest of the epoch.
    pub(super) fn takes_rest(&self) -> bool {
        self.dispatch.takes_rest()
    }

    /// The position of the next call of the run that was begun.
    #[inline]
    pub(super) fn next_position(&self) -> Option<Position> {
        let run = &self.ring[self.next.wrapping_sub(1) % RING];
        (!self.current.is_empty()).then(|| run.lists.txns[self.current.start].position)
    }

    /// The next call of the run that was begun.
    #[inline]
    pub(super) fn next(&mut self) -> Option<CallView<'_>> {
        let index = self.current.next()?;
        Some(self.ring[(self.next - 1) % RING].call(index))
    }

    /// Begins the next run, and takes more; false if there is none left.
    #[inline]
    pub(super) fn begin_next(&mut self, fetching: &mut PrefetchPolicy) -> bool {
        while self.takes_more() && self.take_run() {}
        self.begin_run(fetching);
        !self.current.is_empty()
    }

    #[inline]
    fn takes_more(&self) -> bool {
        let claimed = (self.end - self.next) * self.run_calls;
        claimed == 0
            || (claimed <= CALLS_AHEAD_MIN || self.rows < ROWS_AHEAD && claimed <= CALLS_AHEAD_MAX)
                && !self.ring[(self.end - 1) % RING].is_long
    }

    /// Takes the next run, if there is one left.
    #[inline]
    fn take_run(&mut self) -> bool {
        let Some(positions) = self.dispatch.take() else { return false };
        let (first, count) = (positions.start, positions.len());
        self.fetch_lists(first);
        // They were read last when they were logged.
        fetch_all(self.epoch.calls.records(positions));
        let (worker, index) = owner(first, self.lists.len());
        let run = &mut self.ring[self.end % RING];
        let serial = self.epoch.calls.serial();
        debug_assert!(
            self.lists[worker.index()].txns[index].position.index() == first,
            "a call is found by its place in its owner's list"
        );
        run.refill(&self.lists[worker.index()], index..index + count, serial);
        run.is_long |= self.one_by_one;
        let entries = &self.epoch.core.entries;
        run.declared().iter().for_each(|declared| entries.prefetch(declared.id));
        run.members().for_each(|(_, member)| entries.prefetch(member.id));
        self.rows += run.rows;
        self.end += 1;
        true
    }

    /// Begins the next run, if there is one.
    #[inline]
    fn begin_run(&mut self, fetching: &mut PrefetchPolicy) {
        let at = self.next;
        if at == self.end {
            return;
        }
        if self.unfetched == at {
            // Nothing was claimed ahead behind a long call: its misses overlap at least.
            self.fetch_values(fetching);
        }
        if self.unplaced == at {
            self.fetch_from_arrays();
        }
        self.next += 1;
        let run = &self.ring[at % RING];
        self.current = run.calls.clone();
        self.rows -= run.rows;
        self.lines -= run.lines;
        fetching.up_to(run.wanted);
        if self.next < self.unfetched {
            self.fetch_from_arrays();
        }
        while self.fetches_more() {
            self.fetch_values(fetching);
        }
    }

    /// Whether it is time to fetch the values of one more run: its row entries should be there by
    /// now, so not the last one, unless none will be claimed behind it.
    #[inline]
    fn fetches_more(&self) -> bool {
        self.lines < LINES_AHEAD
            && (self.unfetched + 1 < self.end
                || self.unfetched < self.end && self.ring[self.unfetched % RING].is_long)
    }

    /// Asks for what the run of calls declared that this worker is likely to get next, if all
    /// workers are equally fast, and for the list of the calls of the one after.
    #[inline]
    fn fetch_lists(&self, first: usize) {
        let step = self.run_calls * self.epoch.workers;
        if first + 2 * step + self.run_calls > self.epoch.calls.len() {
            return;
        }
        let run = |position| {
            let (worker, index) = owner(position, self.lists.len());
            (&*self.lists[worker.index()], index..index + self.run_calls)
        };
        let (lists, calls) = run(first + 2 * step);
        fetch_all(&lists.txns[calls]);
        let (lists, calls) = run(first + step);
        fetch_all(&lists.declared[lists.declared_by(calls)]);
    }

    /// Fetches what the calls of the next run read, and the headers of the persistent rows that
    /// they write.
    #[inline(always)]
    fn fetch_values(&mut self, fetching: &mut PrefetchPolicy) {
        let run = &mut self.ring[self.unfetched % RING];
        self.unfetched += 1;
        let (core, has_cache) = (self.epoch.core, self.has_cache);
        let sid_at = |position: Position| self.epoch.sid_at(position);
        let mut lines = 0;
        let mut fetch_row = |id: EntryId, sid: SerialId, is_written: bool| {
            let entry = core.entries.get(id);
            if is_written {
                prefetch(core.image_base + entry.row() as usize);
            } else if !entry.is_filled() {
                prefetch(core.image_base + core.entries.row_of(id) as usize);
            }
            let (access, value) = entry.plan(sid, has_cache);
            lines += fetching.want(value);
            access
        };
        for txn in &run.lists.txns[run.calls.clone()] {
            let sid = sid_at(txn.position);
            let has_arrays = &mut run.has_arrays;
            let declared = &run.lists.declared[txn.declared.range()];
            run.plan.extend(declared.iter().map(|declared| {
                if declared.id == NO_ENTRY {
                    return Access::UNKNOWN;
                }
                // A new row is written as a whole, non-temporally.
                let is_read = declared.kind == DeclaredKind::Read || declared.appended;
                let access = fetch_row(declared.id, sid, !is_read);
                *has_arrays |= access.place == IN_ARRAY;
                access
            }));
        }
        for (position, member) in run.members() {
            let access = fetch_row(member.id, sid_at(position), true);
            run.has_member_arrays |= access.place == IN_ARRAY;
        }
        (run.lines, run.wanted) = (lines, fetching.wanted());
        self.lines += lines;
    }

    /// Finds the places in version arrays of the rows of the next run, and fetches what they lead
    /// to.
    #[inline(always)]
    fn fetch_from_arrays(&mut self) {
        let run = &mut self.ring[self.unplaced % RING];
        self.unplaced += 1;
        let entries = &self.epoch.core.entries;
        let sid_at = |position: Position| self.epoch.sid_at(position);
        if run.has_arrays {
            let mut plan = run.plan.iter_mut();
            for txn in &run.lists.txns[run.calls.clone()] {
                let declared = &run.lists.declared[txn.declared.range()];
                for (declared, access) in declared.iter().zip(&mut plan) {
                    if access.place == IN_ARRAY {
                        let is_written = declared.kind != DeclaredKind::Read;
                        let sid = sid_at(txn.position);
                        *access = entries.get(declared.id).plan_in_array(sid, is_written);
                    }
                }
            }
        }
        if run.has_member_arrays {
            for (position, member) in run.members() {
                entries.get(member.id).plan_in_array(sid_at(position), true);
            }
        }
    }
}

/// Asks for the first lines of a list.
#[inline]
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
    CallView::new(&lists[worker.index()], index, &[])
}
