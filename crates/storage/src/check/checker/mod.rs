//! The checker: reads a whole store without changing it and says what is wrong.
//!
//! It accounts for every slot: a row slot is live, free or never used; a value slot belongs to
//! exactly one version, or is free, or was never used (O-33, O-41). It recomputes the state hash
//! (O-48). What a row says by itself is checked by the scan, as at recovery (`scan/visit.rs`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pmem::{AnyDevice, Device};

use crate::digest::{StateHash, row_hash};
use crate::error::Result;
use crate::format::{CLASS_BYTES_MIN, TABLES_MAX};
use crate::ids::EpochNumber;
use crate::pool::SubPool;
use crate::scan::{ScanPlan, ScannedRow};
use crate::store::{Opened, Store, StoreOptions};
use crate::{row, scan};

/// What the checker found.
#[derive(Debug, Clone)]
pub struct CheckReport {
    /// Epoch of the checkpoint.
    pub epoch: EpochNumber,
    /// State hash, recomputed.
    pub state_hash: StateHash,
    /// Whether the checkpoint knows its own, so that the two could be compared.
    pub hash_is_stored: bool,
    /// Live rows of each table, by name.
    pub rows: Vec<(String, u64)>,
    /// Committed epochs after the checkpoint: they are replayed at the next open.
    pub committed_epochs: Vec<EpochNumber>,
    /// Everything that is wrong; empty for a clean store.
    pub problems: Vec<String>,
}

/// Opens the store read-only and checks it.
///
/// # Errors
/// Only if the store cannot be opened at all; everything else is in the report.
pub fn check(device: Arc<AnyDevice>) -> Result<CheckReport> {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let opened = Store::open(device, &options)?;
    Ok(check_opened(&opened))
}

/// Checks a store that was just opened and not used yet.
pub fn check_opened(opened: &Opened) -> CheckReport {
    let store = &opened.store;
    let checkpoint = store.checkpoint();
    let mut checker = Checker {
        opened,
        problems: Vec::new(),
        hash: StateHash::default(),
        rows: vec![0; store.tables().len()],
        values: HashMap::new(),
    };
    checker.scan_rows(EpochNumber(checkpoint.epoch));
    checker.account_values(checkpoint.sequence);
    let stored = checkpoint.state_hash();
    if let Some(stored) = stored.filter(|stored| *stored != checker.hash)
        && checker.problems.is_empty()
    {
        checker.problems.push(format!(
            "state hash is {}, the checkpoint of epoch {} says {stored}",
            checker.hash, checkpoint.epoch
        ));
    }
    let total: u64 = checker.rows.iter().sum();
    if checker.problems.is_empty() && total != checkpoint.rows {
        checker
            .problems
            .push(format!("{total} live rows, the checkpoint says {}", checkpoint.rows));
    }
    CheckReport {
        epoch: EpochNumber(checkpoint.epoch),
        state_hash: checker.hash,
        hash_is_stored: stored.is_some(),
        rows: store
            .tables()
            .iter()
            .zip(&checker.rows)
            .filter(|(table, _)| table.is_used())
            .map(|(t, &n)| (t.definition.name.clone(), n))
            .collect(),
        committed_epochs: opened.log.committed.iter().map(|e| e.epoch).collect(),
        problems: checker.problems,
    }
}

struct Checker<'a> {
    opened: &'a Opened,
    problems: Vec<String>,
    hash: StateHash,
    rows: Vec<u64>,
    /// Pool slots that versions refer to: offset, to the row and whether the version is stale.
    values: HashMap<u64, (u64, bool)>,
}

impl Checker<'_> {
    fn scan_rows(&mut self, epoch: EpochNumber) {
        let opened = self.opened;
        let (store, device) = (&opened.store, opened.store.device().as_ref());
        let plan = scan::plan(store, &opened.sub_pools, &opened.log);
        self.find_duplicates("free row slot", &plan.free);
        self.account_free_rows(&plan);
        for unit in &plan.units {
            let layout = store.tables()[unit.table.index()].layout;
            let visited =
                scan::visit(device, store.segments(), *unit, &layout, &plan, epoch, |scanned| {
                    self.row(&scanned, &layout, epoch);
                    Ok(())
                });
            if let Err(error) = visited {
                self.problems.push(error.to_string());
            }
        }
    }

    fn row(&mut self, scanned: &ScannedRow, layout: &crate::row::RowLayout, epoch: EpochNumber) {
        let device = self.opened.store.device().as_ref();
        let pointer = scanned.pointer();
        let at = layout.value_offset(scanned.row, scanned.slot, pointer);
        // SAFETY: the row is allocated, its pointer was checked, and nothing stores during a check.
        let (key, value) = unsafe {
            (row::key(device, scanned.row), device.image().slice(at, pointer.value_bytes()))
        };
        self.hash.add(row_hash(layout.table, key, value));
        self.rows[layout.table.index()] += 1;
        let live = pointer.external_offset().map(|offset| (offset, false));
        let stale = scanned.stale_external(epoch).map(|offset| (offset, true));
        for (offset, is_stale) in live.into_iter().chain(stale) {
            if let Some((other, _)) = self.values.insert(offset, (scanned.row, is_stale)) {
                self.problems.push(format!(
                    "rows at {other} and {} both own the value slot at {offset}",
                    scanned.row
                ));
            }
        }
    }

    fn find_duplicates(&mut self, what: &str, sorted: &[u64]) {
        for pair in sorted.windows(2).filter(|p| p[0] == p[1]) {
            self.problems.push(format!("{what} at {} is on the free lists twice", pair[0]));
        }
    }

    /// Every free row slot is one that was allocated.
    fn account_free_rows(&mut self, plan: &ScanPlan) {
        let (store, mut slots) = (&self.opened.store, HashSet::new());
        for unit in &plan.units {
            let first = store.segments().offset(unit.segment);
            let row_bytes = store.tables()[unit.table.index()].layout.row_bytes;
            slots.extend((0..unit.slots).map(|slot| first + slot * row_bytes));
        }
        for offset in plan.free.iter().filter(|offset| !slots.contains(offset)) {
            self.problems.push(format!("free row slot at {offset} was never allocated"));
        }
    }

    /// Every value slot below the bump offset is owned or free, and not both.
    fn account_values(&mut self, sequence: u64) {
        let opened = self.opened;
        let (device, segments) = (opened.store.device().as_ref(), opened.store.segments());
        let values = |l: &&SubPool| l.pool() as usize >= TABLES_MAX;
        let (mut free, mut collected, mut slots) = (Vec::new(), HashSet::new(), HashSet::new());
        for sub_pool in opened.sub_pools.iter().filter(values) {
            free.extend(sub_pool.free_slots(device, segments));
            collected.extend(sub_pool.collected_slots(device, segments, sequence));
            for (segment, used) in sub_pool.used_segments() {
                let first = segments.offset(segment);
                slots.extend((0..used).map(|i| first + i * sub_pool.slot_bytes()));
            }
        }
        free.sort_unstable();
        self.find_duplicates("value slot", &free);
        for offset in &free {
            // A crash between the two steps of a major collection leaves the stale pointer (O-34).
            let owner = self.values.get(offset);
            if owner.is_some_and(|&(_, stale)| !stale || !collected.contains(offset)) {
                self.problems.push(format!("value slot at {offset} is free and owned"));
            }
            if !slots.contains(offset) {
                self.problems.push(format!("free value slot at {offset} was never allocated"));
            }
        }
        for (offset, (row, _)) in &self.values {
            if !slots.contains(offset) {
                self.problems.push(format!("row at {row} owns {offset}, which is no value slot"));
            }
        }
        let free: HashSet<u64> = free.into_iter().collect();
        let leaked = slots.iter().filter(|s| !free.contains(s) && !self.values.contains_key(s));
        for offset in leaked {
            self.problems.push(format!(
                "value slot at {offset} (of {CLASS_BYTES_MIN} bytes or more) is leaked"
            ));
        }
    }
}

#[cfg(test)]
mod tests;
