//! Both methods of the append step: the same answers and the same state, for any number of workers,
//! and with batch append no lock that is contended and nothing that moves.

use engine::{AppendMethod, WorkCounts};
use pmem::{AnyDevice, Dram};
use sim::history::{HASHED, Mix, Model, ORDERED, Op, Pair, Program, Random, Setup, Step};
use sim::history::{batch, effort, info, to_calls};

fn open(append: AppendMethod, workers: usize) -> Pair {
    let device = AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap());
    // Small segments: every worker has its own of each kind.
    let setup = Setup { workers, append, segment_bytes: 16 << 10, ..Setup::default() };
    Pair::open(&device, &setup, Model::default()).unwrap()
}

fn program(declares: Vec<Step>, body: Vec<Step>) -> Vec<u8> {
    Program { sequences: vec![], declares, body }.encode()
}

fn write(table: u8, key: u8, tag: u8) -> Vec<u8> {
    let body = Step::new(Op::Insert, table, key).size(9).tag(tag);
    program(vec![Step::new(Op::DeclareInsert, table, key)], vec![body])
}

/// Every row of a range.
fn write_all(tag: u8) -> Vec<u8> {
    let body = Step::new(Op::RangeWrite, ORDERED, 0).to(255).n(0).size(11).tag(tag);
    program(vec![Step::new(Op::DeclareRange, ORDERED, 0).to(255)], vec![body])
}

/// O-06, O-11: epochs of few rows that many calls write, and of rows that few calls do, end with
/// the serial oracle's answers and state.
#[test]
fn o_11_both_methods_end_with_the_serial_result_for_1_to_64_workers() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for (workers, epochs) in [(1, 6), (2, 6), (3, 6), (8, 3), (64, 1)] {
        for append in AppendMethod::ALL {
            let mut random = Random::new(first + workers as u64);
            let mut pair = open(append, workers);
            for epoch in 0..epochs {
                let keys = random.pick(&[1, 3, 12, 50]);
                let mix = Mix { keys, long_values: false, lookups: 10 };
                let calls = random.pick(&[2, 40, 300]);
                let mut calls = batch(&mut random, &mix, calls);
                calls.push(write_all(epoch));
                pair.run(&calls)
                    .unwrap_or_else(|error| panic!("{append:?}, {workers} workers: {error}"));
            }
            pair.compare_state().unwrap();
        }
    }
}

/// Runs one epoch and says what it counted.
fn counts(append: AppendMethod, workers: usize, calls: &[Vec<u8>]) -> WorkCounts {
    let mut pair = open(append, workers);
    // Rows that are there already, beside those that the epoch creates.
    pair.run(&(0..8).map(|key| write(ORDERED, key, 1)).collect::<Vec<_>>()).unwrap();
    let outcome = pair.engine.run_epoch(&to_calls(calls), info(pair.engine.epoch().0 + 1)).unwrap();
    outcome.stats.work
}

#[test]
fn batch_append_takes_no_lock_and_moves_nothing() {
    // One hot row, some warm ones, some that one call writes; new rows and old ones; two ranges.
    let mut calls = Vec::new();
    for i in 0..400u32 {
        calls.push(write(ORDERED, 0, i as u8));
        calls.push(write(ORDERED, 4 + (i % 40) as u8, i as u8));
        calls.push(write(HASHED, (i % 200) as u8, i as u8));
    }
    calls.push(write_all(1));
    calls.push(write_all(2));
    for workers in [1, 2, 8, 64] {
        let locked = counts(AppendMethod::RowLock, workers, &calls);
        let batched = counts(AppendMethod::Batch, workers, &calls);
        assert_eq!((batched.contended_locks, batched.insertion_moves), (0, 0), "{workers} workers");
        // 200 rows of one table are written twice each, of the other the hot ones far more often.
        let rows = batched.version_arrays + batched.single_write_rows;
        assert!(batched.version_arrays >= 200 + 40 && batched.appends > 1200, "{batched:?}");
        assert_eq!(batched.batched_appends, batched.appends - rows, "{workers} workers");
        // A row is handed over once at most, by the one who claimed it.
        assert!(batched.locks_handed_over <= rows, "{workers} workers: {batched:?}");
        assert_eq!(locked.appends, batched.appends, "{workers} workers");
        assert_eq!(locked.version_arrays, batched.version_arrays, "{workers} workers");
        assert_eq!(locked.single_write_rows, batched.single_write_rows, "{workers} workers");
        assert_eq!((locked.batched_appends, locked.claims_of_others), (0, 0));
        if workers == 1 {
            assert_eq!((batched.locks_handed_over, batched.claims_of_others), (0, 0));
        }
    }
}
