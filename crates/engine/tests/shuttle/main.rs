//! Schedules of the real phase code, chosen by `shuttle` from a seed (ring R4 in docs/testing.md):
//!
//!     cargo test -p nvcaracal-engine --features shuttle --test shuttle
//!
//! Another worker may run before any operation on a shared word or a lock and before any store to
//! the device. A wait without end shows as a run of too many steps. Only one worker runs at a time
//! and sees all that was stored before: what the memory orderings allow beyond that is for `loom`.

mod deaths;
mod histories;
mod pieces;
mod reads;
mod reuse;
mod rows;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{AnyDevice, Dram};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use sim::history::{Program, Step, effort};

/// Steps of one schedule; the longest here take less than a tenth of it.
const STEPS_MAX: usize = 1_000_000;

std::thread_local! {
    /// What a schedule says of itself, for its failure.
    static NOTE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `run` under `schedules` random schedules and as many with few changes of priority.
fn explore(what: &str, seed: u64, schedules: u64, run: impl Fn() + Send + Sync + 'static) {
    let run: Arc<dyn Fn() + Send + Sync> = Arc::new(run);
    let count = schedules as usize;
    one_kind(&format!("{what}, random"), seed, RandomScheduler::new_from_seed(seed, count), &run);
    let depth = 2 + (seed % 3) as usize;
    let few = PctScheduler::new_from_seed(seed, depth, count);
    one_kind(&format!("{what}, {depth} priorities"), seed, few, &run);
}

fn one_kind(
    what: &str,
    seed: u64,
    scheduler: impl Scheduler + 'static,
    run: &Arc<dyn Fn() + Send + Sync>,
) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.failure_persistence = FailurePersistence::None;
    let begun = Arc::new(AtomicU64::new(0));
    let (counted, run) = (Arc::clone(&begun), Arc::clone(run));
    let result = catch_unwind(AssertUnwindSafe(|| {
        Runner::new(scheduler, config).run(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            run();
        })
    }));
    if let Err(panic) = result {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        panic!(
            "{what}: seed {seed}, schedule {} {}: {}",
            begun.load(Ordering::Relaxed),
            NOTE.take(),
            text.unwrap_or_default()
        );
    }
}

/// Seeds from the environment's first one on.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    first..first + effort("NVCARACAL_EXPLORED", default)
}

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(64 << 20, 16 << 20).unwrap())
}

fn program(declares: Vec<Step>, body: Vec<Step>) -> Vec<u8> {
    Program { sequences: vec![], declares, body }.encode()
}

/// A call that does nothing: runs of four calls belong to one worker.
fn nothing() -> Vec<u8> {
    program(vec![], vec![])
}
