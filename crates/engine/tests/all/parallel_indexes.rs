//! Secondary indexes while calls run in parallel: the same calls in the serial part of an epoch, in
//! which an index changes with every write, say what each call sees.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::{
    Abort, Answer, Calls, Definitions, Engine, EngineConfig, EpochInfo, IndexDefinition,
    PieceFunctions, ProcedureDefinition, ProcedureTable, ScanPart, Stop, TableSchema,
};
use pmem::{AnyDevice, Dram};
use sim::history::Random;
use storage::{EpochNumber, IndexKind, StateHash, StoreOptions, TableDefinition, TableId};

use crate::support::rows;

const ROWS: TableId = TableId(0);
/// How often each row was the first one of the index of bytes, counted by pieces.
const COUNTS: TableId = TableId(1);
/// An index of which each byte of a value is a key, and one of first bytes.
const BYTES: u16 = 0;
const FIRST: u16 = 1;

/// Gives a row a value, in several writes: the value, another one, and the value again.
const WRITE: u8 = 0;
const DELETE: u8 = 1;
/// Writes, and fails.
const ABORT: u8 = 2;
/// Writes, and panics.
const PANIC: u8 = 3;
/// Gives two rows each other's value.
const SWAP: u8 = 4;
/// Puts out what an index has between two keys.
const LIST: u8 = 5;
/// Writes a row, and puts out what an index has before and after.
const LISTED_WRITE: u8 = 6;
/// Deletes the first row of an index, which the declaration looks for.
const TAKE: u8 = 7;
const OPS: u64 = 8;
/// Makes the rows of counts.
const FILL: u8 = 8;

fn key(of: u8) -> [u8; 8] {
    u64::from(of).to_be_bytes()
}

fn indexes() -> [IndexDefinition; 2] {
    let definition = |number: u16, name: &str| IndexDefinition {
        name: name.into(),
        table: ROWS.index(),
        is_unique: number == FIRST,
        types: "bytes".into(),
        key: Arc::new(move |_, value: &[u8], keys| {
            let most = if number == FIRST { 1 } else { value.len() };
            value[..most.min(value.len())].iter().for_each(|byte| keys.add(&[*byte]));
            Ok(())
        }),
    };
    [definition(BYTES, "bytes"), definition(FIRST, "first")]
}

/// Arguments: what to do, a row, another one, and a value or the bounds of a scan.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "change",
        sequences: None,
        write_set: |args, set| {
            match args[0] {
                LIST => {}
                TAKE => {
                    let mut first = None;
                    set.scan_index(BYTES, &[0], &[255], args[1] % 2 == 0, &mut |_, row| {
                        first = Some(row.to_vec());
                        ControlFlow::Break(())
                    });
                    if let Some(row) = first {
                        set.delete(ROWS, &row);
                    }
                }
                _ => [args[1], args[2]].into_iter().for_each(|row| set.insert(ROWS, &key(row))),
            }
            Ok(())
        },
        body: run,
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "count the first",
        sequences: None,
        write_set: |_, set| {
            let mut first = None;
            set.scan_index(BYTES, &[0], &[255], false, &mut |_, row| {
                first = Some(row.to_vec());
                ControlFlow::Break(())
            });
            first.iter().for_each(|row| set.update_piece(COUNTS, row, 1));
            Ok(())
        },
        body: |_, tx| put_out_first(tx, false).map(drop),
        pieces: Some(PieceFunctions {
            piece: |_, piece| {
                let count = piece.value()?.expect("it was made")[0];
                Ok(u64::from(piece.update(&[count + 1])?).into())
            },
            finish: None,
        }),
    });
    table
}

/// Puts out the first row of the index of bytes.
fn put_out_first(tx: &mut engine::Transaction<'_>, is_descending: bool) -> Result<Vec<u8>, Stop> {
    let mut first = None;
    tx.scan_index(BYTES, &[0], &[255], is_descending, &mut |_, row| {
        first = Some(row.to_vec());
        ControlFlow::Break(())
    })?;
    let first = first.ok_or_else(|| Stop::from(Abort::new("none")))?;
    tx.output().push(first[7]);
    Ok(first)
}

fn run(args: &[u8], tx: &mut engine::Transaction<'_>) -> Result<(), Stop> {
    let (row, other, value) = (key(args[1]), key(args[2]), &args[3..]);
    let is_descending = args[1].is_multiple_of(2);
    match args[0] {
        WRITE => {
            tx.insert(ROWS, &row, value)?;
            tx.insert(ROWS, &row, &[1, 2, 3])?;
            tx.modify(ROWS, &row, |value| value[0] = 9)?;
            tx.insert(ROWS, &row, value)
        }
        DELETE => tx.delete(ROWS, &row).map(drop),
        ABORT => {
            tx.insert(ROWS, &row, value)?;
            Err(Abort::new("planned").into())
        }
        PANIC => {
            tx.insert(ROWS, &row, value)?;
            panic!("planned")
        }
        SWAP => {
            let values = [row, other].map(|row| Ok(tx.get(ROWS, &row)?.map(<[u8]>::to_vec)));
            let [a, b]: [Result<Option<Vec<u8>>, Stop>; 2] = values;
            if let (Some(a), Some(b)) = (a?, b?) {
                tx.insert(ROWS, &row, &b)?;
                tx.insert(ROWS, &other, &a)?;
            }
            Ok(())
        }
        LIST => list(tx, args),
        LISTED_WRITE => {
            list(tx, args)?;
            tx.insert(ROWS, &row, value)?;
            list(tx, args)?;
            tx.delete(ROWS, &other)?;
            list(tx, args)
        }
        FILL => (0..10).try_for_each(|row| tx.insert(COUNTS, &key(row), &[0])),
        _ => {
            let first = put_out_first(tx, is_descending)?;
            assert!(tx.delete(ROWS, &first)?, "an entry has its row");
            Ok(())
        }
    }
}

/// Puts out what an index has: keys and rows.
fn list(tx: &mut engine::Transaction<'_>, args: &[u8]) -> Result<(), Stop> {
    let (index, enough) = (u16::from(args[2] % 2), usize::from(args[1] % 5) + 1);
    let (low, high) = (args[3], args.get(4).copied().unwrap_or(255));
    let mut found = Vec::new();
    tx.scan_index(index, &[low], &[high], args[1].is_multiple_of(2), &mut |entry, row| {
        found.extend([entry[0], row[7]]);
        if found.len() == 2 * enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    tx.output().push(found.len() as u8);
    tx.output().extend(found);
    Ok(())
}

fn open(workers: usize) -> Engine {
    let device = AnyDevice::new(Dram::new(4 << 20, 16 << 20).unwrap());
    let definition = TableDefinition { name: "rows".into(), index: IndexKind::Ordered, ..rows(64) };
    let counts = TableDefinition { name: "counts".into(), ..rows(1) };
    let tables: [TableSchema; 2] = [definition.into(), counts.into()];
    let store = StoreOptions { segment_bytes: 4096, ..StoreOptions::default() };
    let config = EngineConfig { workers, store, ..EngineConfig::default() };
    let mut make = |_: &[TableId]| Ok(procedures());
    let definitions = Definitions::new(&tables, &mut make);
    let indexes = indexes();
    let definitions = Definitions { indexes: &indexes, in_order: true, ..definitions };
    Engine::open_with(device, config, definitions).unwrap().0
}

/// The answers to the calls of an epoch, in words, and the state hash behind it. Calls that the
/// epoch before has deferred come first.
fn answers(engine: &mut Engine, calls: &[Vec<u8>], is_serial: bool) -> (Vec<String>, StateHash) {
    let deferred = engine.deferred();
    let mut batch = Calls::new();
    for call in calls {
        match is_serial {
            true => batch.push_serial(0, call).unwrap(),
            false => batch.push(0, call).unwrap(),
        }
    }
    let outcome = engine.run_epoch(&batch, EpochInfo::default()).unwrap();
    engine.check_indexes().unwrap();
    let answers = (0..deferred + calls.len()).map(|call| format!("{:?}", outcome.answer(call)));
    (answers.collect(), outcome.state_hash.expect("it is on"))
}

fn random_call(random: &mut Random, ops: u64) -> Vec<u8> {
    let value = (0..1 + random.below(3)).map(|_| random.below(12) as u8);
    let value: Vec<u8> = value.collect();
    let (row, other) = (random.below(10) as u8, random.below(10) as u8);
    [&[random.below(ops) as u8, row, other][..], &value].concat()
}

/// O-96, O-97, O-98: random calls of one epoch come to the same on all workers as one by one; no
/// call is deferred whose declaration did not look into an index.
#[test]
fn o_96_an_index_is_the_same_in_parallel_as_in_the_serial_part() {
    for workers in [1, 2, 4] {
        let mut random = Random::new(96 + workers as u64);
        let (mut serial, mut parallel) = (open(1), open(workers));
        for epoch in 0..150 {
            let count = 1 + random.below(60);
            let calls: Vec<_> = (0..count).map(|_| random_call(&mut random, OPS - 1)).collect();
            let (expected, serial_hash) = answers(&mut serial, &calls, true);
            let (found, parallel_hash) = answers(&mut parallel, &calls, false);
            for (call, (expected, found)) in calls.iter().zip(expected.iter().zip(&found)) {
                assert_eq!(found, expected, "{workers} workers, epoch {epoch}: {call:?}");
            }
            assert_eq!(parallel_hash, serial_hash);
        }
    }
}

/// O-10, O-96: a declaration that has looked into an index is right, or its call is deferred; it
/// then takes the row that is first behind all others.
#[test]
fn o_10_a_declaration_that_saw_another_index_is_made_anew() {
    for workers in [1, 2, 4] {
        let mut random = Random::new(10 + workers as u64);
        let mut engine = open(workers);
        let (mut deferred, mut kept) = (0, 0);
        for _ in 0..100 {
            let calls: Vec<_> = (0..20).map(|_| random_call(&mut random, OPS)).collect();
            let before = engine.deferred();
            let (found, _) = answers(&mut engine, &calls, false);
            let (made_again, found) = found.split_at(before);
            assert!(made_again.iter().all(|answer| answer != "Deferred"), "{made_again:?}");
            for (call, answer) in calls.iter().zip(found) {
                match answer.as_str() {
                    "Deferred" => deferred += 1,
                    _ => kept += usize::from(call[0] == TAKE),
                }
                assert!(call[0] == TAKE || answer != "Deferred", "{call:?}");
            }
        }
        assert!(deferred > 0 && kept > 0, "{deferred} were deferred, {kept} were not");
    }
}

/// O-10, O-96: pieces are those of what a declaration saw of an index, so that is right, or the
/// call is deferred.
#[test]
fn o_10_pieces_are_of_rows_that_an_index_has_at_their_position() {
    for workers in [1, 2, 4] {
        let mut random = Random::new(20 + workers as u64);
        let mut engine = open(workers);
        answers(&mut engine, &[vec![FILL, 0, 0, 0]], true);
        let (mut counts, mut deferred) = ([0_u8; 10], 0);
        for _ in 0..20 {
            let mut batch = Calls::new();
            let before = engine.deferred();
            let is_count: Vec<bool> = (0..20).map(|_| random.below(2) == 0).collect();
            for &is_count in &is_count {
                match is_count {
                    true => batch.push(1, &[]).unwrap(),
                    false => batch.push(0, &random_call(&mut random, 2)).unwrap(),
                }
            }
            let outcome = engine.run_epoch(&batch, EpochInfo::default()).unwrap();
            let all = std::iter::repeat_n(true, before).chain(is_count);
            for (call, _) in all.enumerate().filter(|(_, is_count)| *is_count) {
                match outcome.answer(call) {
                    Answer::Committed(&[first]) => counts[usize::from(first)] += 1,
                    Answer::Deferred => deferred += 1,
                    answer => assert!(matches!(answer, Answer::Aborted(_)), "{answer:?}"),
                }
            }
        }
        let outcome = engine.run_epoch(&Calls::new(), EpochInfo::default()).unwrap();
        for call in 0..outcome.len() {
            if let Answer::Committed(&[first]) = outcome.answer(call) {
                counts[usize::from(first)] += 1;
            }
        }
        assert!(deferred > 0, "some calls saw another index");
        for row in 0..10 {
            let found = engine.get(COUNTS, &key(row)).unwrap().expect("it was made")[0];
            assert_eq!(found, counts[usize::from(row)], "{workers} workers, row {row}");
        }
    }
}

/// O-96, O-90: a snapshot sees what calls that ran in parallel have removed since.
#[test]
fn o_96_a_snapshot_sees_what_was_removed_in_parallel() {
    let mut engine = open(2);
    let write = |row: u8, value: &[u8]| [&[WRITE, row, row][..], value].concat();
    answers(&mut engine, &[write(1, &[5, 7]), write(2, &[6])], false);
    let before = engine.snapshot();
    let calls = [write(1, &[7, 8]), vec![DELETE, 2, 2, 0], write(3, &[5]), write(3, &[4])];
    answers(&mut engine, &calls, false);
    let after = engine.snapshot();
    let seen = |epoch: EpochNumber| {
        let mut found = Vec::new();
        let part = ScanPart {
            table: TableId(BYTES),
            low: &[0],
            high: &[255],
            is_descending: false,
            rows_max: 100,
        };
        let each = &mut |row: &[u8], _: &[u8]| {
            found.push(row[7]);
            ControlFlow::Continue(())
        };
        engine.reader().scan_index_at(0, epoch, part, each).unwrap();
        found
    };
    assert_eq!((seen(before), seen(after)), (vec![1, 2, 1], vec![3, 1, 1]));
    [before, after].into_iter().for_each(|epoch| engine.release_snapshot(epoch));
    assert!(!engine.sweep_snapshots(usize::MAX));
    assert_eq!(engine.memory().snapshots, 0);
}
