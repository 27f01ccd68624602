//! The append step (NV 4.1, CA 3.2): every declared write gets its pending version, unless the
//! insert step gave it one with its row.
//!
//! Keys are found some at a time and ahead of the calls that declared them: the index buckets of
//! the next ones are fetched while these are looked up, and their row entries while versions are
//! appended to those before, so that the misses overlap. Either each append takes its row's lock,
//! or appends to rows that have one already are collected: batch append.

use pmem::Port;
use storage::format::{KEY_BYTES_MAX, ROW_HEADER_BYTES};
use storage::{EpochNumber, NewValue, Position, SerialId, row};

use crate::declaration::{
    Declarations, Declared, DeclaredKind, DeclaredRange, Member, NO_ENTRY, NO_PIECE, Span, Txn,
};
use crate::design::append_method::AppendMethod;
use crate::epoch::batch::{self, Method, Outbox};
use crate::epoch::page_in;
use crate::index::{EntryId, Home};
use crate::memory::Local;
use crate::reads::Reads;
use crate::state::core::Core;
use crate::stats::WorkCounts;
use crate::table::KeyWord;
use crate::version::{
    CachePool, Claim, ReadPhase, RowEntry, TransientPool, ValueWord, version_epoch,
};
use crate::worker::{Epoch, Leave, Worker};

/// Keys that are found at a time.
const KEYS: usize = 16;
const _: () = assert!(KEYS <= u32::BITS as usize);

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    assert!(epoch.core.gate.is_closed(), "no reader is inside while rows are claimed (O-106)");
    let (local, port) = (&mut worker.local, &mut worker.row_store.port);
    match epoch.core.config.lab.append {
        AppendMethod::RowLock => {
            let mut locks =
                RowLocks(WorkCounts::default(), epoch.core.config.contention.then(Vec::new));
            append_all(epoch, local, port, &mut locks)?;
            local.work.version_arrays += locks.0.version_arrays;
            local.work.insertion_moves += locks.0.insertion_moves;
            local.work.contended_locks += locks.0.contended_locks;
            local.work.locks_handed_over += locks.0.locks_handed_over;
            local.contention.arrays.extend(locks.1.into_iter().flatten());
        }
        AppendMethod::Batch => {
            let mut outbox = Outbox::new(epoch, local.worker);
            append_all(epoch, local, port, &mut outbox)?;
            outbox.close(&mut local.work);
            batch::make_arrays(epoch, local)?;
        }
    }
    local.reads.account(port, epoch.core.image_base);
    if epoch.core.config.lab.design.is_all_nvmm() {
        write_back_arrays(epoch, worker)?;
    }
    Ok(())
}

/// Versions are on the device: each append writes the row's line, and its share of the array.
fn write_back_arrays(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    epoch.barrier()?;
    let Worker { local, row_store, .. } = worker;
    let is_written =
        |declared: &&Declared| declared.kind != DeclaredKind::Read && declared.id != NO_ENTRY;
    let declared = local.lists.declared.iter().filter(is_written).map(|declared| declared.id);
    let members = local.lists.members.iter().chain(&local.lists.piece_members);
    for id in declared.chain(members.map(|member| member.id)) {
        row_store.write_back_versions(epoch.core.entries.get(id), epoch.number);
    }
    Ok(())
}

/// One by one, under the lock of each row; with the rows that got an array, if wanted.
struct RowLocks(WorkCounts, Option<Vec<EntryId>>);

impl Method for RowLocks {
    #[inline]
    fn append(
        &mut self,
        id: EntryId,
        entry: &RowEntry,
        sid: SerialId,
        pool: &mut TransientPool,
        claim: &mut impl Claim,
    ) {
        let cost = entry.append(sid, pool, claim);
        self.0.version_arrays += u64::from(cost.new_array);
        if cost.new_array
            && let Some(arrays) = &mut self.1
        {
            arrays.push(id);
        }
        self.0.insertion_moves += cost.moves as u64;
        self.0.contended_locks += u64::from(cost.contended);
        self.0.locks_handed_over += u64::from(cost.handed_over);
    }
}

/// Appends what the calls of a worker declared.
fn append_all(
    epoch: &Epoch<'_>,
    local: &mut Local,
    port: &mut Port,
    method: &mut impl Method,
) -> Result<(), Leave> {
    let mut finder = Finder::new(epoch.core, &local.lists);
    let mut next = 0;
    while next < local.lists.txns.len() {
        while finder.is_behind(&local.lists.txns[next], &local.lists) {
            finder.find_some(&mut local.lists, &local.reads);
            local.reads.account_charged(port, epoch.core.image_base);
        }
        next = append_declared(epoch, local, method, next, &finder);
        if !local.lists.extra(&local.lists.txns[next - 1]).ranges.is_empty() {
            append_ranges(epoch, local, method, next - 1)
                .map_err(crate::error::EngineError::Poisoned)?;
        }
    }
    assert!(finder.found == local.lists.declared.len(), "every declared key was looked for");
    local.work.declared_keys += local.lists.declared.len() as u64;
    Ok(())
}

/// Finds the entries of declared keys, some keys ahead of the calls that are at their turn.
struct Finder<'e> {
    core: &'e Core,
    /// How many keys are found.
    found: usize,
    /// Where the searches for the next keys begin.
    homes: [Home<'e>; KEYS],
}

impl<'e> Finder<'e> {
    fn new(core: &'e Core, lists: &Declarations) -> Self {
        let mut finder = Self { core, found: 0, homes: [const { Home::NOWHERE }; KEYS] };
        finder.fetch(&lists.declared);
        finder
    }

    /// Whether keys are to be found before a call has its turn: so many that the entries of some
    /// more are on their way then.
    #[inline]
    fn is_behind(&self, txn: &Txn, lists: &Declarations) -> bool {
        self.found < (txn.declared.to as usize + KEYS).min(lists.declared.len())
    }

    /// Asks for the buckets of the next keys, but those that the insert step found.
    #[inline]
    fn fetch(&mut self, next: &[Declared]) {
        for (declared, home) in next.iter().zip(&mut self.homes) {
            if declared.id == NO_ENTRY {
                *home = self.core.tables[declared.table.index()].hash.home(declared.word);
            }
        }
    }

    /// Finds the next keys, and asks for the buckets of those behind them.
    #[inline(never)]
    fn find_some(&mut self, lists: &mut Declarations, reads: &Reads) {
        let Declarations { declared, keys, .. } = lists;
        let core = self.core;
        let count = KEYS.min(declared.len() - self.found);
        let (now, next) = declared[self.found..].split_at_mut(count);
        // Bits of those that are not found so.
        let mut others = 0_u32;
        for ((at, declared), home) in now.iter_mut().enumerate().zip(&self.homes) {
            if declared.id == NO_ENTRY {
                declared.id = match home.find_exact(declared.word) {
                    Some(id) if declared.is_word => id,
                    None if declared.is_word && home.ends() => NO_ENTRY,
                    _ => {
                        others |= 1 << at;
                        NO_ENTRY
                    }
                };
            }
            if declared.id != NO_ENTRY && declared.kind != DeclaredKind::Read {
                core.entries.prefetch(declared.id);
            }
        }
        if others != 0 {
            find_others(core, now, others, keys, reads);
        }
        self.found += count;
        self.fetch(next);
    }
}

/// Finds keys, by their bits, that are not words where the search for them begins: rows that may
/// be theirs are asked for before the first is looked at.
#[inline(never)]
fn find_others(core: &Core, some: &mut [Declared], others: u32, keys: &[u8], reads: &Reads) {
    let is_other = |at: usize| others & 1 << at != 0;
    for declared in (0..some.len()).filter(|&at| is_other(at)).map(|at| &some[at]) {
        if let Some(id) = core.tables[declared.table.index()].hash.find_first(declared.word) {
            core.prefetch_key(id);
            core.entries.prefetch(id);
        }
    }
    for (_, declared) in some.iter_mut().enumerate().filter(|(at, _)| is_other(*at)) {
        let word = declared.word.to_be_bytes();
        let key = if declared.is_word { &word } else { &keys[declared.key.range()] };
        let word = KeyWord { hash: declared.word, key };
        let found = core.find(&core.tables[declared.table.index()], word, reads);
        declared.id = found.unwrap_or(NO_ENTRY);
    }
}

/// Appends what some calls declared by key, from one on, as far as keys are found ahead of them,
/// but up to one with ranges at most. Returns the call behind them.
#[inline(never)]
fn append_declared(
    epoch: &Epoch<'_>,
    local: &mut Local,
    method: &mut impl Method,
    mut next: usize,
    finder: &Finder<'_>,
) -> usize {
    let Local { lists, cache, pool, work, reads, .. } = local;
    let mut claimer = Claimer::new(epoch, cache, reads);
    let (core, mut appended) = (epoch.core, 0);
    for txn in &lists.txns[next..] {
        if finder.is_behind(txn, lists) {
            break;
        }
        next += 1;
        let sid = epoch.sid_at(txn.position);
        for declared in &lists.declared[txn.declared.range()] {
            let is_written = declared.kind != DeclaredKind::Read && declared.id != NO_ENTRY;
            debug_assert!(
                is_written || !declared.kind.inserts(),
                "the insert step has made a row for each key that may be inserted"
            );
            debug_assert!(
                is_written || !declared.appended,
                "a row is created for a key that the call writes"
            );
            if is_written && !declared.appended {
                core.forget_row(declared.table, declared.word);
                method.append(declared.id, core.entry(declared.id), sid, pool, &mut claimer);
                appended += 1;
            }
        }
        if !lists.extra(txn).ranges.is_empty() {
            break;
        }
    }
    work.appends += appended;
    next
}

/// Resolves the declared ranges of a call: the rows born before it (CA 3.2, O-09).
fn append_ranges(
    epoch: &Epoch<'_>,
    local: &mut Local,
    method: &mut impl Method,
    index: usize,
) -> Result<(), String> {
    let core = epoch.core;
    let Declarations { txns, extras, declared, ranges, members, keys, .. } = &mut local.lists;
    let txn = &txns[index];
    let extra = &extras[txn.extra as usize];
    let sid = epoch.sid_at(txn.position);
    let from = members.len();
    let written = || declared[txn.declared.range()].iter().filter(|d| d.kind != DeclaredKind::Read);
    let (mut are_declared, mut are_sorted) = (false, true);
    let of_body = |range: &&DeclaredRange| range.piece == NO_PIECE;
    for range in ranges[extra.ranges.range()].iter().filter(of_body) {
        are_declared |= written().any(|d| d.table == range.table);
        let table = core.table(range.table)?;
        let (low, high) = (&keys[range.low.range()], &keys[range.high.range()]);
        let (before, of_range) = (members.last().copied(), members.len());
        core.range(table, low, high, &local.reads)?.for_each_run(|words, ids| {
            members.extend(words.iter().zip(ids).map(|(&word, &id)| {
                core.entries.prefetch(id);
                Member { table: range.table, word, id }
            }));
        });
        // Keys that are not exact may have the same word.
        let first = members.get(of_range).copied();
        are_sorted &= table.exact && (of_range == from || first.is_none() || before < first);
    }
    if !are_sorted {
        // Sorted for the body's lookups, and each row once where ranges overlap (O-02).
        members[from..].sort_unstable();
        let mut before = None;
        keep(members, from, |member| before.replace(member) != Some(member));
    }
    if are_declared {
        // Few calls declare keys and ranges of one table.
        keep(members, from, |member| !written().any(|d| d.id == member.id));
    }
    debug_assert!(local.lists.members[from..].is_sorted(), "members are found by halving");
    page_in::members(epoch, &local.lists.members[from..], &mut local.missing_pages);
    let Local { lists, cache, pool, work, reads, .. } = local;
    let mut claimer = Claimer::new(epoch, cache, reads);
    let of_call = &mut lists.members[from..];
    let kept = append_members(core, of_call, sid, method, pool, &mut claimer);
    forget(core, &of_call[..kept], reads);
    lists.members.truncate(from + kept);
    work.appends += kept as u64;
    let extra = &mut lists.extras[lists.txns[index].extra as usize];
    extra.members = Span::up_to(from, from + kept);
    if extra.pieces.is_empty() {
        return Ok(());
    }
    append_piece_ranges(epoch, local, method, index)
}

/// The same of the ranges of its pieces. A row is one piece's at most: not of a key that is
/// declared, nor of a range of the body or of a piece before.
#[inline(never)]
fn append_piece_ranges(
    epoch: &Epoch<'_>,
    local: &mut Local,
    method: &mut impl Method,
    index: usize,
) -> Result<(), String> {
    let (core, txn) = (epoch.core, local.lists.txns[index]);
    let sid = epoch.sid_at(txn.position);
    let first = local.lists.piece_members.len();
    for at in local.lists.extra(&txn).pieces.range() {
        let from = local.lists.piece_members.len();
        find_piece_members(core, local, &txn, at, first)?;
        page_in::members(epoch, &local.lists.piece_members[from..], &mut local.missing_pages);
        let Local { lists, cache, pool, work, reads, .. } = &mut *local;
        let mut claimer = Claimer::new(epoch, cache, reads);
        let of_piece = &mut lists.piece_members[from..];
        let kept = append_members(core, of_piece, sid, method, pool, &mut claimer);
        forget(core, &of_piece[..kept], reads);
        lists.piece_members.truncate(from + kept);
        lists.pieces[at].members = Span::up_to(from, from + kept);
        work.appends += kept as u64;
    }
    Ok(())
}

/// Adds the rows of the ranges of a piece to the list of them, in order; those of pieces before of
/// the same call begin at `first`.
fn find_piece_members(
    core: &Core,
    local: &mut Local,
    txn: &Txn,
    piece: usize,
    first: usize,
) -> Result<(), String> {
    let Local { lists, reads, .. } = local;
    let Declarations { extras, declared, ranges, members, piece_members, keys, .. } = lists;
    let extra = &extras[txn.extra as usize];
    let (ranges, number) = (&ranges[extra.ranges.range()], piece - extra.pieces.range().start);
    let from = piece_members.len();
    let mut are_alone = true;
    for range in ranges.iter().filter(|range| range.piece as usize == number) {
        let (low, high) = (&keys[range.low.range()], &keys[range.high.range()]);
        let overlap = ranges.iter().filter(|other| {
            let (from, to) = (&keys[other.low.range()], &keys[other.high.range()]);
            other.table == range.table && low < to && from < high
        });
        let is_declared = declared[txn.declared.range()].iter().any(|d| d.table == range.table);
        are_alone &= overlap.count() <= 1 && !is_declared;
        core.range(core.table(range.table)?, low, high, reads)?.for_each_run(|words, ids| {
            piece_members.extend(words.iter().zip(ids).map(|(&word, &id)| {
                core.entries.prefetch(id);
                Member { table: range.table, word, id }
            }));
        });
    }
    // Sorted, so that the piece finds them.
    piece_members[from..].sort_unstable();
    if !are_alone {
        let declared = &declared[txn.declared.range()];
        let of_body = &members[extra.members.range()];
        let mut owned: Vec<_> = piece_members[first..from].iter().map(|m| m.id).collect();
        owned.extend(of_body.iter().map(|m| m.id));
        let written = declared.iter().filter(|d| d.kind != DeclaredKind::Read);
        owned.extend(written.map(|d| d.id));
        keep(piece_members, from, |member| {
            let is_free = !owned.contains(&member.id);
            owned.push(member.id);
            is_free
        });
    }
    Ok(())
}

/// Readers forget what they keep of members.
fn forget(core: &Core, members: &[Member], reads: &Reads) {
    for &Member { table, word, id } in members {
        core.forget_member(table, word, id, reads);
    }
}

/// Appends to the members of a call that are born before it, and leaves only these in the list; how
/// many.
#[inline(never)]
fn append_members(
    core: &Core,
    members: &mut [Member],
    sid: SerialId,
    method: &mut impl Method,
    pool: &mut TransientPool,
    claim: &mut impl Claim,
) -> usize {
    let mut kept = 0;
    for at in 0..members.len() {
        let member = members[at];
        let entry = core.entry(member.id);
        if entry.birth() < sid {
            if kept < at {
                members[kept] = member;
            }
            kept += 1;
            method.append(member.id, entry, sid, pool, claim);
        }
    }
    kept
}

/// Keeps those members of the last call that are to be kept, of all from `from` on.
#[inline]
fn keep(members: &mut Vec<Member>, from: usize, mut is_kept: impl FnMut(Member) -> bool) {
    let mut kept = from;
    for at in from..members.len() {
        let member = members[at];
        if is_kept(member) {
            members[kept] = member;
            kept += 1;
        }
    }
    members.truncate(kept);
}

/// Decides what the initial version of a row is when its first writer claims it.
struct Claimer<'c> {
    phase: ReadPhase<'c>,
    cache: &'c mut CachePool,
    image_base: usize,
    checkpoint_epoch: EpochNumber,
    /// The epoch before ended in a checkpoint, so no persistent version is overwritten in place.
    every_epoch: bool,
    /// Copies and headers are read from the image.
    reads: &'c Reads,
}

impl<'c> Claimer<'c> {
    #[inline]
    fn new(epoch: &'c Epoch<'_>, cache: &'c mut CachePool, reads: &'c Reads) -> Self {
        Self {
            phase: ReadPhase::of(epoch),
            cache,
            image_base: epoch.core.image_base,
            checkpoint_epoch: epoch.checkpoint_epoch,
            every_epoch: epoch.checkpoint_epoch.next() == epoch.number,
            reads,
        }
    }

    /// Whether a version is younger than the checkpoint: its row's header says so.
    fn is_younger(&self, row: u64, slot: usize) -> bool {
        self.reads.charge(self.image_base + row as usize, row::VERSIONS_BYTES as usize);
        version_epoch(self.image_base, row, slot) > self.checkpoint_epoch
    }

    /// Whether a value of a row with a single inline heap may be there, which begins behind the
    /// key. One in a pool is only seldom so near.
    fn is_inline(&self, row: u64, word: ValueWord) -> bool {
        let behind_row = ((word.address() - self.image_base) as u64).wrapping_sub(row);
        behind_row <= ROW_HEADER_BYTES + u64::from(KEY_BYTES_MAX)
    }

    /// What smaller serial ids read, as the initial version of NV 4.1.
    fn copy(&mut self, from: ValueWord, pool: &mut TransientPool) -> ValueWord {
        if from.is_persistent() {
            self.reads.note(from.address(), from.len());
        }
        pool.store(&NewValue::whole(self.phase.bytes(from)), Position(0))
    }
}

impl Claim for Claimer<'_> {
    #[inline]
    fn keeps_persistent(&self) -> bool {
        self.every_epoch
    }

    #[inline(never)]
    fn initial_version(
        &mut self,
        entry: &RowEntry,
        next: ValueWord,
        pool: &mut TransientPool,
    ) -> ValueWord {
        if !next.is_value() {
            return next;
        }
        if let Some(cached) = entry.cached() {
            // Smaller serial ids read it during this epoch; it is freed in the next one.
            entry.set_cached(None);
            self.cache.retire(cached);
            return cached;
        }
        let is_overwritten = entry.is_overwritten() && self.is_inline(entry.row(), next);
        let in_place = || !self.every_epoch && self.is_younger(entry.row(), next.slot());
        // The final write overwrites a version in its place: smaller serial ids read a copy.
        if is_overwritten || in_place() { self.copy(next, pool) } else { next }
    }
}
