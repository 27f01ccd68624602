//! O-47: the calls of the serial part run twice, and must do the same both times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{
    Answer, Calls, Engine, EngineConfig, EngineError, EpochInfo, ProcedureDefinition,
    ProcedureTable, Result,
};
use pmem::Dram;

use crate::support::rows;

const GOOD: u16 = 0;
const BAD: u16 = 1;

/// Both count the row with the key that they are called with; a longer key says that a row is
/// written that was not predicted.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    let good = ProcedureDefinition {
        name: "good",
        sequences: None,
        write_set: |args, set| {
            if args.len() == 8 {
                set.insert(0, args);
            }
            Ok(())
        },
        body: |args, tx| {
            let count = tx.get(0, &args[..8])?.map_or(0, |value| value[0]) + 1;
            tx.insert(0, &args[..8], &[count; 8])?;
            tx.output().push(count);
            Ok(())
        },
        pieces: None,
    };
    table.add(good.clone());
    table.add(ProcedureDefinition {
        name: "bad",
        body: |args, tx| {
            static COUNTER: AtomicU64 = AtomicU64::new(0);
            let count = COUNTER.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            tx.insert(0, &args[..8], &count)
        },
        ..good
    });
    table
}

fn open(device: &Arc<Dram>, workers: usize, check_determinism: bool) -> Result<Engine<Dram>> {
    let config = EngineConfig { workers, check_determinism, ..EngineConfig::default() };
    Ok(Engine::open(Arc::clone(device), config, &[rows(8)], procedures())?.0)
}

fn device() -> Arc<Dram> {
    Arc::new(Dram::new(64 << 20, 64 << 20).unwrap())
}

fn blame(error: EngineError) -> (String, u64, u32) {
    let EngineError::NotDeterministic { procedure, epoch, position, .. } = error else {
        panic!("another error: {error}");
    };
    (procedure, epoch, position)
}

fn key(of: u64) -> [u8; 8] {
    of.to_be_bytes()
}

#[test]
fn what_runs_twice_counts_once_for_any_number_of_workers() {
    for workers in [1, 2, 4] {
        let engines = [false, true].map(|check| open(&device(), workers, check).unwrap());
        let [mut once, mut twice] = engines;
        for epoch in 0..4 {
            // Small epochs and large ones, with a part that runs in parallel.
            let mut calls = Calls::new();
            (0..300 + epoch % 2 * 900).for_each(|i| calls.push_serial(GOOD, &key(i % 7)).unwrap());
            (0..epoch * 10).for_each(|i| calls.push(GOOD, &key(i % 9)).unwrap());
            let info = EpochInfo::default();
            let (one, two) = (once.run_epoch(&calls, info), twice.run_epoch(&calls, info));
            let (one, two) = (one.unwrap(), two.unwrap());
            assert_eq!(one.state_hash, two.state_hash, "{workers} workers");
            for call in 0..calls.len() {
                assert_eq!(one.answer(call), two.answer(call), "{workers} workers, call {call}");
            }
            assert_eq!(one.stats.work.committed, two.stats.work.committed);
        }
        let mut calls = Calls::new();
        calls.push(GOOD, &key(1)).unwrap();
        calls.push_serial(GOOD, &key(2)).unwrap();
        calls.push_serial(BAD, &key(3)).unwrap();
        let (epoch, hash) = (twice.epoch() + 1, twice.state_hash());
        let error = twice.run_epoch(&calls, EpochInfo::default()).unwrap_err();
        assert_eq!(blame(error), ("bad".into(), epoch, 1), "{workers} workers");
        assert_eq!((twice.epoch(), twice.state_hash()), (epoch - 1, hash));
        let error = twice.run_epoch(&Calls::new(), EpochInfo::default()).unwrap_err();
        assert!(matches!(error, EngineError::Poisoned(_)), "it has stopped: {error}");
    }
}

#[test]
fn deferred_calls_run_twice_too() {
    for (procedure, checked) in [(GOOD, false), (GOOD, true), (BAD, true)] {
        let device = device();
        let mut engine = open(&device, 2, false).unwrap();
        let mut calls = Calls::new();
        let not_predicted = [&key(5)[..], b"!"].concat();
        calls.push(procedure, &not_predicted).unwrap();
        let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        assert_eq!(outcome.answer(0), Answer::Deferred);
        engine.close().unwrap();
        let mut engine = open(&device, 2, checked).unwrap();
        assert_eq!(engine.deferred(), 1);
        let result = engine.run_deferred(EpochInfo::default());
        if procedure == BAD {
            assert_eq!(blame(result.unwrap_err()), ("bad".into(), 2, 0));
        } else {
            assert_eq!(result.unwrap().answer(0), Answer::Committed(&[1]));
        }
    }
}

/// A store whose replay would come to another state than the one that was answered: the check says
/// which call is to blame.
#[test]
fn a_replay_that_is_checked_names_the_call() {
    let device = device();
    let config = EngineConfig { checkpoint_every: 100, ..EngineConfig::default() };
    let opened = Engine::open(Arc::clone(&device), config, &[rows(8)], procedures());
    let mut engine = opened.unwrap().0;
    for procedure in [GOOD, BAD] {
        let mut calls = Calls::new();
        calls.push_serial(GOOD, &key(1)).unwrap();
        calls.push_serial(procedure, &key(2)).unwrap();
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    }
    drop(engine);
    let error = open(&device, 1, true).err().expect("the replay is refused");
    assert_eq!(blame(error), ("bad".into(), 2, 1));
}
