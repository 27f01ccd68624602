//! Step 4, second half: indexes as they were at the checkpoint.

use std::sync::Arc;

use pmem::Device;
use storage::{EpochNumber, IndexKind, Store};

use super::root::{KeptTable, Root};
use super::{Found, KeptIndexes};
use crate::index::{EntryId, HashIndex, IndexSpace, OrderedIndex};
use crate::version::EntrySlab;

/// Indexes as they were at the checkpoint.
pub(crate) struct Attached {
    pub(crate) kept: KeptIndexes,
    /// Which ids rows have; no entry is touched yet.
    pub(crate) entries: EntrySlab,
    /// Rows whose stale external version the next epoch collects.
    pub(crate) stale: Vec<EntryId>,
    /// By the number of the table.
    pub(crate) tables: Vec<AttachedTable>,
}

/// Those of a table.
pub(crate) struct AttachedTable {
    pub(crate) hash: HashIndex,
    pub(crate) ordered: Option<OrderedIndex>,
}

/// Takes the indexes over that a root names. `None` if there is none, or they are not where it
/// says: the rows have to be scanned.
pub(crate) fn attach(store: &Store, found: &Found) -> Option<Attached> {
    let Root { epoch, ids, stale, tables } = found.root.as_ref()?;
    let kept = KeptIndexes::new(store)?;
    kept.add(store, found);
    kept.set_saved(Some(EpochNumber(*epoch)));
    let segments = store.segments();
    let entries = EntrySlab::new(segments, store.device().has_memory_limit()).ok()?;
    if tables.len() != store.tables().len() || !entries.can_be(ids, segments.used()) {
        return None;
    }
    entries.restore_ids(ids);
    let of_stored = store.tables().iter().map(|table| table.definition.index);
    let attached: Vec<_> = tables
        .iter()
        .zip(of_stored)
        .map(|(table, kind)| attach_table(&kept.space, table, kind))
        .collect::<Option<_>>()?;
    let rows: usize = attached.iter().map(|table| table.hash.len()).sum();
    let stale: Vec<_> = stale.iter().map(|&id| EntryId(id as u32)).collect();
    let is_right = rows as u64 == store.checkpoint().rows;
    let are_rows = stale.iter().all(|&id| entries.has_row(id));
    (is_right && are_rows).then_some(Attached { kept, entries, stale, tables: attached })
}

fn attach_table(
    space: &Arc<IndexSpace>,
    table: &KeptTable,
    kind: IndexKind,
) -> Option<AttachedTable> {
    let KeptTable { slots, hash: shards, order } = table;
    let hash = HashIndex::new_in(Arc::clone(space), *slots);
    if !hash.attach(shards) || order.is_some() != (kind == IndexKind::Ordered) {
        return None;
    }
    let ordered = match order {
        Some(order) if order.len == hash.len() as u64 => {
            Some(OrderedIndex::attach(Arc::clone(space), order)?)
        }
        Some(_) => return None,
        None => None,
    };
    Some(AttachedTable { hash, ordered })
}
