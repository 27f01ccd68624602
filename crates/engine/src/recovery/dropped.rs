//! Rows of tables that are dropped: out of what the scan found, and their values back to the pools.

use std::collections::BTreeMap;

use pmem::Device;
use storage::{CatalogChange, StateHash, Store, ValuePointer, class_of, class_pool, row_hash};

use super::scan::{Opening, ScanShare};
use crate::error::Result;
use crate::version::{ReadPhase, persistent_word};
use crate::worker::Worker;

/// What goes with the tables that are dropped.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    /// Slots of values, with their pools.
    values: Vec<(u16, u64)>,
    pub(crate) rows: u64,
}

impl Dropped {
    /// Takes the rows of dropped tables out of those that were found, and out of their hash. To be
    /// called before the store adopts its new catalog.
    pub(crate) fn take(
        store: &Store,
        change: &CatalogChange,
        found: &mut [ScanShare],
        hash: &mut StateHash,
    ) -> Self {
        let (mut dropped, base) = (Self::default(), store.device().image().base() as usize);
        if change.dropped.is_empty() {
            return dropped;
        }
        let (phase, epoch) = (ReadPhase::of(&Opening), store.checkpoint_epoch());
        for found in found {
            found.rows.retain(|(table, row)| {
                if !change.dropped.contains(table) {
                    return true;
                }
                let layout = &store.tables()[table.index()].layout;
                let value = phase.bytes(persistent_word(base, layout, row));
                hash.remove(row_hash(*table, phase.key_at(base, row.row), value));
                dropped.rows += 1;
                let stale = ValuePointer(row.versions[1 - row.slot].pointer);
                let pool = |pointer: ValuePointer| class_pool(class_of(pointer.value_bytes()));
                let stale = row.stale_external(epoch).map(|at| (pool(stale), at));
                let live = row.pointer().external_offset().map(|at| (pool(row.pointer()), at));
                dropped.values.extend(live.into_iter().chain(stale));
                false
            });
        }
        dropped
    }

    /// Gives their values back, durably, each to the sub-pool that it came from: with the next
    /// checkpoint they are free.
    ///
    /// # Errors
    /// `Storage(Device(Full))` if there is no room for lists of them; nothing has changed then.
    pub(crate) fn free_values(&self, store: &Store, workers: &mut [Worker]) -> Result<()> {
        let segments = store.segments();
        let mut freed: BTreeMap<(u16, u8), Vec<u64>> = BTreeMap::new();
        for &(pool, at) in &self.values {
            let segment = segments.segment_of(at).expect("the scan has checked pointers");
            let of = segments.use_of(store.device().as_ref(), segment);
            let sub_pool = of.expect("the directory was read").sub_pool;
            freed.entry((pool, sub_pool)).or_default().push(at);
        }
        let per_segment = segments.segment_bytes() / size_of::<u64>() as u64;
        let lists = freed.values().map(|slots| slots.len() as u64 / per_segment + 2).sum();
        segments.reserve(store.device().as_ref(), lists)?;
        let mut given_back = 0;
        for worker in workers {
            for (&(pool, sub_pool), slots) in &freed {
                given_back += worker.row_store.free_to(pool, sub_pool, slots, segments)?;
            }
            worker.row_store.save(segments, None);
            worker.row_store.port.fence();
        }
        assert!(given_back == self.values.len(), "each value is given back to one sub-pool");
        Ok(())
    }
}
