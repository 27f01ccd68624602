//! The engine: opening, running epochs, reading between them, closing.

mod border;
mod changes;
mod checkpoints;
mod deferred;
mod memory_use;
pub(crate) mod reader;
pub(crate) mod snapshot;
pub(crate) mod worker_choice;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use pmem::sync::WorkerThreads;
use pmem::{Device, Port};
use storage::format::{EPOCH_CALLS_MAX, EPOCH_MAX};
use storage::input_log::Verdict;
use storage::{
    EndMark, EpochNumber, Position, SerialId, StateHash, Store, TableId, ValuePointer, row,
    row_hash,
};

use crate::call::answers::{EpochOutcome, WorkerAnswers, places, uncommitted};
use crate::worker_id::WorkerId;

use crate::call::batch::{Calls, EpochInfo, Part};
use crate::call::deaths::Deaths;
use crate::call::order::SubmissionOrder;
use crate::contention::rows::{ContendedRow, ContendedRows, Contention, CountedRow, RowName};
use crate::declaration::declare::LookupError;
use crate::declaration::declare::Reader;
use crate::engine::reader::ShutsGate;
use crate::epoch::workers;
use crate::error::hex;
use crate::error::{EngineError, Result};
use crate::index::{EntryId, ExactWords, SortRoom};
use crate::memory::Local;
use crate::program::procedure::ProcedureTable;
use crate::program::schema::Agreed;
use crate::reads::{KeyRange, Reading, Reads, Visit};
use crate::secondary::CallIndexChanges;
use crate::state::config::{EngineConfig, LOGGED_WHILE_SAVING, SNAPSHOT_AMPLIFICATION};
use crate::state::core::{Core, RowKeys};
use crate::stats::{EpochStats, Laps};
use crate::table::Table;
use crate::version::before_images::WorkerBeforeImages;
use crate::version::changes::{Noted, WatchedTables, WorkerChanges};
use crate::version::prefetch_policy::PrefetchPolicy;
use crate::version::{CachePool, HoldsValues, ReadPhase, RowStore, TransientPool, Waiter};
use crate::worker::{Epoch, Past, Progress, Shared, Totals, Worker};

/// A deterministic database engine over one device.
pub struct Engine {
    /// Dropped before the device is.
    _shuts_gate: ShutsGate,
    pub(crate) core: Arc<Core>,
    pub(crate) procedures: ProcedureTable,
    pub(crate) store: Arc<Store>,
    pub(crate) workers: Vec<Worker>,
    /// The threads of the workers, once they are needed.
    threads: Option<WorkerThreads>,
    pub(crate) shared: Shared,
    /// The same for epochs that fewer workers run, by their number.
    shared_of_fewer: BTreeMap<usize, Shared>,
    /// Workers that run an epoch ([`Engine::limit_workers`]).
    workers_max: usize,
    /// Last finished epoch.
    epoch: EpochNumber,
    totals: Totals,
    /// Calls that are deferred to the next epoch.
    deferred_calls: Calls,
    table_ids: Vec<TableId>,
    procedure_ids: Vec<u16>,
    last_image_snapshot: EpochNumber,
    /// Snapshots have ended that may never be released.
    pub(crate) snapshots_have_ended: bool,
    /// Tables whose changes outcomes have, and those that the change log has.
    watched_tables: WatchedTables,
}

#[expect(unsafe_code, reason = "an epoch needs the engine for itself")]
// SAFETY: an engine is borrowed mutably for an epoch, so none runs while it is borrowed like this.
unsafe impl HoldsValues for Engine {}

impl Engine {
    pub(crate) fn assemble(
        mut core: Core,
        agreed: &Agreed,
        store: Arc<Store>,
        workers: Vec<Worker>,
        totals: Totals,
    ) -> Self {
        assert!(!workers.is_empty(), "an engine has a leader");
        assert!(totals.rows >= 0, "a store has {} rows", totals.rows);
        let layers = |worker: &Worker| Arc::clone(&worker.row_store.before_images.layers);
        core.snapshots.of_workers = workers.iter().map(layers).collect();
        let shared = Shared::new(workers.len(), core.tables.len());
        let checkpoint = store.checkpoint();
        core.gate.open(EpochNumber(checkpoint.epoch));
        core.config.running.set_names(agreed.procedures.named().map(|(name, ..)| name));
        let core = Arc::new(core);
        Self {
            _shuts_gate: ShutsGate(Arc::clone(&core)),
            core,
            procedures: agreed.procedures.clone(),
            shared,
            shared_of_fewer: BTreeMap::new(),
            workers_max: workers.len(),
            workers,
            threads: None,
            epoch: EpochNumber(checkpoint.epoch),
            totals,
            deferred_calls: Calls::new(),
            table_ids: agreed.table_ids.clone(),
            procedure_ids: agreed.procedure_ids.clone(),
            last_image_snapshot: EpochNumber(checkpoint.epoch),
            snapshots_have_ended: false,
            watched_tables: WatchedTables::default(),
            store,
        }
    }

    /// Runs the next epoch. Its serial order is: the calls that the last one deferred; then those
    /// of `calls` that are for the serial part; then the others. When it returns, the inputs are
    /// durable and all results are known.
    ///
    /// # Errors
    /// `Limit` and `Storage(Device(Full))`: nothing was logged or executed, and the engine goes on.
    /// Any other error stops the engine: open the store again.
    pub fn run_epoch(&mut self, calls: &Calls, info: EpochInfo) -> Result<EpochOutcome> {
        self.check(calls)?;
        if self.deferred_calls.is_empty() && calls.serial() == 0 {
            return self.run(calls, info, None);
        }
        let (all, positions) = Calls::in_serial_order(&self.deferred_calls, calls)?;
        let mut outcome = self.run(&all, info, None)?;
        outcome.number_as_submitted(&positions);
        Ok(outcome)
    }

    fn check(&self, calls: &Calls) -> Result<()> {
        if let Some(reason) = self.core.stop_reason() {
            return Err(EngineError::Poisoned(reason));
        }
        if (calls.len() + self.deferred_calls.len()) as u64 > EPOCH_CALLS_MAX {
            return Err(EngineError::Limit(format!(
                "an epoch of {} calls and {} deferred, at most {EPOCH_CALLS_MAX}",
                calls.len(),
                self.deferred_calls.len()
            )));
        }
        if self.epoch >= EpochNumber(EPOCH_MAX) {
            return Err(EngineError::Limit(format!("epoch numbers end at {EPOCH_MAX}")));
        }
        let procedures = self.procedures.len();
        match calls.find_unknown(procedures) {
            None => Ok(()),
            Some((position, procedure)) => Err(EngineError::Limit(format!(
                "call {position} names procedure {procedure}, there are {procedures}"
            ))),
        }
    }

    /// Workers that it has.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Lets epochs from now on run on the first workers only, so many of them: at least one, at
    /// most all. What an epoch comes to is the same for any number.
    pub fn limit_workers(&mut self, workers: usize) {
        self.workers_max = workers.clamp(1, self.workers.len());
    }

    /// Runs an epoch, small ones on the thread of the caller alone.
    // `scripts/instructions.sh` counts what happens in it.
    #[inline(never)]
    pub(crate) fn run(
        &mut self,
        calls: &Calls,
        info: EpochInfo,
        past: Option<Past<'_>>,
    ) -> Result<EpochOutcome> {
        let workers = if calls.are_few() { 1 } else { self.workers_max };
        self.swap_shared(workers);
        self.assert_begins(workers);
        let result = self.run_on(workers, calls, info, past);
        self.swap_shared(workers);
        result
    }

    /// What fewer workers share takes the place of what all do, or gives it back.
    fn swap_shared(&mut self, workers: usize) {
        if workers < self.workers.len() {
            let tables = self.core.tables.len();
            let of_fewer = self.shared_of_fewer.entry(workers);
            let of_fewer = of_fewer.or_insert_with(|| Shared::new(workers, tables));
            std::mem::swap(&mut self.shared, of_fewer);
        }
    }

    fn run_on(
        &mut self,
        workers: usize,
        calls: &Calls,
        info: EpochInfo,
        past: Option<Past<'_>>,
    ) -> Result<EpochOutcome> {
        let number = self.epoch.next();
        let started = (self.core.config.clock)();
        self.reset_shared(calls.len(), workers);
        self.begin_before_images(workers);
        let takes_snapshots = self.store.device().takes_snapshots();
        let checkpoint_epoch = self.store.checkpoint_epoch();
        // A replay ends in a checkpoint and has none before, whatever the interval is now: one in
        // the middle needs space that the run before the crash did not reserve (O-43).
        let due = |before: EpochNumber| match past {
            None => self.is_checkpoint_due(number.0 - before.0),
            Some(past) => past.last,
        };
        let live = (past.is_none() && calls.deferred() > 0)
            .then(|| Deaths::live(self.store.device().as_ref(), number))
            .transpose()?;
        let context = Epoch {
            core: &self.core,
            procedures: &self.procedures,
            store: &self.store,
            shared: &self.shared,
            calls,
            info,
            number,
            workers,
            checkpoint_epoch,
            ends_in_checkpoint: takes_snapshots || due(checkpoint_epoch),
            ends_in_image_snapshot: takes_snapshots && due(self.last_image_snapshot),
            asks_for_pages: self.store.device().has_absent_pages(),
            replay: past,
            before: self.totals,
            deaths: past.map(|past| past.deaths).or(live.as_ref()),
            still_deferred: &self.still_deferred(calls),
            order: &SubmissionOrder::of(calls),
        };
        let Epoch { ends_in_checkpoint, ends_in_image_snapshot, .. } = context;
        // After a replay in which the process died, calls run one by one, to find out in which.
        let one_by_one = past.is_some_and(|past| past.deaths.are_known());
        let (result, left) =
            workers::run(&context, &mut self.workers, &mut self.threads, one_by_one);
        if let Some(left) = left {
            self.shared.take_results(left);
        }
        if let Err(error) = result {
            return Err(self.judge(number, past, calls, error));
        }
        self.epoch = number;
        self.assert_ended(ends_in_checkpoint);
        self.end_before_images();
        if ends_in_image_snapshot {
            self.last_image_snapshot = number;
        }
        if ends_in_checkpoint {
            workers::give_back(&mut self.workers, self.store.segments());
            workers::rotate(&mut self.workers, workers);
        }
        let outcome = self.finish(workers, calls, started)?;
        self.leave_memory();
        if past.is_none() {
            let mark = EndMark { epoch: number, hash: outcome.state_hash };
            mark.write(self.store.device().as_ref())?;
        }
        Ok(outcome)
    }

    /// An epoch failed. If a call of it is to blame that could not be undone, and nothing of
    /// the epoch was answered, the log keeps a verdict on the call, so that recovery leaves it out.
    fn judge(
        &mut self,
        epoch: EpochNumber,
        past: Option<Past<'_>>,
        calls: &Calls,
        error: EngineError,
    ) -> EngineError {
        if let Err(missing) = self.core.check_missing() {
            return missing;
        }
        let poisoned = self.shared.poisoned.get_mut().expect("no panic while locked").take();
        let Some((position, what)) = poisoned else { return error };
        // An epoch on which there is a verdict stopped an engine before: it was never answered.
        if past.is_some_and(|past| past.skipped.is_empty()) {
            let (_, arguments) = calls.get(position.index());
            let what = format!("{what}; its arguments are {}", hex(arguments));
            return EngineError::StuckCall { epoch, position, what };
        }
        let verdict = Verdict { epoch, position, reason: what.clone() };
        EngineError::Poisoned(match self.keep(&verdict, past.is_some()) {
            Ok(()) => {
                format!("{what}; nothing of the epoch was answered, and the call is left out")
            }
            Err(error) => format!("{what}; that it is to be left out could not be logged: {error}"),
        })
    }

    /// Keeps a verdict, durably; on a device that may not have been accepted yet.
    fn keep(&mut self, verdict: &Verdict, is_replay: bool) -> Result<()> {
        if is_replay {
            self.store.device().accept()?;
        }
        let port = &mut self.workers[0].row_store.port;
        Ok(self.store.log().write_verdict(port, verdict)?)
    }

    /// Whether a checkpoint is to follow the last one that was so many epochs ago.
    fn is_checkpoint_due(&self, epochs: u64) -> bool {
        let EngineConfig { checkpoint_every, checkpoint_log_bytes, .. } = self.core.config;
        let device = self.store.device();
        let is_logged = || {
            let logged = self.store.log().bytes_in_use();
            let wanted = checkpoint_log_bytes.max(device.changed_bytes() / SNAPSHOT_AMPLIFICATION);
            // What is logged while a snapshot is written has the log of that before it.
            let may_wait = logged < checkpoint_log_bytes * LOGGED_WHILE_SAVING;
            logged >= wanted && !(may_wait && device.is_saving())
        };
        let is_due = epochs >= checkpoint_every && (checkpoint_log_bytes == 0 || is_logged());
        is_due || device.needs_snapshot()
    }

    /// Before an epoch of so many calls, which so many workers run.
    fn reset_shared(&mut self, calls: usize, workers: usize) {
        self.core.config.running.begin(self.epoch.next());
        let shared = &mut self.shared;
        shared.claimed.reset(calls, workers);
        shared.progress.iter_mut().for_each(Progress::reset);
        shared.demand.get_mut().expect("no panic while locked").clear();
        shared.handovers.write().expect("no panic while locked").clear();
        *shared.deferred_bytes.get_mut() = 0;
        *shared.refused.get_mut().expect("no panic while locked") = None;
        *shared.totals.get_mut().expect("no panic while locked") = Totals::default();
        *shared.changes.get_mut().expect("no panic while locked") = Noted::default();
        shared.deferred.get_mut().expect("no panic while locked").clear();
        *shared.has_pieces.get_mut() = false;
        shared.contended.get_mut().expect("no panic while locked").clear();
        shared.streams.get_mut().expect("no panic while locked").clear();
        *shared.poisoned.get_mut().expect("no panic while locked") = None;
    }

    /// Takes over what the workers left.
    fn finish(&mut self, workers: usize, calls: &Calls, started: u64) -> Result<EpochOutcome> {
        let sum = *self.shared.totals.get_mut().expect("no panic while locked");
        self.totals.hash.merge(sum.hash);
        self.totals.rows += sum.rows;
        assert!(self.totals.rows >= 0, "no more rows are deleted than there are");
        let deferred =
            std::mem::take(self.shared.deferred.get_mut().expect("no panic while locked"));
        assert!(calls.deferred() <= self.deferred_calls.len(), "an epoch makes up deferred calls");
        self.deferred_calls = self.still_deferred(calls);
        for &position in &deferred {
            let (procedure, arguments) = calls.get(position.index());
            self.deferred_calls.push_to(Part::Deferred, procedure, arguments)?;
        }
        let predicted = match calls.serial() {
            0 => BTreeSet::new(),
            _ => {
                let mut overlay = self.shared.overlay.write().expect("no panic while locked");
                overlay.give_back();
                std::mem::take(&mut overlay.predicted)
            }
        };
        let mut stats = EpochStats::default();
        for worker in &mut self.workers[..workers] {
            let calls = worker.local.answers.len() as u64;
            stats.add_worker(&worker.local.work, &worker.laps, calls);
            stats.device.add(&worker.row_store.port.take_counters());
        }
        let are_answered = stats.work.deferred == deferred.len() as u64;
        assert!(are_answered, "every call that is deferred has an answer that says so");
        stats.phase_ns = self.workers[0].laps.phase_ns();
        stats.total_ns = (self.core.config.clock)().saturating_sub(started);
        let answers: Vec<WorkerAnswers> = self.workers[..workers]
            .iter_mut()
            .map(|w| std::mem::take(&mut w.local.answers))
            .collect();
        let answered: usize = answers.iter().map(WorkerAnswers::len).sum();
        assert!(answered == calls.len(), "every call has one answer");
        let changes = self.shared.changes.get_mut().expect("no panic while locked");
        let changes = std::mem::take(changes).together();
        Ok(EpochOutcome {
            epoch: self.epoch,
            deferred_in: calls.deferred(),
            deferred: deferred.iter().map(|position| position.0).collect(),
            predicted,
            state_hash: self.running_hash(),
            stats,
            contention: self.contention(workers),
            changes,
            uncommitted: uncommitted(&answers),
            places: places(&answers, calls.len()),
            workers: answers,
        })
    }

    /// What the workers found of rows that calls contended for. Rows that were made and are deleted
    /// have their names in the lists of these.
    fn contention(&mut self, workers: usize) -> Vec<ContendedRow> {
        let mut rows = ContendedRows::default();
        for worker in 0..workers {
            for found in std::mem::take(&mut self.workers[worker].local.contention.found) {
                let CountedRow { id, name, writers, waited } = found;
                let (table, key) = name.or_else(|| self.name_of_dead_row(id)).expect("it is a row");
                rows.add_writers(table, &key, writers);
                rows.add_waits(table, &key, waited);
            }
        }
        rows.into_rows()
    }

    fn name_of_dead_row(&self, id: EntryId) -> Option<RowName> {
        self.shared.dead_rows.iter().find_map(|dead_rows| {
            let dead_rows = dead_rows.read().expect("no panic while locked");
            let dead_rows = dead_rows.iter().find(|row| row.id == id)?;
            Some((dead_rows.table, dead_rows.word.to_be_bytes().into()))
        })
    }

    /// Last finished epoch; 0 for a new store.
    pub fn epoch(&self) -> EpochNumber {
        self.epoch
    }

    /// State hash of the last finished epoch: the one that is maintained, or, if
    /// [`crate::Lab::state_hash`] is off, that of all rows, each of which is visited then.
    pub fn state_hash(&self) -> StateHash {
        self.running_hash().unwrap_or_else(|| self.hash_of_rows())
    }

    /// State hash of the last finished epoch, if it is maintained.
    pub fn running_hash(&self) -> Option<StateHash> {
        self.core.config.lab.state_hash.then_some(self.totals.hash)
    }

    /// Visits all rows to hash them.
    fn hash_of_rows(&self) -> StateHash {
        let mut hash = StateHash::default();
        for (id, table) in self.core.tables.iter().enumerate() {
            let mut add = |key: &[u8], value: &[u8]| {
                hash.add(row_hash(table.layout.table, key, value));
            };
            self.for_each(TableId(id as u16), &mut add).expect("the table exists");
        }
        hash
    }

    /// Live rows.
    pub fn rows(&self) -> u64 {
        self.totals.rows as u64
    }

    /// For each table passed to [`Engine::open`], its id in procedures and calls.
    pub fn table_ids(&self) -> &[TableId] {
        &self.table_ids
    }

    /// For each procedure that the engine was opened with, its number in calls.
    pub fn procedure_ids(&self) -> &[u16] {
        &self.procedure_ids
    }

    /// Newest epoch from which a recovery would start now.
    pub fn checkpoint_epoch(&self) -> EpochNumber {
        let device = self.store.device();
        if device.takes_snapshots() {
            device.snapshot_epoch().unwrap_or(EpochNumber::ZERO)
        } else {
            self.store.checkpoint_epoch()
        }
    }

    /// The store below, for inspection.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Reads a row as of the end of the last epoch; of a sequence, its next number (8 little-endian
    /// bytes).
    ///
    /// # Errors
    /// `Limit` for an unknown table or a key beyond its limit.
    pub fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut waiter = Waiter::new(self.core.stopped());
        let sid = SerialId::new(self.epoch.next(), Position(0));
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        let mut reading = self.reading();
        match self.core.look_up_in(ReadPhase::of(self), t, key, sid, &mut waiter, &reading.reads) {
            Ok(value) => {
                reading.end_step(self.core.image_base);
                Ok(value.map(<[u8]>::to_vec))
            }
            Err(error) => Err(self.read_error(error)),
        }
    }

    /// A read between two epochs, which no epoch's counters show.
    pub(crate) fn reading(&self) -> Reading {
        Reading::new(self.store.device())
    }

    fn read_error(&self, error: LookupError) -> EngineError {
        error.of_reader(&self.core)
    }

    /// Visits all rows of a table as of the end of the last epoch, in key order if it is ordered.
    ///
    /// # Errors
    /// `Limit` for an unknown table.
    pub fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let phase = ReadPhase::of(self);
        let sid = SerialId::new(self.epoch.next(), Position(0));
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        let mut reading = self.reading();
        let mut visit = |word: Option<u64>, id: EntryId| {
            let mut waiter = Waiter::new(self.core.stopped());
            if let Ok(seen) = self.core.seen(id, sid, &mut waiter)
                && seen.word.is_value()
            {
                let mut room = [0; 8];
                let key = self.core.key(t, word, id, &mut room, &reading.reads);
                seen.word.charge(&reading.reads);
                reading.end_step(self.core.image_base);
                each(key, phase.bytes(seen.word));
            }
        };
        self.for_each_entry(t, &mut visit);
        Ok(())
    }

    /// Visits the newest version of each row of a table, if it was written in an epoch or after it,
    /// as of the end of the last epoch: bytes of its value, and whether that is in the row itself.
    ///
    /// # Errors
    /// `Limit` for an unknown table.
    pub fn for_each_version(
        &self,
        table: TableId,
        since: EpochNumber,
        each: &mut dyn FnMut(usize, bool),
    ) -> Result<()> {
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        self.for_each_entry(t, &mut |_, id| {
            let newest = self.core.persistent_version(id);
            if newest.is_value() {
                let row = self.core.entries.row_of(id);
                let versions = row::versions(self.store.device().as_ref(), row);
                let version = versions[newest.slot()];
                if SerialId(version.serial_id).epoch() >= since {
                    each(newest.len(), ValuePointer(version.pointer).is_inline());
                }
            }
        });
        Ok(())
    }

    /// Visits the entries of a table, in key order if it is ordered, and their words if the index
    /// has any.
    fn for_each_entry(&self, t: &Table, visit: &mut dyn FnMut(Option<u64>, EntryId)) {
        // Unbounded: no key is compared.
        let nothing = Reads::new(false);
        match &t.ordered {
            None => t.hash.for_each(visit),
            Some(ordered) if t.exact => ordered
                .range(Bound::Unbounded, Bound::Unbounded, &ExactWords)
                .for_each(|(word, id)| visit(Some(word), id)),
            Some(ordered) => ordered
                .range(
                    Bound::Unbounded,
                    Bound::Unbounded,
                    &RowKeys { core: &self.core, reads: &nothing },
                )
                .for_each(|(word, id)| visit(Some(word), id)),
        }
    }

    /// Visits the rows with `low <= key < high` of an ordered table as of the end of the last
    /// epoch, ascending, until the visitor has enough.
    ///
    /// # Errors
    /// `Limit` for an unknown or unordered table, or bounds of another length than its keys.
    pub fn scan(&self, table: TableId, low: &[u8], high: &[u8], each: Visit<'_>) -> Result<()> {
        let mut waiter = Waiter::new(self.core.stopped());
        let (phase, sid) = (ReadPhase::of(self), SerialId::new(self.epoch.next(), Position(0)));
        let mut reading = self.reading();
        let reader = Reader { phase, sid, waiter: &mut waiter, reads: &reading.reads };
        let range = KeyRange { low, high, is_descending: false };
        match self.core.look_through(table, range, reader, each) {
            Ok(_) => {
                reading.end_step(self.core.image_base);
                Ok(())
            }
            Err(error) => Err(self.read_error(error)),
        }
    }

    /// Makes room for rows that are expected in tables, and its pages present, so that no epoch
    /// pays for the growth. Returns the bytes on the device.
    ///
    /// # Errors
    /// `Limit` for an unknown table; `Storage(Device(Full))`: nothing has changed on the device.
    pub fn prepare_rows(&mut self, rows: &[(TableId, u64)]) -> Result<u64> {
        // It may have stopped where the gate of reads is closed.
        if let Some(reason) = self.core.stop_reason() {
            return Err(EngineError::Poisoned(reason));
        }
        for &(table, _) in rows {
            self.core.table(table).map_err(EngineError::Limit)?;
        }
        let bytes = self.store.prepare_rows(rows)?;
        self.stock_indexes(rows);
        self.core.gate.while_closed(|| {
            for &(table, count) in rows {
                let table = &self.core.tables[table.index()];
                table.hash.reserve(count as usize);
                if let Some(ordered) = &table.ordered {
                    ordered.reserve(count as usize);
                }
            }
        });
        for &(table, count) in rows {
            let row_bytes = self.core.tables[table.index()].layout.row_bytes;
            self.core.entries.populate(count, row_bytes);
        }
        Ok(bytes)
    }
}

/// Where memory has a limit a worker keeps so much for the versions of the next epoch.
const POOL_KEPT_BYTES: u64 = 4 << 20;

fn pool_bytes(store: &Store) -> u64 {
    if store.device().has_memory_limit() { POOL_KEPT_BYTES } else { u64::MAX }
}

/// A worker with nothing in it yet.
pub(crate) fn new_worker(number: WorkerId, config: &EngineConfig, store: &Store) -> Result<Worker> {
    let local = Local {
        worker: number,
        lists: crate::declaration::Declarations::default(),
        writes: Vec::new(),
        scratch: Vec::new(),
        parts: Vec::new(),
        index_changes: CallIndexChanges::default(),
        pieces: crate::memory::PieceQueue::default(),
        piece: crate::memory::PieceWrites::default(),
        piece_results: Vec::new(),
        allocating_calls: Vec::new(),
        fetching: PrefetchPolicy::default(),
        plans: Vec::new(),
        prefetched: Vec::new(),
        reads: Reads::new(store.device().charges_loads()),
        answers: WorkerAnswers::default(),
        answer_bytes: 0,
        missing_pages: Vec::new(),
        pool: TransientPool::new(number)?.keeping(pool_bytes(store)),
        cache: CachePool::new(
            number,
            config.cache_bytes / config.workers as u64,
            config.lab.cache_epochs,
            config.lab.cache_policy,
        )?,
        chains: crate::version::Chains::default(),
        sort_room: SortRoom::default(),
        work: crate::stats::WorkCounts::default(),
        sequences: Vec::new(),
        deferred: Vec::new(),
        contention: Contention::default(),
    };
    let row_store = RowStore {
        port: Port::new(Arc::clone(store.device()), number.0),
        sub_pools: (0..storage::format::POOLS).map(|_| Vec::new()).collect(),
        changed: vec![0; storage::format::POOLS],
        handed: (0..storage::format::POOLS).map(|_| Vec::new()).collect(),
        handed_pools: Vec::new(),
        popping: vec![0; storage::format::POOLS],
        bumping: vec![0; storage::format::POOLS],
        keeps_hash: config.lab.state_hash,
        keys_come_first: Vec::new(),
        design: config.lab.design,
        minor_collection: config.lab.minor_collection,
        are_plain: false,
        hash: StateHash::default(),
        rows: 0,
        stale: Vec::new(),
        dead_rows: Vec::new(),
        hidden: Vec::new(),
        whole: Vec::new(),
        before_images: WorkerBeforeImages::default(),
        changes: WorkerChanges::default(),
    };
    Ok(Worker {
        local,
        row_store,
        log: store.log().stream_writer(),
        collect: Vec::new(),
        already_collected: std::collections::HashSet::new(),
        laps: Laps::default(),
    })
}
