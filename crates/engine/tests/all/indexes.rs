//! Secondary indexes: what calls and snapshots see of them, and what is kept for snapshots.
//!
//! Each byte of a row's value is a key of the row: a small one in an index of short keys, a large
//! one in an index of long keys. The rows are those of a second table.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use engine::{
    Abort, Answer, Calls, Definitions, Engine, EngineConfig, EngineError, EpochInfo, EpochOutcome,
    IndexDefinition, ProcedureDefinition, ProcedureTable, Reader, ScanPart, TableSchema,
};
use pmem::{AnyDevice, Dram};
use storage::{EpochNumber, IndexKind, StoreOptions, TableDefinition, TableId};

use crate::support::rows;

const OTHER: TableId = TableId(0);
const ROWS: TableId = TableId(1);
/// The indexes.
const SHORT: u16 = 0;
const LONG: u16 = 1;
/// The first byte that is a long key.
const LONG_FROM: u8 = 100;
const LONG_BYTES: usize = 9;

/// Gives a row a value.
const WRITE: u8 = 0;
const DELETE: u8 = 1;
/// Writes, and fails.
const ABORT: u8 = 2;
/// Writes, and then more rows of the other table than there is space for.
const OVERFLOW: u8 = 3;

const CONTINUE: ControlFlow<()> = ControlFlow::Continue(());

fn key(of: u64) -> [u8; 8] {
    of.to_be_bytes()
}

fn keys_of(index: u16, value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let own = value.iter().filter(move |&&byte| (byte < LONG_FROM) == (index == SHORT));
    own.map(move |&byte| vec![byte; if index == SHORT { 1 } else { LONG_BYTES }])
}

fn indexes() -> [IndexDefinition; 2] {
    [(SHORT, "short"), (LONG, "long")].map(|(number, name)| IndexDefinition {
        name: name.into(),
        table: ROWS.index(),
        is_unique: false,
        types: "bytes".into(),
        key: Arc::new(move |_, value, keys| {
            keys_of(number, value).for_each(|key| keys.add(&key));
            Ok(())
        }),
    })
}

/// One procedure: what to do, the row, and the value.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "change",
        sequences: None,
        write_set: |_, set| {
            set.is_unknown();
            Ok(())
        },
        body: |args, tx| {
            let (row, value) = (key(args[1].into()), &args[2..]);
            match args[0] {
                DELETE => return tx.delete(ROWS, &row).map(drop),
                _ => tx.insert(ROWS, &row, value)?,
            }
            match args[0] {
                ABORT => Err(Abort::new("planned").into()),
                OVERFLOW => (0..100_000).try_for_each(|of| tx.insert(OTHER, &key(of), &[1; 8])),
                _ => Ok(()),
            }
        },
        pieces: None,
    });
    table
}

/// Opens a store with some indexes and procedures.
fn open_with(
    device: Arc<AnyDevice>,
    indexes: &[IndexDefinition],
    procedures: fn() -> ProcedureTable,
) -> Result<Engine, EngineError> {
    let table = |name: &str, value_bytes| TableDefinition {
        name: name.into(),
        index: IndexKind::Ordered,
        ..rows(value_bytes)
    };
    let tables: [TableSchema; 2] = [table("other", 8), table("rows", 64)].map(Into::into);
    let store = StoreOptions { segment_bytes: 4096, ..StoreOptions::default() };
    let config = EngineConfig { workers: 2, store, ..EngineConfig::default() };
    let mut make = |_: &[TableId]| Ok(procedures());
    let definitions = Definitions::new(&tables, &mut make);
    let definitions = Definitions { indexes, in_order: true, ..definitions };
    Ok(Engine::open_with(device, config, definitions)?.0)
}

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(4 << 20, 16 << 20).unwrap())
}

fn reopen(device: Arc<AnyDevice>) -> Engine {
    open_with(device, &indexes(), procedures).unwrap()
}

fn open() -> Engine {
    reopen(device())
}

/// An epoch of calls that all run in its serial part.
fn run(engine: &mut Engine, calls: &[(u8, u8, Vec<u8>)]) -> Result<EpochOutcome, EngineError> {
    let mut batch = Calls::new();
    for (op, row, value) in calls {
        batch.push_serial(0, &[&[*op, *row][..], value].concat()).unwrap();
    }
    engine.run_epoch(&batch, EpochInfo::default())
}

fn write(engine: &mut Engine, row: u8, value: &[u8]) {
    run(engine, &[(WRITE, row, value.to_vec())]).unwrap();
}

fn delete(engine: &mut Engine, row: u8) {
    run(engine, &[(DELETE, row, Vec::new())]).unwrap();
}

/// Rows and their values.
type Rows = BTreeMap<u8, Vec<u8>>;

/// What an index has of some rows, in order: each row with its value once for each of its keys.
fn expected(index: u16, rows: &Rows) -> Vec<(u8, Vec<u8>)> {
    let keys = |(&row, value): (&u8, &Vec<u8>)| {
        keys_of(index, value).map(|key| (key, row)).collect::<Vec<_>>()
    };
    let mut entries: Vec<_> = rows.iter().flat_map(keys).collect();
    entries.sort_unstable();
    entries.dedup();
    entries.into_iter().map(|(_, row)| (row, rows[&row].clone())).collect()
}

/// What a snapshot sees of an index, in parts of a few entries.
fn seen(reader: &Reader, epoch: EpochNumber, index: u16, down: bool) -> Vec<(u8, Vec<u8>)> {
    let (mut low, mut high) = (Vec::new(), vec![0xff; 32]);
    let mut found = Vec::new();
    loop {
        let range = (low.clone(), high.clone());
        let part = ScanPart {
            table: TableId(index),
            low: &range.0,
            high: &range.1,
            is_descending: down,
            rows_max: 3,
        };
        let last = reader.scan_index_at(0, epoch, part, &mut |row, value| {
            found.push((row[7], value.to_vec()));
            CONTINUE
        });
        match last.unwrap() {
            Some(last) if down => high = last,
            Some(last) => low = [last, vec![0]].concat(),
            None => return found,
        }
    }
}

fn assert_sees(engine: &Engine, epoch: EpochNumber, rows: &Rows) {
    let reader = engine.reader();
    for index in [SHORT, LONG] {
        let mut expected = expected(index, rows);
        assert_eq!(seen(&reader, epoch, index, false), expected, "{epoch:?}, index {index}");
        expected.reverse();
        assert_eq!(seen(&reader, epoch, index, true), expected, "{epoch:?}, index {index}, down");
    }
}

fn rows_of<const N: usize>(rows: [(u8, &[u8]); N]) -> Rows {
    rows.map(|(row, value)| (row, value.to_vec())).into()
}

/// Bytes that entries take that are kept for a snapshot: of a row with this value, which is
/// deleted.
fn bytes_of_entries(value: &[u8]) -> u64 {
    let kept = |indexes: &[IndexDefinition]| {
        let mut engine = open_with(device(), indexes, procedures).unwrap();
        write(&mut engine, 1, value);
        engine.snapshot();
        delete(&mut engine, 1);
        assert_eq!(engine.memory().snapshots, engine.snapshot_bytes());
        engine.snapshot_bytes()
    };
    // The row itself is kept, too.
    kept(&indexes()) - kept(&[])
}

/// Frees all that nobody sees.
fn sweep(engine: &mut Engine) {
    let steps = (0..1000).take_while(|_| engine.sweep_snapshots(usize::MAX)).count();
    assert!(steps < 1000, "it comes to an end");
}

/// O-90: all entries that are kept are counted, each with its key.
#[test]
fn o_90_entries_that_are_kept_for_snapshots_are_counted() {
    let (short, long) = (bytes_of_entries(&[7]), bytes_of_entries(&[107]));
    assert!((32..512).contains(&short), "{short} bytes for an entry with a key of 9");
    assert_eq!(long - short, LONG_BYTES as u64 - 1);
    let (some, others): (Vec<u8>, Vec<u8>) = ((0..20).collect(), (120..150).collect());
    assert_eq!(bytes_of_entries(&[]), 0);
    assert_eq!(bytes_of_entries(&some), 20 * short);
    assert_eq!(bytes_of_entries(&[some, others].concat()), 20 * short + 30 * long);
}

/// O-90: nothing is freed that a snapshot sees; all else is, from each index a few entries a step.
#[test]
fn o_90_entries_that_nobody_sees_are_freed_in_small_steps() {
    const STEP: usize = 7;
    let (short, long) = (bytes_of_entries(&[7]), bytes_of_entries(&[107]));
    for (shorts, longs) in [(30, 30), (30, 2), (2, 30), (28, 0), (0, 28), (0, 0)] {
        let value: Vec<u8> = (0..shorts).chain(LONG_FROM..LONG_FROM + longs).collect();
        let mut engine = open();
        write(&mut engine, 1, &value);
        let old = engine.snapshot();
        delete(&mut engine, 1);
        let new = engine.snapshot();
        let kept = engine.memory().snapshots;
        assert!(!engine.sweep_snapshots(100), "a snapshot sees all");
        assert_eq!(engine.memory().snapshots, kept);
        assert_sees(&engine, old, &rows_of([(1, &value)]));
        engine.release_snapshot(old);
        let left = |count: u8, step| usize::from(count).saturating_sub(STEP * step);
        for step in 1.. {
            let are_left = engine.sweep_snapshots(STEP);
            let (shorts, longs) = (left(shorts, step), left(longs, step));
            let bytes = shorts as u64 * short + longs as u64 * long;
            assert_eq!((engine.memory().snapshots, engine.snapshot_bytes()), (bytes, bytes));
            assert_eq!(are_left, shorts + longs > 0, "{shorts} and {longs} entries are left");
            assert_sees(&engine, new, &Rows::new());
            if !are_left {
                break;
            }
        }
    }
}

/// O-90: of a key that came and went several times each snapshot sees its own entry, whichever
/// ended before.
#[test]
fn o_90_a_key_that_came_and_went_is_kept_for_each_snapshot_that_saw_it() {
    let with = rows_of([(1, &[7, 107])]);
    let without = rows_of([(1, &[])]);
    for order in [[0, 2, 4], [4, 2, 0], [2, 0, 4], [2, 4, 0], [0, 4, 2]] {
        let mut engine = open();
        let mut snapshots = Vec::new();
        for _ in 0..3 {
            for rows in [&with, &without] {
                write(&mut engine, 1, &rows[&1]);
                snapshots.push((engine.snapshot(), rows));
            }
        }
        for ended in order {
            engine.release_snapshot(snapshots[ended].0);
            sweep(&mut engine);
            snapshots[ended].1 = &without;
            for &(epoch, rows) in snapshots.iter().filter(|(_, rows)| !rows[&1].is_empty()) {
                assert_sees(&engine, epoch, rows);
            }
        }
        for at in [1, 3, 5] {
            assert_sees(&engine, snapshots[at].0, &without);
            engine.release_snapshot(snapshots[at].0);
        }
        sweep(&mut engine);
        assert_eq!(engine.memory().snapshots, 0, "{order:?}");
    }
}

/// Entries that came after the newest snapshot, or where there is none, are not kept.
#[test]
fn entries_that_no_snapshot_saw_are_not_kept() {
    let device = device();
    let mut engine = reopen(Arc::clone(&device));
    write(&mut engine, 1, &[7]);
    write(&mut engine, 1, &[8]);
    assert_eq!(engine.memory().snapshots, 0);
    let epoch = engine.snapshot();
    write(&mut engine, 1, &[8, 9]);
    let kept = engine.memory().snapshots;
    write(&mut engine, 1, &[8]);
    run(&mut engine, &[(WRITE, 1, vec![8, 10]), (WRITE, 1, vec![8])]).unwrap();
    assert_eq!(engine.memory().snapshots, kept, "no snapshot saw 9 and 10");
    assert_sees(&engine, epoch, &rows_of([(1, &[8])]));
    drop(engine);
    // What an open has built is there since ever.
    let mut engine = reopen(device);
    write(&mut engine, 1, &[8, 107]);
    delete(&mut engine, 1);
    assert_eq!(engine.memory().snapshots, 0);
    write(&mut engine, 1, &[8, 107]);
    engine.check_indexes().unwrap();
}

/// Entries that an open has built are seen by the first snapshot after it.
#[test]
fn entries_that_an_open_has_built_are_kept_for_a_snapshot() {
    let device = device();
    let mut engine = reopen(Arc::clone(&device));
    write(&mut engine, 1, &[7, 107]);
    drop(engine);
    let mut engine = reopen(device);
    let epoch = engine.snapshot();
    delete(&mut engine, 1);
    assert_sees(&engine, epoch, &rows_of([(1, &[7, 107])]));
    engine.release_snapshot(epoch);
    sweep(&mut engine);
    assert_eq!(engine.memory().snapshots, 0);
}

/// O-72, O-96: what a call that fails has removed is there again, and is not kept for snapshots;
/// what calls before it have removed is kept as it was.
#[test]
fn o_96_what_a_call_that_failed_has_removed_was_never_gone() {
    let mut engine = open();
    write(&mut engine, 1, &[7, 8, 107]);
    let first = engine.snapshot();
    write(&mut engine, 1, &[8]);
    write(&mut engine, 1, &[7, 107]);
    let second = engine.snapshot();
    let kept = engine.memory().snapshots;
    let assert_seen = |engine: &Engine| {
        assert_sees(engine, first, &rows_of([(1, &[7, 8, 107])]));
        assert_sees(engine, second, &rows_of([(1, &[7, 107])]));
        engine.check_indexes().unwrap();
    };
    run(&mut engine, &[(ABORT, 1, vec![9, 109])]).unwrap();
    assert_eq!(engine.memory().snapshots, kept);
    assert_seen(&engine);
    let calls = [(WRITE, 2, vec![50]), (ABORT, 1, vec![9]), (WRITE, 1, vec![8, 107])];
    run(&mut engine, &[&calls[..], &[(ABORT, 1, vec![10]), (ABORT, 2, vec![])]].concat()).unwrap();
    assert_seen(&engine);
    let third = engine.snapshot();
    assert_sees(&engine, third, &rows_of([(1, &[8, 107]), (2, &[50])]));
    for epoch in [first, second, third] {
        engine.release_snapshot(epoch);
    }
    sweep(&mut engine);
    assert_eq!(engine.memory().snapshots, 0);
}

/// O-72: of an epoch that is refused nothing is left in indexes, nor of its calls that committed.
#[test]
fn o_72_a_refused_epoch_has_removed_no_entry() {
    let mut engine = open();
    write(&mut engine, 1, &[7, 8, 107]);
    let first = engine.snapshot();
    write(&mut engine, 1, &[7, 8]);
    let kept = engine.memory().snapshots;
    let calls = [(WRITE, 1, vec![8, 9]), (ABORT, 1, vec![]), (OVERFLOW, 2, vec![7])];
    let refused = run(&mut engine, &calls).unwrap_err();
    assert!(refused.is_limit(), "{refused}");
    assert_eq!(engine.memory().snapshots, kept);
    engine.check_indexes().unwrap();
    // Its number is used again.
    write(&mut engine, 1, &[8, 108]);
    let second = engine.snapshot();
    assert_sees(&engine, first, &rows_of([(1, &[7, 8, 107])]));
    assert_sees(&engine, second, &rows_of([(1, &[8, 108])]));
    engine.release_snapshot(first);
    engine.release_snapshot(second);
    sweep(&mut engine);
    assert_eq!(engine.memory().snapshots, 0);
}

/// O-96, O-90: random writes, failures, snapshots that end in any order and steps of freeing agree
/// with a model.
#[test]
fn o_96_snapshots_see_indexes_as_they_were_whatever_ends_before() {
    let mut random = sim::history::Random::new(90);
    for _ in 0..20 {
        let mut engine = open();
        let (mut now, mut held) = (Rows::new(), Vec::new());
        for _ in 0..60 {
            let mut calls = Vec::new();
            for _ in 0..random.below(4) {
                let (op, row) = (random.below(3) as u8, random.below(3) as u8);
                let keys = [1, 2, 3, 101, 102, 103];
                let value: Vec<u8> = keys.into_iter().filter(|_| random.below(2) == 0).collect();
                match op {
                    WRITE => drop(now.insert(row, value.clone())),
                    DELETE => drop(now.remove(&row)),
                    _ => {}
                }
                calls.push((op, row, value));
            }
            run(&mut engine, &calls).unwrap();
            if random.below(2) == 0 {
                held.push((engine.snapshot(), now.clone()));
            }
            if !held.is_empty() && random.below(3) == 0 {
                let (ended, _) = held.swap_remove(random.below(held.len() as u64) as usize);
                engine.release_snapshot(ended);
            }
            engine.sweep_snapshots(random.below(4) as usize);
            held.iter().for_each(|(epoch, rows)| assert_sees(&engine, *epoch, rows));
        }
        engine.check_indexes().unwrap();
        held.into_iter().for_each(|(epoch, _)| engine.release_snapshot(epoch));
        sweep(&mut engine);
        assert_eq!(engine.memory().snapshots, 0);
    }
}

/// A part of an index ends where it is told, at entries that are there as at those that were
/// removed.
#[test]
fn a_part_of_an_index_ends_where_it_is_told() {
    let value: Vec<u8> = (0..10).collect();
    for kept in [10, 0, 5] {
        let mut engine = open();
        write(&mut engine, 1, &value);
        let epoch = engine.snapshot();
        write(&mut engine, 1, &value[..kept]);
        let (reader, high) = (engine.reader(), [0xff; 32]);
        for (rows_max, enough, is_descending) in
            [(3, 99, false), (3, 99, true), (99, 3, false), (99, 3, true), (99, 99, false)]
        {
            let (table, low) = (TableId(SHORT), &[][..]);
            let part = ScanPart { table, low, high: &high, is_descending, rows_max };
            let mut visits = 0;
            let last = reader.scan_index_at(0, epoch, part, &mut |row, found| {
                assert_eq!((row, found), (&key(1)[..], &value[..]));
                visits += 1;
                if visits == enough { ControlFlow::Break(()) } else { CONTINUE }
            });
            let is_part = rows_max == 3 || enough == 3;
            assert_eq!(visits, if is_part { 3 } else { 10 }, "{kept} entries are left");
            let third = if is_descending { 7 } else { 2 };
            let end = is_part.then(|| [&[third][..], &key(1)].concat());
            assert_eq!(last.unwrap(), end, "{kept} entries are left");
        }
    }
}

/// What a call asks of an index: its number, bounds, direction, and how many entries are enough.
/// It declares to update the rows that it finds, and puts out the first bytes of their keys there,
/// each with its row.
fn asking() -> ProcedureTable {
    let mut table = procedures();
    table.add(ProcedureDefinition {
        name: "ask",
        sequences: None,
        write_set: |args, set| {
            let (index, enough, mut found) = (args[0].into(), args[4].into(), Vec::new());
            set.scan_index(index, &args[1..2], &args[2..3], args[3] == 1, &mut |_, row| {
                found.push(row.to_vec());
                if found.len() == enough { ControlFlow::Break(()) } else { CONTINUE }
            });
            if let Some(table) = set.table_of_index(index) {
                found.iter().for_each(|row| set.update(table, row));
            }
            Ok(())
        },
        body: |args, tx| {
            let (index, enough, mut found) = (args[0].into(), args[4].into(), Vec::new());
            tx.scan_index(index, &args[1..2], &args[2..3], args[3] == 1, &mut |entry, row| {
                found.push((entry[0], row.to_vec()));
                if found.len() == enough { ControlFlow::Break(()) } else { CONTINUE }
            })?;
            let table = tx.table_of_index(index)?;
            for (entry, row) in found {
                let value = tx.get(table, &row)?.expect("an entry has its row").to_vec();
                assert!(tx.update(table, &row, &value)?, "it was declared");
                tx.output().extend([entry, row[7]]);
            }
            Ok(())
        },
        pieces: None,
    });
    table
}

/// O-96: in declarations and in bodies of both parts of an epoch.
#[test]
fn o_96_an_index_gives_rows_of_its_table_within_bounds() {
    let mut engine = open_with(device(), &indexes(), asking).unwrap();
    (1..5).for_each(|row| write(&mut engine, row, &[row, 9]));
    for (ask, answer) in [
        ([0, 0, 20, 0, 99], "Committed([1, 1, 2, 2, 3, 3, 4, 4, 9, 1, 9, 2, 9, 3, 9, 4])"),
        ([0, 2, 4, 0, 99], "Committed([2, 2, 3, 3])"),
        ([0, 2, 4, 1, 99], "Committed([3, 3, 2, 2])"),
        ([0, 0, 20, 1, 2], "Committed([9, 4, 9, 3])"),
        ([0, 0, 20, 0, 1], "Committed([1, 1])"),
        ([0, 4, 4, 0, 99], "Committed([])"),
        ([0, 4, 2, 0, 99], "Committed([])"),
        ([1, 0, 20, 0, 99], "Committed([])"),
        ([2, 0, 20, 0, 99], "Failed(\"index 2 does not exist, there are 2\")"),
    ] {
        for is_serial in [false, true] {
            let mut calls = Calls::new();
            match is_serial {
                true => calls.push_serial(1, &ask).unwrap(),
                false => calls.push(1, &ask).unwrap(),
            }
            let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
            assert_eq!(format!("{:?}", outcome.answer(0)), answer, "{ask:?}, {is_serial}");
        }
    }
}

/// O-98: the call that comes second aborts, and says which key it is.
#[test]
fn o_98_a_key_of_a_unique_index_has_one_row() {
    let [short, long] = indexes();
    let unique = [IndexDefinition { is_unique: true, ..short }, long];
    let mut engine = open_with(device(), &unique, procedures).unwrap();
    let calls = [(1, vec![7, 107]), (2, vec![8, 107]), (3, vec![6, 7]), (1, vec![5])];
    let calls = calls.map(|(row, value)| (WRITE, row, value));
    let outcome = run(&mut engine, &calls).unwrap();
    let Answer::Aborted(abort) = outcome.answer(2) else { panic!("{:?}", outcome.answer(2)) };
    assert_eq!(abort.code, Abort::NOT_UNIQUE);
    assert_eq!(abort.message, "unique index \"short\" has another row with this key: [07]");
    for call in [0, 1, 3] {
        assert_eq!(outcome.answer(call), Answer::Committed(&[]), "call {call}");
    }
    write(&mut engine, 3, &[6, 7]);
    let epoch = engine.snapshot();
    assert_sees(&engine, epoch, &rows_of([(1, &[5]), (2, &[8, 107]), (3, &[6, 7])]));
    engine.check_indexes().unwrap();
}

/// What an index is in words, and what it cannot be of.
#[test]
fn an_index_is_of_a_table_that_is_there() {
    let [index, _] = indexes();
    assert_eq!(format!("{index:?}"), "index \"short\" of table 1 (bytes, unique: false)");
    let nowhere = IndexDefinition { table: 2, ..index };
    let error = open_with(device(), &[nowhere], procedures).err().unwrap();
    assert!(error.is_limit(), "{error}");
    assert!(error.to_string().contains("index \"short\" is of a table that is not registered"));
}
