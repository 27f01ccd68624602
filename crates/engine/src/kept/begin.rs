//! Where there is no root: indexes begin without rows, and their segments are stock.

use pmem::sync::atomic::Ordering;
use pmem::{Device, Port};
use storage::Store;

use super::stock::Wanted;
use super::{Found, KeptIndexes};
use crate::index::OrderedIndex;
use crate::table::Table;

impl KeptIndexes {
    /// What there is of segments is stock, and the root's place that of the next one.
    pub(super) fn add<D: Device>(&self, store: &Store<D>, found: &Found) {
        let segments = store.segments();
        for &(segment, _) in &found.segments {
            self.space.add_segments(segments.offset(segment), segments.segment_bytes());
        }
        *self.root() = found.run;
        self.root_bytes.store(found.root_bytes, Ordering::Relaxed);
    }

    /// Begins without any index. A root that there is counts no more. `None` where nothing is kept.
    pub(crate) fn begin<D: Device>(
        store: &Store<D>,
        found: &Found,
        port: &mut Port<D>,
    ) -> Option<Self> {
        let Some(kept) = Self::new(store) else {
            assert!(found.run.is_none(), "such a device has never kept an index");
            return None;
        };
        if let Some(run) = found.run {
            store.segments().write_root(port, run.first, &[0]);
        }
        kept.add(store, found);
        Some(kept)
    }

    /// Begins the indexes of tables without rows.
    pub(crate) fn begin_tables<D: Device>(
        &self,
        tables: &mut [Table],
        store: &Store<D>,
        port: &mut Port<D>,
    ) {
        let ordered = tables.iter().filter(|table| table.ordered.is_some());
        let blocks = ordered.map(|_| OrderedIndex::FIRST_BYTES).collect();
        self.provide(store, port, Wanted { blocks, root: None, others: 0 });
        tables.iter_mut().for_each(|table| table.begin_in(&self.space));
    }
}
