//! Where there is no root: indexes begin without rows, and their segments are stock.

use pmem::sync::atomic::Ordering;
use pmem::{Device, Port};
use storage::Store;

use super::stock::Wanted;
use super::{Found, KeptIndexes, Run};
use crate::index::{OrderedIndex, Slots};
use crate::table::Table;

impl KeptIndexes {
    /// What there is of segments is stock, and the root's place that of the next one.
    pub(super) fn add(&self, store: &Store, found: &Found) {
        let segments = store.segments();
        for &(segment, _) in &found.segments {
            self.space.add_segments(segments.offset(segment), segments.segment_bytes());
        }
        *self.root() = found.run;
        self.root_bytes.store(found.root_bytes, Ordering::Relaxed);
    }

    /// Begins without any index. A root that there is counts no more. `None` where nothing is kept:
    /// the segments, which a copy of a store has in memory, serve others.
    pub(crate) fn begin(store: &Store, found: &Found, port: &mut Port) -> Option<Self> {
        let segments = store.segments();
        if let Some(run) = found.run {
            segments.write_root(port, run.first, &[0]);
        }
        let kept = Self::new(store);
        match &kept {
            Some(kept) => kept.add(store, found),
            None => {
                found.segments.iter().for_each(|&(segment, of)| segments.give_back(segment, of));
                for (segment, of) in found.run.into_iter().flat_map(Run::entries_of_root) {
                    segments.give_back(segment, of);
                    // Not that a part of it is found, when others have the rest.
                    segments.erase(port, of);
                }
            }
        }
        kept
    }

    /// Begins the indexes of tables without rows.
    pub(crate) fn begin_tables(&self, tables: &mut [Table], store: &Store, port: &mut Port) {
        let ordered = tables.iter().filter(|table| table.ordered.is_some());
        let blocks = ordered.map(|_| OrderedIndex::FIRST_BYTES).collect();
        self.provide(store, port, Wanted { blocks, root: None, others: 0 });
        // Where memory is short, less of it counts for more than fewer looks at rows.
        let slots = match store.device().has_memory_limit() {
            true => Slots::Tags,
            false => Slots::Words,
        };
        tables.iter_mut().for_each(|table| table.begin_in(&self.space, slots));
    }
}
