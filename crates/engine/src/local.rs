//! What one worker keeps of an epoch in memory, whatever the device: its calls, their declarations,
//! their private writes, their answers.

use pmem::{Device, Loads, Port};

use crate::calls::{StoredAnswer, WorkerAnswers};
use crate::index::EntryId;
use crate::stats::WorkCounts;
use crate::version::{CachePool, Chains, EntrySupply, TransientPool};

/// A range of a worker's list.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Span {
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.from == self.to
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
pub(crate) struct Lookup {
    pub(crate) table: u16,
    /// Key, or low bound.
    pub(crate) low: Span,
    /// High bound of a scan.
    pub(crate) high: Option<Span>,
    /// Rows that a scan visited before its visitor had enough; `u64::MAX`: all.
    pub(crate) visited: u64,
    /// Hash of everything that was seen.
    pub(crate) fingerprint: u64,
}

/// A number drawn from a sequence, or only looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) position: u32,
    pub(crate) table: u16,
    /// The number stays for the next drawer.
    pub(crate) peek: bool,
    pub(crate) key: u64,
    pub(crate) value: u64,
}

/// One call of the epoch.
#[derive(Debug)]
pub(crate) struct Txn {
    pub(crate) position: u32,
    pub(crate) draws: Span,
    pub(crate) declared: Span,
    pub(crate) ranges: Span,
    pub(crate) members: Span,
    pub(crate) lookups: Span,
    /// The declaration itself ended the call; still subject to the check of its lookups.
    pub(crate) early: Option<StoredAnswer>,
}

/// A private write of the running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrivateWrite {
    /// Not written.
    None,
    /// A value in the scratch buffer.
    Value(Span),
    /// Deleted.
    Tombstone,
    /// Already visible, after a commit point.
    Published,
}

/// What the calls of one worker declared. The worker fills it in the initialization phase; in the
/// execution phase all workers read it, because whoever is free runs the next call.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) txns: Vec<Txn>,
    pub(crate) draws: Vec<Drawn>,
    pub(crate) declared: Vec<Declared>,
    pub(crate) ranges: Vec<DeclaredRange>,
    pub(crate) members: Vec<Member>,
    pub(crate) lookups: Vec<Lookup>,
    /// Key bytes of tables whose keys are not words, and range bounds.
    pub(crate) keys: Vec<u8>,
}

/// One call and the lists that its spans refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallView<'d> {
    pub(crate) lists: &'d Declarations,
    pub(crate) txn: &'d Txn,
}

impl<'d> CallView<'d> {
    pub(crate) fn declared(self) -> &'d [Declared] {
        &self.lists.declared[self.txn.declared.range()]
    }

    pub(crate) fn members(self) -> &'d [Member] {
        &self.lists.members[self.txn.members.range()]
    }

    pub(crate) fn key(self, span: Span) -> &'d [u8] {
        &self.lists.keys[span.range()]
    }
}

/// One worker's memory of an epoch.
pub(crate) struct Local {
    pub(crate) worker: usize,
    pub(crate) lists: Declarations,
    /// Private writes of the running call, by declared key, then by member.
    pub(crate) writes: Vec<PrivateWrite>,
    /// Private values of the running call.
    pub(crate) scratch: Vec<u8>,
    /// Rows that are being fetched ahead: word of the hash index, and entry.
    pub(crate) ahead: Vec<(u64, EntryId)>,
    /// Reads of the medium to account for.
    pub(crate) reads: Reads,
    pub(crate) answers: WorkerAnswers,
    pub(crate) pool: TransientPool,
    pub(crate) cache: CachePool,
    pub(crate) supply: EntrySupply,
    /// Appends to the rows whose version arrays this worker makes; empty but in the append step.
    pub(crate) chains: Chains,
    pub(crate) work: WorkCounts,
    /// Sequences that changed in this epoch (first worker only): row, next number, serial position.
    pub(crate) sequences: Vec<ChangedSequence>,
    /// Calls to carry to the next epoch: position and attempt.
    pub(crate) carried: Vec<(u32, u16)>,
}

/// Reads of the medium that are not accounted for yet: bodies know no device.
#[derive(Debug)]
pub(crate) enum Reads {
    /// They cost nothing on the device, and are only counted.
    Counted(Loads),
    /// Each of them is charged: address and length.
    Charged(Vec<(usize, usize)>),
}

impl Reads {
    /// None yet.
    pub(crate) fn new(charged: bool) -> Self {
        if charged { Self::Charged(Vec::new()) } else { Self::Counted(Loads::default()) }
    }

    #[inline(always)]
    pub(crate) fn note(&mut self, address: usize, len: usize) {
        match self {
            Self::Counted(loads) => loads.count(address as u64, len as u64),
            Self::Charged(list) => list.push((address, len)),
        }
    }

    /// Accounts for those that were noted.
    #[inline(always)]
    pub(crate) fn account<D: Device>(&mut self, port: &mut Port<D>, image_base: usize) {
        match self {
            Self::Counted(loads) => port.add_loads(std::mem::take(loads)),
            Self::Charged(list) => {
                for (address, len) in list.drain(..) {
                    port.count_load((address - image_base) as u64, len as u64);
                }
            }
        }
    }
}

/// A sequence that was drawn from in this epoch.
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
        self.sequences.clear();
        self.carried.clear();
        self.work = WorkCounts::default();
        self.answers = WorkerAnswers::default();
        self.pool.reset();
    }
}

impl Declarations {
    /// Forgets the epoch before and keeps the memory.
    fn clear(&mut self) {
        self.txns.clear();
        self.draws.clear();
        self.declared.clear();
        self.ranges.clear();
        self.members.clear();
        self.lookups.clear();
        self.keys.clear();
    }

    /// Copies key bytes.
    pub(crate) fn keep_key(&mut self, key: &[u8]) -> Span {
        let from = self.keys.len() as u32;
        self.keys.extend_from_slice(key);
        Span { from, to: self.keys.len() as u32 }
    }
}
