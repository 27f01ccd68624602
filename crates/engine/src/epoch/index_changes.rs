//! Keys on their way into the ordered indexes, and out of them: each worker collects its own, then
//! all of them are applied at once, every worker to its part of the index.

use crate::index::{EntryId, ExactWords};
use crate::memory::Local;
use crate::state::core::RowKeys;
use crate::table::Table;
use crate::worker::{Epoch, IndexChanges, Leave, Worker};

/// What becomes of the changes of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Rows that the insert step created.
    Add,
    /// Rows that were deleted in execution.
    Remove,
}

/// Sorts a worker's lists, as [`apply`] needs them.
pub(super) fn sort(epoch: &Epoch<'_>, worker: &mut Worker, changes: &mut IndexChanges) {
    let core = epoch.core;
    let Local { sort_room: room, reads, .. } = &mut worker.local;
    for (table, list) in core.tables.iter().zip(changes) {
        if let Some(ordered) = table.ordered.as_ref().filter(|_| !list.is_empty()) {
            if table.exact {
                ordered.sort_part(list, room, &ExactWords);
            } else {
                ordered.sort_part(list, room, &RowKeys { core, reads });
            }
        }
    }
    reads.account_charged(&mut worker.row_store.port, core.image_base);
}

/// Applies the lists of all workers, which must have left them, and empties them.
pub(super) fn apply(epoch: &Epoch<'_>, worker: &mut Worker, change: Change) -> Result<(), Leave> {
    let changes = match change {
        Change::Add => &epoch.shared.added,
        Change::Remove => &epoch.shared.removed,
    };
    let lists: Vec<_> = changes.iter().map(|l| l.read().expect("no panic while locked")).collect();
    let touched = |table: &usize| lists.iter().any(|changes| !changes[*table].is_empty());
    let tables: Vec<usize> = (0..epoch.core.tables.len()).filter(touched).collect();
    for &table in &tables {
        let lists: Vec<&[(u64, EntryId)]> = lists.iter().map(|l| l[table].as_slice()).collect();
        apply_part(epoch, &worker.local, &epoch.core.tables[table], &lists, change);
    }
    worker.local.reads.account_charged(&mut worker.row_store.port, epoch.core.image_base);
    drop(lists);
    if tables.is_empty() {
        return Ok(());
    }
    epoch.barrier()?;
    if epoch.leads(worker) {
        for &table in &tables {
            let Table { hash, ordered, .. } = &epoch.core.tables[table];
            let ordered = ordered.as_ref().expect("it took keys");
            ordered.finish_merge();
            debug_assert!(ordered.len() == hash.len(), "both indexes of a table have its rows");
        }
    }
    changes[worker.local.worker.index()]
        .write()
        .expect("no panic while locked")
        .iter_mut()
        .for_each(Vec::clear);
    epoch.barrier()?;
    Ok(())
}

/// One worker's part of one table.
fn apply_part(
    epoch: &Epoch<'_>,
    local: &Local,
    table: &Table,
    lists: &[&[(u64, EntryId)]],
    change: Change,
) {
    let (part, parts, core) = (local.worker.index(), epoch.workers, epoch.core);
    assert!(lists.len() >= parts, "each worker has a list");
    let keys = RowKeys { core, reads: &local.reads };
    let ordered = table.ordered.as_ref().expect("only ordered tables collect keys");
    match (change, table.exact) {
        (Change::Add, true) => ordered.merge_part(part, parts, lists, &ExactWords),
        (Change::Add, false) => ordered.merge_part(part, parts, lists, &keys),
        (Change::Remove, true) => {
            ordered.remove_part(part, parts, lists, &ExactWords);
        }
        (Change::Remove, false) => {
            ordered.remove_part(part, parts, lists, &keys);
        }
    }
}
