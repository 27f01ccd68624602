//! The append step (NV 4.1, CA 3.2): every declared write gets its pending version, unless the
//! insert step gave it one with its row.
//!
//! Calls are taken in groups: first all index buckets of a group are fetched, then all row entries,
//! then the versions are appended, so that the misses of a group overlap, and those for the buckets
//! of the next group with the work on this one. Either each append takes its row's lock, or appends
//! to rows that have one already are collected: batch append.

use std::ops::Range;

use pmem::{Device, Port};
use storage::{NewValue, SerialId, row};

use crate::AppendMethod;
use crate::core::Core;
use crate::epoch::batch::{self, Method, Outbox};
use crate::index::EntryId;
use crate::local::{Declarations, DeclaredKind, Local, Member, NO_ENTRY, Span};
use crate::reads::Reads;
use crate::stats::WorkCounts;
use crate::table::KeyWord;
use crate::version::{
    CachePool, Claim, ReadPhase, RowEntry, TransientPool, ValueWord, version_epoch,
};
use crate::worker::{Epoch, Leave, Worker};

/// Calls of a group.
const GROUP: usize = 8;

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    let (local, port) = (&mut worker.local, &mut worker.medium.port);
    match epoch.core.config.append {
        AppendMethod::RowLock => append_all(epoch, local, port, &mut RowLocks)?,
        AppendMethod::Batch => {
            append_all(epoch, local, port, &mut Outbox::new(epoch, local.worker))?;
            batch::make_arrays(epoch, local)?;
        }
    }
    local.reads.account(port, epoch.core.image_base);
    Ok(())
}

/// One by one, under the lock of each row.
struct RowLocks;

impl Method for RowLocks {
    #[inline(always)]
    fn append(
        &mut self,
        (_, entry): (EntryId, &RowEntry),
        sid: SerialId,
        pool: &mut TransientPool,
        claim: &mut impl Claim,
        work: &mut WorkCounts,
    ) {
        let cost = entry.append(sid, pool, claim);
        work.version_arrays += u64::from(cost.new_array);
        work.insertion_moves += cost.moves as u64;
        work.contended_locks += u64::from(cost.contended);
        work.locks_handed_over += u64::from(cost.handed_over);
    }
}

/// Appends what the calls of a worker declared.
fn append_all<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    port: &mut Port<D>,
    method: &mut impl Method,
) -> Result<(), Leave> {
    let calls = local.lists.txns.len();
    let group_from = |from: usize| from..(from + GROUP).min(calls);
    let mut now = group_from(0);
    fetch_buckets(epoch.core, &local.lists, now.clone());
    while !now.is_empty() {
        find_entries(epoch.core, &mut local.lists, &local.reads, now.clone());
        let next = group_from(now.end);
        fetch_buckets(epoch.core, &local.lists, next.clone());
        for index in now {
            append_declared(epoch, local, method, index);
            if !local.lists.extra(&local.lists.txns[index]).ranges.is_empty() {
                append_ranges(epoch, local, method, index).map_err(crate::EngineError::Poisoned)?;
            }
        }
        local.reads.account_charged(port, epoch.core.image_base);
        now = next;
    }
    local.work.declared_keys += local.lists.declared.len() as u64;
    Ok(())
}

/// Asks for the index buckets of the declared keys of a group of calls.
fn fetch_buckets(core: &Core, lists: &Declarations, calls: Range<usize>) {
    for declared in &lists.declared[lists.declared_by(calls)] {
        if declared.id == NO_ENTRY {
            core.tables[declared.table as usize].hash.prefetch(declared.word);
        }
    }
}

/// Looks up the declared keys of a group of calls.
fn find_entries(core: &Core, lists: &mut Declarations, reads: &Reads, calls: Range<usize>) {
    let span = lists.declared_by(calls);
    for declared in &mut lists.declared[span] {
        if declared.id == NO_ENTRY {
            let table = &core.tables[declared.table as usize];
            let found = if declared.is_word {
                table.hash.find_exact(declared.word)
            } else {
                let word = KeyWord { hash: declared.word, key: &lists.keys[declared.key.range()] };
                core.find(table, word, reads)
            };
            declared.id = found.unwrap_or(NO_ENTRY);
        }
        if declared.id != NO_ENTRY && declared.kind != DeclaredKind::Read {
            core.entries.prefetch(declared.id);
        }
    }
}

#[inline(always)]
fn append_declared<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    method: &mut impl Method,
    index: usize,
) {
    let Local { lists, cache, pool, work, reads, .. } = local;
    let txn = &lists.txns[index];
    let sid = SerialId::new(epoch.number, u64::from(txn.position));
    let mut claimer = Claimer::new(epoch, cache, reads);
    for declared in &lists.declared[txn.declared.range()] {
        let is_written = declared.kind != DeclaredKind::Read && declared.id != NO_ENTRY;
        if is_written && !declared.appended {
            let row = (declared.id, epoch.core.entries.get(declared.id));
            method.append(row, sid, pool, &mut claimer, work);
            work.appends += 1;
        }
    }
}

/// Resolves the declared ranges of a call: the rows born before it (CA 3.2, O-09).
fn append_ranges<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    method: &mut impl Method,
    index: usize,
) -> Result<(), String> {
    let core = epoch.core;
    let Declarations { txns, extras, declared, ranges, members, keys, .. } = &mut local.lists;
    let txn = &txns[index];
    let extra = &mut extras[txn.extra as usize];
    let sid = SerialId::new(epoch.number, u64::from(txn.position));
    let from = members.len();
    let written = || declared[txn.declared.range()].iter().filter(|d| d.kind != DeclaredKind::Read);
    let mut are_declared = false;
    for range in &ranges[extra.ranges.range()] {
        are_declared |= written().any(|d| d.table == range.table);
        let (low, high) = (&keys[range.low.range()], &keys[range.high.range()]);
        for (word, id) in core.range(core.table(range.table)?, low, high, &local.reads)? {
            core.entries.prefetch(id);
            members.push(Member { table: range.table, word, id });
        }
    }
    // Sorted for the body's lookups, and each row once where ranges overlap (O-02).
    members[from..].sort_unstable();
    // Few calls declare keys and ranges of one table.
    let is_declared = |id| are_declared && written().any(|d| d.id == id);
    let mut kept = from;
    for at in from..members.len() {
        let member = members[at];
        let is_first = kept == from || members[kept - 1] != member;
        if is_first && core.entries.get(member.id).birth() < sid && !is_declared(member.id) {
            members[kept] = member;
            kept += 1;
        }
    }
    members.truncate(kept);
    extra.members = Span::up_to(from, kept);
    let Local { lists, cache, pool, work, reads, .. } = local;
    let mut claimer = Claimer::new(epoch, cache, reads);
    for member in &lists.members[from..kept] {
        let row = (member.id, core.entries.get(member.id));
        method.append(row, sid, pool, &mut claimer, work);
        work.appends += 1;
    }
    Ok(())
}

/// Decides what the base of a row is when its first writer claims it.
struct Claimer<'c> {
    cache: &'c mut CachePool,
    image_base: usize,
    checkpoint_epoch: u64,
    /// The epoch before ended in a checkpoint, so no persistent version is overwritten in place.
    every_epoch: bool,
    /// Copies and headers are read from the image.
    reads: &'c Reads,
}

impl<'c> Claimer<'c> {
    #[inline(always)]
    fn new<D: Device>(epoch: &Epoch<'_, D>, cache: &'c mut CachePool, reads: &'c Reads) -> Self {
        Self {
            cache,
            image_base: epoch.core.image_base,
            checkpoint_epoch: epoch.checkpoint_epoch,
            every_epoch: epoch.checkpoint_epoch + 1 == epoch.number,
            reads,
        }
    }

    /// Whether a version is younger than the checkpoint: its row's header says so.
    fn is_younger(&self, row: u64, slot: usize) -> bool {
        self.reads.charge(self.image_base + row as usize, row::VERSIONS_BYTES as usize);
        version_epoch(self.image_base, row, slot) > self.checkpoint_epoch
    }

    /// What smaller serial ids read, as the initial version of NV 4.1.
    fn copy(&mut self, from: ValueWord, pool: &mut TransientPool) -> ValueWord {
        if from.is_on_medium() {
            self.reads.note(from.address(), from.len());
        }
        pool.store(&NewValue::whole(ReadPhase::begin().bytes(from)), from.slot(), 0)
    }
}

impl Claim for Claimer<'_> {
    #[inline(always)]
    fn base(&mut self, entry: &RowEntry, next: ValueWord, pool: &mut TransientPool) -> ValueWord {
        if !next.is_value() {
            return next;
        }
        if let Some(cached) = entry.cached() {
            // Smaller serial ids read it during this epoch; it is freed in the next one.
            entry.set_cached(None);
            self.cache.retire(cached);
            return cached;
        }
        let in_place = !self.every_epoch && self.is_younger(entry.row(), next.slot());
        // The final write overwrites a version in its place: smaller serial ids read a copy.
        if in_place { self.copy(next, pool) } else { next }
    }
}
