//! Final writes write the lines that differ from what their slot holds (docs/decisions/0011): rows
//! of many lines, a few of which change at a time, in every order of slots and checkpoints.

use std::sync::Arc;

use pmem::{AnyDevice, Delayed, Dram};
use sim::history::{HASHED, Model, Op, Pair, Program, Random, Setup, Step, check_clean};

/// A transaction that does one thing to a row.
fn program(declare: Op, op: Op, key: u8, size: u8, tag: u8) -> Vec<u8> {
    let step = Step::new(op, HASHED, key).size(size).tag(tag);
    let program = Program {
        sequences: vec![],
        declares: vec![Step::new(declare, HASHED, key)],
        body: vec![step],
    };
    program.encode()
}

/// Mostly small changes; now and then a value of another length, or none.
fn random_program(random: &mut Random) -> Vec<u8> {
    let (key, tag) = (random.byte(3), random.byte(40));
    match random.below(12) {
        0 => program(Op::DeclareInsert, Op::Insert, key, 15 + random.byte(6), tag),
        1 => program(Op::DeclareDelete, Op::Delete, key, 0, 0),
        _ => program(Op::DeclareUpdate, Op::Modify, key, 0, tag),
    }
}

/// O-32, O-48: after each epoch all rows are those of the oracle, and what a recovery finds has the
/// hash that was maintained by difference.
#[test]
fn o_48_partial_writes_leave_whole_values() {
    for (seed, checkpoint_every) in (0..30).zip([1, 2, 3].into_iter().cycle()) {
        let mut random = Random::new(seed);
        let setup = Setup { checkpoint_every, ..Setup::default() };
        let device = AnyDevice::new(Dram::new(16 << 20, 16 << 20).unwrap());
        let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
        for epoch in 0..120 {
            let batch: Vec<_> = (0..random.below(3)).map(|_| random_program(&mut random)).collect();
            let done = pair.run(&batch).and_then(|()| pair.compare_state());
            done.unwrap_or_else(|error| panic!("seed {seed}, epoch {epoch}: {error}"));
        }
        let model = pair.model.clone();
        pair.engine.close().unwrap();
        check_clean(&device, &model).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// As above on a device whose non-temporal stores arrive late: what is read back when lines are
/// compared must have arrived.
#[test]
fn partial_writes_need_no_store_that_is_still_on_its_way() {
    let mut random = Random::new(7);
    let device = Arc::new(Delayed::new(16 << 20, 16 << 20).unwrap());
    let setup = Setup { workers: 2, ..Setup::default() };
    let mut pair = Pair::open(&AnyDevice::of(&device), &setup, Model::default()).unwrap();
    for _ in 0..200 {
        let batch: Vec<_> = (0..random.below(6)).map(|_| random_program(&mut random)).collect();
        pair.run(&batch).and_then(|()| pair.compare_state()).unwrap();
    }
}
