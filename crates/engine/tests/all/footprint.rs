//! The space of rows and values follows from the live rows: whatever comes and goes, in epochs of
//! one worker, of some or of all, and however many epochs lie between two checkpoints, the image
//! stops growing.
//!
//! Each worker frees and takes slots in sub-pools of its own. Where rows came in epochs of one
//! worker and went in those of another, alternately, free slots piled up with one and the other
//! took fresh ones for ever: a lock that is taken and given back filled the disk. So a random
//! history of inserts, updates and deletes is held to a bound of its live rows.
//!
//! `NVCARACAL_FOOTPRINT_ROUNDS` rounds from `NVCARACAL_FIRST_SEED` on, if they are set.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Device, Dram, File, FileOptions};
use storage::{IndexKind, StoreOptions, TableDefinition, TableId};

const SEGMENT_BYTES: u64 = 4096;
/// Two tables of short rows, and one of values that lie beside their rows.
const TABLES: usize = 3;
pub(crate) const LONG: usize = 2;
const ROW_BYTES: [u64; TABLES] = [64, 128, 128];
const LONG_BYTES_MAX: u64 = 900;
/// Rows that come or go in an epoch, and keys of a table.
const CALLS_MAX: u64 = 120;
const KEYS: u64 = 400;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Arguments: table, key, bytes of the value.
pub(crate) fn arguments(table: usize, key: u64, bytes: u64) -> Vec<u8> {
    [table as u64, key, bytes].map(u64::to_be_bytes).concat()
}

fn read(arguments: &[u8]) -> (u16, [u8; 8], usize) {
    let word = |at: usize| arguments[at * 8..][..8].try_into().unwrap();
    let number = |at| u64::from_be_bytes(word(at));
    (number(0) as u16, word(1), number(2) as usize)
}

pub(crate) fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "put",
        sequences: None,
        write_set: |arguments, set| {
            let (table, key, _) = read(arguments);
            set.insert(TableId(table), &key);
            Ok(())
        },
        body: |arguments, tx| {
            let (table, key, bytes) = read(arguments);
            tx.insert(TableId(table), &key, &vec![7; bytes])
        },
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "remove",
        sequences: None,
        write_set: |arguments, set| {
            let (table, key, _) = read(arguments);
            set.delete(TableId(table), &key);
            Ok(())
        },
        body: |arguments, tx| {
            let (table, key, _) = read(arguments);
            tx.delete(TableId(table), &key).map(drop)
        },
        pieces: None,
    });
    table
}

pub(crate) fn tables() -> Vec<TableDefinition> {
    let table = |name: &str, index, value_bytes_max, row_bytes| TableDefinition {
        name: name.into(),
        index,
        key_bytes_max: 8,
        value_bytes_max,
        row_bytes,
        shared_heap_bytes: 0,
    };
    vec![
        table("locks", IndexKind::Hash, 8, 64),
        table("queue", IndexKind::Ordered, 30, 128),
        table("notes", IndexKind::Hash, LONG_BYTES_MAX as u32, 128),
    ]
}

/// What is known of a table: its live rows, and the most that its slots ever had to hold. What is
/// freed may be taken again after the next checkpoint.
#[derive(Default)]
struct Known {
    live: BTreeMap<u64, u64>,
    /// Rows that went since the checkpoint, or had a slot that they did not need; and writes.
    removed: u64,
    written: u64,
    rows_most: u64,
    written_most: u64,
    churn_most: u64,
}

/// What comes and goes for a while, and in which way.
#[derive(Debug, Default)]
struct Mood {
    table: usize,
    calls: u64,
    pattern: u64,
    /// Workers of epochs that delete, and of those that insert, where these are not of one.
    workers: [u64; 2],
}

struct History {
    seed: u64,
    device: Arc<AnyDevice>,
    engine: Option<Engine>,
    workers: u64,
    workers_most: u64,
    checkpoint_every: u64,
    random: Random,
    known: [Known; TABLES],
    mood: Mood,
}

impl History {
    fn new(device: impl Device, seed: u64) -> Self {
        let mut history = Self {
            seed,
            device: AnyDevice::new(device),
            engine: None,
            workers: 0,
            workers_most: 0,
            checkpoint_every: 0,
            random: Random(seed),
            known: Default::default(),
            mood: Mood::default(),
        };
        history.open();
        history
    }

    /// Opens the store, with any number of workers and any interval. The one before is not closed,
    /// unless memory may be ahead of the last image snapshot then.
    fn open(&mut self) {
        match self.engine.take() {
            Some(engine) if self.device.takes_snapshots() => engine.close().unwrap(),
            engine => drop(engine),
        }
        self.workers = 1 + self.random.below(4);
        self.workers_most = self.workers_most.max(self.workers);
        self.checkpoint_every = [1, 2, 5][self.random.below(3) as usize];
        self.mood.workers = [self.workers; 2];
        let config = EngineConfig {
            workers: self.workers as usize,
            checkpoint_every: self.checkpoint_every,
            store: StoreOptions { segment_bytes: SEGMENT_BYTES, ..StoreOptions::default() },
            ..EngineConfig::default()
        };
        let opened = Engine::open(Arc::clone(&self.device), config, &tables(), procedures());
        // It has come to a checkpoint.
        self.known.iter_mut().for_each(|known| (known.removed, known.written) = (0, 0));
        self.engine = Some(opened.unwrap().0);
    }

    /// An epoch: inserts, updates or deletes of one table, by one worker, some or all.
    fn round(&mut self) {
        if self.random.below(40) == 0 {
            self.mood = Mood {
                table: self.random.below(TABLES as u64) as usize,
                calls: 1 + self.random.below(CALLS_MAX),
                pattern: self.random.below(6),
                workers: [0; 2].map(|_| 1 + self.random.below(self.workers)),
            };
        }
        let Mood { table, calls: count, pattern, workers } = self.mood;
        // Which way, and by whom: alternating, or anyhow.
        let (turn, any) = (self.random.below(2), self.random.below(3));
        let known = &self.known[table];
        let (inserts, alone) = match pattern {
            0 => (known.live.is_empty(), true),
            1 => (known.live.is_empty(), known.live.is_empty()),
            2 => (known.live.is_empty(), !known.live.is_empty()),
            3 => (any > 0, turn == 0),
            4 => (any == 0, turn == 0),
            _ => (known.live.is_empty(), false),
        };
        let mut calls = Calls::new();
        let mut removed = 0;
        for _ in 0..count {
            let bytes = if table == LONG { self.random.below(LONG_BYTES_MAX + 1) } else { 8 };
            let key = self.random.below(KEYS);
            let known = &mut self.known[table];
            if inserts {
                // A slot was ready for a row that is there.
                removed += u64::from(known.live.insert(key, bytes).is_some());
            } else {
                // What there is; nothing if there is nothing.
                let found = known.live.range(key..).next().or(known.live.iter().next());
                let Some((&key, _)) = found else { break };
                known.live.remove(&key);
                removed += 1;
                push(&mut calls, alone, 1, &arguments(table, key, 0));
                continue;
            }
            push(&mut calls, alone, 0, &arguments(table, key, bytes));
        }
        let engine = self.engine.as_mut().unwrap();
        engine.limit_workers(workers[usize::from(inserts)] as usize);
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        let has_checkpoint = engine.checkpoint_epoch().0 == engine.epoch().0;
        let known = &mut self.known[table];
        known.removed += removed;
        known.written += calls.len() as u64;
        known.rows_most = known.rows_most.max(known.live.len() as u64 + known.removed);
        known.written_most = known.written_most.max(known.written);
        known.churn_most = known.churn_most.max(known.removed + known.written);
        if has_checkpoint {
            self.known.iter_mut().for_each(|known| (known.removed, known.written) = (0, 0));
        }
    }

    /// Most bytes that rows and values may take.
    fn bound(&self) -> (u64, u64) {
        let (workers, entries) = (self.workers_most, SEGMENT_BYTES / 8);
        // Every worker may have begun a segment, and a list has a segment at each end. What a list
        // has lost since the checkpoint before the last is in it still: as many entries as slots
        // were freed, or handed over and put back.
        let pool = |slots: u64, churn: u64, slot_bytes: u64| {
            let lists = workers * (2 + (slots + 2 * churn) / entries);
            slots.div_ceil(SEGMENT_BYTES / slot_bytes) + workers + lists
        };
        let rows = self.known.iter().zip(ROW_BYTES);
        let rows = rows.map(|(known, bytes)| pool(known.rows_most, known.churn_most, bytes));
        // Both versions of a row, and as many again for each worker as there are writes: in each
        // class, because lengths are random.
        let known = &self.known[LONG];
        let slots = 2 * known.rows_most + (workers + 1) * known.written_most;
        let churn = 2 * known.churn_most;
        let classes = [128, 256, 512, 1024].map(|bytes| pool(slots, churn, bytes));
        (rows.sum::<u64>() * SEGMENT_BYTES, classes.iter().sum::<u64>() * SEGMENT_BYTES)
    }

    fn check(&self, round: u64) {
        let (rows, values) = self.bound();
        let now = self.engine.as_ref().unwrap().memory();
        let (rows_are, values_are) = (now.persistent_rows, now.persistent_values);
        let at = format!(
            "seed {}: round {round}, now {:?}, {} workers, a checkpoint every {}",
            self.seed, self.mood, self.workers, self.checkpoint_every
        );
        assert!(rows_are <= rows, "{at}: {rows_are} bytes of rows, at most {rows}");
        assert!(values_are <= values, "{at}: {values_are} bytes of values, at most {values}");
    }
}

pub(crate) fn push(calls: &mut Calls, alone: bool, procedure: u16, arguments: &[u8]) {
    match alone {
        true => calls.push_serial(procedure, arguments).unwrap(),
        false => calls.push(procedure, arguments).unwrap(),
    }
}

/// A number of the environment.
fn effort(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
}

fn rounds(default: u64) -> u64 {
    effort("NVCARACAL_FOOTPRINT_ROUNDS", default)
}

fn explore(device: impl Device, seed: u64, rounds: u64) {
    let mut history = History::new(device, seed);
    for round in 0..rounds {
        if history.random.below(500) == 0 {
            history.open();
            let report = storage::check::check(Arc::clone(&history.device));
            assert_eq!(report.unwrap().problems, [""; 0], "round {round} of seed {seed}");
        }
        history.round();
        history.check(round);
    }
    let live: u64 = history.known.iter().map(|known| known.live.len() as u64).sum();
    assert_eq!(history.engine.unwrap().rows(), live);
}

#[test]
fn o_43_the_footprint_follows_from_the_live_rows() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for seed in first..first + 4 {
        explore(Dram::new(1 << 30, 1 << 26).unwrap(), seed, rounds(40_000) / 4);
    }
}

#[test]
fn o_43_so_it_does_in_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::open(dir.path(), &FileOptions::new(1 << 28, 1 << 26)).unwrap();
    explore(file, 5, rounds(1000) / 10);
}

/// One key that comes and goes, in epochs of one worker of two.
#[test]
fn o_43_one_row_that_comes_and_goes_has_one_slot() {
    let device = AnyDevice::new(Dram::new(1 << 28, 1 << 26).unwrap());
    let config = EngineConfig {
        workers: 2,
        store: StoreOptions { segment_bytes: SEGMENT_BYTES, ..StoreOptions::default() },
        ..EngineConfig::default()
    };
    let mut engine = Engine::open(device, config, &tables(), procedures()).unwrap().0;
    let mut allocated = Vec::new();
    for round in 0..2000 {
        for procedure in [0, 1] {
            let mut calls = Calls::new();
            push(&mut calls, true, procedure, &arguments(LONG, 7, 700));
            engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        }
        if round % 500 == 499 {
            let memory = engine.memory();
            allocated.push((memory.persistent_rows, memory.persistent_values));
        }
    }
    assert_eq!(allocated, [allocated[0]; 4], "bytes of rows and values every 500 rounds");
}

/// Rows that come in epochs of two workers of four, and go in those of three, beside one that
/// stays: the third frees slots in epochs only in which it creates no row.
#[test]
fn o_43_workers_that_have_no_part_give_what_they_freed() {
    let device = AnyDevice::new(Dram::new(1 << 28, 1 << 26).unwrap());
    let config = EngineConfig {
        workers: 4,
        store: StoreOptions { segment_bytes: SEGMENT_BYTES, ..StoreOptions::default() },
        ..EngineConfig::default()
    };
    let mut engine = Engine::open(device, config, &tables(), procedures()).unwrap().0;
    let mut run = |workers: usize, procedure: u16, keys: std::ops::Range<u64>| {
        let mut calls = Calls::new();
        keys.for_each(|key| push(&mut calls, false, procedure, &arguments(LONG, key, 700)));
        engine.limit_workers(workers);
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        let memory = engine.memory();
        (memory.persistent_rows, memory.persistent_values)
    };
    run(4, 0, 1000..1001);
    let mut allocated = Vec::new();
    for round in 0..400 {
        run(2, 0, 0..60);
        let now = run(3, 1, 0..60);
        if round % 100 == 99 {
            allocated.push(now);
        }
    }
    let rows = allocated[0].0;
    // Which worker runs a call depends on the clock, so each comes to need some slots more, up to
    // 160 KiB in 4,000 rounds. If those of workers without a part were not given, it would be 200.
    let is_bounded = |&(of_rows, values): &(u64, u64)| of_rows == rows && values <= 3 * 60 * 1024;
    assert!(allocated.iter().all(is_bounded), "rows, values every 100 rounds: {allocated:?}");
}
