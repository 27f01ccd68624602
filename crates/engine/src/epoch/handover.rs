//! Handing free slots over to workers that are short of them, when it is certain that the epoch
//! runs.
//!
//! 1. Who has slots to spare takes them out of its free lists: in DRAM, as if it used them.
//! 2. After a barrier, who is short gets them, and uses them before anything else.
//! 3. At the end of the epoch what was not used is put into the list of who has it (E12).
//!
//! A crash undoes all of it, as it does other changes of lists since the checkpoint (O-38): each
//! slot is again in the list that it came from. Only a major collection makes its entries final at
//! once, and it runs before step 3 (decision 8).

use storage::class_pool;
use storage::format::CLASSES;

use crate::declaration::demand::handover::{Handover, Shares};
use crate::declaration::demand::{SpaceDemand, Stock, TableSpace};
use crate::version::Idle;
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let handovers = epoch.shared.handovers.read().expect("no panic while locked");
    if handovers.is_empty() {
        return Ok(());
    }
    let (mine, segments) = (worker.local.worker.index(), epoch.store.segments());
    for Handover { pool, shares, slots } in &*handovers {
        if shares.gives[mine] > 0 {
            assert!(shares.takes[mine] == 0, "a worker gives or takes");
            let given = worker.row_store.give(*pool, shares.gives[mine], segments);
            slots.lock().expect("no panic while locked").extend(given);
        }
    }
    if epoch.leads(worker) {
        take_from_idle(epoch, worker, &handovers);
    }
    epoch.barrier()?;
    for Handover { pool, shares, slots } in &*handovers {
        if shares.takes[mine] > 0 {
            let mut slots = slots.lock().expect("no panic while locked");
            let takes = shares.takes[mine] as usize;
            assert!(takes <= slots.len(), "slots are given before they are received");
            let left = slots.len() - takes;
            worker.row_store.receive(*pool, slots.drain(left..));
        }
    }
    Ok(())
}

/// What workers give that have no part in the epoch.
fn take_from_idle(epoch: &Epoch<'_>, worker: &mut Worker, handovers: &[Handover]) {
    let (port, segments) = (&mut worker.row_store.port, epoch.store.segments());
    let sequence = epoch.ends_in_checkpoint.then(|| epoch.store.next_sequence());
    let mut idle = epoch.shared.idle.lock().expect("no panic while locked");
    let idle_count = idle.len();
    for Handover { pool, shares, slots } in handovers {
        let given_count = shares.gives.len() - epoch.workers;
        assert!(given_count <= idle_count, "what idle workers give is of those that there are");
        let mut slots = slots.lock().expect("no panic while locked");
        for (idle, &count) in idle.iter_mut().zip(&shares.gives[epoch.workers..]) {
            if count > 0 {
                slots.extend(idle.give(*pool, count, &mut *port, segments, sequence));
            }
        }
    }
}

/// Decides what is handed over, and counts it as where it goes.
pub(super) fn plan(
    epoch: &Epoch<'_>,
    demand: &mut SpaceDemand,
    tables: impl Iterator<Item = TableSpace>,
) {
    let idle = epoch.shared.idle.lock().expect("no panic while locked");
    if epoch.workers == 1 && idle.is_empty() {
        return;
    }
    let mut handovers = epoch.shared.handovers.write().expect("no panic while locked");
    let rows = (0..epoch.core.tables.len()).map(|table| (table, None));
    let values = demand.values(tables);
    let classes = (0..CLASSES).map(|class| (class_pool(class).into(), Some(values.most(class))));
    let classes = classes.filter(|&(_, values)| values > Some(0));
    for (pool, values) in rows.chain(classes) {
        let of_idle = || {
            let free = |idle: &Idle| Stock { free: idle.slots(pool), ..Stock::default() };
            idle.iter().map(free).collect::<Vec<_>>()
        };
        let shares = match (&demand.stocks[pool][..], values) {
            ([], _) => None,
            ([alone], _) => {
                let needed = values.unwrap_or(alone.needed);
                from_idle(Stock { needed, ..*alone }, of_idle)
            }
            (all, None) => Shares::of_needs(&[all, &of_idle()].concat()),
            (all, Some(values)) => Shares::of_values(all, &of_idle(), values),
        };
        if let Some(shares) = shares {
            demand.hand_over(pool, &shares);
            handovers.push(Handover::new(pool, shares));
        }
    }
}

/// What a worker that is alone gets of those that have no part in the epoch, which needs nothing of
/// them but where it is short.
fn from_idle(alone: Stock, of_idle: impl FnOnce() -> Vec<Stock>) -> Option<Shares> {
    if alone.needed <= alone.slots() {
        return None;
    }
    Shares::of_needs(&[vec![alone], of_idle()].concat())
}

/// Slots of a pool that workers give which have no part in the epoch.
pub(super) fn given_by_idle(epoch: &Epoch<'_>, pool: usize) -> u64 {
    let handovers = epoch.shared.handovers.read().expect("no panic while locked");
    let of_pool = handovers.iter().filter(|handover| handover.pool == pool);
    of_pool.flat_map(|handover| &handover.shares.gives[epoch.workers..]).sum()
}
