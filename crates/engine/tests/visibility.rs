//! Stores past the cache are not ordered with others: a reader on another processor that was led to
//! a final write too early saw what had been there before, a row of zeros.

use std::sync::Arc;

use engine::{Answer, Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{Emulated, Profile};
use storage::{IndexKind, TableDefinition};

const PAIRS: u64 = 10_000;
const EPOCHS: u64 = 20;
const VALUE_BYTES: usize = 450;

fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "put",
        draws: None,
        write_set: |args, set| {
            set.insert(0, &args[..8]);
            Ok(())
        },
        body: |args, tx| tx.insert(0, &args[..8], &[args[8]; VALUE_BYTES]),
    });
    table.add(ProcedureDefinition {
        name: "look",
        draws: None,
        write_set: |_, _| Ok(()),
        body: |args, tx| {
            let seen = tx.get(0, &args[..8])?.map(<[u8]>::to_vec);
            let right = seen.is_some_and(|value| value == [args[8]; VALUE_BYTES]);
            tx.output().push(u8::from(right));
            Ok(())
        },
    });
    table
}

#[test]
fn o_06_a_reader_on_another_processor_sees_the_whole_final_write() {
    let device = Arc::new(Emulated::new(Profile::None, 1 << 30, 1 << 28).unwrap());
    let definition = TableDefinition {
        name: "notes".into(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max: VALUE_BYTES as u32,
        row_bytes: 0,
    };
    let config = EngineConfig { workers: 2, ..EngineConfig::default() };
    let (mut engine, _) = Engine::open(device, config, &[definition], procedures()).unwrap();
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
