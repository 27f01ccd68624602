//! Indexes that are kept: an open that takes them over comes to what one comes to that visits all
//! rows (decision 63).

use std::path::Path;
use std::sync::Arc;

use engine::{Calls, Engine, EngineConfig, EpochInfo, HashCheck, Lab, RecoveryReport};
use pmem::{AnyDevice, File, FileOptions, memory_can_be_limited};
use storage::{StoreOptions, TableId};

use crate::footprint::{LONG, arguments, procedures, tables};

const LIMIT_BYTES: u64 = 64 << 20;

fn options() -> FileOptions {
    FileOptions::new(LIMIT_BYTES, 16 << 20)
}

/// An open that scans compares kept indexes with the rows.
fn config(scans_rows: bool) -> EngineConfig {
    EngineConfig {
        workers: 2,
        checkpoint_every: 4,
        store: StoreOptions { segment_bytes: 16 << 10, ..StoreOptions::default() },
        lab: Lab { scans_rows, ..Lab::default() },
        ..EngineConfig::default()
    }
}

fn open_with(dir: &Path, options: &FileOptions, config: EngineConfig) -> (Engine, RecoveryReport) {
    let device = Arc::new(File::open(dir, options).unwrap());
    Engine::open(AnyDevice::of(&device), config, &tables(), procedures()).unwrap()
}

fn open(dir: &Path, scans_rows: bool) -> (Engine, RecoveryReport) {
    open_with(dir, &options(), config(scans_rows))
}

/// Makes a store, whose slots have tags where it is made with a limit of memory (decision 75), and
/// words otherwise; they stay so. False where there can be no limit.
fn create(dir: &Path, has_tags: bool) -> bool {
    if has_tags && !memory_can_be_limited() {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
        return false;
    }
    let limit = has_tags.then_some(16 << 20);
    let options = FileOptions { memory_limit_bytes: limit, ..options() };
    let (engine, report) = open_with(dir, &options, config(false));
    assert!(report.created && !report.indexes_kept);
    engine.close().unwrap();
    true
}

/// The next word of a sequence of words that look random.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// One epoch of inserts, updates and deletes of all tables.
fn run_epoch(engine: &mut Engine, random: &mut u64, calls_count: u64, keys: u64) {
    let mut calls = Calls::new();
    for _ in 0..calls_count {
        let (table, procedure) = (next(random) % 3, u16::from(next(random).is_multiple_of(3)));
        let bytes = if table == LONG as u64 { next(random) % 900 } else { 8 };
        let key = next(random) % keys;
        calls.push(procedure, &arguments(table as usize, key, bytes)).unwrap();
    }
    engine.run_epoch(&calls, EpochInfo::default()).unwrap();
}

/// All rows, and what the engine knows of them.
fn state(engine: &Engine) -> (Vec<Vec<u8>>, u64, storage::StateHash) {
    let mut rows = Vec::new();
    for table in 0..3 {
        let mut each = |key: &[u8], value: &[u8]| rows.push([key, value].concat());
        engine.for_each(TableId(table), &mut each).unwrap();
    }
    rows.sort_unstable();
    (rows, engine.rows(), engine.state_hash())
}

/// O-48: a store is closed, or its process killed, after any number of epochs; whether the next
/// open takes the indexes over or visits all rows, it comes to the same.
#[test]
fn an_open_that_visits_no_row_comes_to_the_same() {
    [false, true].into_iter().for_each(compare_opens);
}

fn compare_opens(has_tags: bool) {
    let dir = tempfile::tempdir().unwrap();
    if !create(dir.path(), has_tags) {
        return;
    }
    let mut random = 7;
    let (mut engine, _) = open(dir.path(), false);
    for round in 0..30 {
        let keys = 100 << (round / 3);
        for _ in 0..next(&mut random) % 10 {
            let calls = next(&mut random) % (50 << (round / 6));
            run_epoch(&mut engine, &mut random, calls, keys);
        }
        let before = state(&engine);
        if round % 3 == 0 {
            drop(engine)
        } else {
            engine.close().unwrap()
        }
        let scans = round % 4 == 3;
        // Epochs may begin while pages are still read.
        let in_background = (round % 2 == 0).then_some(0);
        let options = FileOptions { background_load_bytes_min: in_background, ..options() };
        let (again, report) = open_with(dir.path(), &options, config(scans));
        assert_eq!(report.indexes_kept, !scans, "round {round}");
        assert_eq!(report.hash, if scans { HashCheck::Verified } else { HashCheck::Kept });
        if round % 4 != 0 {
            assert_eq!(state(&again), before, "round {round}");
        }
        engine = again;
    }
}

/// Growth by more than any stock has is provided for before the epoch is logged.
#[test]
fn indexes_that_grow_by_thousands_of_rows_are_kept() {
    for has_tags in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        if !create(dir.path(), has_tags) {
            return;
        }
        let (mut engine, _) = open(dir.path(), false);
        engine.prepare_rows(&[(TableId(0), 3000)]).unwrap();
        let mut random = 3;
        for calls in [3000, 10, 5000, 1] {
            run_epoch(&mut engine, &mut random, calls, 100_000);
        }
        let before = state(&engine);
        engine.close().unwrap();
        let (engine, report) = open(dir.path(), false);
        assert!(report.indexes_kept);
        assert_eq!(state(&engine), before);
        drop(engine);
        open(dir.path(), true);
    }
}

/// Where all of the image is for rows, indexes go on in other memory, and the next open makes them.
#[test]
fn a_full_store_has_indexes_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let small = FileOptions::new(3 << 20, 16 << 20);
    let mut random = 5;
    let (mut engine, _) = open_with(dir.path(), &small, config(false));
    let is_full = (0..1000).any(|_| {
        let mut calls = Calls::new();
        for _ in 0..100 {
            calls.push(0, &arguments(0, next(&mut random) % 1_000_000, 8)).unwrap();
        }
        engine.run_epoch(&calls, EpochInfo::default()).is_err()
    });
    assert!(is_full);
    let before = state(&engine);
    engine.close().unwrap();
    for scans in [false, true, false] {
        let (engine, _) = open_with(dir.path(), &small, config(scans));
        assert_eq!(state(&engine), before);
        engine.close().unwrap();
    }
}

/// An open with a limit of memory takes over what one without has kept, and the other way round;
/// `paged_indexes` has limits that are reached.
#[test]
fn a_limit_of_memory_ends_no_keeping() {
    if !memory_can_be_limited() {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut random = 9;
    let (mut engine, _) = open(dir.path(), false);
    run_epoch(&mut engine, &mut random, 300, 1000);
    let mut before = state(&engine);
    engine.close().unwrap();
    let limited = FileOptions { memory_limit_bytes: Some(1 << 20), ..options() };
    for scans in [false, true, false] {
        let (mut engine, report) = open_with(dir.path(), &limited, config(scans));
        assert_eq!(report.indexes_kept, !scans);
        assert_eq!(state(&engine), before);
        for _ in 0..20 {
            run_epoch(&mut engine, &mut random, 100, 1000);
        }
        before = state(&engine);
        engine.close().unwrap();
        let (engine, report) = open(dir.path(), false);
        assert!(report.indexes_kept);
        assert_eq!(state(&engine), before);
        engine.close().unwrap();
    }
    open(dir.path(), true);
}

/// Keys in pairs of one shard and one tag: a search finds the row of one when it looks for the
/// other, and has to compare (decision 75).
#[test]
fn keys_of_one_tag_are_different_rows() {
    let pairs = [
        (704_079, 2_640_824),
        (376_425, 3_337_523),
        (2_398_421, 4_340_564),
        (4_220_279, 5_350_422),
    ];
    let dir = tempfile::tempdir().unwrap();
    if !create(dir.path(), true) {
        return;
    }
    let (mut engine, _) = open(dir.path(), false);
    let run = |engine: &mut Engine, table: usize, procedure: u16, keys: &[u64]| {
        let mut calls = Calls::new();
        keys.iter().for_each(|&key| calls.push(procedure, &arguments(table, key, 8)).unwrap());
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    };
    for table in 0..3 {
        for at_once in [1, pairs.len()] {
            for pairs in pairs.chunks(at_once) {
                let firsts: Vec<_> = pairs.iter().map(|(first, _)| *first).collect();
                let seconds: Vec<_> = pairs.iter().map(|(_, second)| *second).collect();
                let count = firsts.len() as u64;
                run(&mut engine, table, 0, &firsts);
                run(&mut engine, table, 1, &seconds);
                assert_eq!(engine.rows(), count, "no row of these keys is there to be removed");
                run(&mut engine, table, 0, &seconds);
                assert_eq!(engine.rows(), 2 * count, "rows of their own");
                let (rows, ..) = state(&engine);
                let has = |key: &u64| rows.iter().any(|row| row.starts_with(&key.to_be_bytes()));
                assert!(firsts.iter().chain(&seconds).all(has));
                run(&mut engine, table, 1, &firsts);
                run(&mut engine, table, 0, &seconds);
                assert_eq!(engine.rows(), count, "the others stay");
                run(&mut engine, table, 1, &seconds);
                assert_eq!(engine.rows(), 0);
            }
        }
    }
}
