//! Step 3: the root of a snapshot.

use pmem::Port;
use pmem::sync::atomic::Ordering;
use storage::format::FEATURE_KEPT_INDEXES;
use storage::{EpochNumber, Store};

use super::KeptIndexes;
use super::root::{KeptTable, Root};
use crate::index::EntryId;
use crate::table::Table;
use crate::version::EntrySlab;

/// What a root is of.
pub(crate) struct Indexes<'i> {
    pub(crate) tables: &'i [Table],
    pub(crate) entries: &'i EntrySlab,
    /// Rows whose stale external version the next epoch collects.
    pub(crate) stale: &'i [EntryId],
}

impl KeptIndexes {
    /// Writes the root of a snapshot of an epoch; or that there is none. No worker changes an index
    /// meanwhile.
    pub(crate) fn save(
        &self,
        indexes: &Indexes<'_>,
        store: &Store,
        port: &mut Port,
        epoch: EpochNumber,
    ) {
        let Some(run) = *self.root() else { return };
        let segments = store.segments();
        let words = contents(indexes, store, epoch).map(|root| root.encode());
        let words = words.filter(|words| words.len() as u64 * 8 <= run.bytes(segments));
        self.set_saved(words.is_some().then_some(epoch));
        if let Some(words) = &words {
            self.root_bytes.store(words.len() as u64 * 8, Ordering::Relaxed);
            store.require_feature(port, FEATURE_KEPT_INDEXES);
        }
        segments.write_root(port, run.first, &words.unwrap_or_else(|| vec![0]));
    }

    /// Whether the root is of another epoch, and one of this epoch could be saved.
    pub(crate) fn can_save(&self, tables: &[Table], epoch: EpochNumber) -> bool {
        self.saved() != Some(epoch) && kept_tables(tables).is_some()
    }
}

/// `None` if some index has memory elsewhere.
fn kept_tables(tables: &[Table]) -> Option<Vec<KeptTable>> {
    let of_table = |table: &Table| {
        let order = match &table.ordered {
            Some(ordered) => Some(ordered.kept()?),
            None => None,
        };
        Some(KeptTable { slots: table.hash.slots(), hash: table.hash.kept()?, order })
    };
    tables.iter().map(of_table).collect()
}

fn contents(indexes: &Indexes<'_>, store: &Store, epoch: EpochNumber) -> Option<Root> {
    let tables = kept_tables(indexes.tables)?;
    let stale = indexes.stale.iter().map(|id| u64::from(id.0)).collect();
    let ids = indexes.entries.kept_ids(store.segments().used());
    Some(Root { epoch: epoch.0, ids, stale, tables })
}
