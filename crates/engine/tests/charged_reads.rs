//! A medium whose reads cost something charges each of them, and all media count the same ones.

use std::sync::Arc;

use engine::{Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{Emulated, Profile};
use storage::{IndexKind, TableDefinition};

const ROWS: u64 = 20;
const VALUE_BYTES: usize = 600;

/// Writes a row, or reads it.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "write",
        draws: None,
        write_set: |key, set| {
            set.insert(0, key);
            Ok(())
        },
        body: |key, tx| tx.insert(0, key, &[1; VALUE_BYTES]),
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "read",
        draws: None,
        write_set: |_, _| Ok(()),
        body: |key, tx| tx.get(0, key).map(|value| assert!(value.is_some())),
        pieces: None,
    });
    table
}

/// What an epoch of reads has counted and been charged: lines, blocks, nanoseconds.
fn reads_on(profile: Profile) -> (u64, u64, u64) {
    let device = Arc::new(Emulated::new(profile, 1 << 30, 1 << 28).unwrap());
    let definition = TableDefinition {
        name: "rows".into(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max: VALUE_BYTES as u32,
        row_bytes: 0,
    };
    let config = EngineConfig { cache_bytes: 0, ..EngineConfig::default() };
    let (mut engine, _) = Engine::open(device, config, &[definition], procedures()).unwrap();
    let mut epoch = |procedure| {
        let mut calls = Calls::new();
        (0..ROWS).for_each(|key| calls.push(procedure, &key.to_be_bytes()).unwrap());
        engine.run_epoch(&calls, EpochInfo::default()).unwrap().stats
    };
    epoch(0);
    let medium = epoch(1).medium;
    (medium.lines_read, medium.blocks_read, medium.added_ns)
}

#[test]
fn reads_are_charged_where_they_cost_something_and_counted_everywhere() {
    let (lines, blocks, free) = reads_on(Profile::None);
    assert_eq!((lines, free), (ROWS * (VALUE_BYTES as u64).div_ceil(64), 0));
    let (lines_high, blocks_high, charged) = reads_on(Profile::High);
    assert_eq!((lines_high, blocks_high), (lines, blocks));
    // 700 ns for the first block of each, besides what the epoch writes.
    assert!(charged >= ROWS * 700, "{charged}");
}
