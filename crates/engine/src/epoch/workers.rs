//! Who runs an epoch: all workers, one for a small epoch, or one with everything in its hands.

use pmem::sync::WorkerThreads;
use storage::format::POOLS;
use storage::{Segments, SubPool};

use crate::call::panics::caught;
use crate::epoch;
use crate::error::{EngineError, Result};
use crate::version::Idle;
use crate::worker::{Epoch, Leave, Shared, Worker};

/// Runs an epoch on as many workers as it is for; in a replay on one, if its calls are to run one
/// by one, or if it does not fit otherwise. What that one left is returned, too.
pub(crate) fn run(
    context: &Epoch<'_>,
    workers: &mut [Worker],
    threads: &mut Option<WorkerThreads>,
    one_by_one: bool,
) -> (Result<()>, Option<Shared>) {
    if context.workers < workers.len() {
        return (run_on_first(context, workers, threads), None);
    }
    if !one_by_one {
        let all = workers.len();
        let result = run_together(context, workers, threads, all);
        // Spread over the sub-pools of several workers an epoch may need more space than it did
        // before the crash; with all sub-pools in one hand it does not (O-43, O-44).
        let does_not_fit = matches!(&result, Err(error) if error.is_limit());
        if context.replay.is_none() || !does_not_fit {
            return (result, None);
        }
    }
    let (result, left) = run_alone(context, workers);
    (result, Some(left))
}

/// Gives everything that belongs to the device to the first worker.
fn gather(workers: &mut [Worker]) {
    let (first, others) = workers.split_first_mut().expect("at least one worker");
    for other in others {
        assert!(other.row_store.handed_pools.is_empty(), "a refused epoch hands nothing over");
        assert!(other.row_store.dead_rows.is_empty(), "and removes nothing");
        for (pool, sub_pools) in other.row_store.sub_pools.iter_mut().enumerate() {
            first.row_store.sub_pools[pool].append(sub_pools);
        }
        first.collect.append(&mut other.collect);
        first.row_store.stale.append(&mut other.row_store.stale);
        first.already_collected.extend(other.already_collected.drain());
    }
    first.row_store.take_over();
}

/// After a checkpoint: has the space of pools in which nothing is left serve others (decision 36).
pub(crate) fn give_back(workers: &mut [Worker], segments: &Segments) {
    for pool in 0..POOLS {
        if !workers.iter().any(|worker| worker.row_store.has_changed(pool)) {
            continue;
        }
        let mut of_pool: Vec<&mut SubPool> = Vec::new();
        for worker in &mut *workers {
            of_pool.extend(&mut worker.row_store.sub_pools[pool]);
        }
        of_pool.iter_mut().for_each(|sub_pool| sub_pool.give_back(segments));
        if SubPool::empty_if_free(&mut of_pool, segments) {
            workers.iter_mut().for_each(|worker| worker.row_store.change(pool));
        }
    }
}

/// After a checkpoint: hands every worker's sub-pools to the next worker, so that what each frees
/// and takes evens out. Not after an epoch of the first worker alone, which would not find what it
/// freed. Slots that pile up all the same are handed over to who is short (`epoch/handover.rs`).
pub(crate) fn rotate(workers: &mut [Worker], of_epoch: usize) {
    if of_epoch < workers.len() {
        workers.iter_mut().for_each(|w| w.row_store.search_all_sub_pools());
        return;
    }
    let has_put_back = |worker: &Worker| worker.row_store.handed_pools.is_empty();
    assert!(workers.iter().all(has_put_back), "slots that were handed over are in lists");
    let take = |w: &mut Worker| {
        (std::mem::take(&mut w.row_store.sub_pools), std::mem::take(&mut w.row_store.changed))
    };
    let mut sub_pools: Vec<_> = workers.iter_mut().map(take).collect();
    sub_pools.rotate_right(1);
    for (worker, of_other) in workers.iter_mut().zip(sub_pools) {
        (worker.row_store.sub_pools, worker.row_store.changed) = of_other;
        worker.row_store.search_all_sub_pools();
    }
}

/// Deals sub-pools out to all workers (O-44).
pub(crate) fn deal(sub_pools: Vec<SubPool>, workers: &mut [Worker]) {
    let count = workers.len();
    for sub_pool in sub_pools {
        let worker = &mut workers[sub_pool.number() as usize % count];
        let before = worker.row_store.sub_pools[sub_pool.pool() as usize].last();
        debug_assert!(
            before.is_none_or(|before| before.number() != sub_pool.number()),
            "a sub-pool is dealt to one worker"
        );
        worker.row_store.sub_pools[sub_pool.pool() as usize].push(sub_pool);
    }
    workers.iter_mut().for_each(|w| w.row_store.take_over());
}

/// Runs an epoch on the first workers. The first of them does what the others owe, too (O-81): they
/// do not run, and their threads are not woken.
fn run_on_first(
    context: &Epoch<'_>,
    workers: &mut [Worker],
    threads: &mut Option<WorkerThreads>,
) -> Result<()> {
    let all = workers.len();
    let (running, others) = workers.split_at_mut(context.workers);
    let first = &mut running[0];
    let sequence = context.store.next_sequence();
    for other in &mut *others {
        assert!(other.row_store.hidden.is_empty(), "a worker that rests has published all");
        assert!(other.row_store.dead_rows.is_empty(), "a worker that rests has removed all");
        first.collect.append(&mut other.collect);
        other.already_collected.clear();
        other.local.cache.evict(&context.core.entries, context.number);
        if context.ends_in_checkpoint {
            // Their sets of this parity may be older than their last epoch.
            other.row_store.save_by(&mut first.row_store.port, sequence);
        }
    }
    let lend = |other: &mut Worker| Idle {
        sub_pools: std::mem::take(&mut other.row_store.sub_pools),
        changed: std::mem::take(&mut other.row_store.changed),
    };
    let idle = || context.shared.idle.lock().expect("no panic while locked");
    idle().extend(others.iter_mut().map(lend));
    let result = match running {
        [first] => run_worker(context, first).map_err(|leave| reason(context, leave)),
        running => run_together(context, running, threads, all),
    };
    assert!(idle().len() == others.len(), "sub-pools that were lent come back");
    for (other, Idle { sub_pools, changed }) in others.iter_mut().zip(idle().drain(..)) {
        (other.row_store.sub_pools, other.row_store.changed) = (sub_pools, changed);
    }
    result?;
    if context.ends_in_checkpoint {
        for other in others {
            other.row_store.checkpointed();
            // What they wrote since the checkpoint before can be collected now.
            other.collect.append(&mut other.row_store.stale);
        }
    }
    Ok(())
}

/// Runs an epoch on the first worker, with all sub-pools in its hands. Returns what it left.
fn run_alone(context: &Epoch<'_>, workers: &mut [Worker]) -> (Result<()>, Shared) {
    gather(workers);
    let shared = Shared::new(1, context.core.tables.len());
    let alone = Epoch { shared: &shared, workers: 1, ..*context };
    let result = run_worker(&alone, &mut workers[0]).map_err(|leave| reason(&alone, leave));
    let sub_pools = workers[0].row_store.sub_pools.iter_mut().flat_map(std::mem::take).collect();
    deal(sub_pools, workers);
    (result, shared)
}

fn start_worker_threads(context: &Epoch<'_>, count: usize) -> std::io::Result<WorkerThreads> {
    WorkerThreads::new(count, pmem::stack_bytes_with(context.core.config.procedure_stack_bytes))
}

/// Runs an epoch on some workers, of so many; the calling thread is the first. The others start
/// with the first epoch that needs them.
fn run_together(
    context: &Epoch<'_>,
    workers: &mut [Worker],
    threads: &mut Option<WorkerThreads>,
    all: usize,
) -> Result<()> {
    let threads = match threads {
        Some(threads) => threads,
        None => threads.insert(start_worker_threads(context, all).map_err(|error| {
            EngineError::Limit(format!("cannot start the threads of {all} workers: {error}"))
        })?),
    };
    let tasks = workers.iter_mut().map(|worker| || run_worker(context, worker));
    let mut leaves = threads.run(tasks).into_iter().filter_map(std::result::Result::err);
    let Some(mut first) = leaves.next() else { return Ok(()) };
    if matches!(first, Leave::Stopped) {
        // The worker that stopped them knows more.
        first = leaves.find(|leave| !matches!(leave, Leave::Stopped)).unwrap_or(first);
    }
    Err(reason(context, first))
}

/// Why an epoch ended early, in words for the caller.
fn reason(context: &Epoch<'_>, leave: Leave) -> EngineError {
    match leave {
        Leave::Failed(error) => error,
        Leave::Refused => {
            let refused = context.shared.refused.lock().expect("no panic while locked").take();
            refused.expect("the first worker says why")
        }
        Leave::Stopped => {
            let reason = context.core.stop_reason().unwrap_or_else(|| "a worker failed".into());
            EngineError::Poisoned(reason)
        }
    }
}

/// Runs an epoch as one worker; a failure or a panic stops the engine, so that none waits (O-50).
fn run_worker(context: &Epoch<'_>, worker: &mut Worker) -> std::result::Result<(), Leave> {
    let result = caught(|| epoch::run(context, worker)).unwrap_or_else(|panic| {
        let what = format!("a worker panicked: {panic}");
        Err(Leave::Failed(EngineError::Poisoned(what)))
    });
    if let Err(Leave::Failed(error)) = &result {
        context.core.stop(error.to_string());
    }
    result
}
