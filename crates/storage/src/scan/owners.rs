//! What owns the value slots, while a store is recovered: none has two owners (O-33).
//!
//! A row's stale version is what the major collector frees next. If its pointer is damaged and
//! names the value of another row, or a slot that is free already, that slot would be allocated
//! under a row that lives. The checker finds the same with more words (`checker`); this is one bit
//! for each possible slot, so that every recovery can afford it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, StorageError};
use crate::format::{CLASS_BYTES_MIN, TABLES_MAX};
use crate::ids::TableId;
use crate::pool::SubPool;
use crate::scan::{ScanPlan, ScannedRow};
use crate::store::Store;

/// A bit for each possible slot of the segments that hold values.
pub struct Owners {
    /// First word of the bits of each segment, if it holds values.
    words_of: Vec<Option<usize>>,
    owned: Vec<AtomicU64>,
}

impl Owners {
    /// Only the free lists own slots. What was collected after the checkpoint may be owned
    /// by a stale version, too: a crash between the two steps of a collection leaves that (O-34).
    ///
    /// # Errors
    /// `Corrupt` for a slot that is free twice.
    pub fn new(store: &Store, sub_pools: &[SubPool], plan: &ScanPlan) -> Result<Self> {
        let (device, segments) = (store.device().as_ref(), store.segments());
        let planned = plan.value_slots.len() as u64;
        assert!(planned <= segments.used(), "a plan knows segments that are in use");
        let words = (segments.segment_bytes() / CLASS_BYTES_MIN).div_ceil(64) as usize;
        let mut next = 0;
        let words_of = plan.value_slots.iter().map(|slots| {
            let first = next;
            next += if *slots > 0 { words } else { 0 };
            (*slots > 0).then_some(first)
        });
        let words_of = words_of.collect();
        let owned = (0..next).map(|_| AtomicU64::new(0)).collect();
        let owners = Self { words_of, owned };
        let sequence = store.checkpoint().sequence;
        for sub_pool in sub_pools.iter().filter(|sub_pool| sub_pool.pool() as usize >= TABLES_MAX) {
            let collected = sub_pool.collected_slots(device, segments, sequence);
            let collected: HashSet<u64> = collected.into_iter().collect();
            for offset in sub_pool.free_slots(device, segments) {
                if !collected.contains(&offset) && !owners.claim(store, offset) {
                    let what = format!("the value slot at {offset} is on the free lists twice");
                    return Err(StorageError::Corrupt(what));
                }
            }
        }
        Ok(owners)
    }

    /// Notes what a row owns, which the scan has found to be slots.
    ///
    /// # Errors
    /// `Corrupt` for a slot that is free, or that another row owns.
    pub fn add(&self, store: &Store, table: TableId, row: &ScannedRow) -> Result<()> {
        let stale = row.stale_external(store.checkpoint_epoch());
        for offset in row.pointer().external_offset().into_iter().chain(stale) {
            if !self.claim(store, offset) {
                return Err(StorageError::Corrupt(format!(
                    "row at offset {} of table {table}: the value slot at {offset} is free, or of \
                     another version",
                    row.row
                )));
            }
        }
        Ok(())
    }

    /// Makes a slot owned; false if it was.
    fn claim(&self, store: &Store, offset: u64) -> bool {
        let segments = store.segments();
        let place = segments.segment_of(offset).and_then(|segment| {
            let first = self.words_of.get(segment as usize).copied().flatten()?;
            let slot = (offset - segments.offset(segment)) / CLASS_BYTES_MIN;
            Some((first + slot as usize / 64, 1 << (slot % 64)))
        });
        let Some((word, bit)) = place else { return false };
        self.owned[word].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}
