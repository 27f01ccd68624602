//! What an engine keeps in memory, by structure.

use pmem::Device;
use storage::EpochNumber;
use storage::format::TABLES_MAX;

use crate::engine::Engine;
use crate::state::row_cache::RowCache;
use crate::stats::MemoryUse;
use crate::table::Table;

impl Engine {
    /// Pages of the image come and go where there is a limit of memory, also those of indexes.
    fn index_bytes(&self) -> u64 {
        let is_limited = self.store.device().has_memory_limit();
        let sum = |bytes: fn(&Table) -> usize| self.core.tables.iter().map(bytes).sum::<usize>();
        let of_image = if is_limited { sum(Table::image_bytes) } else { 0 };
        (sum(Table::memory_bytes) - of_image) as u64
    }

    fn transient_bytes(&self) -> u64 {
        self.workers.iter().map(|w| w.local.pool.high_water()).sum()
    }

    fn cache_bytes(&self) -> u64 {
        self.workers.iter().map(|w| w.local.cache.bytes()).sum()
    }

    /// What the engine keeps in memory beside the image.
    fn dram_bytes(&self) -> u64 {
        self.index_bytes()
            + self.core.entries.bytes()
            + self.transient_bytes()
            + self.cache_bytes()
            + self.kept_bytes(EpochNumber(0))
    }

    /// Bytes by structure.
    pub fn memory(&self) -> MemoryUse {
        let segments = self.store.segments();
        let pools = |rows: bool| {
            self.workers
                .iter()
                .flat_map(|w| w.row_store.sub_pools.iter().flatten())
                .filter(|l| ((l.pool() as usize) < TABLES_MAX) == rows)
                .map(|l| l.bytes(segments))
                .sum()
        };
        MemoryUse {
            index: self.index_bytes(),
            row_entries: self.core.entries.bytes(),
            transient_pool: self.transient_bytes(),
            cache: self.cache_bytes() + self.core.row_cache.as_ref().map_or(0, RowCache::bytes),
            snapshots: self.kept_bytes(EpochNumber(0)),
            pages: self.store.device().page_use(),
            persistent_rows: pools(true),
            persistent_values: pools(false),
            input_log: self.store.device().log_bytes(),
        }
    }

    /// Where the image may be larger than memory: what is left of the limit is for its pages.
    pub(super) fn leave_memory(&self) {
        if self.store.device().has_memory_limit() {
            self.store.device().leave_memory(self.dram_bytes());
        }
    }
}
