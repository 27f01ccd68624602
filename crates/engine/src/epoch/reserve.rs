//! Reserving space: an epoch that might run out of it is refused before anything is logged (O-43).

use pmem::sync::atomic::Ordering;
use pmem::{Device, PAGE_BYTES, Port};
use storage::SubPool;
use storage::format::TABLES_MAX;
use storage::input_log::Demand;

use crate::declaration::DeclaredKind;
use crate::declaration::demand::{Needed, SpaceDemand, Stock, TableSpace};
use crate::epoch::handover;
use crate::error::{EngineError, Result};
use crate::kept;
use crate::worker::{Epoch, Worker};

/// Where the image may be larger than memory, the calls of an epoch may write this part of the
/// pages that are in memory: a snapshot waits for one epoch, and is written beside another.
const WRITTEN_PART: u64 = 4;

/// The image may grow by this part of it for values whose lengths are not known.
const GUESSED_PART: u64 = 4;

/// Adds what this worker's calls declared.
pub(super) fn count_demand(epoch: &Epoch<'_>, worker: &Worker) {
    let tables = epoch.core.tables.len();
    let (mut inserts, mut writes) = (vec![0u64; tables], vec![0u64; tables]);
    for declared in worker.local.lists.declared.iter().filter(|d| d.kind != DeclaredKind::Read) {
        writes[declared.table.index()] += 1;
        inserts[declared.table.index()] += u64::from(declared.kind.inserts());
    }
    if epoch.leads(worker) {
        for changed in &worker.local.sequences {
            inserts[changed.table.index()] += u64::from(changed.before.is_none());
        }
    }
    let mut demand = epoch.shared.demand.lock().expect("no panic while locked");
    for table in 0..tables {
        demand.inserts[table] += inserts[table];
        demand.writes[table] += writes[table];
    }
    for range in &worker.local.lists.ranges {
        demand.covered[range.table.index()] = true;
    }
    demand.decided.add(&worker.local.lists.decided);
    demand.collected += worker.collect.len() as u64;
    // What a pool has at hand matters only where the epoch may take or free some of its slots. With
    // several workers each may come to do that for calls that others declared.
    let is_external = |(table, &writes): (usize, &u64)| {
        (writes > 0 || demand.covered[table]) && epoch.core.tables[table].layout.may_be_external()
    };
    let has_values = demand.collected > 0 || writes.iter().enumerate().any(is_external);
    for (pool, sub_pools) in worker.row_store.sub_pools.iter().enumerate() {
        let is_concerned = match writes.get(pool) {
            Some(&writes) => writes > 0 || inserts[pool] > 0 || demand.covered[pool],
            None => pool >= TABLES_MAX && has_values,
        };
        if epoch.workers == 1 && !is_concerned {
            continue;
        }
        let needed = inserts.get(pool).copied().unwrap_or(0);
        let stock = Stock { needed, ..stock_of(epoch, pool, sub_pools) };
        demand.stock(pool, worker.local.worker, epoch.workers, stock);
    }
}

/// What a worker has of a pool.
fn stock_of(epoch: &Epoch<'_>, pool: usize, sub_pools: &[SubPool]) -> Stock {
    if !epoch.store.segments().is_begun(pool) {
        return Stock::default();
    }
    let mut stock = Stock {
        entries: sub_pools.first().map_or(0, SubPool::free_list_room),
        lists: sub_pools.first().map_or(0, SubPool::free_list_segments),
        ..Stock::default()
    };
    for sub_pool in sub_pools.iter().filter(|sub_pool| !sub_pool.is_empty()) {
        stock.free += sub_pool.available();
        stock.fresh += sub_pool.room();
        stock.all += sub_pool.slots();
        stock.left += sub_pool.slots_left();
    }
    stock
}

/// Makes sure that the epoch cannot run out of space once it is logged.
///
/// # Errors
/// `Full` of the device or the log; nothing has changed then.
pub(super) fn reserve(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<()> {
    let reserved = reserve_segments(epoch, worker);
    // A single worker that replays has all sub-pools, and with them every segment that the run
    // before the crash took; it needs no more, whatever the estimate says.
    if !(epoch.replay.is_some() && epoch.workers == 1) {
        reserved?;
    }
    if epoch.replay.is_none() {
        let deferred_bytes = epoch.shared.deferred_bytes.load(Ordering::Relaxed);
        let demand = Demand {
            streams: epoch.workers as u16,
            bytes: epoch.calls.records_bytes() as u64,
            deferred_bytes: deferred_bytes + epoch.still_deferred.records_bytes() as u64,
        };
        epoch.store.log().begin(epoch.number, demand).map_err(EngineError::from)?;
    }
    Ok(())
}

/// Makes sure that there are as many segments as the epoch may take at most, when free slots have
/// moved to where they are short, and those that are kept for others.
fn reserve_segments(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<()> {
    let (segments, device) = (epoch.store.segments(), epoch.store.device().as_ref());
    let segment_bytes = segments.segment_bytes();
    let mut demand = epoch.shared.demand.lock().expect("no panic while locked");
    let tables = epoch.core.tables.iter().zip(&demand.covered).map(|(table, &covered)| {
        let bytes_max = table.layout.value_bytes_max;
        let external_bytes_max = table.layout.may_be_external().then_some(bytes_max);
        // Only ranges reach rows that no call names, and counting them takes a look at each shard.
        let rows = if covered { table.hash.len() as u64 } else { 0 };
        TableSpace { rows, row_bytes: table.layout.row_bytes, external_bytes_max }
    });
    let tables: Vec<_> = tables.collect();
    let tables = tables.iter().copied();
    handover::plan(epoch, &mut demand, tables.clone());
    let of_all = |pool| stock_of_all(epoch, worker, &demand, pool);
    let used = |pool| used_of_all(epoch, worker, &demand, pool);
    let workers = epoch.workers as u64;
    let needed = demand.segments(tables.clone(), workers, segment_bytes, used);
    if epoch.replay.is_some() {
        let reserved = segments.reserve(device, needed.all());
        stock_indexes(epoch, &mut worker.row_store.port, &demand, needed.all());
        return Ok(reserved?);
    }
    check_guess(epoch, needed)?;
    check_memory(epoch, demand.written_pages(tables.clone()))?;
    // Other devices store in place.
    let pages = device.takes_snapshots().then(|| demand.pages(tables.clone(), workers, needed));
    let taker = demand.taker(tables, needed, segment_bytes);
    // The lists that a worker alone begins are among those that are kept.
    let lists = if epoch.workers == 1 { needed.lists } else { 0 };
    let left = taker.leaves(of_all).saturating_sub(lists);
    match left {
        0 => segments.reserve(device, needed.all())?,
        kept => segments.reserve_beside(device, needed.all(), kept)?,
    }
    let others = needed.all() + left;
    let of_indexes = stock_indexes(epoch, &mut worker.row_store.port, &demand, others);
    let pages = pages.map(|pages| pages + of_indexes);
    if let Some(pages) = pages {
        segments.reserve_pages(device, pages, taker.frees())?;
    }
    let missing = segments.growth_bytes(device, needed.all());
    assert!(missing == 0, "the image has the segments that the epoch may take (O-43)");
    Ok(())
}

/// Sets segments aside for kept indexes, where there is room beside what the epoch may take and
/// what is left for others. Returns how many of their pages change, at most.
fn stock_indexes(epoch: &Epoch<'_>, port: &mut Port, demand: &SpaceDemand, others: u64) -> u64 {
    let Some(kept) = &epoch.core.kept else { return 0 };
    let demand = kept::Demand {
        inserts: &demand.inserts,
        others,
        stale: demand.writes.iter().sum(),
        saves: epoch.ends_in_image_snapshot,
    };
    kept.stock(&epoch.core.tables, epoch.store, port, &demand)
}

/// Refuses an epoch for which the image would grow by much on a guess.
fn check_guess(epoch: &Epoch<'_>, needed: Needed) -> Result<()> {
    let (segments, device) = (epoch.store.segments(), epoch.store.device());
    let growth = segments.growth_bytes(device.as_ref(), needed.all());
    let guessed = growth.min(needed.guessed * segments.segment_bytes());
    let most = epoch.core.config.guessed_growth_max.max(device.image_bytes() / GUESSED_PART);
    if guessed <= most {
        return Ok(());
    }
    Err(EngineError::Limit(format!(
        "values as long as their tables allow would need {guessed} bytes more, at most {most} are \
         taken before the values are known"
    )))
}

/// Refuses an epoch of several calls that may write more pages than a limit of memory has room for.
fn check_memory(epoch: &Epoch<'_>, pages: u64) -> Result<()> {
    if !epoch.core.config.refuses_large_epochs || epoch.calls.new_calls() <= 1 {
        return Ok(());
    }
    let Some(memory) = epoch.store.device().page_use() else { return Ok(()) };
    let most = memory.pages_bytes / PAGE_BYTES / WRITTEN_PART;
    if pages <= most {
        return Ok(());
    }
    Err(EngineError::Limit(format!(
        "the calls of the epoch may write {pages} pages, and a limit of memory of {} bytes has \
         room for {most} at once",
        memory.limit_bytes
    )))
}

/// How many slots of a pool hold something.
fn used_of_all(epoch: &Epoch<'_>, worker: &Worker, demand: &SpaceDemand, pool: usize) -> u64 {
    if !epoch.store.segments().is_begun(pool) {
        return 0;
    }
    let is_alone = epoch.workers == 1;
    let mut sum = match is_alone {
        true => Stock::default(),
        false => Stock::of_all(&demand.stocks[pool]),
    };
    let own = is_alone.then_some(&worker.row_store.sub_pools[pool]);
    let idle = epoch.shared.idle.lock().expect("no panic while locked");
    let sub_pools = own.into_iter().chain(idle.iter().map(|idle| &idle.sub_pools[pool])).flatten();
    for sub_pool in sub_pools.filter(|sub_pool| !sub_pool.is_empty()) {
        sum.all += sub_pool.slots();
        sum.left += sub_pool.slots_left();
    }
    sum.used()
}

/// What all workers have of a pool together. Lists are those of the worker with the shortest among
/// those that take part.
fn stock_of_all(epoch: &Epoch<'_>, worker: &Worker, demand: &SpaceDemand, pool: usize) -> Stock {
    let mut sum = match epoch.workers {
        1 => stock_of(epoch, pool, &worker.row_store.sub_pools[pool]),
        // What others give is counted as theirs below.
        _ => {
            let all = Stock::of_all(&demand.stocks[pool]);
            let given = handover::given_by_idle(epoch, pool);
            assert!(given <= all.free, "slots that workers receive are counted as free");
            Stock { free: all.free - given, ..all }
        }
    };
    // A slot may have been freed by another worker than the one that took it.
    for idle in &*epoch.shared.idle.lock().expect("no panic while locked") {
        let Stock { free, fresh, all, left, .. } = stock_of(epoch, pool, &idle.sub_pools[pool]);
        (sum.free, sum.fresh) = (sum.free + free, sum.fresh + fresh);
        (sum.all, sum.left) = (sum.all + all, sum.left + left);
    }
    sum
}
