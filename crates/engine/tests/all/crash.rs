//! Power cuts: whatever the device kept, recovery finds every epoch that was answered, none that
//! was not committed, and nothing in between; and the engine goes on from there. The exploring is
//! done by the crash lab (`lab/sim/src/crash/`); here are the cases that the engine's own tests
//! need.

use sim::crash::{Case, Counts, Options, Size, explore_case};
use sim::history::{HASHED, LONG, ORDERED, Op, Program, Random, Setup, Step, effort};

type Batches = Vec<Vec<Vec<u8>>>;

fn write(op: Op, table: u8, key: u8, size: u8) -> Vec<u8> {
    let declare = match op {
        Op::Insert => Op::DeclareInsert,
        Op::Delete => Op::DeclareDelete,
        _ => Op::DeclareUpdate,
    };
    Program {
        sequences: vec![],
        declares: vec![Step::new(declare, table, key)],
        body: vec![Step::new(op, table, key).size(size).tag(key ^ size)],
    }
    .encode()
}

/// Few rows with everything that touches the device: values of all kinds, collections, deletions
/// and insertions of the same keys, two writers of one row of which the later aborts, a sequence.
fn tiny_history() -> Batches {
    let insert = |table, key, size| write(Op::Insert, table, key, size);
    let aborting = {
        let mut program = Program::decode(&insert(ORDERED, 0, 11));
        program.body.push(Step::new(Op::Abort, ORDERED, 0).tag(3));
        program.encode()
    };
    let allocating = Program {
        sequences: vec![Step::new(Op::Allocate, HASHED, 1)],
        declares: vec![Step::new(Op::DeclareAllocated, ORDERED, 0)],
        body: vec![Step::new(Op::InsertAllocated, ORDERED, 0).size(14)],
    }
    .encode();
    vec![
        vec![
            insert(ORDERED, 0, 13),
            insert(ORDERED, 1, 15),
            insert(LONG, 2, 4),
            allocating.clone(),
        ],
        vec![insert(ORDERED, 0, 14), insert(ORDERED, 1, 3), write(Op::Delete, LONG, 2, 0)],
        vec![insert(ORDERED, 0, 19), aborting, insert(LONG, 2, 17), allocating],
        vec![write(Op::Delete, ORDERED, 0, 0), insert(ORDERED, 1, 19), insert(LONG, 2, 19)],
        vec![insert(ORDERED, 0, 13), insert(LONG, 2, 18), write(Op::Modify, ORDERED, 1, 0)],
    ]
}

fn explored(case: &Case, options: &Options<'_>) -> Counts {
    let mut counts = Counts::default();
    explore_case(case, options, &mut counts).unwrap_or_else(|failure| {
        let sim::crash::Failure { case, violation, cuts } = *failure;
        panic!("seed {}, {:?}: {violation}\n{cuts:#?}", case.seed, case.setup)
    });
    counts
}

/// O-22, O-23, O-25 to O-29, O-32, O-34 to O-36, O-38: the power is cut before every store, flush
/// and fence, with few adversaries each; in rows with halves, and in rows with a heap that both
/// versions share.
#[test]
fn o_26_every_event_of_a_small_history() {
    let images_max = effort("NVCARACAL_CRASH_IMAGES", 100_000);
    let halves = ([64, 128, 128, 0], [0; 4]);
    let shared = ([64, 256, 448, 0], [0, 168, 368, 0]);
    for (seed, (workers, checkpoint_every, (row_bytes, shared_heap_bytes))) in
        (0..).zip([(1, 1, halves), (1, 2, halves), (2, 1, halves), (1, 1, shared), (1, 2, shared)])
    {
        let setup = Setup {
            workers,
            checkpoint_every,
            row_bytes,
            shared_heap_bytes,
            segment_bytes: 4096,
            ..Setup::default()
        };
        let any = Case::of_size(seed, Size::Small, &mut Random::new(seed));
        let case = Case { setup, batches: tiny_history(), image_limit_bytes: 4 << 20, ..any };
        let options = Options { images_max, nest_one_in: 100, run_on: 20, ..Options::default() };
        let counts = explored(&case, &options);
        assert!(counts.images < images_max, "all of it is explored");
    }
}

/// As above, with larger histories and all choices, at random events.
#[test]
fn o_29_random_histories_at_random_events() {
    let first = effort("NVCARACAL_FIRST_SEED", 1000);
    let options = Options {
        images_max: effort("NVCARACAL_CRASH_IMAGES", 80),
        nest_one_in: 20,
        run_on_one_in: 100,
        run_on: 20,
        ..Options::default()
    };
    for seed in first..first + effort("NVCARACAL_CRASHES", 40) {
        explored(&Case::of_seed(seed), &options);
    }
}

/// O-53: a store whose creation was cut is created by the next open, or is whole.
#[test]
fn o_53_creation_is_all_or_nothing() {
    let any = Case::of_size(0, Size::Tiny, &mut Random::new(0));
    let case = Case { batches: vec![], creation: true, ..any };
    let options = Options { nest_one_in: 10, run_on: 10, run_on_one_in: 10, ..Options::default() };
    let counts = explored(&case, &options);
    assert!(counts.images > 100, "{counts:?}");
}
