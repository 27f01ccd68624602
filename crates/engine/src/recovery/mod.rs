//! Recovery (NV 4.3, 4.5): from a checkpoint and a log to the end of the last committed epoch.
//!
//! 1. *Load log*: the store is opened, which reads superblock, catalog, pools and the log.
//! 2. *Scan*: all workers visit all rows once, check them, and add up the state hash, which must be
//!    the checkpoint's (O-48), if that has one. Nothing is written: a version of a crashed epoch
//!    does not count, because its serial id says so, and replay overwrites it. The headers that
//!    are trusted are flushed, and so was all that the store read ([`storage::settle`]).
//! 3. *Agree*: the tables must hold what this program takes them for, and where something is to be
//!    replayed, the log must have been written for its procedures and tables (`schema.rs`).
//! 4. *Rebuild*: row entries and indexes, secondary ones of the rows as they are then.
//! 5. *Replay*: every committed epoch after the checkpoint runs again, exactly as it did, and must
//!    come to the state hash that the next commit record or the end mark names.
//!
//! Where the log is of a program of before, all of this takes place under the definitions of the
//! log, the store is closed, and opened a second time for what the program of now asks for.
//!
//! The device is accepted, and so changed, when all that can be verified is: before the last
//! replayed epoch is made durable, or after step 3 if nothing is replayed. Changes of the schema
//! come last.
//!
//! Each step may be cut by another crash and begins again from the start (O-29).

mod dropped;
mod indexes;
pub(crate) mod logged;
mod replay;

use std::sync::Arc;

use pmem::sync::atomic::{AtomicUsize, Ordering};
use pmem::sync::thread;
use pmem::{Counters, Device, Port};
use storage::format::TABLES_MAX;
use storage::input_log::{LogError, Recovered};
use storage::scan::{self, ScanPlan, ScannedRow};
use storage::settle::SettleRows;
use storage::{
    EpochNumber, IndexKind, Opened, Owners, SerialId, StateHash, StorageError, Store, SubPool,
    TableDefinition, TableId,
};

use self::dropped::Dropped;
use crate::call::batch::{Calls, EpochInfo};
use crate::engine::{Engine, new_worker};
use crate::epoch::decode_deferred_calls;
use crate::epoch::workers::deal;
use crate::error::{EngineError, Result};
use crate::index::EntryId;
use crate::program::definitions::Definitions;
use crate::program::procedure::ProcedureTable;
use crate::program::schema::{self, Agreed};
use crate::reads::Reads;
use crate::recovery::replay::replay;
use crate::secondary::SecondaryIndexes;
use crate::state::config::EngineConfig;
use crate::state::core::{Core, RowKeys, SequenceState};
use crate::stats::{HashCheck, KeptProcedure, RecoveryReport};
use crate::table::{Table, order_word};
use crate::version::{EntrySlab, HoldsValues, ReadPhase, persistent_word};
use crate::worker::{Totals, Worker};
use crate::worker_id::WorkerId;

impl<D: Device> Engine<D> {
    /// Opens the store on a device, or creates one, and recovers: afterwards the engine is at the
    /// end of the last committed epoch.
    ///
    /// # Errors
    /// See [`crate::EngineError`]. An open that is refused changes no byte of a device that keeps
    /// files; on memory it may have added tables, and a replay that was refused has left what a
    /// crash in it would leave.
    pub fn open(
        device: Arc<D>,
        config: EngineConfig,
        tables: &[TableDefinition],
        procedures: ProcedureTable,
    ) -> Result<(Self, RecoveryReport)> {
        let tables: Vec<_> = tables.iter().cloned().map(Into::into).collect();
        let mut make = |_: &[TableId]| Ok(procedures.clone());
        config.validate()?;
        let definitions = Definitions::new(&tables, &mut make);
        open(device, config, Definitions { in_order: true, ..definitions })
    }

    /// As [`Engine::open`], for procedures that depend on the numbers of the tables, and for other
    /// changes of the schema. Calls name procedures by [`Engine::procedure_ids`].
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_with(
        device: Arc<D>,
        config: EngineConfig,
        definitions: Definitions<'_>,
    ) -> Result<(Self, RecoveryReport)> {
        config.validate()?;
        open(device, config, definitions)
    }
}

/// Opens a store and recovers it. A log of a program of before is replayed and closed first, as
/// that program would have done; what there is to change changes then (O-107, O-108).
fn open<D: Device>(
    device: Arc<D>,
    config: EngineConfig,
    mut definitions: Definitions<'_>,
) -> Result<(Engine<D>, RecoveryReport)> {
    let first = open_once(Arc::clone(&device), config.clone(), &mut definitions)?;
    let OpenedOnce { engine, mut report, of_log } = first;
    let Some(kept) = of_log else { return Ok((engine, report)) };
    let earlier = definitions.earlier.as_ref().expect("it had what the log needs");
    close_past(engine, earlier.info, report.timestamp_ns)?;
    let then = open_once(device, config, &mut definitions)?;
    assert!(then.of_log.is_none() && then.report.epochs_replayed == 0, "the past is closed");
    report.kept_procedures = kept;
    report.add_second(&then.report);
    Ok((then.engine, report))
}

/// Brings calls to their ends that the program of before has deferred, and closes its store.
fn close_past<D: Device>(
    mut engine: Engine<D>,
    mut info: EpochInfo,
    timestamp_ns: u64,
) -> Result<()> {
    info.timestamp_ns = info.timestamp_ns.max(timestamp_ns);
    while engine.deferred() > 0 {
        // The log of what was replayed, or run here, makes room for the next epoch.
        engine.checkpoint()?;
        engine.run_deferred(info)?;
        info.seed = info.seed.wrapping_add(1);
    }
    engine.close()
}

/// What one recovery came to.
struct OpenedOnce<D: Device> {
    engine: Engine<D>,
    report: RecoveryReport,
    /// As [`Agreed::of_log`].
    of_log: Option<Vec<KeptProcedure>>,
}

fn open_once<D: Device>(
    device: Arc<D>,
    config: EngineConfig,
    definitions: &mut Definitions<'_>,
) -> Result<OpenedOnce<D>> {
    check_design(&config, device.as_ref())?;
    let clock = config.clock;
    let mut report = RecoveryReport::default();
    let started = clock();
    let Opened { mut store, mut sub_pools, log, created, end_mark, device } =
        Store::open(device, &config.store)?;
    (report.created, report.load_log) = (created, device);
    report.checkpoint_epoch = store.checkpoint_epoch();
    report.timestamp_ns = log.timestamp_ns;
    let loaded = clock();

    let mut workers = (0..config.workers)
        .map(|number| new_worker(WorkerId::from_index(number), &config, &store))
        .collect::<Result<Vec<_>>>()?;
    let plan = scan::plan(&store, &sub_pools, &log);
    let owners = Owners::new(&store, &sub_pools, &plan)?;
    let (mut found, mut hash) = scan_rows(&store, &plan, &owners, &config)?;
    report.scan = count_planning(&store, &sub_pools);
    found.iter().for_each(|found| report.scan.add(&found.device));
    report.hash = match (store.checkpoint().state_hash(), config.lab.state_hash) {
        (Some(_), _) => HashCheck::Verified,
        (None, true) => HashCheck::Computed,
        (None, false) => HashCheck::Unknown,
    };
    let scanned = clock();

    let agreed = schema::agree(&store, &log, definitions)?;
    let deferred_calls = read_deferred_calls(&store, agreed.procedures.len())?;
    remember_collected(&store, &sub_pools, &mut workers);
    check_collected(&agreed, &log, &workers)?;
    if log.committed.is_empty() && !created {
        store.device().accept()?;
    }
    clear_left_out(&store, &log, &plan);
    let dropped = Dropped::take(&store, &agreed.change, &mut found, &mut hash);
    store.adopt_catalog(&agreed.change, &mut sub_pools)?;

    deal(sub_pools, &mut workers);
    let image_base = store.device().image().base() as usize;
    let in_memory = store.tables().iter().map(Table::new).collect();
    let entries = EntrySlab::new(store.segments(), store.device().has_memory_limit())?;
    let mut core = Core::new(config, in_memory, entries, image_base);
    let (tables, parties) = (core.tables.len(), workers.len());
    let secondary = SecondaryIndexes::new(&agreed.indexes, &agreed.table_ids, tables, parties);
    core.secondary = secondary.map_err(EngineError::Limit)?;
    core.secondary.are_for_the_serial_part = agreed.program.defers_changes_of_indexes();
    core.missing.clone_from(&agreed.missing);
    report.rows = found.iter().map(|f| f.rows.len() as u64).sum();
    rebuild(&core, &store, found, &mut workers);
    end_reading(&mut report, &mut workers);

    let totals = Totals { hash, rows: (store.checkpoint().rows - dropped.rows) as i64 };
    let mut engine = Engine::assemble(core, &agreed, Arc::new(store), workers, totals);
    engine.build_indexes()?;
    let rebuilt = clock();
    engine.set_deferred_calls(deferred_calls);
    replay(&mut engine, &log, end_mark, &mut report)?;
    begin_program(&mut engine, &agreed, &dropped, created)?;
    report.epoch = engine.epoch();
    report.load_log_ns = loaded.saturating_sub(started);
    report.scan_ns = scanned.saturating_sub(loaded);
    report.rebuild_ns = rebuilt.saturating_sub(scanned);
    report.replay_ns = clock().saturating_sub(rebuilt);
    Ok(OpenedOnce { engine, report, of_log: agreed.of_log })
}

/// Adds up what the rebuild has read. All steps before replay only read, so that they may be
/// repeated (O-29).
fn end_reading<D: Device>(report: &mut RecoveryReport, workers: &mut [Worker<D>]) {
    workers.iter_mut().for_each(|w| report.rebuild.add(&w.row_store.port.take_counters()));
    assert!(report.created || !report.load_log.has_stores(), "a store that is opened is read");
    assert!(!report.scan.has_stores(), "the scan repairs nothing (O-27)");
    assert!(!report.rebuild.has_stores(), "indexes are rebuilt in memory");
}

/// Where only what is logged is durable, there has to be a log.
fn check_design<D: Device>(config: &EngineConfig, device: &D) -> Result<()> {
    if config.lab.design.logs() || !device.takes_snapshots() {
        return Ok(());
    }
    Err(EngineError::Limit(format!(
        "design {} has no log, without which nothing on {} would be durable: choose a device in \
         memory",
        config.lab.design.name(),
        device.description().name
    )))
}

/// Slots that a collection before a crash freed are told from others by the checkpoint, which a
/// change of the schema would replace. Only a log that was given up leaves some without a replay.
fn check_collected<D: Device>(
    agreed: &Agreed,
    log: &Recovered,
    workers: &[Worker<D>],
) -> Result<()> {
    let are_some = workers.iter().any(|worker| !worker.already_collected.is_empty());
    if !are_some || !log.committed.is_empty() || !agreed.change.is_change {
        return Ok(());
    }
    Err(EngineError::OtherProgram(
        "its end was given up, and tables can change after the next epoch only".into(),
    ))
}

/// Clears what calls have published that are left out, on devices where it stays: no replay writes
/// it over, and the checkpoint at the end of its epoch would make it count (O-49).
fn clear_left_out<D: Device>(store: &Store<D>, log: &Recovered, plan: &ScanPlan) {
    if !log.verdicts.is_empty() && !store.device().takes_snapshots() {
        storage::repair::clear_versions(store, plan, store.checkpoint_epoch());
    }
}

/// The calls that the checkpoint hands over to the next epoch.
fn read_deferred_calls<D: Device>(store: &Store<D>, procedures: usize) -> Result<Calls> {
    let checkpoint = store.checkpoint();
    if checkpoint.deferred_calls == 0 {
        return Ok(Calls::new());
    }
    let bytes =
        store.log().deferred_calls(EpochNumber(checkpoint.epoch + 1))?.ok_or_else(|| {
            let calls = checkpoint.deferred_calls;
            let what =
                format!("{calls} calls that were to be made again in the next epoch are missing");
            LogError::Lost { last: EpochNumber(checkpoint.epoch), what }
        })?;
    decode_deferred_calls(&bytes, procedures)
}

/// Everything that was logged is replayed and durable: from now on store and log are those of this
/// program. Whatever changes in the schema counts with the checkpoint record at the end (O-91).
fn begin_program<D: Device>(
    engine: &mut Engine<D>,
    agreed: &Agreed,
    dropped: &Dropped,
    created: bool,
) -> Result<()> {
    assert!(engine.core.stop_reason().is_none(), "an engine that was stopped is not opened");
    let store = Arc::clone(&engine.store);
    assert!(store.checkpoint_epoch() == engine.epoch(), "a replay ends in a checkpoint");
    let is_free = engine.deferred() == 0 || dropped.rows == 0;
    assert!(is_free, "no row of a dropped table is left to a call that is deferred");
    let is_new = engine.epoch() == EpochNumber::ZERO && engine.deferred() == 0;
    assert!(!created || is_new, "a store that was created begins with its first epoch");
    dropped.free_values(&store, &mut engine.workers)?;
    let (bytes, port) = (agreed.program.encode(), &mut engine.workers[0].row_store.port);
    if store.log().program().as_ref() != Some(&bytes) {
        store.log().write_program(port, &bytes)?;
    }
    if agreed.change.is_change {
        store.write_catalog(port, &agreed.change);
        engine.commit_now();
    }
    if created || agreed.change.is_change {
        storage::snapshot_image(store.device().as_ref(), store.checkpoint_epoch())?;
    }
    Ok(())
}

/// What one thread of the scan found.
#[derive(Default)]
pub(crate) struct ScanShare {
    pub(crate) rows: Vec<(TableId, ScannedRow)>,
    hash: StateHash,
    /// What it read.
    device: Counters,
}

/// Counts and charges the free lists that planning the scan read.
fn count_planning<D: Device>(store: &Store<D>, sub_pools: &[SubPool]) -> Counters {
    let mut port = scan_port(store);
    for sub_pool in sub_pools.iter().filter(|l| (l.pool() as usize) < store.tables().len()) {
        sub_pool.count_free_list(&mut port, store.segments());
    }
    port.pay_owed_time();
    port.take_counters()
}

/// A port of a thread that only reads.
fn scan_port<D: Device>(store: &Store<D>) -> Port<D> {
    Port::new(Arc::clone(store.device()), u32::MAX)
}

/// Visits all rows on as many threads as there are workers. Returns what each found, and the hash
/// of all, which is the checkpoint's if that has one; nothing if it is not needed.
fn scan_rows<D: Device>(
    store: &Store<D>,
    plan: &ScanPlan,
    owners: &Owners,
    config: &EngineConfig,
) -> Result<(Vec<ScanShare>, StateHash)> {
    let stored = store.checkpoint().state_hash();
    let hashes = stored.is_some() || config.lab.state_hash;
    let (next, threads) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let scan = || -> std::result::Result<ScanShare, StorageError> {
        let (mut found, mut port) = (ScanShare::default(), scan_port(store));
        let mut settle = SettleRows::new(store.device(), threads.fetch_add(1, Ordering::Relaxed));
        while let Some(unit) = plan.units.get(next.fetch_add(1, Ordering::Relaxed)) {
            let with = Scanning { plan, owners, hashes, port: &mut port, settle: &mut settle };
            scan_unit(store, *unit, with, &mut found)?;
        }
        settle.finish();
        port.pay_owed_time();
        found.device = port.take_counters();
        Ok(found)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let handles: Vec<_> = (1..config.workers).map(|_| scope.spawn(scan)).collect();
        let mine = scan();
        let joined = handles.into_iter().map(|h| h.join().expect("a scan does not panic"));
        std::iter::once(mine).chain(joined).collect()
    });
    let found = results.into_iter().collect::<std::result::Result<Vec<ScanShare>, _>>()?;
    let mut hash = StateHash::default();
    found.iter().for_each(|f| hash.merge(f.hash));
    if let Some(expected) = stored.filter(|stored| *stored != hash) {
        return Err(StorageError::Corrupt(format!(
            "the rows have state hash {hash}, the checkpoint of epoch {} says {expected}; some \
             row was changed from outside or damaged",
            store.checkpoint_epoch()
        ))
        .into());
    }
    let rows: u64 = found.iter().map(|f| f.rows.len() as u64).sum();
    let expected = store.checkpoint().rows;
    if rows != expected {
        return Err(StorageError::Corrupt(format!(
            "there are {rows} rows, and {expected} by the checkpoint of epoch {}: it is damaged",
            store.checkpoint_epoch()
        ))
        .into());
    }
    Ok((found, hash))
}

/// An open, which looks at the checkpoint's versions before any epoch runs.
struct Opening;

#[expect(unsafe_code, reason = "no epoch runs in an open")]
// SAFETY: while rows are scanned and entered into indexes nothing is freed, and versions of the
// checkpoint are not written: stale ones are, which nothing looks at.
unsafe impl HoldsValues for Opening {}

/// What a thread of the scan has at hand.
struct Scanning<'s, D: Device> {
    plan: &'s ScanPlan,
    owners: &'s Owners,
    /// Whether rows are hashed.
    hashes: bool,
    port: &'s mut Port<D>,
    settle: &'s mut SettleRows<D>,
}

fn scan_unit<D: Device>(
    store: &Store<D>,
    unit: scan::ScanUnit,
    with: Scanning<'_, D>,
    found: &mut ScanShare,
) -> std::result::Result<(), StorageError> {
    let Scanning { plan, owners, hashes, port, settle } = with;
    let layout = store.tables()[unit.table.index()].layout;
    let base = store.device().image().base() as usize;
    let phase = ReadPhase::of(&Opening);
    scan::visit(
        store.device().as_ref(),
        store.segments(),
        unit,
        &layout,
        plan,
        store.checkpoint_epoch(),
        |row| {
            scan::count_row(port, &row, &layout, hashes);
            owners.add(store, layout.table, &row)?;
            settle.scanned(row.row);
            if hashes {
                let word = persistent_word(base, &layout, &row);
                let key = phase.key_at(base, row.row);
                found.hash.add(storage::row_hash(layout.table, key, phase.bytes(word)));
            }
            found.rows.push((unit.table, row));
            Ok(())
        },
    )
}

/// Tells the workers which pool slots a collection before the crash already freed (O-36).
fn remember_collected<D: Device>(
    store: &Store<D>,
    sub_pools: &[SubPool],
    workers: &mut [Worker<D>],
) {
    let sequence = store.checkpoint().sequence;
    for sub_pool in sub_pools.iter().filter(|l| l.pool() as usize >= TABLES_MAX) {
        sub_pool.count_collected(&mut workers[0].row_store.port, store.segments(), sequence);
        let slots = sub_pool.collected_slots(store.device().as_ref(), store.segments(), sequence);
        for worker in workers.iter_mut() {
            worker.already_collected.extend(&slots);
        }
    }
}

/// Makes row entries and indexes of what the scan found, each worker of one share.
fn rebuild<D: Device>(
    core: &Core,
    store: &Store<D>,
    found: Vec<ScanShare>,
    workers: &mut [Worker<D>],
) {
    let tables = core.tables.len();
    let mut counts = vec![0usize; tables];
    for &(table, _) in found.iter().flat_map(|f| &f.rows) {
        counts[table.index()] += 1;
    }
    for (table, &count) in core.tables.iter().zip(&counts) {
        table.hash.reserve(count);
    }
    let mut changes: Vec<Vec<Vec<(u64, EntryId)>>> = thread::scope(|scope| {
        let mut shares = workers.iter_mut().zip(&found);
        let (first, of_first) = shares.next().expect("at least one worker");
        let handles: Vec<_> = shares
            .map(|(worker, share)| scope.spawn(|| rebuild_share(core, store, share, worker)))
            .collect();
        let mine = rebuild_share(core, store, of_first, first);
        let joined = handles.into_iter().map(|h| h.join().expect("rebuilding does not panic"));
        std::iter::once(mine).chain(joined).collect()
    });
    // Keys that begin alike are compared where they are, in the rows.
    let mut reads = Reads::new(true);
    for (index, table) in core.tables.iter().enumerate() {
        let Some(ordered) = &table.ordered else { continue };
        let mut lists: Vec<_> = changes.iter_mut().map(|s| std::mem::take(&mut s[index])).collect();
        if table.exact {
            ordered.apply_inserts(&mut lists, &crate::index::ExactWords);
        } else {
            ordered.apply_inserts(&mut lists, &RowKeys { core, reads: &reads });
        }
        reads.account(&mut workers[0].row_store.port, core.image_base);
    }
    for (table, count) in core.tables.iter().zip(counts) {
        assert!(table.hash.len() == count, "every row that was found is in its index");
    }
    workers[0].row_store.port.pay_owed_time();
}

fn rebuild_share<D: Device>(
    core: &Core,
    store: &Store<D>,
    share: &ScanShare,
    worker: &mut Worker<D>,
) -> Vec<Vec<(u64, EntryId)>> {
    let phase = ReadPhase::of(&Opening);
    let mut changes = vec![Vec::new(); core.tables.len()];
    let checkpoint_epoch = store.checkpoint_epoch();
    let port = &mut worker.row_store.port;
    // Where a crash leaves versions of the epoch that it has cut off, only the scan tells which one
    // counts; elsewhere an entry is filled when it is needed.
    let fills = !store.device().takes_snapshots();
    for (table, row) in &share.rows {
        let t = &core.tables[table.index()];
        let id = core.entries.id_of(row.row, t.layout.row_bytes);
        let written_in = SerialId(row.versions[row.slot].serial_id).epoch();
        debug_assert!(written_in <= checkpoint_epoch, "the scan finds the checkpoint's version");
        let next = persistent_word(core.image_base, &t.layout, row);
        if fills {
            core.entries.get(id).initialise(row.row, next, SerialId(0));
            core.entries.touch(id);
        }
        // A sequence has a short key, and its value is in another line.
        scan::count_row(port, row, &t.layout, t.kind == IndexKind::Sequence);
        let key = phase.key_at(core.image_base, row.row);
        let word = t.word(key).expect("the scan checked the key's length");
        t.hash.insert_unique(word.hash, id);
        if t.ordered.is_some() {
            changes[table.index()].push((order_word(key), id));
        }
        if t.kind == IndexKind::Sequence {
            let next = phase.bytes(next).try_into().map_or(0, u64::from_le_bytes);
            let mut sequences = core.sequences.write().expect("no panic while locked");
            sequences.insert(
                (*table, word.hash),
                SequenceState { next, id: Some(id), ..SequenceState::default() },
            );
        }
        if row.stale_external(checkpoint_epoch).is_some() {
            worker.collect.push((id, core.entries.get(id).generation()));
        }
    }
    port.pay_owed_time();
    changes
}
