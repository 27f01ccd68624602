//! The scan: all rows as of the checkpoint, visited once by all workers.

use std::sync::Arc;

use pmem::sync::atomic::{AtomicUsize, Ordering};
use pmem::sync::thread;
use pmem::{Counters, Device, Port};
use storage::input_log::Recovered;
use storage::scan::{self, ScanPlan, ScannedRow};
use storage::settle::SettleRows;
use storage::{Owners, StateHash, StorageError, Store, SubPool, TableId};

use crate::error::Result;
use crate::state::config::EngineConfig;
use crate::stats::{HashCheck, RecoveryReport};
use crate::version::{HoldsValues, ReadPhase, persistent_word};

/// What an open found of the rows.
pub(super) struct Scanned {
    /// `None` where no row was visited.
    pub(super) plan: Option<ScanPlan>,
    pub(super) found: Vec<ScanShare>,
    pub(super) hash: StateHash,
}

impl Scanned {
    /// Of an open that visits none.
    pub(super) fn of_kept(store: &Store, report: &mut RecoveryReport) -> Self {
        let hash = store.checkpoint().state_hash();
        report.hash = if hash.is_some() { HashCheck::Kept } else { HashCheck::Unknown };
        Self { plan: None, found: Vec::new(), hash: hash.unwrap_or_default() }
    }
}

/// Visits all rows.
pub(super) fn scan_all(
    store: &Store,
    sub_pools: &[SubPool],
    log: &Recovered,
    config: &EngineConfig,
    report: &mut RecoveryReport,
) -> Result<Scanned> {
    let plan = scan::plan(store, sub_pools, log);
    let owners = Owners::new(store, sub_pools, &plan)?;
    let (found, hash) = scan_rows(store, &plan, &owners, config)?;
    report.scan = count_planning(store, sub_pools);
    found.iter().for_each(|found| report.scan.add(&found.device));
    report.hash = match (store.checkpoint().state_hash(), config.lab.state_hash) {
        (Some(_), _) => HashCheck::Verified,
        (None, true) => HashCheck::Computed,
        (None, false) => HashCheck::Unknown,
    };
    Ok(Scanned { plan: Some(plan), found, hash })
}

/// What one thread of the scan found.
#[derive(Default)]
pub(super) struct ScanShare {
    pub(super) rows: Vec<(TableId, ScannedRow)>,
    hash: StateHash,
    /// What it read.
    device: Counters,
}

/// Rows of each table.
pub(super) fn count_rows(found: &[ScanShare], tables: usize) -> Vec<u64> {
    let mut counts = vec![0; tables];
    for (table, _) in found.iter().flat_map(|found| &found.rows) {
        counts[table.index()] += 1;
    }
    counts
}

/// Counts and charges the free lists that planning the scan read.
fn count_planning(store: &Store, sub_pools: &[SubPool]) -> Counters {
    let mut port = scan_port(store);
    for sub_pool in sub_pools.iter().filter(|l| (l.pool() as usize) < store.tables().len()) {
        sub_pool.count_free_list(&mut port, store.segments());
    }
    port.pay_owed_time();
    port.take_counters()
}

/// A port of a thread that only reads.
fn scan_port(store: &Store) -> Port {
    Port::new(Arc::clone(store.device()), u32::MAX)
}

/// Visits all rows on as many threads as there are workers. Returns what each found, and the hash
/// of all, which is the checkpoint's if that has one; nothing if it is not needed.
fn scan_rows(
    store: &Store,
    plan: &ScanPlan,
    owners: &Owners,
    config: &EngineConfig,
) -> Result<(Vec<ScanShare>, StateHash)> {
    // One by one, as they are visited, they would come slowly.
    store.device().wait_for_pages()?;
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
pub(super) struct Opening;

#[expect(unsafe_code, reason = "no epoch runs in an open")]
// SAFETY: while rows are scanned and entered into indexes nothing is freed, and versions of the
// checkpoint are not written: stale ones are, which nothing looks at.
unsafe impl HoldsValues for Opening {}

/// What a thread of the scan has at hand.
struct Scanning<'s> {
    plan: &'s ScanPlan,
    owners: &'s Owners,
    /// Whether rows are hashed.
    hashes: bool,
    port: &'s mut Port,
    settle: &'s mut SettleRows,
}

fn scan_unit(
    store: &Store,
    unit: scan::ScanUnit,
    with: Scanning<'_>,
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
