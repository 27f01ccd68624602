//! Which rows the calls of an epoch contended for: exactly, for any number of workers.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use engine::{
    Abort, AppendMethod, Calls, ContendedRow, Engine, EngineConfig, EpochInfo, Lab,
    ProcedureDefinition, ProcedureTable, Stop, Transaction,
};
use pmem::{AnyDevice, Dram};
use storage::{IndexKind, TableDefinition, TableId};

use crate::support::rows;

const WORDS: u8 = 0;
const TEXTS: u8 = 1;

/// What a call does with the row whose table and key follow.
const PUT: u8 = 0;
const DELETE: u8 = 1;
const GIVE_UP: u8 = 2;
const PUT_AND_DELETE: u8 = 3;
const HOLD: u8 = 4;
const READ: u8 = 5;

static SOMEBODY_WAITS: AtomicBool = AtomicBool::new(false);
static NOW: AtomicU64 = AtomicU64::new(0);
thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// A clock that knows when a read begins to wait.
fn clock() -> u64 {
    SOMEBODY_WAITS.fetch_or(IS_READING.get(), Ordering::Relaxed);
    NOW.fetch_add(1000, Ordering::Relaxed)
}

fn body(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    let (op, table, key) = (args[0], u16::from(args[1]), &args[2..]);
    match op {
        PUT => tx.insert(TableId(table), key, &[1; 8])?,
        DELETE => drop(tx.delete(TableId(table), key)?),
        PUT_AND_DELETE => {
            tx.insert(TableId(table), key, &[1; 8])?;
            tx.delete(TableId(table), key)?;
        }
        HOLD => {
            while !SOMEBODY_WAITS.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            tx.insert(TableId(table), key, &[2; 8])?;
        }
        READ => {
            IS_READING.set(true);
            let found = tx.get(TableId(table), key)?.map(<[u8]>::to_vec);
            IS_READING.set(false);
            assert_eq!(found, Some(vec![2; 8]));
        }
        _ => {
            tx.insert(TableId(table), key, &[1; 8])?;
            return Err(Abort::new("it gives up").into());
        }
    }
    Ok(())
}

fn open(workers: usize, append: AppendMethod) -> Engine {
    let device = AnyDevice::new(Dram::new(64 << 20, 64 << 20).unwrap());
    let texts = TableDefinition {
        name: "texts".into(),
        index: IndexKind::Ordered,
        key_bytes_max: 20,
        ..rows(8)
    };
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "any",
        sequences: None,
        write_set: |args, set| {
            if args[0] != READ {
                set.insert(TableId(u16::from(args[1])), &args[2..]);
            }
            Ok(())
        },
        body,
        pieces: None,
    });
    let contention = true;
    let lab = Lab { append, ..Lab::default() };
    let config = EngineConfig { workers, contention, clock, lab, ..EngineConfig::default() };
    Engine::open(device, config, &[rows(8), texts], procedures).unwrap().0
}

/// A call, and whether it is for the serial part.
type Asked<'a> = (u8, u8, &'a [u8], bool);

fn run(engine: &mut Engine, asked: &[Asked<'_>]) -> Vec<ContendedRow> {
    let mut calls = Calls::new();
    for &(op, table, key, is_serial) in asked {
        let args = [&[op, table], key].concat();
        let push = if is_serial { Calls::push_serial } else { Calls::push };
        push(&mut calls, 0, &args).unwrap();
    }
    engine.run_epoch(&calls, EpochInfo::default()).unwrap().contention
}

/// What is the same whoever runs the calls.
fn writers(rows: &[ContendedRow]) -> Vec<(u16, &[u8], u32)> {
    let counted = rows.iter().filter(|row| row.writers > 0);
    counted.map(|row| (row.table.0, &*row.key, row.writers)).collect()
}

fn word(of: u64) -> [u8; 8] {
    of.to_be_bytes()
}

/// Runs a history for each number of workers and each method.
fn for_each_engine(mut check: impl FnMut(&mut Engine, &str)) {
    for workers in [1, 2, 4] {
        for append in AppendMethod::ALL {
            let name = format!("{workers} workers, {append:?}");
            check(&mut open(workers, append), &name);
        }
    }
}

#[test]
fn all_writers_of_contended_rows_are_counted_and_no_others() {
    let (hot, warm, cold) = (word(7), word(8), word(9));
    let long: &[u8] = b"longer than a word";
    for_each_engine(|engine, name| {
        // Rows that are new, rows that are there; in parallel, in the serial part of a large epoch,
        // in a small one.
        for (calls, is_serial) in [(100, false), (100, false), (1200, true), (100, true)] {
            let mut asked = vec![(PUT, WORDS, &cold[..], is_serial)];
            for call in 0..calls {
                asked.push((PUT, WORDS, &hot, is_serial));
                if call % 10 == 0 {
                    asked.push((PUT, WORDS, &warm, is_serial));
                    asked.push((PUT, TEXTS, b"short", is_serial));
                }
                if call % 50 == 0 {
                    asked.push((PUT_AND_DELETE, TEXTS, long, is_serial));
                }
            }
            let found = run(engine, &asked);
            let expected: [(u16, &[u8], u32); 4] = [
                (0, &hot, calls),
                (0, &warm, calls / 10),
                (1, long, calls / 50),
                (1, b"short", calls / 10),
            ];
            assert_eq!(writers(&found), expected, "{name}, {calls} calls, serial: {is_serial}");
        }
        // Each row has one writer.
        let found = run(engine, &[(PUT, WORDS, &hot, false), (PUT, WORDS, &warm, false)]);
        assert_eq!(writers(&found), [], "{name}");
    });
}

#[test]
fn writers_of_both_parts_add_up() {
    let keys = [1, 2, 3, 4, 5].map(word);
    for_each_engine(|engine, name| {
        let mut asked = Vec::new();
        for (key, serial, parallel) in [(0, 5, 3), (1, 1, 1), (2, 1, 0), (3, 2, 0)] {
            asked.extend(vec![(PUT, WORDS, &keys[key][..], true); serial]);
            asked.extend(vec![(PUT, WORDS, &keys[key][..], false); parallel]);
        }
        // The serial part leaves nothing in these, so that no version is its.
        asked.push((PUT_AND_DELETE, WORDS, &keys[4], true));
        asked.push((PUT, WORDS, &keys[4], false));
        asked.push((GIVE_UP, TEXTS, b"x", true));
        asked.push((PUT, TEXTS, b"x", false));
        let expected: [(u16, &[u8], u32); 5] =
            [(0, &keys[0], 8), (0, &keys[1], 2), (0, &keys[3], 2), (0, &keys[4], 2), (1, b"x", 2)];
        assert_eq!(writers(&run(engine, &asked)), expected, "{name}");
    });
}

#[test]
fn rows_that_are_deleted_have_their_names() {
    let [there, never, removed] = [1, 2, 3].map(word);
    for_each_engine(|engine, name| {
        run(engine, &[(PUT, WORDS, &there, false), (PUT, TEXTS, b"there", false)]);
        let mut asked = Vec::new();
        for op in [PUT, DELETE] {
            asked.extend([(op, WORDS, &there[..], false), (op, TEXTS, b"there", false)]);
            asked.extend([(op, WORDS, &removed[..], false), (op, TEXTS, b"lost", false)]);
            asked.extend([(GIVE_UP, WORDS, &never[..], false), (GIVE_UP, TEXTS, b"never", false)]);
        }
        let expected: [(u16, &[u8], u32); 6] = [
            (0, &there, 2),
            (0, &never, 2),
            (0, &removed, 2),
            (1, b"lost", 2),
            (1, b"never", 2),
            (1, b"there", 2),
        ];
        assert_eq!(writers(&run(engine, &asked)), expected, "{name}");
        assert_eq!(engine.rows(), 0, "{name}");
        // Their slots and entries are reused for others.
        let asked = [(PUT, WORDS, &removed[..], false), (PUT, WORDS, &removed[..], false)];
        assert_eq!(writers(&run(engine, &asked)), [(0, &removed[..], 2)], "{name}");
    });
}

/// One call holds the version that all others read; it ends when one of them waits.
#[test]
fn waits_are_noted_with_the_row_that_was_waited_for() {
    let key = word(5);
    let mut engine = open(2, AppendMethod::Batch);
    let mut asked = vec![(HOLD, WORDS, &key[..], false)];
    asked.extend(vec![(READ, WORDS, &key[..], false); 40]);
    let found = run(&mut engine, &asked);
    let [row] = &found[..] else { panic!("one row was waited for: {found:?}") };
    assert_eq!((row.table.0, &*row.key, row.writers), (0, &key[..], 0));
    assert!(row.waits > 0 && row.waited_ns >= 1000, "{row:?}");
    assert_eq!(run(&mut engine, &[(READ, WORDS, &key, false)]), [], "nobody waits any more");
}
