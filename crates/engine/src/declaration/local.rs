//! What one worker keeps of an epoch in memory, whatever the device: its calls, their declarations,
//! their private writes, their answers.

use std::ops::Range;

use pmem::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::call::batch::{Failure, WorkerAnswers};
use crate::contention::rows::Contention;
use crate::declaration::demand::Decided;
use crate::index::{EntryId, SortRoom};
use crate::reads::Reads;
use crate::stats::WorkCounts;
use crate::version::prefetch_policy::PrefetchPolicy;
use crate::version::{Access, CachePool, Chains, EntrySupply, Seen, TransientPool, ValueWord};

/// A range of a worker's list.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Span {
    pub(crate) const EMPTY: Self = Self { from: 0, to: 0 };

    /// From one length of a list up to another.
    pub(crate) fn up_to(from: usize, to: usize) -> Self {
        Self { from: from as u32, to: to as u32 }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.from as usize..self.to as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.from == self.to
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        (self.to - self.from) as usize
    }
}

/// What a declaration says about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclaredKind {
    /// Only a hint.
    Read,
    /// May be updated or deleted if it exists.
    Update,
    /// May be inserted, too.
    Insert,
    /// May be updated by a piece of the call, and by nothing else.
    Piece,
}

impl DeclaredKind {
    /// Whether the body of the call may write the row.
    #[inline(always)]
    pub(crate) fn is_of_body(self) -> bool {
        matches!(self, Self::Update | Self::Insert)
    }
}

/// No row has the key.
pub(crate) const NO_ENTRY: EntryId = EntryId(u32::MAX);

/// One declared key of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Declared {
    /// Word of the hash index.
    pub(crate) word: u64,
    /// Key bytes in the worker's list.
    pub(crate) key: Span,
    pub(crate) table: u16,
    pub(crate) kind: DeclaredKind,
    /// All of the key is in the word.
    pub(crate) is_word: bool,
    /// This call created the row, so its pending version is there already.
    pub(crate) appended: bool,
    /// Row entry, once it is looked up; [`NO_ENTRY`] if there is none.
    pub(crate) id: EntryId,
}

/// One declared range of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeclaredRange {
    pub(crate) table: u16,
    pub(crate) low: Span,
    pub(crate) high: Span,
}

/// A row that a declared range covers, found in the append step. Sorted, so that it is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) table: u16,
    /// The first 8 bytes of the key.
    pub(crate) word: u64,
    pub(crate) id: EntryId,
}

/// What reconnaissance read, so that it can be checked again at execution (O-10).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lookup {
    /// A row.
    Row(EntryId),
    /// A key that had no row.
    NoRow { table: u16, key: Span },
    /// The rows from `low` up to, and without, `high`.
    Scan {
        table: u16,
        low: Span,
        high: Span,
        is_descending: bool,
        /// Rows visited before the visitor had enough; `u64::MAX`: all.
        visited: u64,
        /// Hash of everything that was seen.
        fingerprint: u64,
    },
}

/// A number allocated from a sequence, or only looked at, or that a sequence is set to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocation {
    pub(crate) position: u32,
    pub(crate) table: u16,
    pub(crate) kind: AllocationKind,
    pub(crate) key: u64,
    /// The number; of one that is set it is there before.
    pub(crate) value: u64,
}

/// What an allocation makes of its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    /// The next call that allocates gets the number after this one.
    Allocate,
    /// The number stays for the next call that allocates.
    Peek,
    /// The next call that allocates gets the number that it is set to.
    Set,
}

impl Allocation {
    /// Gives the allocation its number, if `next` is the one to be allocated; the next number
    /// afterwards, if that is set by this.
    pub(crate) fn number(&mut self, next: u64) -> Option<u64> {
        if self.kind == AllocationKind::Set {
            return Some(self.value);
        }
        self.value = next;
        (self.kind == AllocationKind::Allocate).then_some(next + 1)
    }
}

/// A call that went through step one of its declaration.
#[derive(Debug)]
pub(crate) struct AllocatingCall {
    pub(crate) position: u32,
    pub(crate) allocations: Span,
    pub(crate) lookups: Span,
    /// The step ended the call.
    pub(crate) early: Option<Failure>,
}

/// One call of the epoch. The spans of a worker's calls lie one after the other.
///
/// Every phase goes through all of them, so what few calls have lies apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Txn {
    pub(crate) position: u32,
    pub(crate) declared: Span,
    /// Which of [`Declarations::extras`]; [`Txn::NO_EXTRA`]: it has none.
    pub(crate) extra: u32,
}

impl Txn {
    pub(crate) const NO_EXTRA: u32 = u32::MAX;
}

/// What a call declared besides keys that may be updated or are read.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    /// The declaration itself ended the call; still subject to the check of its lookups.
    pub(crate) ends_early: bool,
    /// Those of the declared keys that may be inserted.
    pub(crate) inserts: Span,
    pub(crate) allocations: Span,
    pub(crate) ranges: Span,
    pub(crate) members: Span,
    pub(crate) lookups: Span,
    pub(crate) pieces: Span,
}

impl Extra {
    /// Of a call that has none of it.
    const NONE: &Self = &Self {
        ends_early: false,
        inserts: Span::EMPTY,
        allocations: Span::EMPTY,
        ranges: Span::EMPTY,
        members: Span::EMPTY,
        lookups: Span::EMPTY,
        pieces: Span::EMPTY,
    };
}

/// How far a piece is: 0 as long as it is not known whether its call commits.
const COMMITTED: u32 = 1;
const ABORTED: u32 = 2;
const DONE: u32 = 3;

/// A piece of a call: the update of one row, which may run apart from the rest (CA 3.4).
#[derive(Debug)]
pub(crate) struct PieceState {
    /// Its key, among all that the worker's calls declared.
    pub(crate) declared: u32,
    /// An estimate of its work.
    pub(crate) weight: u32,
    /// The row is contended: the piece is in the queue of a worker, not part of its call.
    pub(crate) is_split: bool,
    progress: AtomicU32,
    result: AtomicU64,
}

impl PieceState {
    pub(crate) fn new(declared: u32, weight: u32) -> Self {
        let (progress, result) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { declared, weight, is_split: false, progress, result }
    }

    /// Whether the call commits, if that is known.
    pub(crate) fn commits(&self) -> Option<bool> {
        match self.progress.load(Ordering::Acquire) {
            0 => None,
            progress => Some(progress != ABORTED),
        }
    }

    /// The call tells whether it commits. It may say so again.
    pub(crate) fn decide(&self, commits: bool) {
        if self.commits().is_none() {
            let progress = if commits { COMMITTED } else { ABORTED };
            self.progress.store(progress, Ordering::Release);
        }
    }

    /// It was run, with this result.
    pub(crate) fn finish(&self, result: u64) {
        self.result.store(result, Ordering::Relaxed);
        self.progress.store(DONE, Ordering::Release);
    }

    /// What it came to, if it was run.
    pub(crate) fn result(&self) -> Option<u64> {
        let is_done = self.progress.load(Ordering::Acquire) == DONE;
        is_done.then(|| self.result.load(Ordering::Relaxed))
    }
}

/// A piece of a call in the queue of a worker: position of the call, and which of its pieces.
/// Sorted as they have to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuedPiece {
    pub(crate) position: u32,
    pub(crate) number: u32,
}

/// The pieces that one worker runs in an epoch, in serial order.
#[derive(Debug, Default)]
pub(crate) struct PieceQueue {
    pieces: Vec<QueuedPiece>,
    next: usize,
}

impl PieceQueue {
    /// Takes the pieces of an epoch.
    pub(crate) fn fill(&mut self, pieces: &mut Vec<QueuedPiece>) {
        self.pieces.append(pieces);
        // Those of each worker's calls are in order, which this sort makes use of.
        self.pieces.sort();
    }

    /// Forgets the epoch before.
    fn clear(&mut self) {
        self.pieces.clear();
        self.next = 0;
    }

    /// The next one to run.
    pub(crate) fn front(&self) -> Option<QueuedPiece> {
        self.pieces.get(self.next).copied()
    }

    /// The next one to run, if its call is before a position.
    pub(crate) fn front_before(&self, position: u32) -> Option<QueuedPiece> {
        self.front().filter(|next| next.position < position)
    }

    /// The next one is being run.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }
}

/// A private write of the running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrivateWrite {
    /// Not written.
    None,
    /// Not written, but read: the row exists.
    Seen,
    /// A value in the scratch buffer.
    Value(Span),
    /// Lines that replace some of a value: which of [`Local::parts`].
    Lines(u32),
    /// Deleted.
    Tombstone,
    /// Already visible, after a commit point.
    Published,
}

/// Lines that the running call replaces in a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrivatePart {
    /// The value that it saw.
    pub(crate) seen: ValueWord,
    /// Where the lines belong in it.
    pub(crate) at: u32,
    /// The lines, in the scratch buffer.
    pub(crate) lines: Span,
}

/// A row that a body will read with others, whose misses are to overlap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrefetchedRow {
    /// Word of the index in which it is looked up.
    pub(crate) word: u64,
    /// Its entry, once it is found; [`NO_ENTRY`] if there is none.
    pub(crate) id: EntryId,
    /// What the call sees of it, as far as that was known when it was looked at: a version that is
    /// seen once is seen by this call as long as it runs.
    pub(crate) seen: Option<Seen>,
}

/// What the calls of one worker declared. The worker fills it in the initialization phase; in the
/// execution phase all workers read it, because others may run the calls.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) txns: Vec<Txn>,
    pub(crate) extras: Vec<Extra>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) declared: Vec<Declared>,
    /// Which of the declared keys may be inserted.
    pub(crate) inserts: Vec<u32>,
    pub(crate) ranges: Vec<DeclaredRange>,
    pub(crate) members: Vec<Member>,
    pub(crate) lookups: Vec<Lookup>,
    pub(crate) pieces: Vec<PieceState>,
    /// Key bytes of tables whose keys are not words, and range bounds.
    pub(crate) keys: Vec<u8>,
    /// What calls of the serial part wrote to tables whose values may not be inline.
    pub(crate) decided: Decided,
    /// Answers to the calls whose declaration ended them, by position, in order.
    pub(crate) early: Vec<(u32, Failure)>,
}

/// One call and the lists that its spans refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallView<'d> {
    pub(crate) lists: &'d Declarations,
    pub(crate) position: u32,
    pub(crate) declared: &'d [Declared],
    pub(crate) extra: &'d Extra,
    /// What is known of the rows that it declared by key; empty where there was no look-up.
    pub(crate) plan: &'d [Access],
}

impl<'d> CallView<'d> {
    /// A call of a worker's list.
    #[inline(always)]
    pub(crate) fn new(lists: &'d Declarations, index: usize, plan: &'d [Access]) -> Self {
        let txn = &lists.txns[index];
        let declared = &lists.declared[txn.declared.range()];
        Self { lists, position: txn.position, declared, extra: lists.extra(txn), plan }
    }

    /// What is known of a row: of the declared key with a number.
    #[inline(always)]
    pub(crate) fn access(&self, number: usize) -> Access {
        self.plan.get(number).copied().unwrap_or(Access::UNKNOWN)
    }

    #[inline(always)]
    pub(crate) fn members(&self) -> &'d [Member] {
        &self.lists.members[self.extra.members.range()]
    }

    pub(crate) fn pieces(&self) -> &'d [PieceState] {
        &self.lists.pieces[self.extra.pieces.range()]
    }

    /// The key of one of its pieces.
    pub(crate) fn declared_of(&self, piece: &PieceState) -> &'d Declared {
        &self.lists.declared[piece.declared as usize]
    }

    /// A declared key; `room` is for one that is a word.
    pub(crate) fn key_of<'k>(&self, of: &Declared, room: &'k mut [u8; 8]) -> &'k [u8]
    where
        'd: 'k,
    {
        self.lists.key_of(of, room)
    }

    pub(crate) fn key(&self, span: Span) -> &'d [u8] {
        &self.lists.keys[span.range()]
    }

    /// The answer to a call whose declaration ended it.
    pub(crate) fn early(&self) -> Option<&'d Failure> {
        if !self.extra.ends_early {
            return None;
        }
        let early = &self.lists.early;
        let at = early.binary_search_by_key(&self.position, |&(position, _)| position);
        at.ok().map(|at| &early[at].1)
    }
}

/// One worker's memory of an epoch.
pub(crate) struct Local {
    pub(crate) worker: usize,
    pub(crate) lists: Declarations,
    /// Calls that went through step one of their declarations, in order, until step two.
    pub(crate) allocating_calls: Vec<AllocatingCall>,
    /// Private writes of the running call, by declared key, then by member.
    pub(crate) writes: Vec<PrivateWrite>,
    /// Private values of the running call, and parts of values.
    pub(crate) scratch: Vec<u8>,
    /// What the parts belong to.
    pub(crate) parts: Vec<PrivatePart>,
    /// Contended pieces of anybody's calls that this worker runs.
    pub(crate) pieces: PieceQueue,
    /// The value that the running piece writes: a call may be half done meanwhile.
    pub(crate) piece_value: Vec<u8>,
    /// What the pieces of a call came to.
    pub(crate) piece_results: Vec<u64>,
    /// What the next calls need.
    pub(crate) fetching: PrefetchPolicy,
    /// Memory of access plans, between epochs.
    pub(crate) plans: Vec<Vec<Access>>,
    /// Rows that are being prefetched.
    pub(crate) prefetched: Vec<PrefetchedRow>,
    /// Reads of the device to account for.
    pub(crate) reads: Reads,
    pub(crate) answers: WorkerAnswers,
    /// Bytes of the answers of the last epoch.
    pub(crate) answer_bytes: usize,
    pub(crate) pool: TransientPool,
    pub(crate) cache: CachePool,
    pub(crate) supply: EntrySupply,
    /// Appends to the rows whose version arrays this worker makes; empty but in the append step.
    pub(crate) chains: Chains,
    /// Memory to sort the keys with that go into the ordered indexes, or out.
    pub(crate) sort_room: SortRoom,
    pub(crate) work: WorkCounts,
    /// Sequences that changed in this epoch (first worker only): row, next number, serial position.
    pub(crate) sequences: Vec<ChangedSequence>,
    /// Positions of the calls that it deferred to the next epoch.
    pub(crate) deferred: Vec<u32>,
    /// Which rows calls contended for, if that is an option of the engine.
    pub(crate) contention: Contention,
}

/// A sequence that was allocated from in this epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangedSequence {
    pub(crate) table: u16,
    pub(crate) key: u64,
    pub(crate) before: Option<u64>,
    pub(crate) next: u64,
    pub(crate) position: u32,
}

impl Local {
    /// Forgets the epoch before.
    pub(crate) fn start_epoch(&mut self) {
        self.lists.clear();
        self.allocating_calls.clear();
        self.sequences.clear();
        self.deferred.clear();
        self.pieces.clear();
        self.work = WorkCounts::default();
        self.answers = WorkerAnswers::default();
        self.pool.reset();
    }
}

impl Declarations {
    /// What some calls declared that follow each other.
    #[inline(always)]
    pub(crate) fn declared_by(&self, calls: Range<usize>) -> Range<usize> {
        match &self.txns[calls] {
            [] => 0..0,
            [only] => only.declared.range(),
            [first, .., last] => first.declared.from as usize..last.declared.to as usize,
        }
    }

    /// What else a call declared.
    #[inline(always)]
    pub(crate) fn extra(&self, txn: &Txn) -> &Extra {
        match txn.extra {
            Txn::NO_EXTRA => Extra::NONE,
            extra => &self.extras[extra as usize],
        }
    }

    /// Forgets the epoch before and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.txns.clear();
        self.extras.clear();
        self.allocations.clear();
        self.declared.clear();
        self.inserts.clear();
        self.ranges.clear();
        self.members.clear();
        self.lookups.clear();
        self.pieces.clear();
        self.keys.clear();
        self.early.clear();
        self.decided.clear();
    }

    /// A declared key; `room` is for one that is a word.
    pub(crate) fn key_of<'k>(&'k self, of: &Declared, room: &'k mut [u8; 8]) -> &'k [u8] {
        if !of.is_word {
            return &self.keys[of.key.range()];
        }
        *room = of.word.to_be_bytes();
        room
    }

    /// Copies key bytes.
    pub(crate) fn keep_key(&mut self, key: &[u8]) -> Span {
        let from = self.keys.len() as u32;
        self.keys.extend_from_slice(key);
        Span { from, to: self.keys.len() as u32 }
    }
}
