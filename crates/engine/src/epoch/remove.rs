//! After execution: rows that ended as a tombstone, and rows whose inserters all aborted, leave the
//! indexes (O-18). Their slots go to the free list, which counts from the next checkpoint on.

use pmem::Device;

use crate::epoch::insert::sort_staged;
use crate::index::{EntryId, ExactWords};
use crate::table::{RowKeys, order_word};
use crate::version::Gone;
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    let core = epoch.core;
    let gone = std::mem::take(&mut worker.medium.gone);
    let mut staged =
        epoch.shared.removed[worker.local.worker].write().expect("no panic while locked");
    for &Gone { table, id, word } in &gone {
        let t = &core.tables[table as usize];
        let entry = core.entries.get(id);
        let exact = word.to_be_bytes();
        let key = if t.exact { &exact } else { core.key_of(id) };
        let word = t.word(key).expect("it was checked when the row was inserted");
        assert!(t.hash.remove(word.hash, id), "a row that is gone was in the index");
        if t.ordered.is_some() {
            staged[table as usize].push((order_word(key), id));
        }
        if let Some(cached) = entry.cached() {
            entry.set_cached(None);
            worker.local.cache.retire(cached);
        }
        let (port, lanes) = (&mut worker.medium.port, &mut worker.medium.lanes);
        lanes[table as usize][0].push(port, epoch.store.segments(), entry.row())?;
        worker.local.work.rows_removed += 1;
    }
    sort_staged(core, &mut staged);
    drop(staged);
    epoch.barrier()?;
    remove_ordered(epoch, worker)?;
    for row in gone {
        core.entries.give_back(&mut worker.local.supply, row.id);
    }
    Ok(())
}

/// Takes the staged keys of all workers out of the ordered indexes.
fn remove_ordered<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    let lists: Vec<_> =
        epoch.shared.removed.iter().map(|l| l.read().expect("no panic while locked")).collect();
    let touched = |table: usize| lists.iter().any(|staged| !staged[table].is_empty());
    let tables: Vec<usize> = (0..epoch.core.tables.len()).filter(|&t| touched(t)).collect();
    for &index in &tables {
        let table = &epoch.core.tables[index];
        let parts: Vec<&[(u64, EntryId)]> = lists.iter().map(|l| l[index].as_slice()).collect();
        let ordered = table.ordered.as_ref().expect("only ordered tables stage keys");
        let part = worker.local.worker;
        if table.exact {
            ordered.remove_part(part, epoch.workers, &parts, &ExactWords);
        } else {
            ordered.remove_part(part, epoch.workers, &parts, &RowKeys { core: epoch.core });
        }
    }
    drop(lists);
    if tables.is_empty() {
        return Ok(());
    }
    epoch.barrier()?;
    if epoch.leads(worker) {
        for &index in &tables {
            epoch.core.tables[index].ordered.as_ref().expect("as above").finish_merge();
        }
    }
    let mut mine =
        epoch.shared.removed[worker.local.worker].write().expect("no panic while locked");
    mine.iter_mut().for_each(Vec::clear);
    drop(mine);
    epoch.barrier()?;
    Ok(())
}
