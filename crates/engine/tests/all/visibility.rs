//! Non-temporal stores are not ordered with others: a reader on another processor that was led to
//! a final write too early saw what had been there before, zeros. TPC-C's StockLevel then looked
//! for item 0, once in many thousand runs.

use std::sync::Arc;

use engine::{Answer, Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Delayed};
use storage::{IndexKind, TableDefinition, TableId};

const PAIRS: u64 = 500;
const EPOCHS: u64 = 6;
const VALUE_BYTES: usize = 3000;

fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "put",
        sequences: None,
        write_set: |args, set| {
            set.insert(TableId(0), &args[..8]);
            Ok(())
        },
        body: |args, tx| tx.insert(TableId(0), &args[..8], &[args[8]; VALUE_BYTES]),
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "look",
        sequences: None,
        write_set: |_, _| Ok(()),
        body: |args, tx| {
            let right = tx.get(TableId(0), &args[..8])? == Some(&[args[8]; VALUE_BYTES]);
            tx.output().push(u8::from(right));
            Ok(())
        },
        pieces: None,
    });
    table
}

#[test]
fn o_06_readers_are_led_only_to_final_writes_that_have_arrived() {
    let definition = TableDefinition {
        name: "notes".into(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max: VALUE_BYTES as u32,
        row_bytes: 0,
        shared_heap_bytes: 0,
    };
    for (workers, checkpoint_every) in [(1, 1), (2, 1), (3, 3)] {
        check(&definition, EngineConfig { workers, checkpoint_every, ..EngineConfig::default() });
    }
}

fn check(definition: &TableDefinition, config: EngineConfig) {
    let device = Arc::new(Delayed::new(8 << 30, 1 << 28).unwrap());
    let (mut engine, _) = Engine::open(
        AnyDevice::of(&device),
        config,
        std::slice::from_ref(definition),
        procedures(),
    )
    .unwrap();
    for epoch in 1..=EPOCHS {
        let mut calls = Calls::new();
        for key in 0..PAIRS {
            let mut args = [epoch as u8; 9];
            // Half of the keys are new in each epoch.
            args[..8].copy_from_slice(&(key + epoch % 2 * PAIRS / 2 * epoch).to_be_bytes());
            calls.push(0, &args).unwrap();
            calls.push(1, &args).unwrap();
        }
        let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        for position in (1..calls.len()).step_by(2) {
            assert_eq!(outcome.answer(position), Answer::Committed(&[1]), "call {position}");
        }
    }
}
