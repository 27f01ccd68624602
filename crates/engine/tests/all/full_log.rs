//! A store whose input log is full opens again, with whatever options.
//!
//! An engine that was told to take checkpoints seldom filled its log. Opened with a shorter
//! interval, it took checkpoints in the middle of the replay and wanted to log the calls that were
//! deferred there, for which nobody had kept room: the store did not open any more. The crash
//! lab found it.

use std::sync::Arc;

use engine::{
    Body, Calls, Definitions, Earlier, Engine, EngineConfig, EpochInfo, LoggedSchema,
    ProcedureDefinition, ProcedureTable, Transaction, WriteSet,
};
use pmem::{AnyDevice, Dram, File, FileOptions};
use sim::history::{Model, ORDERED, Op, Pair, Program, Setup, Step, for_serial_part};
use storage::input_log::RESERVE_SEGMENTS;
use storage::{StoreOptions, TableId};

use crate::support::rows;

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
        let device = AnyDevice::new(Dram::new(16 << 20, SEGMENTS * 4096).unwrap());
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
        let device = AnyDevice::new(Dram::new(16 << 20, segments * 4096).unwrap());
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

/// Calls that are deferred in each epoch: enough for all workers.
const DEFERRED: u64 = 200;

/// Inserts the row of the argument. All looks at the first of its 256 keys before, so that they are
/// deferred if that one is inserted in the same epoch.
fn insert_behind(version: u32) -> Body {
    let write_set = |args: &[u8], set: &mut WriteSet<'_>| {
        let key = u64::from_be_bytes(args.try_into().expect("a key"));
        let first = key & !0xff;
        if key != first {
            set.lookup(TableId(0), &first.to_be_bytes());
        }
        set.insert(TableId(0), args);
        Ok(())
    };
    let body = |args: &[u8], tx: &mut Transaction<'_>| tx.insert(TableId(0), args, &[1]).map(drop);
    let name = "insert behind";
    let procedure = ProcedureDefinition { name, sequences: None, write_set, body, pieces: None };
    let (procedure, types) = (Arc::new(procedure), String::new());
    Body { procedure, types, version, is_kept: version == 1 }
}

/// A program whose body has this version; the second one keeps that of the first for logs, and has
/// more workers, each of which needs a segment.
fn open_version(device: &Arc<File>, version: u32) -> engine::Result<Engine> {
    let mut procedures = |_: &[TableId]| {
        let Body { procedure, types, version, .. } = insert_behind(version);
        let mut table = ProcedureTable::new();
        table.add_version(procedure, types, version);
        Ok(table)
    };
    let mut bodies = |_: &LoggedSchema| Ok((1..=version).rev().map(insert_behind).collect());
    let earlier = Earlier {
        indexes: &[],
        bodies: &mut bodies,
        missing: Arc::new(|| None),
        info: EpochInfo::default(),
    };
    let config = EngineConfig {
        workers: if version == 1 { 1 } else { 4 },
        checkpoint_every: 1000,
        store: StoreOptions { segment_bytes: 4096, log_segment_bytes: 4096, ..Default::default() },
        ..EngineConfig::default()
    };
    let tables = [rows(8).into()];
    let earlier = (version > 1).then_some(earlier);
    let definitions = Definitions { earlier, ..Definitions::new(&tables, &mut procedures) };
    Ok(Engine::open_with(Arc::clone(&AnyDevice::of(device)), config, definitions)?.0)
}

/// O-43, O-107: calls that the program before has deferred find room for their epoch, however full
/// the log is that was replayed: a checkpoint frees it.
#[test]
fn o_43_a_full_log_of_the_program_before_is_closed() {
    for segments in SEGMENTS..SEGMENTS + 4 {
        let dir = tempfile::tempdir().unwrap();
        let open = |version| {
            let options = FileOptions::new(16 << 20, segments * 4096);
            open_version(&Arc::new(File::open(dir.path(), &options).unwrap()), version)
        };
        let mut engine = open(1).unwrap();
        let mut run = |key: u64| {
            let mut calls = Calls::new();
            (key..key + DEFERRED + 1).for_each(|key| calls.push(0, &key.to_be_bytes()).unwrap());
            engine.run_epoch(&calls, EpochInfo::default())
        };
        let refused =
            (0..).step_by(256).take(100).find_map(|key| run(key).err().map(|error| (key, error)));
        let (key, refused) = refused.expect("the log is full");
        assert!(refused.to_string().contains("input log is full"), "{refused}");
        assert_eq!(engine.deferred() as u64, DEFERRED, "of the last epoch that ran");
        drop(engine);
        let mut engine = open(2).unwrap_or_else(|error| panic!("{segments} segments: {error}"));
        assert_eq!((engine.rows(), engine.deferred()), (key / 256 * (DEFERRED + 1), 0));
        let mut calls = Calls::new();
        calls.push(0, &u64::MAX.to_be_bytes()).unwrap();
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    }
}
