//! A store whose input log is full opens again, with whatever options.
//!
//! An engine that was told to take checkpoints seldom filled its log. Opened with a shorter
//! interval, it took checkpoints in the middle of the replay and wanted to log the calls that were
//! deferred there, for which nobody had kept room: the store did not open any more. The crash
//! lab found it.

use std::sync::Arc;

use pmem::Dram;
use sim::history::{Model, ORDERED, Op, Pair, Program, Setup, Step, for_serial_part};
use storage::input_log::RESERVE_SEGMENTS;

/// The record of the program has a segment; each epoch has two, of its stream and its commit
/// record. With one more the calls that are deferred would find room.
const SEGMENTS: u64 = 1 + RESERVE_SEGMENTS as u64 + 2 * 10;

/// A write that changes a row, and a call that has looked at it before, so that it is deferred.
fn calls(tag: u8) -> Vec<Vec<u8>> {
    let insert = |key| Step::new(Op::Insert, ORDERED, key).size(9).tag(tag);
    let write = Program {
        sequences: vec![],
        declares: vec![Step::new(Op::DeclareInsert, ORDERED, 0)],
        body: vec![insert(0)],
    };
    let look = Program {
        sequences: vec![],
        declares: vec![
            Step::new(Op::LookupOrAbort, ORDERED, 0).tag(1),
            Step::new(Op::DeclareInsert, ORDERED, 1),
        ],
        body: vec![insert(1)],
    };
    vec![write.encode(), look.encode()]
}

/// O-29, O-43: replay needs no more log than the run did.
#[test]
fn o_43_a_full_log_is_replayed_with_any_checkpoint_interval() {
    for checkpoint_every in [1, 2, 3, 5, 1000] {
        let device = Arc::new(Dram::new(16 << 20, SEGMENTS * 4096).unwrap());
        let seldom = Setup { checkpoint_every: 1000, segment_bytes: 4096, ..Setup::default() };
        let mut pair = Pair::open(&device, &seldom, Model::default()).unwrap();
        (0..5).for_each(|tag| pair.run(&calls(tag)).unwrap());
        // Calls of the serial part are never deferred: with them the log fills up to the reserve.
        let serial = |tag| [for_serial_part(calls(tag).swap_remove(0))];
        let refused = (5..).find_map(|tag| pair.run(&serial(tag)).err()).unwrap();
        assert!(refused.contains("input log is full"), "{refused}");
        let Pair { engine, model, .. } = pair;
        assert!(model.epoch > 5);
        let left = SEGMENTS * 4096 - engine.store().log().bytes_in_use();
        // A stream and its commit record may need two; those that are written at once leave one of
        // them.
        let reserve = u64::from(RESERVE_SEGMENTS) + 1;
        assert_eq!(left, reserve * 4096, "too few segments are left for an epoch");
        drop(engine);
        let setup = Setup { checkpoint_every, ..seldom };
        let mut pair = Pair::open(&device, &setup, model).unwrap_or_else(|error| {
            panic!("opened with a checkpoint every {checkpoint_every} epochs: {error}")
        });
        pair.run(&calls(99)).unwrap();
    }
}

/// O-43, O-78: room is kept for all calls that may be deferred, which are those of the parallel
/// part.
#[test]
fn o_78_room_is_kept_for_calls_that_may_be_deferred() {
    let call = Program {
        sequences: vec![],
        declares: vec![Step::new(Op::DeclareUpdate, ORDERED, 0); 200],
        body: vec![],
    };
    let parallel = vec![call.encode(); 20];
    let serial: Vec<_> = parallel.iter().cloned().map(for_serial_part).collect();
    let accepts = |calls: &[Vec<u8>], segments: u64| {
        let device = Arc::new(Dram::new(16 << 20, segments * 4096).unwrap());
        let setup = Setup { segment_bytes: 4096, ..Setup::default() };
        let pair = Pair::open(&device, &setup, Model::default());
        pair.is_ok_and(|mut pair| pair.run(calls).is_ok())
    };
    let least = |calls: &[_]| (1..100).find(|&segments| accepts(calls, segments)).unwrap();
    // Headers of records and segments may take one more.
    let deferred = parallel.concat().len() as u64 / 4096;
    assert!(deferred > 5, "{deferred}");
    let more = least(&parallel) - least(&serial);
    assert!((deferred..=deferred + 2).contains(&more), "{more} segments more for {deferred}");
}
