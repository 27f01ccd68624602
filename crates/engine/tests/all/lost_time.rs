//! A worker that loses its time to versions of others takes the rest of an epoch; nothing comes to
//! anything else for it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use engine::{Answer, Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Dram};
use storage::TableId;

use crate::support::rows;

static NOW: AtomicU64 = AtomicU64::new(0);
static A_CALL_WAITS: AtomicBool = AtomicBool::new(false);
thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// A clock that stands still, and notices that a read has waited for long.
fn clock() -> u64 {
    A_CALL_WAITS.fetch_or(IS_READING.get(), Ordering::Relaxed);
    NOW.load(Ordering::Relaxed)
}

fn key(of: u8) -> [u8; 8] {
    u64::from(of).to_be_bytes()
}

/// Each call adds one to the same row, and declares so many rows more. The first one holds its
/// worker up until another call waits for it, for a second of that clock.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "add",
        sequences: None,
        write_set: |args, set| {
            (0..=args[0]).for_each(|row| set.insert(TableId(0), &key(row)));
            Ok(())
        },
        body: |args, tx| {
            while args[1] == 1 && !A_CALL_WAITS.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            NOW.fetch_add(if args[1] == 1 { 1_000_000_000 } else { 0 }, Ordering::Relaxed);
            IS_READING.set(true);
            let before = tx.get(TableId(0), &key(0))?.map_or(0, |value| value[0]);
            IS_READING.set(false);
            tx.output().push(before);
            tx.insert(TableId(0), &key(0), &[before.wrapping_add(1); 8])?;
            Ok(())
        },
        pieces: None,
    });
    table
}

/// One epoch in which each call declares so many rows beside the one that all add to; its answers,
/// the state, how many workers took the rest, and calls of the worker that ran most.
fn run(workers: usize, rows_beside: u8) -> (Vec<u8>, String, u64, u64) {
    A_CALL_WAITS.store(workers == 1, Ordering::Relaxed);
    let device = AnyDevice::new(Dram::new(64 << 20, 64 << 20).unwrap());
    let config = EngineConfig { workers, clock, ..EngineConfig::default() };
    let (mut engine, _) = Engine::open(device, config, &[rows(8)], procedures()).unwrap();
    let mut calls = Calls::new();
    for call in 0..1000 {
        calls.push(0, &[rows_beside, u8::from(call == 0)]).unwrap();
    }
    let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    let answers = (0..outcome.len()).map(|at| match outcome.answer(at) {
        Answer::Committed(bytes) => bytes[0],
        other => panic!("{other:?}"),
    });
    let stats = &outcome.stats;
    (answers.collect(), engine.state_hash().to_string(), stats.work.rests_taken, stats.calls_most)
}

#[test]
fn o_11_a_worker_that_only_waits_takes_the_rest_of_the_epoch() {
    // Calls that a worker runs itself, and calls that are handed out one by one.
    for rows_beside in [0, 9] {
        let (answers, state, rests, _) = run(1, rows_beside);
        assert_eq!(rests, 0, "one worker waits for none");
        for workers in [2, 4] {
            let (found, end, rests, most) = run(workers, rows_beside);
            assert_eq!((found, end), (answers.clone(), state.clone()), "{workers} workers");
            assert_eq!(rests, 1, "{workers} workers, {rows_beside} rows beside");
            assert!(most > 900, "{most} of 1000 calls ran on the worker that took the rest");
        }
    }
}
