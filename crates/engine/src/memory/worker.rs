//! The memory itself.

use storage::Position;

use super::{PieceQueue, PieceWrites, PrivatePart, PrivateWrite};
use crate::call::answers::WorkerAnswers;
use crate::contention::rows::Contention;
use crate::declaration::{AllocatingCall, ChangedSequence, Declarations, PieceResult};
use crate::index::{EntryId, SortRoom};
use crate::reads::Reads;
use crate::secondary::CallIndexChanges;
use crate::stats::WorkCounts;
use crate::version::prefetch_policy::PrefetchPolicy;
use crate::version::{Access, CachePool, Chains, Seen, TransientPool};
use crate::worker_id::WorkerId;

/// One worker's memory of an epoch.
pub(crate) struct Local {
    pub(crate) worker: WorkerId,
    pub(crate) lists: Declarations,
    /// Calls that went through step one of their declarations, in order, until step two.
    pub(crate) allocating_calls: Vec<AllocatingCall>,
    /// Pages of the image that are to be read, while they are collected.
    pub(crate) missing_pages: Vec<u64>,
    /// Private writes of the running call, by declared key, then by member.
    pub(crate) writes: Vec<PrivateWrite>,
    /// Private values of the running call, and parts of values.
    pub(crate) scratch: Vec<u8>,
    /// What the parts belong to.
    pub(crate) parts: Vec<PrivatePart>,
    /// What the running call has changed in secondary indexes.
    pub(crate) index_changes: CallIndexChanges,
    /// Contended pieces of anybody's calls that this worker runs.
    pub(crate) pieces: PieceQueue,
    /// What the running piece writes: a call may be half done meanwhile.
    pub(crate) piece: PieceWrites,
    /// What the pieces of a call came to.
    pub(crate) piece_results: Vec<PieceResult>,
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
    /// Appends to the rows whose version arrays this worker makes; empty but in the append step.
    pub(crate) chains: Chains,
    /// Memory to sort the keys with that go into the ordered indexes, or out.
    pub(crate) sort_room: SortRoom,
    pub(crate) work: WorkCounts,
    /// Sequences that changed in this epoch (first worker only): row, next number, serial position.
    pub(crate) sequences: Vec<ChangedSequence>,
    /// Positions of the calls that it deferred to the next epoch.
    pub(crate) deferred: Vec<Position>,
    /// Which rows calls contended for, if that is an option of the engine.
    pub(crate) contention: Contention,
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

/// A row that a body will read with others, whose misses are to overlap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrefetchedRow {
    /// Word of the index in which it is looked up.
    pub(crate) word: u64,
    /// Its entry, once it is found; [`crate::declaration::NO_ENTRY`] if there is none.
    pub(crate) id: EntryId,
    /// What the call sees of it, as far as that was known when it was looked at: a version that is
    /// seen once is seen by this call as long as it runs.
    pub(crate) seen: Option<Seen>,
}
