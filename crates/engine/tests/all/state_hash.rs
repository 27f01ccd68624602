//! Stores with and without a state hash (`Lab::state_hash`), seen by what is counted and
//! by what lies in storage (O-48).

use std::sync::Arc;

use engine::{Engine, EpochStats, HashCheck, RecoveryReport};
use pmem::{AnyDevice, Dram, Port};
use sim::history::procedures::procedures;
use sim::history::{HASHED, Model, ORDERED, Op, Pair, Program, Setup, Step, check_clean};
use sim::history::{info, to_calls};
use storage::format::{CheckpointRecord, HASH_KNOWN, HASH_UNKNOWN};
use storage::{Store, StoreOptions};

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(64 << 20, 16 << 20).unwrap())
}

fn setup(state_hash: bool) -> Setup {
    Setup { state_hash, ..Setup::default() }
}

/// A transaction that does one thing to a row.
fn program(declare: Op, op: Op, table: u8, key: u8, size: u8, tag: u8) -> Vec<u8> {
    let body = vec![Step::new(op, table, key).size(size).tag(tag)];
    Program { sequences: vec![], declares: vec![Step::new(declare, table, key)], body }.encode()
}

fn insert(table: u8, key: u8, tag: u8) -> Vec<u8> {
    program(Op::DeclareInsert, Op::Insert, table, key, 20, tag)
}

fn modify(key: u8, tag: u8) -> Vec<u8> {
    program(Op::DeclareUpdate, Op::Modify, HASHED, key, 0, tag)
}

/// What an epoch counts in which small parts of rows change that were written whole twice before.
fn counted(state_hash: bool) -> EpochStats {
    let device = device();
    let mut pair = Pair::open(&device, &setup(state_hash), Model::default()).unwrap();
    let batch = |tag: u8, op: &dyn Fn(u8, u8) -> Vec<u8>| -> Vec<_> {
        (0..9).map(|key| op(key, tag)).collect()
    };
    pair.run(&batch(1, &|key, tag| insert(HASHED, key, tag))).unwrap();
    // These tags change a few bytes, which 3 would not.
    pair.run(&batch(2, &modify)).unwrap();
    pair.run(&batch(4, &modify)).unwrap();
    pair.engine.run_epoch(&to_calls(&batch(5, &modify)), info(4)).unwrap().stats
}

#[test]
fn without_the_state_hash_the_same_is_written() {
    let (usual, without) = (counted(true), counted(false));
    assert!(usual.device.bytes_stored_nt > 0);
    assert_eq!((&without.work, &without.device), (&usual.work, &usual.device));
}

fn open(device: &Arc<AnyDevice>, state_hash: bool) -> (Engine, RecoveryReport) {
    let setup = setup(state_hash);
    setup.open_with(device, setup.config(), procedures()).unwrap()
}

fn record(device: &Arc<AnyDevice>) -> CheckpointRecord {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    Store::open(Arc::clone(device), &options).unwrap().store.checkpoint()
}

/// O-48: checkpoints without a hash say so, recovery says that it compared nothing, and an engine
/// that keeps the hash again computes it; whether epochs were replayed or not.
#[test]
fn o_48_a_hash_that_was_not_maintained_is_computed_anew() {
    for checkpoint_every in [1, 3] {
        let device = device();
        let setup = |state_hash| Setup { checkpoint_every, ..setup(state_hash) };
        let mut pair = Pair::open(&device, &setup(true), Model::default()).unwrap();
        pair.run(&[insert(HASHED, 1, 1), insert(ORDERED, 2, 2)]).unwrap();
        drop(pair.engine);
        assert!(record(&device).state_hash().is_some());
        let mut pair = Pair::open(&device, &setup(false), pair.model).unwrap();
        for tag in 0..5 {
            pair.run(&[modify(1, tag), insert(ORDERED, tag, 3), insert(HASHED, tag, 4)]).unwrap();
            assert_eq!(pair.engine.running_hash(), None);
        }
        assert_eq!(pair.engine.state_hash(), pair.model.state_hash());
        let model = pair.model;
        drop(pair.engine);
        assert_eq!(record(&device).state_hash(), None);
        assert_eq!(record(&device).hash_state, HASH_UNKNOWN);
        assert!(!storage::check::check(Arc::clone(&device)).unwrap().hash_is_stored);
        check_clean(&device, &model).unwrap();

        let (engine, report) = open(&device, false);
        assert_eq!((report.hash, engine.running_hash()), (HashCheck::Unknown, None));
        drop(engine);
        let (engine, report) = open(&device, true);
        assert_eq!(report.hash, HashCheck::Computed);
        assert_eq!(engine.running_hash(), Some(model.state_hash()));
        let mut pair = Pair::new(engine, model);
        pair.compare_state().unwrap();
        pair.run(&[modify(1, 9)]).unwrap();
        let model = pair.model;
        pair.engine.close().unwrap();
        assert_eq!(record(&device).state_hash(), Some(model.state_hash()));
        assert_eq!(open(&device, false).1.hash, HashCheck::Verified);
        check_clean(&device, &model).unwrap();
    }
}

/// A closed store, made with or without the hash.
fn closed(state_hash: bool) -> (Arc<AnyDevice>, Model) {
    let device = device();
    let mut pair = Pair::open(&device, &setup(state_hash), Model::default()).unwrap();
    pair.run(&[insert(HASHED, 1, 1), insert(HASHED, 2, 2)]).unwrap();
    let model = pair.model;
    pair.engine.close().unwrap();
    (device, model)
}

/// O-48: neither of the two passes for the other: a record that says anything else, or records of
/// deferred calls a hash that it does not vouch for, is corrupt, and a hash that is vouched for is
/// compared even where none is maintained.
#[test]
fn o_48_an_unknown_hash_never_passes_for_a_known_one() {
    for state_hash in [true, false] {
        let (device, model) = closed(state_hash);
        let good = record(&device);
        let known = good.state_hash().is_some();
        assert_eq!(known, state_hash);
        let StateWords { low, high } = StateWords::of(&model);
        let forged = [
            (0, low, high, false),
            (3, low, high, false),
            (u32::MAX, 0, 0, false),
            (HASH_UNKNOWN, low, high, false),
            (HASH_UNKNOWN, 0, 1, false),
            (HASH_UNKNOWN, 0, 0, true),
            (HASH_KNOWN, 0, 0, false),
            (HASH_KNOWN, low ^ 1, high, false),
            (HASH_KNOWN, low, high, true),
        ];
        for (hash_state, hash_low, hash_high, opens) in forged {
            let forged = CheckpointRecord { hash_state, hash_low, hash_high, ..good };
            storage::checkpoint::write(&mut Port::new(Arc::clone(&device), 0), forged);
            for opened_with in [true, false] {
                let setup = setup(opened_with);
                match setup.open(&device) {
                    Ok(engine) => {
                        assert!(opens, "{forged:?}");
                        assert_eq!(engine.state_hash(), model.state_hash());
                    }
                    Err(error) => {
                        assert!(!opens && error.is_corrupt(), "{forged:?}: {error}");
                        assert!(error.to_string().contains("state hash"), "{error}");
                    }
                }
            }
        }
    }
}

/// The halves of a state hash.
struct StateWords {
    low: u64,
    high: u64,
}

impl StateWords {
    fn of(model: &Model) -> Self {
        let storage::StateHash(hash) = model.state_hash();
        Self { low: hash as u64, high: (hash >> 64) as u64 }
    }
}
