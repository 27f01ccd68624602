//! What a person decides about a store that every open refuses takes effect, and nothing else does.

use std::sync::Arc;

use engine::{Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Device, Dram, PortState};
use storage::EpochNumber;
use storage::Position;
use storage::{TableId, repair};

use crate::support::rows;

const ROW: [u8; 8] = [1; 8];

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap())
}

/// One procedure: it adds its argument to a row, in which it looks before.
fn open(device: &Arc<AnyDevice>) -> engine::Result<Engine> {
    let definition = rows(8);
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "add",
        sequences: None,
        write_set: |args, set| {
            if args[0] >= 100 {
                set.lookup(TableId(0), &ROW);
            }
            set.insert(TableId(0), &ROW);
            Ok(())
        },
        body: |args, tx| {
            let mut value: [u8; 8] =
                tx.get(TableId(0), &ROW)?.map_or([0; 8], |v| v.try_into().unwrap());
            value[0] += args[0] % 100;
            tx.insert(TableId(0), &ROW, &value)
        },
        pieces: None,
    });
    let config = EngineConfig { checkpoint_every: 100, ..EngineConfig::default() };
    Ok(Engine::open(Arc::clone(device), config, &[definition], procedures)?.0)
}

fn run(engine: &mut Engine, amounts: &[u8]) {
    let mut calls = Calls::new();
    amounts.iter().for_each(|amount| calls.push(0, &[*amount]).unwrap());
    engine.run_epoch(&calls, EpochInfo::default()).unwrap();
}

fn value(engine: &Engine) -> u8 {
    engine.get(TableId(0), &ROW).unwrap().map_or(0, |value| value[0])
}

#[test]
fn o_49_a_call_of_the_last_epoch_is_left_out_and_no_other() {
    let device = device();
    let mut engine = open(&device).unwrap();
    run(&mut engine, &[1, 2]);
    run(&mut engine, &[4, 8, 16]);
    drop(engine);
    for (epoch, position, words) in [
        (1, 0, "the last epoch of the log only, which is 2, not 1"),
        (3, 0, "the last epoch of the log only, which is 2, not 3"),
        (2, 3, "epoch 2 has 3 calls, none at 3"),
    ] {
        let error = repair::skip_call(&device, EpochNumber(epoch), Position(position)).unwrap_err();
        assert!(error.is_limit() && error.to_string().contains(words), "{error}");
    }
    repair::skip_call(&device, EpochNumber(2), Position(1)).unwrap();
    let engine = open(&device).unwrap();
    assert_eq!((engine.epoch().0, value(&engine)), (2, 1 + 2 + 4 + 16));
}

#[test]
fn o_24_giving_up_the_end_of_the_log_keeps_what_is_before_it() {
    let device = device();
    let mut engine = open(&device).unwrap();
    run(&mut engine, &[1]);
    engine.checkpoint().unwrap();
    (2..=4).for_each(|amount| run(&mut engine, &[amount]));
    drop(engine);
    let error = repair::accept_loss(&device, EpochNumber(0)).unwrap_err();
    assert!(error.to_string().contains("the checkpoint is of epoch 1"), "{error}");
    let error = repair::accept_loss(&device, EpochNumber(5)).unwrap_err();
    assert!(error.to_string().contains("epoch 5 is not in the input log"), "{error}");
    let given_up = repair::accept_loss(&device, EpochNumber(2)).unwrap();
    assert_eq!(given_up.epochs.into_iter().map(|epoch| epoch.0).collect::<Vec<_>>(), [3, 4]);
    let mut engine = open(&device).unwrap();
    assert_eq!((engine.epoch().0, value(&engine)), (2, 1 + 2));
    // The numbers of what was given up are reused.
    run(&mut engine, &[50]);
    drop(engine);
    let engine = open(&device).unwrap();
    assert_eq!((engine.epoch().0, value(&engine)), (3, 1 + 2 + 50));
}

#[test]
fn deferred_calls_that_are_there_are_kept() {
    let device = device();
    let mut engine = open(&device).unwrap();
    run(&mut engine, &[1, 102]);
    engine.checkpoint().unwrap();
    run(&mut engine, &[4]);
    drop(engine);
    repair::accept_loss(&device, EpochNumber(1)).unwrap();
    let engine = open(&device).unwrap();
    assert_eq!((engine.epoch().0, engine.deferred(), value(&engine)), (1, 1, 1));
}

/// Calls that a checkpoint hands over to the next epoch were never answered; with the log they are
/// lost, and the store opens without them once that was accepted.
#[test]
fn o_24_deferred_calls_that_are_lost_are_given_up_with_the_log() {
    let device = device();
    let mut engine = open(&device).unwrap();
    run(&mut engine, &[1, 102]);
    assert_eq!(engine.deferred(), 1, "what it looked at has changed");
    engine.checkpoint().unwrap();
    drop(engine);
    let log = device.log_bytes() as usize;
    device.log_write(&mut PortState::default(), 0, &vec![0; log]).unwrap();
    let error = open(&device).err().expect("the log is empty").to_string();
    assert!(error.contains("--accept-loss-after 1 PATH"), "{error}");
    repair::accept_loss(&device, EpochNumber(1)).unwrap();
    let engine = open(&device).unwrap();
    assert_eq!((engine.epoch().0, engine.deferred(), value(&engine)), (1, 0, 1));
}
