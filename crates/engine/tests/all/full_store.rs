//! A store that is full takes deletes and shorter values, and takes new rows again after them.
//!
//! A delete was counted as a write of any length, and needs segments for free lists besides: a full
//! store took none, not after a checkpoint and not after an open, and only a higher limit helped.
//! And room was reserved for the longest value of any table, whoever wrote: an empty table of long
//! values made a thousand notes take half a GiB.

use std::sync::Arc;

use engine::{Calls, Engine, EngineConfig, EpochInfo};
use pmem::{AnyDevice, Device, Dram};
use storage::{IndexKind, StoreOptions, TableDefinition};

use crate::footprint::{LONG, arguments, procedures, push, tables};

const IMAGE_BYTES: u64 = 2 << 20;
const BYTES: u64 = 900;

fn open(device: &Arc<AnyDevice>, workers: usize) -> Engine {
    let config = EngineConfig {
        workers,
        store: StoreOptions { segment_bytes: 4096, ..StoreOptions::default() },
        ..EngineConfig::default()
    };
    Engine::open(Arc::clone(device), config, &tables(), procedures()).unwrap().0
}

/// Runs a call alone; whether there was space.
fn run(engine: &mut Engine, procedure: u16, key: u64, bytes: u64) -> Result<(), String> {
    let mut calls = Calls::new();
    push(&mut calls, true, procedure, &arguments(LONG, key, bytes));
    match engine.run_epoch(&calls, EpochInfo::default()) {
        Ok(outcome) => {
            assert_eq!(outcome.stats.work.committed, 1);
            Ok(())
        }
        Err(error) => {
            assert!(error.is_limit(), "{error}");
            Err(error.to_string())
        }
    }
}

fn fill(engine: &mut Engine) -> (u64, String) {
    let mut key = 0;
    loop {
        match run(engine, 0, key, BYTES) {
            Ok(()) => key += 1,
            Err(error) => return (key, error),
        }
    }
}

#[test]
fn o_43_a_full_store_takes_deletes_and_shorter_values() {
    for workers in [1, 2] {
        let device = AnyDevice::new(Dram::new(IMAGE_BYTES, 1 << 26).unwrap());
        let mut engine = open(&device, workers);
        let (rows, error) = fill(&mut engine);
        println!("{workers} workers: full after {rows} rows: {error}");
        assert!(rows * BYTES > IMAGE_BYTES / 2, "{rows} rows");
        assert!(error.contains("rows can still be deleted"), "{error}");

        // Inline, of the same class twice, and of one that no value has yet.
        for (key, bytes) in [(0, 1), (1, 800), (2, 700), (3, 300)] {
            run(&mut engine, 0, key, bytes).unwrap();
        }
        run(&mut engine, 1, 4, 0).unwrap();
        // What nobody has freed comes back after the next epoch; it can be taken again.
        run(&mut engine, 1, 5, 0).unwrap();
        run(&mut engine, 0, 4, BYTES).unwrap();
        drop(engine);
        let mut engine = open(&device, 3 - workers);
        for key in (0..rows).filter(|&key| key != 5) {
            run(&mut engine, 1, key, 0).unwrap_or_else(|error| panic!("row {key}: {error}"));
        }
        assert_eq!(engine.rows(), 0);
        let (again, _) = fill(&mut engine);
        assert!(again * 10 >= rows * 9, "{rows} rows, then {again}");
        for key in 0..again {
            run(&mut engine, 1, key, 0).unwrap_or_else(|error| panic!("row {key}: {error}"));
        }
        drop(engine);
        assert_eq!(storage::check::check(device).unwrap().problems, [""; 0]);
    }
}

/// Lists of free slots take an eighth of the space of the shortest rows.
#[test]
fn o_43_a_store_full_of_short_rows_can_be_emptied() {
    let device = AnyDevice::new(Dram::new(IMAGE_BYTES, 1 << 26).unwrap());
    let mut engine = open(&device, 2);
    let mut key = 0;
    let some = |engine: &mut Engine, procedure, keys: std::ops::Range<u64>| {
        let mut calls = Calls::new();
        keys.for_each(|key| push(&mut calls, true, procedure, &arguments(0, key, 8)));
        engine.run_epoch(&calls, EpochInfo::default()).map(drop)
    };
    while some(&mut engine, 0, key..key + 16).is_ok() {
        key += 16;
    }
    println!("full after {key} rows");
    assert!(key * 64 > IMAGE_BYTES / 2, "{key} rows");
    for first in (0..key).step_by(16) {
        some(&mut engine, 1, first..first + 16).unwrap();
    }
    assert_eq!(engine.rows(), 0);
}

/// The bytes of the image after a thousand notes in one epoch, beside other tables.
fn bytes_of_notes(with_blobs: bool, alone: bool) -> u64 {
    let device = AnyDevice::new(Dram::new(8 << 30, 1 << 26).unwrap());
    let blobs = TableDefinition {
        name: "blobs".into(),
        index: IndexKind::Ordered,
        key_bytes_max: 8,
        value_bytes_max: 262_128,
        row_bytes: 256,
        shared_heap_bytes: 0,
    };
    let tables: Vec<_> = tables().into_iter().chain(with_blobs.then_some(blobs)).collect();
    let config = EngineConfig { workers: 2, ..EngineConfig::default() };
    let mut engine = Engine::open(Arc::clone(&device), config, &tables, procedures()).unwrap().0;
    let mut calls = Calls::new();
    (0..1000).for_each(|key| push(&mut calls, alone, 0, &arguments(LONG, key, 900)));
    engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    if with_blobs && alone {
        let before = device.image_bytes();
        let mut calls = Calls::new();
        (0..1000).for_each(|key| push(&mut calls, true, 0, &arguments(3, key, 200)));
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        let grown = device.image_bytes() - before;
        assert!(grown < 4 << 20, "a thousand blobs of 200 bytes took {grown} bytes");
        return before;
    }
    device.image_bytes()
}

#[test]
fn o_43_room_is_reserved_for_what_calls_write() {
    for alone in [false, true] {
        let bytes = [false, true].map(|with_blobs| bytes_of_notes(with_blobs, alone));
        println!("alone {alone}: {bytes:?} bytes");
        assert_eq!(bytes[0], bytes[1], "without and with an empty table of long values");
        assert!(bytes[0] < 24 << 20, "{bytes:?} bytes for 1,000 notes of 900");
    }
}
