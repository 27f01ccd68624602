//! A store whose rows come and go, but whose number stays, stops growing: slots that are freed are
//! found again, whoever frees them and whoever needs them next. And epochs that insert the rows for
//! which room was made take no memory for indexes: ordered ones take theirs in large regions, which
//! the system has to clear while all callers wait.

use engine::{Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Dram};
use storage::{IndexKind, StoreOptions, TableDefinition, TableId};

const ROWS: u64 = 400;
/// Epochs until the worst order of frees and inserts has probably been met.
const SETTLED: u64 = 300;
const EPOCHS: u64 = 1500;

const ROWS_BEFORE: u64 = 10_000;
const ROWS_PREPARED: u64 = 40_000;
const ROWS_PER_EPOCH: u64 = 5_000;

fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "come",
        sequences: None,
        write_set: |key, set| {
            set.insert(TableId(0), key);
            Ok(())
        },
        body: |key, tx| tx.insert(TableId(0), key, &[7; 30]),
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "go",
        sequences: None,
        write_set: |key, set| {
            set.delete(TableId(0), key);
            Ok(())
        },
        body: |key, tx| tx.delete(TableId(0), key).map(drop),
        pieces: None,
    });
    table
}

fn table() -> TableDefinition {
    TableDefinition {
        name: "guests".into(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max: 30,
        row_bytes: 0,
        shared_heap_bytes: 0,
    }
}

/// An empty store whose segments hold a few rows each.
fn small_segments(workers: usize) -> Engine {
    let device = AnyDevice::new(Dram::new(1 << 30, 1 << 28).unwrap());
    let config = EngineConfig {
        workers,
        store: StoreOptions { segment_bytes: 4096, ..StoreOptions::default() },
        ..EngineConfig::default()
    };
    Engine::open(device, config, &[table()], procedures()).unwrap().0
}

/// An image that is just large enough grows by all that an epoch needs before it begins.
#[test]
fn o_43_an_epoch_has_the_segments_of_all_its_rows() {
    const ROWS: u64 = 20_000;
    for workers in [1, 3] {
        let mut engine = small_segments(workers);
        for (procedure, rows) in [(0, ROWS), (1, ROWS), (0, 3 * ROWS)] {
            let mut calls = Calls::new();
            (0..rows).for_each(|row| calls.push(procedure, &row.to_be_bytes()).unwrap());
            let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
            assert_eq!(outcome.stats.work.committed, rows);
        }
    }
}

#[test]
fn o_43_rows_that_come_and_go_do_not_let_the_store_grow() {
    for workers in [1, 2, 3] {
        let mut engine = small_segments(workers);
        let mut settled = 0;
        for epoch in 0..EPOCHS {
            let mut calls = Calls::new();
            for i in 0..ROWS {
                calls.push(0, &(epoch * ROWS + i).to_be_bytes()).unwrap();
            }
            for i in (0..ROWS).filter(|_| epoch > 0) {
                calls.push(1, &((epoch - 1) * ROWS + i).to_be_bytes()).unwrap();
            }
            engine.run_epoch(&calls, EpochInfo::default()).unwrap();
            if epoch == SETTLED {
                settled = engine.memory().persistent_rows;
            }
        }
        assert_eq!(engine.rows(), ROWS);
        let now = engine.memory().persistent_rows;
        println!("{workers} workers: {settled} bytes after {SETTLED} epochs, {now} at the end");
        assert!(now * 2 <= settled * 3, "{workers} workers: {settled} bytes, then {now}");
    }
}

fn insert(engine: &mut Engine, rows: std::ops::Range<u64>) {
    let mut calls = Calls::new();
    for nth in rows {
        // An odd factor: every row has a key of its own, anywhere among the others.
        calls.push(0, &nth.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()).unwrap();
    }
    engine.run_epoch(&calls, EpochInfo::default()).unwrap();
}

#[test]
fn epochs_take_no_index_memory_for_rows_that_were_prepared() {
    for workers in [1, 2] {
        let device = AnyDevice::new(Dram::new(1 << 30, 1 << 28).unwrap());
        let config = EngineConfig { workers, ..EngineConfig::default() };
        let table = TableDefinition { index: IndexKind::Ordered, ..table() };
        let (mut engine, _) = Engine::open(device, config, &[table], procedures()).unwrap();
        insert(&mut engine, 0..ROWS_BEFORE);
        engine.prepare_rows(&[(TableId(0), ROWS_PREPARED)]).unwrap();
        let prepared = engine.memory().index;
        for first in (ROWS_BEFORE..ROWS_BEFORE + ROWS_PREPARED).step_by(ROWS_PER_EPOCH as usize) {
            insert(&mut engine, first..first + ROWS_PER_EPOCH);
        }
        assert_eq!(engine.rows(), ROWS_BEFORE + ROWS_PREPARED);
        let now = engine.memory().index;
        println!("{workers} workers: {prepared} bytes prepared, {now} at the end");
        // All that may grow is the list of chunks, with less than a byte for each row.
        assert!(now < prepared + ROWS_PREPARED, "{workers} workers: {prepared} bytes, then {now}");
    }
}
