//! The serial part of an epoch: calls that were deferred, and those that do not say what they will
//! write.

use std::sync::Arc;

use engine::{
    Abort, Answer, Calls, Engine, EngineConfig, EpochInfo, EpochOutcome, PieceFunctions,
    ProcedureDefinition, ProcedureTable, Stop, Transaction,
};
use pmem::{AllOldest, AnyDevice, Crash, Dram};
use sim::history::{Mix, Model, Pair, Random, Setup, batch, check_clean, for_serial_part};
use storage::{IndexKind, StoreOptions, TableDefinition, TableId};

use crate::support::rows;

const ROWS: TableId = TableId(0);
const QUEUE: TableId = TableId(1);
const NUMBERS: TableId = TableId(2);

/// What a call does, by its first byte; the second one is the key.
const WRITE: u8 = 0;
const SWALLOW: u8 = 1;
const LOOP: u8 = 2;
const PANIC_LATER: u8 = 3;
const ABORT_LATER: u8 = 4;
const CHANGE: u8 = 5;
const TAKE_FIRST: u8 = 6;
const ALLOCATE: u8 = 7;
const FAIL: u8 = 8;

fn key(of: u8) -> [u8; 8] {
    u64::from(of).to_be_bytes()
}

fn add(tx: &mut Transaction<'_>, of: u8) -> Result<(), Stop> {
    let before = tx.get(ROWS, &key(of))?.map_or(0, |value| value[0]);
    tx.output().push(before);
    tx.insert(ROWS, &key(of), &[before + 1; 8])
}

fn body(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    let of = args[1];
    match args[0] {
        WRITE => add(tx, of)?,
        SWALLOW => drop(add(tx, of)),
        LOOP => while add(tx, of).is_err() {},
        PANIC_LATER => {
            let _ = add(tx, of);
            if tx.get(ROWS, &key(of))?.is_none() {
                std::panic::resume_unwind(Box::new("planned"));
            }
        }
        ABORT_LATER => {
            let _ = add(tx, of);
            if tx.get(ROWS, &key(of))?.is_none() {
                return Err(Abort::new("it did not see its own write").into());
            }
        }
        CHANGE => {
            let changed = tx.update(ROWS, &key(of), &[9; 8])?;
            let deleted = tx.delete(ROWS, &key(of))?;
            tx.output().extend([u8::from(changed), u8::from(deleted)]);
        }
        TAKE_FIRST => {
            let mut first = None;
            tx.scan(QUEUE, &[0; 8], &[0xff; 8], false, &mut |key, _| {
                first = Some(key.to_vec());
                std::ops::ControlFlow::Break(())
            })?;
            let first = first.ok_or(Abort::new("empty"))?;
            tx.delete(QUEUE, &first)?;
            tx.output().extend(first);
        }
        ALLOCATE => {
            let number = tx.sequence_number(0);
            tx.output().push(number as u8);
            add(tx, of)?;
        }
        _ => return Err(tx.mistake("a mistake of its own".into())),
    }
    Ok(())
}

fn open(workers: usize) -> Engine {
    let device = AnyDevice::new(Dram::new(64 << 20, 64 << 20).unwrap());
    let table = |name: &str, index| TableDefinition { name: name.into(), index, ..rows(8) };
    let tables = [
        table("rows", IndexKind::Hash),
        table("queue", IndexKind::Ordered),
        table("numbers", IndexKind::Sequence),
    ];
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "any",
        sequences: Some(|args, sequences| {
            if args[0] == ALLOCATE {
                sequences.allocate(NUMBERS, 1);
            }
            Ok(())
        }),
        write_set: |args, set| {
            if args.len() > 2 {
                set.insert(ROWS, &key(args[1]));
            }
            Ok(())
        },
        body,
        pieces: None,
    });
    procedures.add(ProcedureDefinition {
        name: "fill",
        sequences: None,
        write_set: |_, set| {
            (0..=255).for_each(|of| set.insert(QUEUE, &key(of)));
            Ok(())
        },
        body: |_, tx| (0..=255).try_for_each(|of| tx.insert(QUEUE, &key(of), &[of; 8])),
        pieces: None,
    });
    let config = EngineConfig { workers, ..EngineConfig::default() };
    Engine::open(device, config, &tables, procedures).unwrap().0
}

/// Each call with the key that it takes, declared if `true`; in the serial part if `serial`.
fn run(engine: &mut Engine, serial: bool, calls: &[(u8, u8, bool)]) -> EpochOutcome {
    let mut batch = Calls::new();
    for &(op, of, declares) in calls {
        let args: &[u8] = if declares { &[op, of, 1] } else { &[op, of] };
        match serial {
            true => batch.push_serial(0, args).unwrap(),
            false => batch.push(0, args).unwrap(),
        }
    }
    engine.run_epoch(&batch, EpochInfo::default()).unwrap()
}

fn answers(outcome: &EpochOutcome) -> Vec<String> {
    (0..outcome.len()).map(|number| format!("{:?}", outcome.answer(number))).collect()
}

/// O-66, O-69: a write that was not predicted defers the call, whatever its body makes of the
/// error; it then runs alone, and comes to its end.
#[test]
fn o_66_whoever_leaves_its_set_is_deferred_whatever_its_body_does() {
    for workers in [1, 3] {
        for op in [WRITE, SWALLOW, LOOP, PANIC_LATER, ABORT_LATER] {
            let mut engine = open(workers);
            let outcome = run(&mut engine, false, &[(op, 1, false), (WRITE, 1, true)]);
            assert_eq!(answers(&outcome), ["Deferred", "Committed([0])"], "{op}");
            assert_eq!(outcome.deferred, [0]);
            let work = &outcome.stats.work;
            assert_eq!((work.committed, work.failed, work.aborted, work.deferred), (1, 0, 0, 1));
            let outcome = run(&mut engine, false, &[]);
            assert_eq!((outcome.deferred_in, engine.deferred()), (1, 0));
            assert_eq!(answers(&outcome), ["Committed([1])"], "{op}");
            assert_eq!(outcome.stats.work.serial, 1);
            assert_eq!(engine.get(ROWS, &key(1)).unwrap().unwrap(), [2; 8]);
        }
    }
}

/// O-67: what would have no effect was not left out of the set.
#[test]
fn o_67_changing_a_row_that_is_not_there_leaves_no_set() {
    let mut engine = open(2);
    let outcome = run(&mut engine, false, &[(CHANGE, 1, false), (WRITE, 1, true)]);
    assert_eq!(answers(&outcome), ["Committed([0, 0])", "Committed([0])"]);
    let outcome = run(&mut engine, false, &[(CHANGE, 1, false)]);
    assert_eq!(answers(&outcome), ["Deferred"]);
    let outcome = run(&mut engine, false, &[]);
    assert_eq!(answers(&outcome), ["Committed([1, 1])"]);
    assert_eq!(engine.get(ROWS, &key(1)).unwrap(), None);
}

/// O-71: deferred calls first, then those for the serial part, then the others; answers have the
/// numbers in which the calls were submitted.
#[test]
fn o_71_the_serial_order_is_deferred_serial_others() {
    let mut engine = open(2);
    run(&mut engine, false, &[(WRITE, 7, false), (SWALLOW, 7, false)]);
    assert_eq!(engine.deferred(), 2);
    let mut calls = Calls::new();
    calls.push(0, &[WRITE, 7, 1]).unwrap();
    calls.push_serial(0, &[WRITE, 7]).unwrap();
    calls.push(0, &[WRITE, 7]).unwrap();
    calls.push_serial(0, &[SWALLOW, 7]).unwrap();
    let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    let expected = [0, 1, 4, 2, 99, 3].map(|before| match before {
        99 => "Deferred".to_string(),
        before => format!("Committed([{before}])"),
    });
    assert_eq!(answers(&outcome), expected);
    assert_eq!(outcome.deferred, [4]);
    assert_eq!(answers(&run(&mut engine, false, &[])), ["Committed([5])"]);
}

/// O-73: a row gets one version of the whole serial part, and one that was made and deleted leaves
/// nothing.
#[test]
fn o_73_a_row_has_one_version_of_the_whole_serial_part() {
    let mut engine = open(2);
    let outcome = run(&mut engine, true, &[(WRITE, 1, false); 50]);
    let work = &outcome.stats.work;
    assert_eq!((work.persistent_versions, work.transient_versions, work.appends), (1, 0, 1));
    assert_eq!((work.committed, work.serial, engine.rows()), (50, 50, 1));
    let outcome = run(&mut engine, true, &[(WRITE, 2, false), (CHANGE, 2, false)]);
    let work = &outcome.stats.work;
    assert_eq!((work.persistent_versions, work.rows_inserted, engine.rows()), (0, 0, 1));
    assert_eq!(answers(&outcome), ["Committed([0])", "Committed([1, 1])"]);
}

/// O-72, O-79: what a call that fails has written is no longer there before the next one runs.
#[test]
fn o_79_a_failure_is_that_of_its_call_alone() {
    let mut engine = open(1);
    let calls = [(WRITE, 1, false), (FAIL, 1, false), (WRITE, 1, false)];
    let outcome = run(&mut engine, true, &calls);
    let expected = ["Committed([0])", "Failed(\"a mistake of its own\")", "Committed([1])"];
    assert_eq!(answers(&outcome), expected);
}

/// O-76: numbers are plotted in the serial part first, then by the others, without a hole.
#[test]
fn o_76_numbers_are_dense_over_both_parts() {
    let mut engine = open(2);
    let mut calls = Calls::new();
    for of in 0..6 {
        match of % 2 {
            0 => calls.push(0, &[ALLOCATE, of, 1]).unwrap(),
            _ => calls.push_serial(0, &[ALLOCATE, of]).unwrap(),
        }
    }
    let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    let allocation: Vec<u8> = (0..6)
        .map(|number| match outcome.answer(number) {
            Answer::Committed(bytes) => bytes[0],
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(allocation, [3, 0, 4, 1, 5, 2]);
    assert_eq!(engine.get(NUMBERS, &key(1)).unwrap().unwrap(), 6_u64.to_le_bytes());
}

/// O-77: the calls of the serial part take one after the other from a queue.
#[test]
fn o_77_takers_of_the_first_row_get_all_in_order() {
    let mut engine = open(2);
    let mut calls = Calls::new();
    calls.push(1, &[]).unwrap();
    engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    let outcome = run(&mut engine, true, &[(TAKE_FIRST, 0, false); 200]);
    for number in 0..200 {
        assert_eq!(outcome.answer(number), Answer::Committed(&key(number as u8)));
    }
    let outcome = run(&mut engine, false, &[(TAKE_FIRST, 0, false); 60]);
    let is_deferred = |number: &usize| outcome.answer(*number) == Answer::Deferred;
    assert_eq!((0..60).filter(is_deferred).count(), 60);
    let outcome = run(&mut engine, false, &[]);
    for number in 0..60 {
        match outcome.answer(number) {
            Answer::Committed(allocated) => assert_eq!(allocated, key(200 + number as u8)),
            Answer::Aborted(_) => assert!(number >= 56, "there were 56 left"),
            other => panic!("{other:?}"),
        }
    }
}

const BIG: u16 = 1;

/// A store of which the image has room for few rows, and a call that wants many.
fn small_store() -> (Arc<AnyDevice>, EngineConfig, Vec<TableDefinition>, ProcedureTable) {
    let store = StoreOptions { segment_bytes: 4096, ..StoreOptions::default() };
    let config = EngineConfig { workers: 2, store, ..EngineConfig::default() };
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "one row",
        sequences: None,
        write_set: |args, set| {
            set.insert(ROWS, &key(args[0]));
            Ok(())
        },
        body: |args, tx| tx.insert(ROWS, &key(args[0]), &[1; 8]),
        pieces: None,
    });
    procedures.add(ProcedureDefinition {
        name: "too many rows",
        sequences: None,
        write_set: |_, set| {
            set.is_unknown();
            Ok(())
        },
        body: |_, tx| {
            let mut rows = 1000..100_000_u64;
            rows.try_for_each(|row| tx.insert(ROWS, &row.to_be_bytes(), &[2; 8]))
        },
        pieces: None,
    });
    let device = AnyDevice::new(Dram::new(4 << 20, 4 << 20).unwrap());
    (device, config, vec![rows(8)], procedures)
}

fn batch_of(calls: &[u16]) -> Calls {
    let mut batch = Calls::new();
    calls.iter().for_each(|&procedure| batch.push(procedure, &[procedure as u8]).unwrap());
    batch
}

/// O-74, O-75: what the serial part writes has its space before anything is logged; a deferred call
/// that has none by itself is refused, the log says so, and nothing else is held up.
#[test]
fn o_75_a_deferred_call_without_space_is_refused_and_holds_nobody_up() {
    let (device, config, tables, procedures) = small_store();
    let config = EngineConfig { checkpoint_every: 100, ..config };
    let open =
        || Engine::open(Arc::clone(&device), config.clone(), &tables, procedures.clone()).unwrap();
    let info = EpochInfo::default();
    let (mut engine, _) = open();
    let outcome = engine.run_epoch(&batch_of(&[0, BIG]), info).unwrap();
    assert_eq!(answers(&outcome), ["Committed([])", "Deferred"]);
    let refused = engine.run_epoch(&batch_of(&[0]), info).unwrap_err();
    assert!(refused.is_limit(), "{refused}");
    assert_eq!((engine.epoch().0, engine.deferred(), engine.rows()), (1, 1, 1));
    let outcome = engine.run_deferred(info).unwrap();
    assert!(answers(&outcome)[0].contains("no space"), "{:?}", answers(&outcome));
    assert_eq!((engine.epoch().0, engine.deferred(), engine.rows()), (2, 0, 1));
    engine.run_epoch(&batch_of(&[0]), info).unwrap();
    drop(engine);
    let (engine, report) = open();
    assert_eq!((report.epochs_replayed, engine.deferred(), engine.rows()), (3, 0, 1));
}

/// O-75, O-78: where not all deferred calls have space together, the first ones run, and the others
/// stay deferred, over a checkpoint and a replay, too.
#[test]
fn o_75_deferred_calls_that_do_not_fit_together_run_one_after_the_other() {
    for checkpoint_every in [1, 100] {
        let (device, config, tables, _) = small_store();
        let config = EngineConfig { checkpoint_every, ..config };
        let mut procedures = ProcedureTable::new();
        procedures.add(ProcedureDefinition {
            name: "fill or clear",
            sequences: None,
            write_set: |_, set| {
                set.is_unknown();
                Ok(())
            },
            body: |args, tx| {
                // Some rows each time, the same ones, with something of their own first.
                let from = u64::from(args[0]) * 20_000;
                for row in from..from + 18_000 {
                    tx.insert(ROWS, &row.to_be_bytes(), &[args[0]; 8])?;
                }
                Ok(())
            },
            pieces: None,
        });
        let open = || {
            let config = config.clone();
            Engine::open(Arc::clone(&device), config, &tables, procedures.clone()).unwrap()
        };
        let info = EpochInfo::default();
        let (mut engine, _) = open();
        let mut batch = Calls::new();
        (0..4).for_each(|of| batch.push(0, &[of]).unwrap());
        engine.run_epoch(&batch, info).unwrap();
        assert_eq!(engine.deferred(), 4);
        let (mut ran, mut refused) = (0, 0);
        while engine.deferred() > 0 {
            let before = engine.deferred();
            let outcome = engine.run_deferred(info).unwrap();
            assert!(engine.deferred() < before, "each epoch brings one to its end");
            for answer in answers(&outcome) {
                ran += u64::from(answer.contains("Committed"));
                refused += u64::from(answer.contains("no space"));
            }
            let rows = engine.rows();
            drop(engine);
            engine = open().0;
            assert_eq!((engine.rows(), engine.deferred()), (rows, 4 - (ran + refused) as usize));
        }
        assert!(ran > 0 && refused > 0, "{ran} ran, {refused} were refused");
        assert_eq!(engine.rows(), ran * 18_000);
    }
}

/// O-68: a call with pieces keeps to its write set, whichever part it runs in: its pieces could not
/// be taken back.
#[test]
fn o_68_a_call_with_pieces_does_not_leave_its_set() {
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "pieces",
        sequences: None,
        write_set: |_, set| {
            set.insert(ROWS, &key(1));
            set.update_piece(ROWS, &key(2), 1);
            Ok(())
        },
        body: |args, tx| {
            tx.insert(ROWS, &key(1), &[1; 8])?;
            match args[0] {
                0 => Ok(()),
                1 => tx.insert(ROWS, &key(3), &[3; 8]),
                _ => tx.update(ROWS, &key(2), &[4; 8]).map(drop),
            }
        },
        pieces: Some(PieceFunctions {
            piece: |_, piece| piece.update(&[7; 8]).map(|is_there| u64::from(is_there).into()),
            finish: Some(|_, results, output| {
                output.extend(results.iter().map(|result| result.words()[0] as u8));
            }),
        }),
    });
    for is_serial in [false, true] {
        let device = AnyDevice::new(Dram::new(16 << 20, 16 << 20).unwrap());
        let config = EngineConfig { workers: 2, ..EngineConfig::default() };
        let (mut engine, _) = Engine::open(device, config, &[rows(8)], procedures.clone()).unwrap();
        let mut calls = Calls::new();
        for how in [0, 1, 2] {
            match is_serial {
                true => calls.push_serial(0, &[how]).unwrap(),
                false => calls.push(0, &[how]).unwrap(),
            }
        }
        let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        let answers = answers(&outcome);
        assert_eq!(answers[0], "Committed([0])", "there is no row for its piece");
        assert!(answers[1].contains("write of undeclared key"), "{answers:?}");
        assert!(answers[2].contains("declared for a piece"), "{answers:?}");
        assert_eq!((engine.rows(), engine.deferred()), (1, 0));
    }
}

/// What a call of [`of_a_range`] does to a key: nothing, or as it says.
const NOTHING: u8 = 0;
const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const ASK: u8 = 4;

/// Declares rows 1 and 3, a piece of row 2, the range from 10 to 20, and that it reads row 4. The
/// third byte is the key that its piece reads.
fn of_a_range() -> ProcedureTable {
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "of a range",
        sequences: None,
        write_set: |_, set| {
            set.update(ROWS, &key(1));
            set.insert(ROWS, &key(3));
            set.update_piece(ROWS, &key(2), 1);
            set.update_range(ROWS, &key(10), &key(20));
            set.will_read(ROWS, &key(4));
            Ok(())
        },
        body: |args, tx| {
            let key = key(args[1]);
            match args[0] {
                INSERT => tx.insert(ROWS, &key, &[9; 8])?,
                UPDATE => assert!(tx.update(ROWS, &key, &[9; 8])?, "it is there"),
                DELETE => assert!(tx.delete(ROWS, &key)?, "it is there"),
                ASK => {
                    let result = tx.piece_result(0)?;
                    tx.output().push(result.words()[0] as u8);
                }
                _ => {}
            }
            Ok(())
        },
        pieces: Some(PieceFunctions {
            piece: |args, piece| {
                let read = piece.get(ROWS, &key(args[2]))?.map_or(0, |value| value[0]);
                assert!(piece.update(&[7; 8])?, "its row is there");
                Ok(u64::from(read).into())
            },
            finish: Some(|_, results, output| {
                output.extend(results.iter().map(|result| result.words()[0] as u8));
            }),
        }),
    });
    procedures.add(ProcedureDefinition {
        name: "fill",
        sequences: None,
        write_set: |_, set| {
            set.is_unknown();
            Ok(())
        },
        body: |_, tx| {
            [1, 2, 4, 10, 15, 20, 30].iter().try_for_each(|&of| tx.insert(ROWS, &key(of), &[of; 8]))
        },
        pieces: None,
    });
    procedures
}

/// O-68, O-79: in the serial part, too, a call with pieces writes what it declared, its pieces read
/// nothing of that, and what fails fails alone.
#[test]
fn o_68_a_call_with_pieces_keeps_to_its_set_and_range_in_the_serial_part() {
    let (inserts, undeclared) = ("declared for update only", "write of undeclared key");
    let (of_piece, of_call) = ("declared for a piece", "which its call may write");
    let done = "Committed";
    for (op, of, read, expected) in [
        (NOTHING, 0, 30, "Committed([30])"),
        (NOTHING, 0, 4, "Committed([4])"),
        (NOTHING, 0, 20, "Committed([20])"),
        (NOTHING, 0, 1, of_call),
        (NOTHING, 0, 15, of_call),
        (NOTHING, 0, 10, of_call),
        // Where there is no row none of its call can be meant.
        (NOTHING, 0, 3, "Committed([0])"),
        (NOTHING, 0, 12, "Committed([0])"),
        (ASK, 0, 30, "Committed([30, 30])"),
        (ASK, 0, 15, of_call),
        (UPDATE, 1, 30, done),
        (DELETE, 1, 30, done),
        (INSERT, 1, 30, inserts),
        (INSERT, 3, 30, done),
        (UPDATE, 2, 30, of_piece),
        (UPDATE, 4, 30, undeclared),
        (UPDATE, 10, 30, done),
        (DELETE, 15, 30, done),
        (INSERT, 15, 30, inserts),
        (UPDATE, 20, 30, undeclared),
        (UPDATE, 30, 30, undeclared),
    ] {
        let device = AnyDevice::new(Dram::new(16 << 20, 16 << 20).unwrap());
        let config = EngineConfig { workers: 2, ..EngineConfig::default() };
        let tables = [TableDefinition { index: IndexKind::Ordered, ..rows(8) }];
        let (mut engine, _) = Engine::open(device, config, &tables, of_a_range()).unwrap();
        let mut calls = Calls::new();
        calls.push_serial(1, &[]).unwrap();
        calls.push_serial(0, &[op, of, read]).unwrap();
        let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        let answers = answers(&outcome);
        let what = format!("{op} of {of}, reads {read}: {answers:?}");
        assert!(answers[1].contains(expected), "{what}");
        let is_done = expected.contains(done);
        assert_eq!(answers[1].starts_with(done), is_done, "{what}");
        assert_eq!(outcome.stats.work.pieces, u64::from(is_done), "{what}");
        let value = |of| engine.get(ROWS, &key(of)).unwrap().map(|value| value[0]);
        assert_eq!(value(2), Some(if is_done { 7 } else { 2 }), "{what}");
        if is_done && op != NOTHING && op != ASK {
            assert_eq!(value(of), (op != DELETE).then_some(9), "{what}");
        }
    }
}

/// O-70: a call that ends while it allocates, because of what it looked up, ends only if that is
/// still so in its turn.
#[test]
fn o_70_a_call_that_ends_while_it_allocates_does_so_on_what_is_still_there() {
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "allocate for a row",
        sequences: Some(|args, sequences| {
            if args[0] == 1 && sequences.lookup(ROWS, &key(1)).is_none() {
                return Err(Abort::new("no row"));
            }
            sequences.allocate(TableId(1), 5);
            Ok(())
        }),
        write_set: |args, set| {
            set.insert(ROWS, &key(1 + args[0]));
            Ok(())
        },
        body: |args, tx| {
            let number = tx.sequence_number(0) as u8;
            tx.output().push(number);
            tx.insert(ROWS, &key(1 + args[0]), &[number; 8])
        },
        pieces: None,
    });
    let device = AnyDevice::new(Dram::new(16 << 20, 16 << 20).unwrap());
    let numbers = TableDefinition { name: "numbers".into(), index: IndexKind::Sequence, ..rows(8) };
    let tables = [rows(8), numbers];
    let config = EngineConfig { workers: 2, ..EngineConfig::default() };
    let (mut engine, _) = Engine::open(device, config, &tables, procedures).unwrap();
    let mut run = |calls: &[(u8, bool)]| {
        let mut batch = Calls::new();
        for &(how, is_serial) in calls {
            match is_serial {
                true => batch.push_serial(0, &[how]).unwrap(),
                false => batch.push(0, &[how]).unwrap(),
            }
        }
        answers(&engine.run_epoch(&batch, EpochInfo::default()).unwrap())
    };
    assert!(run(&[(1, false), (1, true)]).iter().all(|answer| answer.contains("no row")));
    // The row comes in its turn, or in the serial part: the base of the epoch knows neither.
    assert_eq!(run(&[(0, false), (1, false)]), ["Committed([0])", "Deferred"]);
    assert_eq!(run(&[]), ["Committed([1])"]);
}

/// O-81: epochs that all workers run and epochs that one runs alternate, with external values,
/// a cache and rows that go: whoever runs does what all owe, and the store is accounted for.
#[test]
fn o_81_small_and_large_epochs_take_turns() {
    for (workers, checkpoint_every, cache_bytes) in [(2, 1, 0), (4, 1, 64 << 10), (3, 3, 0)] {
        let mut device = Arc::new(Crash::new(64 << 20, 16 << 20).unwrap());
        let segment_bytes = 4096;
        let choices = Setup { workers, checkpoint_every, cache_bytes, ..Setup::default() };
        let setup = Setup { segment_bytes, ..choices };
        let mut pair = Pair::open(&AnyDevice::of(&device), &setup, Model::default()).unwrap();
        let mut random = Random::new(81);
        let mix = Mix { keys: 25, long_values: true, lookups: 5 };
        for epoch in 0..60 {
            let mut calls = batch(&mut random, &mix, if epoch % 2 == 0 { 30 } else { 3 });
            if epoch % 2 == 1 {
                calls = calls.into_iter().map(for_serial_part).collect();
            }
            pair.run(&calls).unwrap();
            if epoch % 7 == 6 {
                let Pair { engine, model, .. } = pair;
                device = Arc::new(device.image_after_power_cut(&mut AllOldest));
                drop(engine);
                pair = Pair::open(&AnyDevice::of(&device), &setup, model).unwrap();
            }
        }
        let Pair { engine, model, .. } = pair;
        engine.close().unwrap();
        check_clean(&AnyDevice::of(&device), &model).unwrap();
    }
}
