//! A worker that dies outside of a procedure, at any step: the others return, the engine is
//! stopped, and the store opens again with all of the epoch or nothing of it.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::{AppendMethod, EngineConfig, EngineError};
use pmem::AnyDevice;
use pmem::sync::die_after;
use shuttle::current::{TaskId, me};
use sim::history::procedures::procedures;
use sim::history::{
    HASHED, Mix, Model, Op, Pair, Program, Random, Setup, Step, batch, info, serial_order, to_calls,
};
use storage::input_log::Verdict;

use crate::{NOTE, device, explore, seeds};

/// Most parts of an epoch. A worker asks for the time when it begins, before and after it waits for
/// the others, and at the end of each phase; parts are what lies between.
const PARTS: usize = 64;
const FAR: u64 = u64::MAX / 2;

/// Who dies, and when.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// 0 is the leader; others count in the order in which they begin.
    victim: usize,
    part: usize,
    /// Points that it passes in that part before.
    points: u64,
}

std::thread_local! {
    static PLAN: Cell<Option<Plan>> = const { Cell::new(None) };
    /// Workers that have begun, and how often each asked for the time.
    static ASKED: RefCell<Vec<(TaskId, usize)>> = const { RefCell::new(Vec::new()) };
    /// Points that the victim passed in each part.
    static PASSED: Cell<[u64; PARTS]> = const { Cell::new([0; PARTS]) };
}

/// The engine's clock: it is asked when a worker begins and after each part, which is how the plan
/// knows where the victim is.
fn clock() -> u64 {
    let Some(plan) = PLAN.get() else { return 0 };
    let parts = ASKED.with_borrow_mut(|workers| {
        let task = me();
        let index = workers.iter().position(|w| w.0 == task).unwrap_or_else(|| {
            workers.push((task, 0));
            workers.len() - 1
        });
        workers[index].1 += 1;
        // The leader is the caller, who also asks before the epoch begins and when it has ended.
        let before = if index == 0 { 2 } else { 1 };
        workers[index].1.checked_sub(before).filter(|&parts| index == plan.victim && parts <= PARTS)
    });
    let Some(parts) = parts else { return 0 };
    if parts > 0 {
        let mut passed = PASSED.get();
        passed[parts - 1] = FAR - die_after(None).unwrap_or(FAR);
        PASSED.set(passed);
    }
    if parts < PARTS {
        let _ = die_after(Some(if parts == plan.part { plan.points } else { FAR }));
    }
    0
}

/// Runs an epoch of which one worker dies; says whether that stopped the engine.
fn run(setup: &Setup, device: &Arc<AnyDevice>, batch: &[Vec<u8>], plan: Plan) -> bool {
    let config = EngineConfig { clock, ..setup.config() };
    let (mut engine, _) = setup.open_with(device, config, procedures()).unwrap();
    ASKED.take();
    PASSED.set([0; PARTS]);
    PLAN.set(Some(plan));
    let epoch = info(engine.epoch().0 + 1);
    let result = catch_unwind(AssertUnwindSafe(|| engine.run_epoch(&to_calls(batch), epoch)));
    PLAN.set(None);
    let _ = die_after(None);
    let Ok(result) = result else {
        // How often a worker asks for the time depends on its waits, so the leader may have died
        // where it is the caller again, whose panic is nobody's to catch.
        assert!(plan.victim == 0, "only the leader is the caller");
        return false;
    };
    if plan.victim == 0 {
        // The leader's last part is the caller's again, whose panic is nobody's to catch.
        let mut passed = PASSED.get();
        let asked = ASKED.with_borrow(|workers| workers.first().map_or(0, |leader| leader.1));
        passed[asked.saturating_sub(3).min(PARTS - 1)] = 0;
        PASSED.set(passed);
    }
    if let Err(error) = &result {
        assert!(matches!(error, EngineError::Poisoned(_)), "{error}");
        let again = engine.run_epoch(&to_calls(&[]), info(9));
        assert!(matches!(again, Err(EngineError::Poisoned(_))), "the engine goes on");
    }
    result.is_err()
}

/// The calls of an epoch, of which recovery leaves those out that died in a body behind its commit
/// point (O-49): as if they had given up at once.
fn without(verdicts: &[Verdict], calls: &[Vec<u8>], deferred: usize) -> Vec<Vec<u8>> {
    let mut left = calls.to_vec();
    let order = serial_order(deferred, calls);
    for verdict in verdicts {
        assert!(verdict.reason.contains("killed by the exploration"), "{verdict:?}");
        let gives_up = vec![Step::new(Op::Abort, HASHED, 0)];
        let program = Program { sequences: vec![], declares: vec![], body: gives_up };
        left[order[verdict.position.index()] - deferred] = program.encode();
    }
    left
}

/// O-50, O-25: see the module.
#[test]
fn o_50_a_worker_that_dies_leaves_nobody_waiting() {
    let deaths = Arc::new([const { AtomicU64::new(0) }; PARTS]);
    let reached = Arc::new([const { AtomicBool::new(false) }; PARTS]);
    for seed in seeds(12) {
        let mut random = Random::new(seed);
        let workers = 2 + random.below(2) as usize;
        let cache_bytes = random.pick(&[0, 1 << 16]);
        let append = AppendMethod::ALL[seed as usize % 2];
        let setup = Setup { workers, cache_bytes, cache_epochs: 1, append, ..Setup::default() };
        let mix = Mix { keys: random.pick(&[1, 2]), long_values: random.percent(60), lookups: 10 };
        // Several before the one that fails, so that there is something to collect.
        let batches: Vec<_> = (0..4).map(|_| batch(&mut random, &mix, 12)).collect();
        let victim = random.below(workers as u64) as usize;
        let state = Mutex::new((random, None::<[u64; PARTS]>));
        let (deaths, reached) = (Arc::clone(&deaths), Arc::clone(&reached));
        explore("a death", seed, 16, move || {
            let device = device();
            let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
            let (last, first) = batches.split_last().unwrap();
            first.iter().for_each(|batch| pair.run(batch).unwrap());
            let before = pair.model;
            drop(pair.engine);

            // The first schedule only counts the victim's points in each part.
            let plan = {
                let (random, passed) = &mut *state.lock().unwrap();
                match passed {
                    None => Plan { victim, part: 0, points: FAR },
                    Some(passed) => {
                        let reached: Vec<_> = (0..PARTS).filter(|&p| passed[p] > 0).collect();
                        let part = random.pick(&reached);
                        Plan { victim, part, points: random.below(passed[part]) }
                    }
                }
            };
            NOTE.set(format!("({plan:?}, {setup:?})"));
            if !run(&setup, &device, last, plan) {
                // Or it died in a procedure, which only ended that, or got through earlier.
                if plan.points == FAR {
                    let passed = PASSED.get();
                    state.lock().unwrap().1 = Some(passed);
                    for part in (0..PARTS).filter(|&part| passed[part] > 0) {
                        reached[part].store(true, Ordering::Relaxed);
                    }
                }
                return;
            }
            deaths[plan.part].fetch_add(1, Ordering::Relaxed);
            let (engine, report) = setup.open_with(&device, setup.config(), procedures()).unwrap();
            let mut model = before;
            if engine.epoch().0 > model.epoch {
                let calls = without(&report.skipped, last, model.deferred_calls.len());
                model.run(&calls, info(model.epoch + 1).timestamp_ns);
            }
            let mut pair = Pair::new(engine, model);
            pair.compare_state().unwrap();
            pair.run(&batches[0]).unwrap();
        });
    }
    let deaths = deaths.each_ref().map(|count| count.load(Ordering::Relaxed));
    let reached = reached.iter().filter(|part| part.load(Ordering::Relaxed)).count();
    let died_in = deaths.iter().filter(|&&count| count > 0).count();
    println!("deaths in {died_in} of {reached} parts: {deaths:?}");
    // An epoch has 15 barriers and nine phases, and a few parts have no point.
    assert!(reached >= 30 && died_in * 4 >= reached * 3, "{died_in} of {reached}: {deaths:?}");
}
