//! Indexes of a store that is larger than memory: kept, equal to the rows, and their pages are
//! asked for before calls touch them (decision 65).

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{
    BodyFn, Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable,
    RecoveryReport, Stop, Transaction, check_kept_indexes,
};
use pmem::{
    AnyDevice, Device, DiskCall, DiskFile, DiskHook, DiskOperation, File, FileOptions, Outcome,
    PageUse, memory_can_be_limited,
};
use sim::history::effort;
use storage::{IndexKind, StateHash, StoreOptions, TableDefinition, TableId};

/// Keys that are words, and keys that begin alike.
const NUMBERS: TableId = TableId(0);
const NAMES: TableId = TableId(1);
const KEYS: u64 = 6000;
/// Memory for a few pages of some hundreds.
const LIMITS: [u64; 2] = [64 << 10, 512 << 10];

fn key(table: TableId, number: u64) -> Vec<u8> {
    match table {
        NUMBERS => number.to_be_bytes().to_vec(),
        _ => format!("a long name {number:08}").into_bytes(),
    }
}

/// Arguments: table, key, and the key behind the last one, or bytes of a value.
fn arguments(table: TableId, number: u64, other: u64) -> Vec<u8> {
    [u64::from(table.0), number, other].map(u64::to_be_bytes).concat()
}

fn read(arguments: &[u8]) -> (TableId, u64, u64) {
    let word = |at: usize| u64::from_be_bytes(arguments[at * 8..][..8].try_into().unwrap());
    (TableId(word(0) as u16), word(1), word(2))
}

const PUT: u16 = 0;
const REMOVE: u16 = 1;
const SWEEP: u16 = 2;
const READ_RANGE: u16 = 3;

fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "put",
        sequences: None,
        write_set: |arguments, set| {
            let (table, number, _) = read(arguments);
            set.insert(table, &key(table, number));
            Ok(())
        },
        body: |arguments, tx| {
            let (table, number, bytes) = read(arguments);
            tx.insert(table, &key(table, number), &vec![number as u8; bytes as usize])
        },
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "remove",
        sequences: None,
        write_set: |arguments, set| {
            let (table, number, _) = read(arguments);
            set.delete(table, &key(table, number));
            Ok(())
        },
        body: |arguments, tx| {
            let (table, number, _) = read(arguments);
            tx.delete(table, &key(table, number)).map(drop)
        },
        pieces: None,
    });
    table.add(of_range("sweep", |arguments, tx| visit(arguments, tx, true)));
    table.add(of_range("read_range", |arguments, tx| visit(arguments, tx, false)));
    table
}

fn of_range(name: &'static str, body: BodyFn) -> ProcedureDefinition {
    ProcedureDefinition {
        name,
        sequences: None,
        write_set: |arguments, set| {
            let (table, low, high) = read(arguments);
            set.update_range(table, &key(table, low), &key(table, high));
            Ok(())
        },
        body,
        pieces: None,
    }
}

/// Visits the rows of a range, and may delete them.
fn visit(arguments: &[u8], tx: &mut Transaction<'_>, deletes: bool) -> Result<(), Stop> {
    let (table, low, high) = read(arguments);
    let mut found = Vec::new();
    tx.scan(table, &key(table, low), &key(table, high), false, &mut |key, _| {
        found.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    for key in found.iter().filter(|_| deletes) {
        tx.delete(table, key)?;
    }
    Ok(())
}

fn tables() -> Vec<TableDefinition> {
    let table = |name: &str, key_bytes_max| TableDefinition {
        name: name.into(),
        index: IndexKind::Ordered,
        key_bytes_max,
        value_bytes_max: 60,
        row_bytes: 256,
        shared_heap_bytes: 0,
    };
    vec![table("numbers", 8), table("names", 24)]
}

fn options(limit: Option<u64>) -> FileOptions {
    FileOptions { memory_limit_bytes: limit, ..FileOptions::new(64 << 20, 16 << 20) }
}

fn open_with(
    dir: &Path,
    options: &FileOptions,
    workers: usize,
) -> (Engine, RecoveryReport, Arc<File>) {
    let config = EngineConfig {
        workers,
        checkpoint_every: 4,
        store: StoreOptions { segment_bytes: 16 << 10, ..StoreOptions::default() },
        ..EngineConfig::default()
    };
    let device = Arc::new(File::open(dir, options).unwrap());
    let (engine, report) =
        Engine::open(Arc::clone(&AnyDevice::of(&device)), config, &tables(), procedures()).unwrap();
    (engine, report, device)
}

/// The next word of a sequence of words that look random.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Inserts, updates and deletes of keys, and of ranges of them.
fn any_calls(random: &mut u64, count: u64) -> Calls {
    let mut calls = Calls::new();
    for _ in 0..count {
        let (table, number) = (TableId((next(random) % 2) as u16), next(random) % KEYS);
        let (procedure, other) = match next(random) % 20 {
            0 => (SWEEP, number + next(random) % 100),
            1 => (READ_RANGE, number + next(random) % 400),
            2..5 => (REMOVE, 0),
            _ => (PUT, next(random) % 60),
        };
        calls.push(procedure, &arguments(table, number, other)).unwrap();
    }
    calls
}

fn state(engine: &Engine) -> (Vec<Vec<u8>>, u64, StateHash) {
    let mut rows = Vec::new();
    for table in [NUMBERS, NAMES] {
        let mut each = |key: &[u8], value: &[u8]| rows.push([key, value].concat());
        engine.for_each(table, &mut each).unwrap();
    }
    (rows, engine.rows(), engine.state_hash())
}

fn is_impossible() -> bool {
    if !memory_can_be_limited() {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
    }
    !memory_can_be_limited()
}

/// O-48, S15, S18: a store with limits of memory, which is closed or whose process is killed, keeps
/// indexes that are those of its rows, and has the state of one that is all in memory.
#[test]
fn s_15_indexes_are_kept_whatever_memory_there_is() {
    if is_impossible() {
        return;
    }
    let (limited, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut twin, ..) = open_with(whole.path(), &options(None), 2);
    let mut random = effort("NVCARACAL_FIRST_SEED", 11);
    let mut evicted = 0;
    for round in 0..16 {
        // One open has none.
        let limit = LIMITS.get(round % 3).copied();
        let (mut engine, report, device) =
            open_with(limited.path(), &options(limit), 1 + round % 2);
        assert_eq!(report.indexes_kept, round > 0, "round {round}");
        for _ in 0..2 + next(&mut random) % 6 {
            let count = 20 + next(&mut random) % 400;
            let calls = any_calls(&mut random, count);
            engine.run_epoch(&calls, EpochInfo::default()).unwrap();
            twin.run_epoch(&calls, EpochInfo::default()).unwrap();
            assert_eq!(engine.state_hash(), twin.state_hash(), "round {round}");
        }
        evicted += device.page_use().map_or(0, |pages| pages.evicted);
        if next(&mut random).is_multiple_of(2) {
            assert_eq!(state(&engine), state(&twin), "round {round}");
        }
        if round % 3 == 1 {
            drop(engine);
        } else {
            engine.close().unwrap();
        }
        drop(device);
        let limit = LIMITS.get((round + 1) % 3).copied();
        let device = Arc::new(File::open(limited.path(), &options(limit)).unwrap());
        assert!(check_kept_indexes(AnyDevice::of(&device)).unwrap(), "round {round}");
    }
    assert!(evicted > 1000, "{evicted} pages went");
}

/// An open with a limit takes over what one without has kept, in a process of whatever limit, and
/// visits no row: it reads a few pages.
#[test]
fn an_open_with_a_limit_visits_no_row() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let reads = Arc::new(DataReads::default());
    let (engine, report, device) = open_counting(dir.path(), &reads);
    assert!(report.indexes_kept);
    let pages = device.image_bytes() / 4096;
    assert!(reads.pages() * 8 < pages, "{} of {pages} pages were read", reads.pages());
    // What indexes have of the image is counted with its pages.
    let memory = engine.memory();
    assert!(memory.index < 200 << 10, "{memory:?}");
}

/// Counts pages that are read of the image.
#[derive(Debug, Default)]
struct DataReads(AtomicU64);

impl DataReads {
    fn pages(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl DiskHook for DataReads {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        if let (DiskFile::Data, DiskOperation::Read { len, .. }) = (call.file, call.operation) {
            self.0.fetch_add(len.div_ceil(4096), Ordering::Relaxed);
        }
        Outcome::Proceed
    }
}

/// So many rows of even numbers are in a store; more than are changed at once.
const FILLED: u64 = 20_000;
/// Memory for all of it.
const LARGE_LIMIT: u64 = 64 << 20;

fn fill(dir: &Path) {
    let (mut engine, ..) = open_with(dir, &options(None), 2);
    for part in 0..8 {
        let mut calls = Calls::new();
        for number in part * FILLED / 8..(part + 1) * FILLED / 8 {
            // In an order in which chunks are split.
            let number = number * 7919 % FILLED;
            calls.push(PUT, &arguments(NUMBERS, 2 * number, 8)).unwrap();
        }
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    }
    engine.close().unwrap();
}

fn open_counting(dir: &Path, reads: &Arc<DataReads>) -> (Engine, RecoveryReport, Arc<File>) {
    let hook = Some(Arc::clone(reads) as Arc<dyn DiskHook>);
    open_with(dir, &FileOptions { hook, ..options(Some(LARGE_LIMIT)) }, 2)
}

/// What an epoch declares is asked for, also of indexes: few pages are read because a thread
/// touched them before.
#[test]
fn pages_of_indexes_are_asked_for() {
    if is_impossible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let reads = Arc::new(DataReads::default());
    let (mut engine, _, device) = open_counting(dir.path(), &reads);
    let use_of_pages = || device.page_use().unwrap();
    let is_unasked = |before: (u64, PageUse)| {
        let asked = use_of_pages().fetched - before.1.fetched;
        (reads.pages() - before.0).saturating_sub(asked)
    };
    let epochs: [(&str, &[u16]); 3] =
        [("keys and ranges", &[PUT, READ_RANGE]), ("new keys", &[PUT]), ("removal", &[SWEEP])];
    // What each epoch needs besides is in memory after the first one.
    let mut first = Calls::new();
    first.push(PUT, &arguments(NUMBERS, 0, 8)).unwrap();
    engine.run_epoch(&first, EpochInfo::default()).unwrap();
    for (nth, (what, procedures)) in (0_u64..).zip(epochs) {
        let mut calls = Calls::new();
        for at in 0..150 {
            // Each epoch in a third of the keys of its own.
            let number = (nth * FILLED / 3 + at * 44) * 2;
            for &procedure in procedures {
                let (number, other) = match (procedure, what) {
                    (PUT, "new keys") => (number + 1, 8),
                    (PUT, _) => (number, 8),
                    _ => (number, number + 4),
                };
                calls.push(procedure, &arguments(NUMBERS, number, other)).unwrap();
            }
        }
        let before = (reads.pages(), use_of_pages());
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        let read = reads.pages() - before.0;
        let unasked = is_unasked(before);
        println!("{what}: {unasked} of {read} pages were read when they were touched");
        assert!(read > 40, "{what}: {read} pages were read");
        assert!(unasked <= 6, "{what}: {unasked} of {read} pages were read when they were touched");
    }
}
