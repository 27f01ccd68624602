//! Indexes of an open: those that the checkpoint has kept, or new ones of the rows that a scan has
//! found.

use std::sync::Arc;

use pmem::{AnyDevice, Device, LINE_BYTES, Port};
use storage::input_log::Recovered;
use storage::{IndexKind, Opened, StorageError, Store, StoreOptions, SubPool};

use super::scan::{Opening, ScanShare, Scanned, scan_all};
use crate::error::Result;
use crate::kept::{self, Attached, Demand, Found, KeptIndexes};
use crate::state::config::EngineConfig;
use crate::state::core::{Core, SequenceState};
use crate::stats::RecoveryReport;
use crate::table::word_of;
use crate::version::{ReadPhase, newest_version};
use crate::worker::Worker;

/// The indexes of the checkpoint, if they are kept and can be believed; else all rows are visited.
/// Where that is wanted all the same the two are compared.
pub(super) fn attach_or_scan(
    store: &Store,
    sub_pools: &[SubPool],
    log: &Recovered,
    found: &Found,
    config: &EngineConfig,
    report: &mut RecoveryReport,
) -> Result<(Option<Attached>, Scanned)> {
    // A state hash that is wanted, and that the checkpoint has not, is that of the rows.
    let has_hash = store.checkpoint().state_hash().is_some() || !config.lab.state_hash;
    let attached = has_hash.then(|| kept::attach(store, found)).flatten();
    match attached {
        Some(attached) if !config.lab.scans_rows => {
            Ok((Some(attached), Scanned::of_kept(store, report)))
        }
        attached => {
            let scanned = scan_all(store, sub_pools, log, config, report)?;
            if let Some(attached) = attached {
                attached.compare(store, &by_table(&scanned.found, store.tables().len()))?;
            }
            Ok((None, scanned))
        }
    }
}

/// The offsets of the rows of each table.
fn by_table(found: &[ScanShare], tables: usize) -> Vec<Vec<u64>> {
    let mut rows = vec![Vec::new(); tables];
    for (table, row) in found.iter().flat_map(|found| &found.rows) {
        rows[table.index()].push(row.row);
    }
    rows
}

/// Makes kept indexes those of an engine without rows yet. Tables that are new get empty ones.
pub(super) fn take_over(
    attached: Attached,
    core: &mut Core,
    store: &Store,
    workers: &mut [Worker],
) -> Result<()> {
    let Attached { kept, entries, stale, tables } = attached;
    let count = tables.len();
    assert!(count <= core.tables.len(), "a table keeps its number");
    core.entries = entries;
    for (table, indexes) in core.tables.iter_mut().zip(tables) {
        (table.hash, table.ordered) = (indexes.hash, indexes.ordered);
    }
    kept.begin_tables(&mut core.tables[count..], store, &mut port_of(store));
    core.kept = Some(kept);
    read_sequences(core, store)?;
    for (id, number) in stale.into_iter().zip((0..workers.len()).cycle()) {
        let generation = core.entries.get(id).generation();
        workers[number].collect.push((id, generation));
    }
    Ok(())
}

/// Begins the indexes of tables that will have so many rows each.
pub(super) fn begin(core: &mut Core, store: &Store, found: &Found, rows: &[u64]) {
    let mut port = port_of(store);
    core.kept = KeptIndexes::begin(store, found, &mut port);
    let Some(kept) = &core.kept else { return };
    kept.begin_tables(&mut core.tables, store, &mut port);
    let demand = Demand { inserts: rows, others: 0, stale: 0, saves: false };
    kept.stock(&core.tables, store, &mut port, &demand);
}

/// What goes through it is memory until the store is accepted, and no part of any report.
fn port_of(store: &Store) -> Port {
    Port::new(Arc::clone(store.device()), u32::MAX)
}

/// Sequences are what their rows say.
fn read_sequences(core: &Core, store: &Store) -> Result<()> {
    let (phase, device) = (ReadPhase::of(&Opening), store.device());
    let mut sequences = core.sequences.write().expect("no panic while locked");
    for table in core.tables.iter().filter(|table| table.kind == IndexKind::Sequence) {
        for [offset, buckets, _] in table.hash.kept().unwrap_or_default() {
            device.read_pages(offset, buckets * LINE_BYTES)?;
        }
        let mut found = Vec::new();
        table.hash.for_each(|_, id| found.push(id));
        for id in found {
            let row = core.entries.row_of(id);
            device.read_pages(row, table.layout.row_bytes)?;
            let word = word_of(phase.key_at(core.image_base, row)).expect("a key that is a word");
            let (value, _) = newest_version(core.image_base, row, |_| &table.layout);
            let next = phase.bytes(value).try_into().map_or(0, u64::from_le_bytes);
            let state = SequenceState { next, id: Some(id), ..SequenceState::default() };
            sequences.insert((table.layout.table, word), state);
        }
    }
    Ok(())
}

/// Compares the indexes that the checkpoint of a store keeps with its rows, all of which are
/// visited. Returns whether it keeps any. Changes no byte of a device that keeps files.
///
/// # Errors
/// `Storage(Corrupt)` with the first difference, or if the rows are damaged; as
/// [`crate::Engine::open`].
pub fn check_kept_indexes(device: Arc<AnyDevice>) -> Result<bool> {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let Opened { store, sub_pools, index_segments, log, .. } = Store::open(device, &options)?;
    let found = kept::find(&store, index_segments)?;
    if !found.has_root() {
        return Ok(false);
    }
    let Some(attached) = kept::attach(&store, &found) else {
        let what = "the kept indexes are not where their root says".into();
        return Err(StorageError::Corrupt(what).into());
    };
    let (config, mut report) = (EngineConfig::default(), RecoveryReport::default());
    let scanned = scan_all(&store, &sub_pools, &log, &config, &mut report)?;
    attached.compare(&store, &by_table(&scanned.found, store.tables().len()))?;
    Ok(true)
}
