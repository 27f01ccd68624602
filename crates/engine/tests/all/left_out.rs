//! O-49: what a call has written that is left out of its epoch does not come back.
//!
//! The crash lab found this: such a call had published a final write at its commit point, and the
//! replay without the call wrote that row no more. So the version stayed in the row, and with the
//! checkpoint of its epoch it counted: the next open refused the store, or would have found a value
//! that nobody was ever told of.

use std::sync::Arc;

use engine::EngineError;
use pmem::{AnyDevice, Traced};
use sim::history::{HASHED, Model, ORDERED, Op, Program, Setup, Step, info, to_calls};

/// A call that inserts, or updates, a row and commits; then it ends the epoch, if it is fatal.
fn call(table: u8, size: u8, op: Op, fatal: bool) -> Vec<u8> {
    let mut body = vec![Step::new(op, table, 1).size(size).tag(size)];
    if fatal {
        body.push(Step::new(Op::CommitPoint, table, 0));
        body.push(Step::new(Op::Abort, HASHED, 0).tag(6));
    }
    let declares = vec![Step::new(Op::DeclareInsert, table, 1)];
    Program { sequences: vec![], declares, body }.encode()
}

fn check(op: Op, sizes: [u8; 2], checkpoint_every: u64) {
    let device = Arc::new(Traced::new(1 << 20, 1 << 20).unwrap());
    let setup = Setup { segment_bytes: 4096, checkpoint_every, ..Setup::default() };
    let mut engine = setup.open(&AnyDevice::of(&device)).unwrap();
    let mut model = Model::default();
    let first = [call(ORDERED, sizes[0], Op::Insert, false)];
    engine.run_epoch(&to_calls(&first), info(1)).unwrap();
    model.run(&first, info(1).timestamp_ns);

    // The second of them runs only in the replay without the first, and publishes its write there.
    let second = [call(HASHED, 3, Op::Insert, true), call(ORDERED, sizes[1], op, true)];
    let stopped = engine.run_epoch(&to_calls(&second), info(2));
    assert!(matches!(stopped, Err(EngineError::Poisoned(_))));
    model.run(&second, info(2).timestamp_ns);
    drop(engine);
    let stopped = setup.open(&AnyDevice::of(&device));
    assert!(matches!(stopped, Err(EngineError::Poisoned(_))));

    // Replayed, then from the checkpoint.
    for _ in 0..2 {
        let engine = setup.open(&AnyDevice::of(&device)).unwrap();
        sim::history::compare_state(&engine, &model).unwrap();
        drop(engine);
        sim::history::check_clean(&AnyDevice::of(&device), &model).unwrap();
    }
}

#[test]
fn o_49_a_call_that_is_left_out_leaves_no_version_behind() {
    for checkpoint_every in [1, 3] {
        // To a longer value, within the row, and out of it; and a row that is deleted.
        for sizes in [[5, 22], [5, 6], [22, 5], [22, 23]] {
            check(Op::Insert, sizes, checkpoint_every);
            check(Op::Update, sizes, checkpoint_every);
        }
        check(Op::Delete, [22, 0], checkpoint_every);
    }
}
