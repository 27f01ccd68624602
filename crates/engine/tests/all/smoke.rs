//! The smallest whole story: insert, update, delete, reopen.

use std::sync::Arc;

use engine::{Answer, Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Dram};
use storage::{IndexKind, TableDefinition, TableId};

fn table() -> TableDefinition {
    TableDefinition {
        name: "numbers".into(),
        index: IndexKind::Ordered,
        key_bytes_max: 8,
        value_bytes_max: 600,
        row_bytes: 0,
        shared_heap_bytes: 0,
    }
}

/// Adds a number to a row, creating it where there is none; answers with the sum.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "add",
        sequences: None,
        write_set: |args, set| {
            set.insert(TableId(0), &args[..8]);
            Ok(())
        },
        body: |args, tx| {
            let old = tx
                .get(TableId(0), &args[..8])?
                .map_or(0, |v| u64::from_le_bytes(v[..8].try_into().unwrap()));
            let sum = old + u64::from_le_bytes(args[8..16].try_into().unwrap());
            let mut value = [0u8; 600];
            value[..8].copy_from_slice(&sum.to_le_bytes());
            tx.insert(TableId(0), &args[..8], &value)?;
            tx.output().extend_from_slice(&sum.to_le_bytes());
            Ok(())
        },
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "delete",
        sequences: None,
        write_set: |args, set| {
            set.delete(TableId(0), args);
            Ok(())
        },
        body: |args, tx| {
            let there = tx.delete(TableId(0), args)?;
            tx.output().push(u8::from(there));
            Ok(())
        },
        pieces: None,
    });
    table
}

fn add(key: u64, number: u64) -> [u8; 16] {
    let mut args = [0; 16];
    args[..8].copy_from_slice(&key.to_be_bytes());
    args[8..].copy_from_slice(&number.to_le_bytes());
    args
}

#[test]
fn sums_survive_reopening_with_other_workers() {
    for row_bytes in [0, 256] {
        let device = AnyDevice::new(Dram::new(1 << 30, 1 << 28).unwrap());
        let mut digest = None;
        let mut sums = [0u64; 50];
        for (round, workers) in [1, 2, 4, 3].into_iter().enumerate() {
            let config = EngineConfig { workers, ..EngineConfig::default() };
            let definition = TableDefinition { row_bytes, ..table() };
            let (mut engine, report) =
                Engine::open(Arc::clone(&device), config, &[definition], procedures()).unwrap();
            assert_eq!(report.created, round == 0);
            assert_eq!(digest.unwrap_or(engine.state_hash()), engine.state_hash());
            for epoch in 0..5u64 {
                let mut calls = Calls::new();
                for i in 0..500u64 {
                    if i % 7 == 3 {
                        calls.push(1, &(i % 50).to_be_bytes()).unwrap();
                    } else {
                        calls.push(0, &add(i * i % 50, i + epoch)).unwrap();
                    }
                }
                let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
                for i in 0..500u64 {
                    if i % 7 == 3 {
                        let there = u8::from(std::mem::take(&mut sums[(i % 50) as usize]) > 0);
                        assert_eq!(outcome.answer(i as usize), Answer::Committed(&[there]), "{i}");
                    } else {
                        let sum = &mut sums[(i * i % 50) as usize];
                        *sum += i + epoch;
                        let expected = sum.to_le_bytes();
                        assert_eq!(outcome.answer(i as usize), Answer::Committed(&expected), "{i}");
                    }
                }
            }
            digest = Some(engine.state_hash());
        }
        let report = storage::check::check(Arc::clone(&device)).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(Some(report.state_hash), digest);
    }
}
