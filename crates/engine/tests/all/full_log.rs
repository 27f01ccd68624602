//! A store whose input log is full opens again, with whatever options.
//!
//! An engine that was told to take checkpoints seldom filled its log. Opened with a shorter
//! interval, it took checkpoints in the middle of the replay and wanted to log the calls that were
//! re-submitted there, for which nobody had kept room: the store did not open any more. The crash
//! lab found it.

use std::sync::Arc;

use pmem::Dram;
use sim::history::{Model, ORDERED, Op, Pair, Program, Setup, Step};
use storage::input_log::RESERVE_SEGMENTS;

/// The record of the program has a segment; each epoch has two, of its stream and its seal. With
/// one more the calls that are carried over would find room.
const SEGMENTS: u64 = 1 + RESERVE_SEGMENTS as u64 + 2 * 10;

/// A write that changes a row, and a call that has looked at it before, so that it is re-submitted.
fn calls(tag: u8) -> Vec<Vec<u8>> {
    let insert = |key| Step::new(Op::Insert, ORDERED, key).size(9).tag(tag);
    let write = Program {
        draws: vec![],
        declares: vec![Step::new(Op::DeclareInsert, ORDERED, 0)],
        body: vec![insert(0)],
    };
    let look = Program {
        draws: vec![],
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
        // Without calls that may be re-submitted the log fills up to the reserve.
        let refused = (5..).find_map(|tag| pair.run(&calls(tag)[..1]).err()).unwrap();
        assert!(refused.contains("input log is full"), "{refused}");
        let Pair { engine, model } = pair;
        assert!(model.epoch > 5);
        let left = SEGMENTS * 4096 - engine.store().log().bytes_in_use();
        assert_eq!(left, u64::from(RESERVE_SEGMENTS) * 4096, "no segment is left for epochs");
        drop(engine);
        let setup = Setup { checkpoint_every, ..seldom };
        let mut pair = Pair::open(&device, &setup, model).unwrap_or_else(|error| {
            panic!("opened with a checkpoint every {checkpoint_every} epochs: {error}")
        });
        pair.run(&calls(99)).unwrap();
    }
}

/// O-43: room is kept for the calls that may be re-submitted, which are those that looked
/// something up.
#[test]
fn o_43_room_is_kept_for_calls_that_looked_something_up() {
    let declares = |op| Program {
        draws: vec![],
        declares: vec![Step::new(op, ORDERED, 0); 200],
        body: vec![],
    };
    let calls = |op| vec![declares(op).encode(); 20];
    let (looks, writes) = (calls(Op::LookupOrAbort), calls(Op::DeclareUpdate));
    assert_eq!(looks.concat().len(), writes.concat().len());
    let accepts = |calls: &[Vec<u8>], segments: u64| {
        let device = Arc::new(Dram::new(16 << 20, segments * 4096).unwrap());
        let setup = Setup { segment_bytes: 4096, ..Setup::default() };
        let pair = Pair::open(&device, &setup, Model::default());
        pair.is_ok_and(|mut pair| pair.run(calls).is_ok())
    };
    let least = |calls: &[_]| (1..100).find(|&segments| accepts(calls, segments)).unwrap();
    // Headers of records and segments may take one more.
    let carried = looks.concat().len() as u64 / 4096;
    assert!(carried > 5, "{carried}");
    let more = least(&looks) - least(&writes);
    assert!((carried..=carried + 2).contains(&more), "{more} segments more for {carried}");
}
