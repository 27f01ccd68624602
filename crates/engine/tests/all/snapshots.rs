//! Snapshots: the state at the end of one epoch, whatever is written afterwards.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use engine::{
    Abort, Calls, Engine, EngineConfig, EngineError, EpochInfo, HASH_PARTS, ProcedureDefinition,
    ProcedureTable, Reader, ScanPart,
};
use pmem::{AnyDevice, Device, Dram, File, FileOptions};
use storage::{EpochNumber, IndexKind, TableDefinition, TableId};

use crate::support::rows;

const HASHED: TableId = TableId(0);
const ORDERED: TableId = TableId(1);

const UPDATE: u8 = 0;
const DELETE: u8 = 1;
const INSERT: u8 = 2;
const ABORT: u8 = 3;

fn key(of: u64) -> [u8; 8] {
    of.to_be_bytes()
}

/// What a call writes: short or long, and another value each time.
fn value(of: u64, epoch: u64, bytes: usize) -> Vec<u8> {
    let word = (of << 8 | epoch).to_le_bytes();
    word.iter().copied().cycle().take(bytes).collect()
}

/// An engine whose one procedure does one thing to one key of both tables.
fn open(config: EngineConfig) -> Engine {
    open_on(Dram::new(256 << 20, 64 << 20).unwrap(), config)
}

fn open_on(device: impl Device, config: EngineConfig) -> Engine {
    let table = |name: &str, index| TableDefinition { name: name.into(), index, ..rows(400) };
    let tables = [table("hashed", IndexKind::Hash), table("ordered", IndexKind::Ordered)];
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "write",
        sequences: None,
        write_set: |args, set| {
            [HASHED, ORDERED].iter().for_each(|&table| set.insert(table, &args[1..9]));
            Ok(())
        },
        body: |args, tx| {
            let (key, value) = (&args[1..9], &args[9..]);
            for table in [HASHED, ORDERED] {
                match args[0] {
                    UPDATE => drop(tx.update(table, key, value)?),
                    DELETE => drop(tx.delete(table, key)?),
                    _ => tx.insert(table, key, value)?,
                }
            }
            if args[0] == ABORT { Err(Abort::new("planned").into()) } else { Ok(()) }
        },
        pieces: None,
    });
    Engine::open(AnyDevice::new(device), config, &tables, procedures).unwrap().0
}

fn run(engine: &mut Engine, calls: impl IntoIterator<Item = (u8, u64, Vec<u8>)>) {
    let mut batch = Calls::new();
    for (op, of, value) in calls {
        batch.push(0, &[&[op][..], &key(of), &value].concat()).unwrap();
    }
    engine.run_epoch(&batch, EpochInfo::default()).unwrap();
}

/// All rows of a table as a snapshot sees them, in order.
fn all(reader: &Reader, epoch: u64, table: TableId) -> Vec<(u64, Vec<u8>)> {
    try_all(reader, epoch, table).unwrap()
}

fn try_all(
    reader: &Reader,
    epoch: u64,
    table: TableId,
) -> Result<Vec<(u64, Vec<u8>)>, EngineError> {
    let mut found = Vec::new();
    let mut keep = |key: &[u8], value: &[u8]| {
        found.push((u64::from_be_bytes(key.try_into().unwrap()), value.to_vec()));
    };
    if table == HASHED {
        for part in 0..HASH_PARTS {
            reader.visit_part_at(0, EpochNumber(epoch), table, part, &mut keep)?;
        }
        found.sort_unstable();
        return Ok(found);
    }
    let (mut low, high) = (key(0).to_vec(), [0xff; 8]);
    let (is_descending, rows_max) = (false, 3);
    loop {
        let part = ScanPart { table, low: &low, high: &high, is_descending, rows_max };
        let last = reader.scan_at(0, EpochNumber(epoch), part, &mut |key, value| {
            keep(key, value);
            ControlFlow::Continue(())
        });
        let Some(last) = last? else { return Ok(found) };
        low = (u64::from_be_bytes(last.try_into().unwrap()) + 1).to_be_bytes().to_vec();
    }
}

/// O-85, O-84: every string of five writes to a key, each in an epoch of its own, with a snapshot
/// after each: values inside and outside of their rows, checkpoints after each epoch and seldom,
/// with and without a cache.
#[test]
fn o_85_the_first_final_write_keeps_what_a_snapshot_sees() {
    const STRINGS: u64 = 4 * 4 * 4 * 4 * 4;
    for bytes in [8, 64, 400] {
        for (checkpoint_every, cache_bytes) in [(1, 0), (3, 0), (1, 1 << 20), (3, 1 << 20)] {
            let config = EngineConfig { workers: 2, checkpoint_every, cache_bytes, ..config() };
            let mut engine = open(config);
            let mut expected = vec![(engine.snapshot().0, Vec::new())];
            let mut state = vec![None; STRINGS as usize];
            for epoch in 1..=5 {
                let op = |of: u64| (of >> (2 * (epoch - 1)) & 3) as u8;
                run(&mut engine, (0..STRINGS).map(|of| (op(of), of, value(of, epoch, bytes))));
                for of in 0..STRINGS {
                    let row = &mut state[of as usize];
                    match op(of) {
                        UPDATE => *row = row.take().map(|_| value(of, epoch, bytes)),
                        DELETE => *row = None,
                        INSERT => *row = Some(value(of, epoch, bytes)),
                        _ => {}
                    }
                }
                let rows = (0..).zip(&state).filter_map(|(of, row)| Some((of, row.clone()?)));
                expected.push((engine.snapshot().0, rows.collect()));
            }
            for (epoch, rows) in &expected {
                for table in [HASHED, ORDERED] {
                    assert_eq!(
                        &all(&engine.reader(), *epoch, table),
                        rows,
                        "{bytes} bytes, epoch {epoch}"
                    );
                }
            }
        }
    }
}

fn config() -> EngineConfig {
    EngineConfig::default()
}

/// O-86, O-90: of snapshots that end in any order, what others still see stays, and all memory is
/// given back, a few rows at a time.
#[test]
fn o_90_what_nobody_sees_any_more_is_freed_in_small_steps() {
    const ROWS: u64 = 200;
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let mut engine = open(EngineConfig { workers: 2, ..config() });
        let mut allocated = Vec::new();
        for round in 1..=4 {
            run(&mut engine, (0..ROWS).map(|of| (INSERT, of, value(of, round, 40))));
            allocated.push((engine.snapshot().0, round));
        }
        run(&mut engine, (0..ROWS).map(|of| (DELETE, of, Vec::new())));
        let mut bytes = engine.snapshot_bytes();
        for at in order {
            let (epoch, round) = allocated[at];
            let rows: Vec<_> = (0..ROWS).map(|of| (of, value(of, round, 40))).collect();
            for table in [HASHED, ORDERED] {
                assert_eq!(all(&engine.reader(), epoch, table), rows, "{order:?}, round {round}");
            }
            engine.release_snapshot(EpochNumber(epoch));
            let mut steps = 0;
            while engine.sweep_snapshots(7) {
                steps += 1;
            }
            assert!(steps >= 2 * ROWS as usize / 7 / 2, "{steps} steps of two workers");
            assert!(engine.snapshot_bytes() < bytes, "{order:?}");
            bytes = engine.snapshot_bytes();
        }
        assert_eq!(bytes, 0);
        assert!(!engine.sweep_snapshots(usize::MAX));
    }
}

/// O-89: where there is no room for what a snapshot sees it ends, and nothing else happens.
#[test]
fn o_89_at_its_limit_a_snapshot_ends_and_no_writer() {
    let writes = |epoch| (0..100).map(move |of| (INSERT, of, value(of, epoch, 300)));
    let mut hashes = Vec::new();
    // The last but one is more than half of the limit, which is too much for several only.
    for (snapshot_bytes_max, lives) in
        [(0, false), (40_000, false), (130_000, true), (1 << 20, true)]
    {
        let mut engine = open(EngineConfig { workers: 2, snapshot_bytes_max, ..config() });
        run(&mut engine, writes(1));
        let epoch = engine.snapshot().0;
        run(&mut engine, writes(2));
        let read = engine.reader().get_at(0, EpochNumber(epoch), ORDERED, &key(5));
        match lives {
            true => assert_eq!(read.unwrap(), Some(value(5, 1, 300))),
            false => {
                let text = read.unwrap_err().to_string();
                assert!(text.contains("the snapshot of epoch 1 has ended"), "{text}");
                assert!(text.contains(&format!("{snapshot_bytes_max} bytes")), "{text}");
            }
        }
        // Another one can be taken at once.
        let epoch = engine.snapshot().0;
        assert_eq!(
            engine.reader().get_at(0, EpochNumber(epoch), HASHED, &key(5)).unwrap(),
            Some(value(5, 2, 300))
        );
        hashes.push(engine.state_hash());
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1, "snapshots change no state");
}

/// O-90: what a snapshot kept that ended by the limit goes, though whoever took it still holds it.
#[test]
fn o_90_what_ended_by_the_limit_is_freed_by_the_epochs_that_follow() {
    let mut engine = open(EngineConfig { workers: 2, snapshot_bytes_max: 40_000, ..config() });
    let write = |engine: &mut _, round| {
        run(engine, (0..100).map(|of| (INSERT, of, value(of, round, 300))));
    };
    write(&mut engine, 1);
    let epoch = engine.snapshot().0;
    write(&mut engine, 2);
    assert!(engine.reader().get_at(0, EpochNumber(epoch), HASHED, &key(1)).is_err());
    write(&mut engine, 3);
    assert!(!engine.sweep_snapshots(0), "nothing is left to be freed");
}

/// O-89: of several the oldest ends first.
#[test]
fn o_89_of_several_snapshots_the_oldest_ends_first() {
    let mut engine = open(EngineConfig { snapshot_bytes_max: 200_000, ..config() });
    let mut allocated = Vec::new();
    for round in 1..=6 {
        run(&mut engine, (0..100).map(|of| (INSERT, of, value(of, round, 100))));
        let bytes = engine.snapshot_bytes();
        assert!(bytes <= 100_000, "{bytes} bytes: the other half is for the next epoch");
        allocated.push(engine.snapshot().0);
    }
    let lives: Vec<bool> = allocated
        .iter()
        .map(|&epoch| engine.reader().get_at(0, EpochNumber(epoch), HASHED, &key(1)).is_ok())
        .collect();
    assert!(!lives[0] && lives[4] && lives[5], "{lives:?}");
    assert!(lives.is_sorted(), "{lives:?}");
}

/// O-89: half of the limit is not too much for several snapshots.
#[test]
fn o_89_several_snapshots_may_take_half_of_the_limit() {
    let kept = |snapshot_bytes_max| {
        let mut engine = open(EngineConfig { snapshot_bytes_max, ..config() });
        let mut snapshots = Vec::new();
        for round in 1..=3 {
            run(&mut engine, (0..100).map(|of| (INSERT, of, value(of, round, 100))));
            snapshots.push(engine.snapshot());
        }
        let first = engine.reader().get_at(0, snapshots[0], HASHED, &key(1));
        (engine.snapshot_bytes(), first.is_ok())
    };
    let (bytes, lives) = kept(1 << 20);
    assert!(lives);
    assert_eq!(kept(2 * bytes), (bytes, true));
    let (fewer, lives) = kept(2 * bytes - 2);
    assert!(fewer < bytes && !lives, "{fewer} of {bytes} bytes");
}

/// A part ends where it is told, whether rows are still there, were deleted, or some of them were,
/// and goes on from there.
#[test]
fn a_part_of_a_snapshot_ends_where_it_is_told() {
    const ROWS: u64 = 10;
    for kept in [ROWS, 0, 5] {
        let mut engine = open(config());
        run(&mut engine, (0..ROWS).map(|of| (INSERT, of, value(of, 1, 40))));
        let epoch = engine.snapshot();
        run(&mut engine, (kept..ROWS).map(|of| (DELETE, of, Vec::new())));
        let reader = engine.reader();
        for (is_descending, rows_max, most) in [
            (false, 3, 100),
            (true, 3, 100),
            (false, 100, 3),
            (true, 100, 3),
            (false, 100, 100),
            (true, 100, 100),
        ] {
            let mut seen = Vec::new();
            let (low, high) = (key(0), [0xff; 8]);
            let part = ScanPart { table: ORDERED, low: &low, high: &high, is_descending, rows_max };
            let last = reader.scan_at(0, epoch, part, &mut |key, _| {
                seen.push(u64::from_be_bytes(key.try_into().unwrap()));
                if seen.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let mut expected: Vec<u64> = (0..ROWS).collect();
            if is_descending {
                expected.reverse();
            }
            expected.truncate(rows_max.min(most));
            assert_eq!(seen, expected, "{kept} rows are left");
            let end = expected.get(2).filter(|_| seen.len() == 3).map(|&of| key(of).to_vec());
            assert_eq!(last.unwrap(), end, "{kept} rows are left");
        }
    }
}

/// A snapshot is released as often as it was taken.
#[test]
fn a_snapshot_lives_until_all_who_took_it_have_released_it() {
    let mut engine = open(config());
    run(&mut engine, [(INSERT, 1, vec![1])]);
    let (one, two) = (engine.snapshot().0, engine.snapshot().0);
    assert_eq!(one, two);
    engine.release_snapshot(EpochNumber(one));
    run(&mut engine, [(INSERT, 1, vec![2])]);
    assert_eq!(
        engine.reader().get_at(0, EpochNumber(two), HASHED, &key(1)).unwrap(),
        Some(vec![1])
    );
    engine.release_snapshot(EpochNumber(two));
    assert!(engine.reader().get_at(0, EpochNumber(two), HASHED, &key(1)).is_err());
}

/// A snapshot that lives, and what it sees.
struct Held {
    epoch: u64,
    rows: Vec<(u64, Vec<u8>)>,
}

/// Reads any of the snapshots that are held, whole, until it is over; how many.
fn read_held(reader: &Reader, held: &Mutex<Vec<Arc<Held>>>, is_over: &AtomicBool) -> u64 {
    let mut reads = 0;
    while !is_over.load(Ordering::Relaxed) {
        let Some(snapshot) = held.lock().unwrap().get(reads as usize % 4).cloned() else {
            reads += 1;
            continue;
        };
        for table in [HASHED, ORDERED] {
            match try_all(reader, snapshot.epoch, table) {
                Ok(rows) => assert_eq!(rows, snapshot.rows, "epoch {}", snapshot.epoch),
                Err(error) => {
                    let lives = |held: &Arc<Held>| held.epoch == snapshot.epoch;
                    assert!(error.is_limit(), "{error}");
                    assert!(!held.lock().unwrap().iter().any(lives), "{error}");
                }
            }
        }
        for (of, value) in snapshot.rows.iter().step_by(7) {
            if let Ok(found) = reader.get_at(0, EpochNumber(snapshot.epoch), HASHED, &key(*of)) {
                assert_eq!(found.as_ref(), Some(value), "row {of}");
            }
        }
        reads += 1;
    }
    reads
}

/// O-86, O-106: snapshots are what they were while epochs replace, delete and insert rows, and
/// while others are taken, end and are freed.
#[test]
fn o_86_snapshots_are_read_while_epochs_run() {
    for (checkpoint_every, cache_bytes) in [(1, 0), (3, 0), (1, 1 << 14), (4, 1 << 20)] {
        let config = EngineConfig { workers: 2, checkpoint_every, cache_bytes, ..config() };
        read_beside(open(config));
    }
}

/// The same where rows have one inline value, which is written over.
#[test]
fn o_86_snapshots_are_read_while_values_are_written_over() {
    for (checkpoint_every, cache_bytes) in [(1, 0), (3, 0), (1, 1 << 14)] {
        let directory = tempfile::tempdir().unwrap();
        let file = File::open(directory.path(), &FileOptions::new(256 << 20, 64 << 20)).unwrap();
        let config = EngineConfig { workers: 2, checkpoint_every, cache_bytes, ..config() };
        read_beside(open_on(file, config));
    }
}

/// Two threads read snapshots while epochs run.
fn read_beside(mut engine: Engine) {
    const ROWS: u64 = 60;
    let mut state = vec![None; ROWS as usize];
    let (held, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let readers = [engine.reader(), engine.reader()];
    std::thread::scope(|scope| {
        let readers: Vec<_> = readers
            .iter()
            .map(|reader| scope.spawn(|| read_held(reader, &held, &is_over)))
            .collect();
        for epoch in 1..=250 {
            // Some rows are written by two calls.
            let ops: Vec<_> = (0..2 * ROWS / 3)
                .map(|at| (at * epoch * 7 + at) % ROWS)
                .map(|of| (((of * 5 + epoch * 3) % 4) as u8, of))
                .collect();
            let bytes = (epoch as usize * 13) % 150 + 1;
            run(&mut engine, ops.iter().map(|&(op, of)| (op, of, value(of, epoch, bytes))));
            for (op, of) in ops {
                let row = &mut state[of as usize];
                match op {
                    UPDATE => *row = row.take().map(|_| value(of, epoch, bytes)),
                    DELETE => *row = None,
                    INSERT => *row = Some(value(of, epoch, bytes)),
                    _ => {}
                }
            }
            if epoch % 3 == 0 {
                let rows = (0..).zip(&state);
                let rows = rows.filter_map(|(of, row)| Some((of, row.clone()?))).collect();
                held.lock().unwrap().push(Arc::new(Held { epoch: engine.snapshot().0, rows }));
            }
            if epoch % 5 == 0 && held.lock().unwrap().len() > 3 {
                let ended = held.lock().unwrap().remove(epoch as usize % 3);
                engine.release_snapshot(EpochNumber(ended.epoch));
                engine.sweep_snapshots(50);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}
