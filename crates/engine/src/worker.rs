//! A worker: its memory of the epoch, its side of the device, its stream of the log.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

use pmem::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use pmem::sync::thread::JoinHandle;
use pmem::sync::{Mutex, Patience, RwLock};
use storage::input_log::{LogError, StreamSummary, StreamWriter};
use storage::{EpochNumber, Position, SerialId, StateHash, Store};

use crate::call::batch::{Calls, EpochInfo};
use crate::call::claimed::ClaimedCalls;
use crate::call::deaths::Deaths;
use crate::call::order::SubmissionOrder;
use crate::declaration::declare::StateBefore;
use crate::declaration::demand::SpaceDemand;
use crate::declaration::demand::handover::Handover;
use crate::declaration::overlay::Overlay;
use crate::declaration::{Allocation, Declarations};
use crate::error::EngineError;
use crate::index::EntryId;
use crate::memory::{Local, QueuedPiece};
use crate::program::procedure::ProcedureTable;
use crate::state::core::Core;
use crate::state::watch::Moment;
use crate::stats::{Laps, Phase};
use crate::version::changes::Noted;
use crate::version::{Buffers, DeadRow, HoldsValues, Idle, ReadPhase, RowStore, Stopped};
use crate::worker_id::WorkerId;

/// Everything that one worker owns.
pub(crate) struct Worker {
    pub(crate) local: Local,
    pub(crate) row_store: RowStore,
    pub(crate) log: StreamWriter,
    /// Rows whose stale external version is freed in the next major collection.
    pub(crate) collect: Vec<(EntryId, u32)>,
    /// Pool slots that a collection before a crash already freed (O-36); only after recovery.
    pub(crate) already_collected: HashSet<u64>,
    pub(crate) laps: Laps,
}

impl Worker {
    /// Rows whose stale external version the next epoch collects.
    pub(crate) fn stale_rows(&self, core: &Core) -> impl Iterator<Item = EntryId> {
        let rows = self.collect.iter().chain(&self.row_store.stale);
        // Others were deleted since.
        rows.filter(|(id, generation)| core.entries.get(*id).generation() == *generation)
            .map(|(id, _)| *id)
    }
}

/// Waits for all workers; gives up when the engine is stopped (O-13, O-50).
#[derive(Debug)]
pub(crate) struct Barrier {
    parties: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
}

/// Polls of a barrier before the processor is yielded.
const BARRIER_POLLS: u32 = 2000;

impl Barrier {
    pub(crate) fn new(parties: usize) -> Self {
        Self { parties, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0) }
    }

    /// How many workers meet.
    pub(crate) fn parties(&self) -> usize {
        self.parties
    }

    /// Everything before it, in all workers, happens before everything after it, in all workers.
    pub(crate) fn wait(&self, stopped: &AtomicBool) -> Result<(), Stopped> {
        let round = self.round.load(Ordering::Acquire);
        let arrived = self.arrived.fetch_add(1, Ordering::AcqRel) + 1;
        assert!(arrived <= self.parties, "{arrived} of {} workers are at a barrier", self.parties);
        if arrived == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round + 1, Ordering::Release);
        }
        let mut patience = Patience::new(BARRIER_POLLS);
        while self.round.load(Ordering::Acquire) == round {
            if patience.wait() && stopped.load(Ordering::Relaxed) {
                return Err(Stopped);
            }
        }
        if stopped.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
}

thread_local! {
    /// How long this worker has waited for all others since its last lap. Only for reports.
    static WAITED_NS: Cell<u64> = const { Cell::new(0) };
}

/// A list of index entries for each table.
pub(crate) type IndexChanges = Vec<Vec<(u64, EntryId)>>;

/// How far a worker is in the execution phase, in a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Progress {
    /// Position before which it has no call and no piece left to run: all that it takes later are
    /// larger.
    unfinished: AtomicU32,
}

impl Progress {
    /// Says how far its worker is. What that worker's calls read they have read: release orders
    /// that before the memory is reclaimed.
    #[inline]
    pub(crate) fn note(&self, unfinished: Position) {
        self.unfinished.store(unfinished.0, Ordering::Release);
    }

    /// How far its worker is, as far as that has come through.
    #[inline]
    pub(crate) fn unfinished(&self) -> Position {
        Position(self.unfinished.load(Ordering::Relaxed))
    }

    /// How far all workers are, at least.
    #[inline]
    pub(crate) fn of_all(workers: &[Self]) -> Position {
        let unfinished = workers.iter().map(|p| p.unfinished.load(Ordering::Acquire)).min();
        Position(unfinished.expect("there is a worker"))
    }

    /// As before the first call of an epoch.
    pub(crate) fn reset(&mut self) {
        *self.unfinished.get_mut() = 0;
    }
}

/// What workers hand to each other in one epoch.
pub(crate) struct Shared {
    pub(crate) barrier: Barrier,
    /// Sequences of each worker, for ranking.
    pub(crate) allocations: Vec<Mutex<Vec<Allocation>>>,
    /// Declarations of each worker, for all to read while bodies run.
    pub(crate) declarations: Vec<RwLock<Declarations>>,
    /// Calls that workers have claimed.
    pub(crate) claimed: ClaimedCalls,
    /// How far each worker is.
    pub(crate) progress: Vec<Progress>,
    /// Keys to add to ordered indexes, by worker and table.
    pub(crate) added: Vec<RwLock<IndexChanges>>,
    /// Keys to remove from ordered indexes, by worker and table.
    pub(crate) removed: Vec<RwLock<IndexChanges>>,
    /// Appends to rows that were claimed before, by worker (batch append).
    pub(crate) appends: Vec<RwLock<Buffers>>,
    /// Space that the epoch may need at most.
    pub(crate) demand: Mutex<SpaceDemand>,
    /// Free slots that go from worker to worker in this epoch.
    pub(crate) handovers: RwLock<Vec<Handover>>,
    /// Sub-pools of the workers that have no part in a small epoch.
    pub(crate) idle: Mutex<Vec<Idle>>,
    /// Bytes of calls that might be deferred.
    pub(crate) deferred_bytes: AtomicU64,
    /// Rows that do not exist any more, by the worker that ran their last writers.
    pub(crate) dead_rows: Vec<RwLock<Vec<DeadRow>>>,
    /// Rows that the next epoch collects, in one that ends in an image snapshot.
    pub(crate) stale: Mutex<Vec<EntryId>>,
    /// Finished log streams.
    pub(crate) streams: Mutex<Vec<StreamSummary>>,
    /// The sync of the log, while it runs beside the initialization phase.
    pub(crate) sync: Mutex<Option<JoinHandle<Result<(), LogError>>>>,
    /// Set by the first worker if the epoch must not run: nothing was logged.
    pub(crate) refused: Mutex<Option<EngineError>>,
    /// Whether any call declared a piece.
    pub(crate) has_pieces: AtomicBool,
    /// Contended rows with pieces, and what their pieces weigh.
    pub(crate) contended: Mutex<BTreeMap<EntryId, u64>>,
    /// Pieces for the queue of each worker.
    pub(crate) pieces: Vec<Mutex<Vec<QueuedPiece>>>,
    /// Sums over workers.
    pub(crate) totals: Mutex<Totals>,
    /// What all workers have noted of changes in watched tables.
    pub(crate) changes: Mutex<Noted>,
    /// Positions of the calls that are deferred to the next epoch.
    pub(crate) deferred: Mutex<Vec<Position>>,
    /// What the serial part has written.
    pub(crate) overlay: RwLock<Overlay>,
    /// A call that failed when it was too late to take its writes back: position, and what
    /// happened.
    pub(crate) poisoned: Mutex<Option<(Position, String)>>,
}

impl Shared {
    /// Takes over what an epoch left that ran with another `Shared`.
    pub(crate) fn take_results(&mut self, other: Shared) {
        assert!(other.barrier.parties() == 1, "only a worker that is alone leaves results apart");
        self.totals = other.totals;
        self.changes = other.changes;
        self.deferred = other.deferred;
        self.poisoned = other.poisoned;
        self.overlay = other.overlay;
    }
}

/// Sums over workers.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) hash: StateHash,
    pub(crate) rows: i64,
}

impl Shared {
    pub(crate) fn new(workers: usize, tables: usize) -> Self {
        let changes = || (0..workers).map(|_| RwLock::new(vec![Vec::new(); tables])).collect();
        Self {
            barrier: Barrier::new(workers),
            allocations: (0..workers).map(|_| Mutex::default()).collect(),
            declarations: (0..workers).map(|_| RwLock::default()).collect(),
            claimed: ClaimedCalls::default(),
            progress: (0..workers).map(|_| Progress::default()).collect(),
            added: changes(),
            removed: changes(),
            appends: (0..workers).map(|_| RwLock::new(vec![Vec::new(); workers])).collect(),
            demand: Mutex::new(SpaceDemand::new(tables)),
            handovers: RwLock::default(),
            idle: Mutex::default(),
            deferred_bytes: AtomicU64::new(0),
            dead_rows: (0..workers).map(|_| RwLock::default()).collect(),
            stale: Mutex::default(),
            streams: Mutex::default(),
            sync: Mutex::default(),
            refused: Mutex::default(),
            has_pieces: AtomicBool::new(false),
            contended: Mutex::default(),
            pieces: (0..workers).map(|_| Mutex::default()).collect(),
            totals: Mutex::default(),
            changes: Mutex::default(),
            deferred: Mutex::default(),
            overlay: RwLock::default(),
            poisoned: Mutex::default(),
        }
    }
}

/// The running epoch, as all its phases see it.
pub(crate) struct Epoch<'e> {
    pub(crate) core: &'e Core,
    pub(crate) procedures: &'e ProcedureTable,
    pub(crate) store: &'e std::sync::Arc<Store>,
    pub(crate) shared: &'e Shared,
    pub(crate) calls: &'e Calls,
    pub(crate) info: EpochInfo,
    pub(crate) number: EpochNumber,
    pub(crate) workers: usize,
    /// Epoch of the last checkpoint.
    pub(crate) checkpoint_epoch: EpochNumber,
    /// Whether this epoch ends with a checkpoint.
    pub(crate) ends_in_checkpoint: bool,
    /// Whether this epoch ends with an image snapshot of the image.
    pub(crate) ends_in_image_snapshot: bool,
    /// Whether pages of the image may be absent, as all workers take it, so that those which it
    /// needs are asked for.
    pub(crate) asks_for_pages: bool,
    /// Recovery: the inputs come from the log and are not logged again.
    pub(crate) replay: Option<Past<'e>>,
    /// State hash and rows before the epoch.
    pub(crate) before: Totals,
    /// Who notes which call runs, in case that the process dies in it: in a replay, and where
    /// deferred calls run.
    pub(crate) deaths: Option<&'e Deaths>,
    /// Deferred calls that this epoch does not run.
    pub(crate) still_deferred: &'e Calls,
    /// Which of its calls wait for others.
    pub(crate) order: &'e SubmissionOrder,
}

/// What recovery knows of an epoch that it replays.
#[derive(Clone, Copy)]
pub(crate) struct Past<'e> {
    /// The state hash that the epoch ended with, if that is known.
    pub(crate) hash: Option<StateHash>,
    /// Positions of calls that do not run, in order: they count as failed ([`storage`]'s verdicts).
    pub(crate) skipped: &'e [Position],
    /// Who notes which call runs, in case that the process dies in it.
    pub(crate) deaths: &'e Deaths,
    /// The last committed epoch: it ends in a checkpoint, so that the next recovery starts from it.
    pub(crate) last: bool,
}

/// Why a worker leaves an epoch early.
#[derive(Debug)]
pub(crate) enum Leave {
    /// Another worker stopped the engine.
    Stopped,
    /// This worker must stop it.
    Failed(EngineError),
    /// The epoch was refused before anything was logged.
    Refused,
}

impl From<Stopped> for Leave {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<EngineError> for Leave {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

impl From<storage::StorageError> for Leave {
    fn from(error: storage::StorageError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<LogError> for Leave {
    fn from(error: LogError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<pmem::DeviceError> for Leave {
    fn from(error: pmem::DeviceError) -> Self {
        Self::Failed(error.into())
    }
}

#[expect(unsafe_code, reason = "this is what the driver of an epoch holds")]
// SAFETY: an epoch is borrowed while its phases run. Transient memory is reset before the first and
// after the last of them; cached versions are freed in E7, when no call runs and what declarations
// saw is not borrowed any more; persistent slots that calls see are written in later epochs.
unsafe impl HoldsValues for Epoch<'_> {}

impl Epoch<'_> {
    pub(crate) fn barrier(&self) -> Result<(), Stopped> {
        if self.workers == 1 {
            // It waits for none.
            return self.shared.barrier.wait(self.core.stopped());
        }
        let clock = self.core.config.clock;
        let arrived = clock();
        let result = self.shared.barrier.wait(self.core.stopped());
        WAITED_NS.set(WAITED_NS.get() + clock().saturating_sub(arrived));
        result
    }

    /// What declarations read.
    #[inline]
    pub(crate) fn state_before(&self) -> StateBefore<'_> {
        let timestamp_ns = self.info.timestamp_ns;
        StateBefore {
            core: self.core,
            phase: ReadPhase::of(self),
            epoch: self.number,
            timestamp_ns,
        }
    }

    /// Whether the log of the epoch is durable, so that it will happen whatever crashes, or none is
    /// written.
    pub(crate) fn is_durable(&self) -> bool {
        let is_logged = self.replay.is_none() && self.core.config.lab.design.logs();
        !is_logged || self.store.log().is_durable(self.number)
    }

    /// Readers from outside leave, before indexes and row entries change; the next barrier says so
    /// to all workers.
    pub(crate) fn close_gate(&self, worker: &Worker) {
        if self.leads(worker) {
            self.core.gate.close();
        }
    }

    /// Readers see the end of an epoch from now on. All workers have done what leads there.
    pub(crate) fn open_gate(&self, worker: &Worker, epoch: EpochNumber) {
        if self.leads(worker) {
            self.core.gate.open(epoch);
        }
    }

    /// The serial id of the call at a position.
    #[inline]
    pub(crate) fn sid_at(&self, position: Position) -> SerialId {
        SerialId::new(self.number, position)
    }

    /// Whether a worker is the one that does what is done once.
    pub(crate) fn leads(&self, worker: &Worker) -> bool {
        worker.local.worker == WorkerId::LEADER
    }

    /// Whether a call must not run, because there is a verdict on it.
    #[inline]
    pub(crate) fn skips(&self, position: usize) -> bool {
        self.replay.is_some_and(|past| {
            past.skipped.binary_search(&(Position::from_index(position))).is_ok()
        })
    }

    /// Runs a part of a call. It is noted which, for other threads, and where the process might die
    /// in it again.
    #[inline]
    pub(crate) fn noting<R>(
        &self,
        worker: WorkerId,
        position: Position,
        procedure: u16,
        run: impl FnOnce() -> R,
    ) -> R {
        let running = &self.core.config.running;
        let before = running.enter(worker, self.sid_at(position), procedure);
        let result = match self.deaths {
            Some(deaths) => deaths.noting(position, run),
            None => run(),
        };
        running.leave(worker, before);
        result
    }

    /// A call failed when it was too late to take its writes back: the engine must stop (O-49). The
    /// smallest position counts. Returns the words for people.
    #[cold]
    pub(crate) fn poison(&self, position: Position, what: &str) -> String {
        let number = self.calls.get(position.index()).0;
        let name = self.procedures.get(number).map_or("?", |procedure| procedure.name());
        let what = format!("call {position} of epoch {} ({name}) {what}", self.number);
        let mut poisoned = self.shared.poisoned.lock().expect("no panic while locked");
        if poisoned.as_ref().is_none_or(|(first, _)| *first > position) {
            *poisoned = Some((position, what.clone()));
        }
        what
    }

    /// The first worker has come to a moment of the epoch.
    pub(crate) fn reach(&self, worker: &Worker, moment: Moment) {
        if self.leads(worker) {
            self.core.config.watch.moment(self.number, moment);
        }
    }

    /// Begins a phase.
    pub(crate) fn begin(&self, worker: &Worker, phase: Phase) {
        self.reach(worker, Moment::Begin(phase));
    }

    /// Begins the first phase. An epoch before may have ended within one.
    pub(crate) fn start_clock(&self, worker: &mut Worker) {
        WAITED_NS.set(0);
        worker.laps.start((self.core.config.clock)());
    }

    /// Ends a phase: its time and its counts are noted.
    pub(crate) fn lap(&self, worker: &mut Worker, phase: Phase) {
        let (now, row_store) = ((self.core.config.clock)(), worker.row_store.port.take_counters());
        worker.laps.lap(phase, now, WAITED_NS.take(), &row_store);
    }
}
