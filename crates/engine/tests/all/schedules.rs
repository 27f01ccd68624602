//! Many workers, much waiting, failures in bad moments: every epoch ends, with the serial result or
//! a clear error.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use engine::{Calls, Engine, EngineError, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Dram};
use sim::history::{HASHED, Mix, Model, ORDERED, Op, Pair, Program, Random, Setup, Step};
use sim::history::{batch, effort};
use storage::{StateHash, TableId};

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap())
}

fn program(declares: Vec<Step>, body: Vec<Step>) -> Vec<u8> {
    Program { sequences: vec![], declares, body }.encode()
}

/// Each call reads what the one before wrote and writes what the next one reads.
fn chain(calls: u64, keys: u8, spin: u8) -> Vec<Vec<u8>> {
    (0..calls)
        .map(|i| {
            let (from, to) = ((i % u64::from(keys)) as u8, ((i + 1) % u64::from(keys)) as u8);
            let derive = Step::new(Op::Derive, ORDERED, to).to(from).tag(i as u8);
            program(
                vec![Step::new(Op::DeclareInsert, ORDERED, to)],
                vec![
                    Step::new(Op::Spin, ORDERED, 0).n(if i % 3 == 0 { spin } else { 0 }),
                    derive.size((i % 20) as u8).flag(true),
                ],
            )
        })
        .collect()
}

/// O-06, O-11: a reader waits for smaller serial ids only, so that any number of workers comes
/// through.
#[test]
fn o_11_chains_of_dependencies_end_with_any_number_of_workers() {
    for workers in [1, 2, 3, 5, 8] {
        for keys in [1, 2, 7, 50] {
            let setup = Setup { workers, ..Setup::default() };
            let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
            for epoch in 0..3 {
                pair.run(&chain(400, keys, 20 * epoch))
                    .unwrap_or_else(|error| panic!("{workers} workers, {keys} keys: {error}"));
            }
            pair.compare_state().unwrap();
        }
    }
}

/// O-11: a worker runs what it took in serial order. Nobody reads here, so that a wrong order shows
/// and does not end in waiting for ever.
#[test]
fn o_11_every_worker_runs_its_calls_in_serial_order() {
    static RUN: Mutex<Vec<(ThreadId, u64)>> = Mutex::new(Vec::new());
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "noting",
        sequences: None,
        write_set: |key, set| {
            // A call that declares nothing counts as long: none would be taken behind it.
            set.insert(TableId(HASHED.into()), key);
            Ok(())
        },
        body: |_, tx| {
            RUN.lock().unwrap().push((thread::current().id(), tx.serial_id()));
            Ok(())
        },
        pieces: None,
    });
    let mut calls = Calls::new();
    (0..1000u64).for_each(|key| calls.push(0, &key.to_be_bytes()).unwrap());
    for workers in [1, 2, 5] {
        let setup = Setup { workers, ..Setup::default() };
        let (mut engine, _) =
            Engine::open(device(), setup.config(), &setup.tables(), procedures.clone()).unwrap();
        RUN.lock().unwrap().clear();
        engine.run_epoch(&calls, sim::history::info(1)).unwrap();
        let run = RUN.lock().unwrap();
        assert_eq!(run.len(), calls.len());
        let mut last = HashMap::new();
        for &(worker, sid) in run.iter() {
            let before = last.insert(worker, sid).unwrap_or(0);
            assert!(before < sid, "{workers} workers: {sid:#x} after {before:#x}");
        }
    }
}

/// O-08, O-09, O-14: all small programs over one or two keys, by many workers.
#[test]
fn o_14_contended_rows_with_aborts_and_panics() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for seed in first..first + effort("NVCARACAL_SCHEDULES", 60) {
        let mut random = Random::new(seed);
        let workers = 2 + random.below(7) as usize;
        let cache_bytes = random.pick(&[0, 1 << 20]);
        let setup = Setup { workers, cache_bytes, cache_epochs: 1, ..Setup::default() };
        let mix = Mix { keys: random.pick(&[1, 2, 3]), long_values: false, lookups: 10 };
        let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
        for _ in 0..5 {
            let calls = 50 + random.below(100);
            pair.run(&batch(&mut random, &mix, calls))
                .unwrap_or_else(|error| panic!("seed {seed}, {setup:?}: {error}"));
        }
        pair.compare_state().unwrap();
    }
}

/// O-07, O-14, O-18: every row of five operations on one key, present before or not.
#[test]
fn o_18_all_short_histories_of_one_key() {
    let insert = |end: Option<Op>| {
        let mut body = vec![Step::new(Op::Insert, ORDERED, 1).size(9)];
        body.extend(end.map(|op| Step::new(op, ORDERED, 1)));
        program(vec![Step::new(Op::DeclareInsert, ORDERED, 1)], body)
    };
    let update = |op| {
        let body = vec![Step::new(op, ORDERED, 1).size(10)];
        program(vec![Step::new(Op::DeclareUpdate, ORDERED, 1)], body)
    };
    let get = Step::new(Op::Get, ORDERED, 1);
    let range = Step::new(Op::RangeWrite, ORDERED, 0).to(9).tag(1);
    let calls = [
        insert(None),
        insert(Some(Op::Abort)),
        insert(Some(Op::Panic)),
        update(Op::Update),
        update(Op::Delete),
        program(vec![Step::new(Op::DeclareUpdate, ORDERED, 1)], vec![get]),
        program(vec![Step::new(Op::DeclareRange, ORDERED, 0).to(9)], vec![range]),
    ];
    for workers in [1, 2] {
        let setup = Setup { workers, ..Setup::default() };
        let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
        let kinds = calls.len();
        for number in 0..kinds.pow(4) {
            // Runs of four calls belong to one worker: padding gives each call a worker of its own.
            let pad = program(vec![], vec![]);
            let epoch: Vec<Vec<u8>> = (0..4)
                .flat_map(|i| {
                    let call = calls[number / kinds.pow(i) % kinds].clone();
                    std::iter::once(call).chain((1..workers * 2).map(|_| pad.clone()))
                })
                .collect();
            pair.run(&epoch).unwrap_or_else(|error| panic!("history {number}: {error}"));
            // Every other history begins without the row.
            if number % 2 == 0 {
                pair.run(&[update(Op::Delete)]).unwrap();
            }
        }
        pair.compare_state().unwrap();
    }
}

/// The state after these calls if the one at position 17 does nothing.
fn without_the_call(setup: &Setup, calls: &[Vec<u8>]) -> StateHash {
    let mut engine = setup.open(&device()).unwrap();
    let mut calls = calls.to_vec();
    calls[17] = program(vec![], vec![]);
    for (epoch, calls) in [(1, chain(20, 3, 0)), (2, calls)] {
        let info = sim::history::info(epoch);
        engine.run_epoch(&sim::history::to_calls(&calls), info).unwrap();
    }
    engine.state_hash()
}

/// O-49, O-50: half of a transaction was seen, so nothing may follow; nobody waits for it for ever.
#[test]
fn o_49_failing_after_the_commit_point_stops_the_engine_with_words() {
    for end in [Op::Panic, Op::Abort, Op::Delete] {
        for workers in [1, 2, 4, 8] {
            let device = device();
            let setup = Setup { workers, ..Setup::default() };
            let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
            pair.run(&chain(20, 3, 0)).unwrap();
            let mut calls = chain(40, 3, 1);
            calls[17] = program(
                vec![
                    Step::new(Op::DeclareInsert, ORDERED, 1),
                    Step::new(Op::DeclareInsert, HASHED, 1),
                ],
                vec![
                    Step::new(Op::Insert, ORDERED, 1),
                    Step::new(Op::CommitPoint, ORDERED, 1),
                    // For the deletion: a key that is not declared.
                    Step::new(end, ORDERED, 9),
                ],
            );
            let info = sim::history::info(2);
            let error = pair.engine.run_epoch(&sim::history::to_calls(&calls), info).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, EngineError::Poisoned(_)), "{error:?}");
            assert!(text.contains("call 17 of epoch 2") && text.contains("plain"), "{text}");
            let again = pair.engine.run_epoch(&sim::history::to_calls(&[]), info).unwrap_err();
            assert!(matches!(again, EngineError::Poisoned(_)), "{again:?}");
            assert!(again.to_string().contains("call 17 of epoch 2"), "{again}");
            assert!(pair.engine.checkpoint().is_err(), "no checkpoint of a half-done epoch");
            drop(pair);
            // The epoch is in the log, and is replayed without the call.
            let again = setup.open(&device).unwrap();
            assert_eq!(
                (again.epoch().0, again.state_hash()),
                (2, without_the_call(&setup, &calls))
            );
        }
    }
}

/// O-05: writes before and after a commit point are seen in serial order by all workers.
#[test]
fn o_05_commit_points_under_contention() {
    for workers in [2, 4, 8] {
        let setup = Setup { workers, ..Setup::default() };
        let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
        for epoch in 0..6u8 {
            let calls: Vec<Vec<u8>> = (0..200u8)
                .map(|i| {
                    let (a, b) = (i % 3, 3 + i % 2);
                    let write = |key: u8, from: u8| {
                        let step = Step::new(Op::Derive, ORDERED, key).to(from).tag(i ^ epoch);
                        step.size(i % 20).flag(true)
                    };
                    program(
                        vec![
                            Step::new(Op::DeclareInsert, ORDERED, a),
                            Step::new(Op::DeclareInsert, ORDERED, b),
                        ],
                        vec![
                            write(a, b),
                            Step::new(Op::CommitPoint, ORDERED, 0),
                            Step::new(Op::Spin, ORDERED, 0).n(i % 30),
                            write(b, a),
                            Step::new(Op::Scan, ORDERED, 0).to(9),
                        ],
                    )
                })
                .collect();
            pair.run(&calls).unwrap_or_else(|error| panic!("{workers} workers: {error}"));
        }
        pair.compare_state().unwrap();
    }
}
