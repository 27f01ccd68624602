//! Recovery (NV 4.3, 4.5): from a checkpoint and a log to the end of the last committed epoch.
//!
//! 1. *Load log*: the store is opened, which reads superblock, catalog, pools and the log.
//! 2. *Scan*: all workers visit all rows once, check them, and add up the state hash, which must be
//!    the checkpoint's (O-48), if that has one. Nothing is written: a version of a crashed epoch
//!    does not count, because its serial id says so, and replay overwrites it. The headers that
//!    are trusted are flushed, and so was all that the store read ([`storage::settle`]).
//! 3. *Agree*: the tables must hold what this program takes them for, and where something is to be
//!    replayed, the log must have been written for its procedures and tables (`schema.rs`).
//! 4. *Rebuild*: row entries and indexes, secondary ones of the rows as they are then. Where the
//!    checkpoint has kept its indexes the open attaches them, and no row is scanned (`kept.rs`).
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
pub(crate) mod kept;
pub(crate) mod logged;
mod replay;
mod scan;
mod tables;

use std::sync::Arc;

use pmem::sync::thread;
use pmem::{AnyDevice, Device};
use storage::format::{FEATURE_REMEMBERED_PROGRAMS, TABLES_MAX};
use storage::input_log::{LogError, Recovered};
use storage::scan::count_row;
use storage::{EpochNumber, IndexKind, Opened, SerialId, Store, SubPool, TableDefinition, TableId};

use self::dropped::Dropped;
use crate::call::batch::{Calls, EpochInfo};
use crate::engine::{Engine, new_worker};
use crate::epoch::decode_deferred_calls;
use crate::epoch::workers::deal;
use crate::error::{EngineError, Result};
use crate::index::EntryId;
use crate::kept::{Attached, Found, find};
use crate::program::definitions::Definitions;
use crate::program::procedure::ProcedureTable;
use crate::program::schema::{self, Agreed};
use crate::reads::Reads;
use crate::recovery::kept::{attach_or_scan, begin, take_over};
use crate::recovery::replay::replay;
use crate::recovery::scan::{Opening, ScanShare, Scanned, count_rows, scan_all};
use crate::secondary::SecondaryIndexes;
use crate::state::config::EngineConfig;
use crate::state::core::{Core, RowKeys, SequenceState};
use crate::stats::{KeptProcedure, RecoveryReport};
use crate::table::{Table, order_word};
use crate::version::{EntrySlab, ReadPhase, RowPlace, persistent_word};
use crate::worker::{Totals, Worker};
use crate::worker_id::WorkerId;

impl Engine {
    /// Opens the store on a device, or creates one, and recovers: afterwards the engine is at the
    /// end of the last committed epoch.
    ///
    /// # Errors
    /// See [`crate::EngineError`]. An open that is refused changes no byte of a device that keeps
    /// files; on memory it may have added tables, and a replay that was refused has left what a
    /// crash in it would leave.
    pub fn open(
        device: Arc<AnyDevice>,
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
        device: Arc<AnyDevice>,
        config: EngineConfig,
        definitions: Definitions<'_>,
    ) -> Result<(Self, RecoveryReport)> {
        config.validate()?;
        open(device, config, definitions)
    }
}

/// Opens a store and recovers it. A log of a program of before is replayed and closed first, as
/// that program would have done; what there is to change changes then (O-107, O-108).
fn open(
    device: Arc<AnyDevice>,
    config: EngineConfig,
    mut definitions: Definitions<'_>,
) -> Result<(Engine, RecoveryReport)> {
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
fn close_past(mut engine: Engine, mut info: EpochInfo, timestamp_ns: u64) -> Result<()> {
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
struct OpenedOnce {
    engine: Engine,
    report: RecoveryReport,
    /// As [`Agreed::of_log`].
    of_log: Option<Vec<KeptProcedure>>,
}

fn open_once(
    device: Arc<AnyDevice>,
    config: EngineConfig,
    definitions: &mut Definitions<'_>,
) -> Result<OpenedOnce> {
    check_design(&config, device.as_ref())?;
    let clock = config.clock;
    let mut report = RecoveryReport::default();
    let started = clock();
    let Opened { mut store, mut sub_pools, index_segments, log, created, end_mark, device } =
        Store::open(device, &config.store)?;
    (report.created, report.load_log) = (created, device);
    report.checkpoint_epoch = store.checkpoint_epoch();
    report.timestamp_ns = log.timestamp_ns;
    let loaded = clock();

    let mut workers = (0..config.workers)
        .map(|number| new_worker(WorkerId::from_index(number), &config, &store))
        .collect::<Result<Vec<_>>>()?;
    let indexes = find(&store, index_segments)?;
    let (mut attached, mut rows) =
        attach_or_scan(&store, &sub_pools, &log, &indexes, &config, &mut report)?;
    let agreed = schema::agree(&store, &log, definitions)?;
    if attached.is_some() && !agreed.change.dropped.is_empty() {
        // Values of their rows have to be found.
        attached = None;
        rows = scan_all(&store, &sub_pools, &log, &config, &mut report)?;
    }
    let scanned = clock();

    let deferred_calls = read_deferred_calls(&store, agreed.procedures.len())?;
    remember_collected(&store, &sub_pools, &mut workers);
    check_collected(&agreed, &log, &workers)?;
    if log.committed.is_empty() && !created {
        store.device().accept()?;
    }
    clear_left_out(&store, &log, &rows);
    let Scanned { mut found, mut hash, .. } = rows;
    let dropped = Dropped::take(&store, &agreed.change, &mut found, &mut hash);
    store.adopt_catalog(&agreed.change, &mut sub_pools)?;
    deal(sub_pools, &mut workers);
    let mut core = new_core(config, &store)?;
    let (tables, parties) = (core.tables.len(), workers.len());
    let secondary = SecondaryIndexes::new(&agreed.indexes, &agreed.table_ids, tables, parties);
    core.secondary = secondary.map_err(EngineError::Limit)?;
    core.secondary.are_for_the_serial_part = agreed.program.defers_changes_of_indexes();
    core.missing.clone_from(&agreed.missing);
    let totals = Totals { hash, rows: (store.checkpoint().rows - dropped.rows) as i64 };
    report.rows = totals.rows as u64;
    report.indexes_kept = attached.is_some();
    make_indexes(&mut core, &store, attached, &indexes, found, &mut workers)?;
    tables::read(&core, &store)?;
    end_reading(&mut report, &mut workers);

    let mut engine = Engine::assemble(core, &agreed, Arc::new(store), workers, totals);
    engine.build_indexes()?;
    let rebuilt = clock();
    engine.set_deferred_calls(deferred_calls);
    engine.begin_changes();
    replay(&mut engine, &log, end_mark, &mut report)?;
    engine.end_changes();
    begin_program(&mut engine, &agreed, &dropped, created)?;
    report.epoch = engine.epoch();
    report.load_log_ns = loaded.saturating_sub(started);
    report.scan_ns = scanned.saturating_sub(loaded);
    report.rebuild_ns = rebuilt.saturating_sub(scanned);
    report.replay_ns = clock().saturating_sub(rebuilt);
    Ok(OpenedOnce { engine, report, of_log: agreed.of_log })
}

/// What is in memory, without rows.
fn new_core(config: EngineConfig, store: &Store) -> Result<Core> {
    let image_base = store.device().image().base() as usize;
    let in_memory = store.tables().iter().map(Table::new).collect();
    let entries = EntrySlab::new(store.segments(), store.device().has_memory_limit())?;
    let mut core = Core::new(config, in_memory, entries, image_base);
    core.limit_memory(store.device().as_ref());
    Ok(core)
}

/// Takes kept indexes over, or makes new ones.
fn make_indexes(
    core: &mut Core,
    store: &Store,
    attached: Option<Attached>,
    indexes: &Found,
    found: Vec<ScanShare>,
    workers: &mut [Worker],
) -> Result<()> {
    match attached {
        Some(attached) => take_over(attached, core, store, workers)?,
        None => {
            let counts = count_rows(&found, core.tables.len());
            begin(core, store, indexes, &counts);
            rebuild(core, store, found, &counts, workers);
        }
    }
    let keys_come_first: Vec<_> = core.tables.iter().map(|t| !t.hash.has_words()).collect();
    for worker in workers {
        worker.row_store.keys_come_first.clone_from(&keys_come_first);
    }
    Ok(())
}

/// Adds up what the rebuild has read. All steps before replay only read, so that they may be
/// repeated (O-29).
fn end_reading(report: &mut RecoveryReport, workers: &mut [Worker]) {
    workers.iter_mut().for_each(|w| report.rebuild.add(&w.row_store.port.take_counters()));
    assert!(report.created || !report.load_log.has_stores(), "a store that is opened is read");
    assert!(!report.scan.has_stores(), "the scan repairs nothing (O-27)");
    assert!(!report.rebuild.has_stores(), "indexes are rebuilt in memory");
}

/// Where only what is logged is durable, there has to be a log.
fn check_design(config: &EngineConfig, device: &AnyDevice) -> Result<()> {
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
fn check_collected(agreed: &Agreed, log: &Recovered, workers: &[Worker]) -> Result<()> {
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
fn clear_left_out(store: &Store, log: &Recovered, rows: &Scanned) {
    if !log.verdicts.is_empty() && !store.device().takes_snapshots() {
        let plan = rows.plan.as_ref().expect("on such devices all rows are scanned");
        storage::repair::clear_versions(store, plan, store.checkpoint_epoch());
    }
}

/// The calls that the checkpoint hands over to the next epoch.
fn read_deferred_calls(store: &Store, procedures: usize) -> Result<Calls> {
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
fn begin_program(
    engine: &mut Engine,
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
    store.device().note_opening(engine.epoch().next())?;
    dropped.free_values(&store, &mut engine.workers)?;
    let (bytes, port) = (agreed.program.encode(), &mut engine.workers[0].row_store.port);
    if store.log().program().as_ref() != Some(&bytes) {
        store.log().write_program(port, &bytes)?;
    }
    if !agreed.program.remembered.is_empty() && store.device().takes_snapshots() {
        store.require_feature(port, FEATURE_REMEMBERED_PROGRAMS);
    }
    if agreed.change.is_change {
        store.write_catalog(port, &agreed.change);
        engine.commit_now();
    }
    if created || agreed.change.is_change {
        engine.save_indexes();
        engine.settle_changes()?;
        storage::snapshot_image(store.device().as_ref(), store.checkpoint_epoch())?;
    }
    Ok(())
}

/// Tells the workers which pool slots a collection before the crash already freed (O-36).
fn remember_collected(store: &Store, sub_pools: &[SubPool], workers: &mut [Worker]) {
    let sequence = store.checkpoint().sequence;
    for sub_pool in sub_pools.iter().filter(|l| l.pool() as usize >= TABLES_MAX) {
        sub_pool.count_collected(&mut workers[0].row_store.port, store.segments(), sequence);
        let slots = sub_pool.collected_slots(store.device().as_ref(), store.segments(), sequence);
        for worker in workers.iter_mut() {
            worker.already_collected.extend(&slots);
        }
    }
}

/// Makes row entries and indexes of what the scan found, so many rows of each table, each worker of
/// one share.
fn rebuild(
    core: &Core,
    store: &Store,
    found: Vec<ScanShare>,
    counts: &[u64],
    workers: &mut [Worker],
) {
    for (table, &count) in core.tables.iter().zip(counts) {
        table.hash.reserve(count as usize);
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
    for (table, &count) in core.tables.iter().zip(counts) {
        assert!(table.hash.len() as u64 == count, "every row that was found is in its index");
    }
    workers[0].row_store.port.pay_owed_time();
}

fn rebuild_share(
    core: &Core,
    store: &Store,
    share: &ScanShare,
    worker: &mut Worker,
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
            core.entries.get(id).initialise(RowPlace::new(row.row, &t.layout), next, SerialId(0));
            core.entries.touch(id);
        }
        // A sequence has a short key, and its value is in another line.
        count_row(port, row, &t.layout, t.kind == IndexKind::Sequence);
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
