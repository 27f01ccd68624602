//! Pieces of calls, within their calls and apart from them (split-on-demand, CA 3.4).

use std::sync::Arc;

use engine::{
    Answer, Calls, Engine, EngineConfig, EngineError, EpochInfo, Packing, PieceFunctions,
    ProcedureDefinition, ProcedureTable, WorkCounts,
};
use pmem::Dram;
use sim::history::{HASHED, Model, ORDERED, Op, Pair, Program, Random, Setup, Step};
use storage::{EpochNumber, TableId};

use crate::support::rows;

fn device() -> Arc<Dram> {
    Arc::new(Dram::new(256 << 20, 64 << 20).unwrap())
}

/// Rows that many calls want.
const HOT: u8 = 3;
/// With those that pieces only read.
const ROWS: u8 = HOT + 2;

fn piece(key: u8, tag: u8) -> Step {
    let step = Step::new(Op::DeclarePiece, ORDERED, key).tag(tag).n(tag % 4).size(1 + tag % 5);
    step.to(HOT + tag % 2).flag(tag.is_multiple_of(3))
}

/// A call with one or two pieces on hot rows; its body reads them, writes a row of its own, and may
/// give up. One in eight asks what its piece came to.
fn hot_call(random: &mut Random, own: u8) -> Vec<u8> {
    let (first, second) = (random.byte(HOT.into()), random.byte(HOT.into()));
    let mut declares = vec![piece(first, random.byte(250))];
    if second != first {
        declares.push(piece(second, random.byte(250)));
    }
    declares.push(Step::new(Op::DeclareInsert, HASHED, own));
    let mut body = vec![Step::new(Op::Insert, HASHED, own).size(9).tag(random.byte(250))];
    if random.percent(30) {
        body.insert(0, Step::new(Op::Spin, HASHED, 0).n(random.byte(20)));
    }
    if random.percent(30) {
        body.push(Step::new(Op::Get, ORDERED, random.byte(HOT.into())));
    }
    match random.below(16) {
        0 => body.push(Step::new(Op::Abort, HASHED, 0)),
        1 => body.push(Step::new(Op::Panic, HASHED, 0)),
        2 | 3 => body.push(Step::new(Op::PieceResult, HASHED, 0)),
        _ => {}
    }
    Program { sequences: vec![], declares, body }.encode()
}

/// A call that writes or reads hot rows as a whole.
fn whole_call(random: &mut Random) -> Vec<u8> {
    let key = random.byte(ROWS.into());
    let step = |op| Step::new(op, ORDERED, key).size(9);
    let (declares, body) = match random.below(5) {
        0 => (vec![step(Op::DeclareInsert)], vec![step(Op::Insert).tag(random.byte(250))]),
        1 => (vec![step(Op::DeclareUpdate)], vec![step(Op::Modify).tag(3)]),
        2 => (vec![step(Op::DeclareDelete)], vec![step(Op::Delete)]),
        // Declared and not written: a last version of this kind falls back to the one before.
        3 => (vec![step(Op::DeclareUpdate)], vec![]),
        _ => (vec![], vec![Step::new(Op::Scan, ORDERED, 0).to(ROWS)]),
    };
    Program { sequences: vec![], declares, body }.encode()
}

/// O-03, O-06, O-11, O-14: whatever runs apart, the result is the serial one, and every epoch ends.
#[test]
fn o_11_pieces_of_contended_rows_end_with_the_serial_result() {
    for workers in [1, 2, 3, 8] {
        for split_threshold in [0, 1, 3, 1_000_000] {
            for cache_bytes in [0, 1 << 16] {
                let packing = if cache_bytes == 0 { Packing::Whole } else { Packing::Line };
                let setup =
                    Setup { workers, split_threshold, cache_bytes, packing, ..Setup::default() };
                run_hot(&setup, workers as u64 + u64::from(split_threshold));
            }
        }
    }
}

fn run_hot(setup: &Setup, seed: u64) {
    let mut random = Random::new(seed);
    let mut pair = Pair::open(&device(), setup, Model::default()).unwrap();
    let mut work = WorkCounts::default();
    for _ in 0..5 {
        let calls: Vec<_> = (0..200u8)
            .map(|own| match random.percent(75) {
                true => hot_call(&mut random, own),
                false => whole_call(&mut random),
            })
            .collect();
        let ran = pair.run_counted(&calls).unwrap_or_else(|what| panic!("{setup:?}: {what}"));
        work.add(&ran);
    }
    pair.compare_state().unwrap();
    let apart = (1..100).contains(&setup.split_threshold);
    assert!(work.pieces > 500, "{work:?}");
    assert_eq!(work.pieces_split > 500, apart, "{setup:?}: {work:?}");
    assert!(apart || work.pieces_split == 0, "{work:?}");
}

const ROW: [u8; 8] = [7; 8];
const OTHER: [u8; 8] = [8; 8];

/// The first byte says what is done: 0 inserts the row; others are written below.
fn mistakes() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    let mut add = |name, pieces| {
        table.add(ProcedureDefinition {
            name,
            sequences: None,
            write_set: |args, set| {
                match args[0] {
                    0 => set.insert(TableId(0), &ROW),
                    1 => {
                        set.update(TableId(0), &ROW);
                        set.update_piece(TableId(0), &ROW, 1);
                    }
                    2 => {
                        set.update_piece(TableId(0), &ROW, 1);
                        set.update_piece(TableId(0), &ROW, 1);
                    }
                    _ => {
                        set.insert(TableId(0), &OTHER);
                        set.update_piece(TableId(0), &ROW, 1);
                    }
                }
                Ok(())
            },
            body: |args, tx| match args[0] {
                0 => tx.insert(TableId(0), &ROW, &[1; 8]),
                3 => tx.update(TableId(0), &ROW, &[3; 8]).map(drop),
                4 => tx.piece_result(1).map(drop),
                _ => tx.insert(TableId(0), &OTHER, &[2; 8]),
            },
            pieces,
        });
    };
    let piece = |args: &[u8], piece: &mut engine::Piece<'_>| match args[0] {
        10 => panic!("as planned"),
        11 => Err(engine::Abort::code(5).into()),
        12 => piece.get(TableId(0), &OTHER).map(|_| 0),
        13 => piece.update(&[0; 9]).map(|_| 0),
        14 => piece.get(TableId(77), &OTHER).map(|_| 0),
        _ => piece.modify(|value| value[0] += 1).map(u64::from),
    };
    let finish = |args: &[u8], results: &[u64], output: &mut Vec<u8>| {
        assert_ne!(args[0], 15, "as planned");
        output.extend(results.iter().map(|result| *result as u8));
    };
    add("pieces", Some(PieceFunctions { piece, finish: Some(finish) }));
    add("none", None);
    table
}

fn open(device: &Arc<Dram>, workers: usize, split_threshold: u32) -> engine::Result<Engine<Dram>> {
    let definition = rows(8);
    let config = EngineConfig { workers, split_threshold, ..EngineConfig::default() };
    Ok(Engine::open(Arc::clone(device), config, &[definition], mistakes())?.0)
}

/// What calls of these kinds come to, in one epoch.
fn run(engine: &mut Engine<Dram>, calls: &[(u16, u8)]) -> engine::Result<Vec<String>> {
    let mut batch = Calls::new();
    calls.iter().for_each(|&(procedure, kind)| batch.push(procedure, &[kind]).unwrap());
    let outcome = engine.run_epoch(&batch, EpochInfo::default())?;
    let told = |position| match outcome.answer(position) {
        Answer::Failed(what) => what.to_string(),
        answer => format!("{answer:?}"),
    };
    Ok((0..calls.len()).map(told).collect())
}

#[test]
fn a_wrong_declaration_of_a_piece_fails_its_call_alone() {
    for (workers, threshold) in [(1, 0), (1, 1), (2, 1), (4, 2)] {
        let mut engine = open(&device(), workers, threshold).unwrap();
        // The row is not there yet: its piece has nothing to update.
        assert_eq!(run(&mut engine, &[(0, 20)]).unwrap(), ["Committed([0])"]);
        run(&mut engine, &[(0, 0)]).unwrap();
        let answers =
            run(&mut engine, &[(0, 1), (0, 2), (0, 3), (0, 4), (1, 20), (0, 20), (0, 20)]);
        let answers = answers.unwrap();
        let parts = ["declared twice", "declared twice", "declared for a piece", "piece 1 of 1"];
        for (answer, part) in answers.iter().zip(parts) {
            assert!(answer.contains(part), "{answer}");
        }
        assert!(answers[4].contains("has no function for it"), "{}", answers[4]);
        assert_eq!(answers[5..], ["Committed([1])", "Committed([1])"]);
        // Neither what failed nor anything else of those calls was done.
        assert_eq!(engine.get(TableId(0), &ROW).unwrap().unwrap(), [3, 1, 1, 1, 1, 1, 1, 1]);
    }
}

/// O-49: a piece belongs to a call that commits, of which others may have seen something.
#[test]
fn o_49_a_piece_that_fails_stops_the_engine_with_words() {
    let failures = [
        (10, "as planned"),
        (11, "code 5"),
        (12, "which its call may write"),
        (13, "at most 8"),
        (14, "table"),
        (15, "as planned"),
    ];
    for (kind, what) in failures {
        for (workers, threshold) in [(1, 0), (1, 1), (2, 0), (2, 1), (4, 1)] {
            let device = device();
            let mut engine = open(&device, workers, threshold).unwrap();
            run(&mut engine, &[(0, 0)]).unwrap();
            let mut calls = [(0, 20); 40];
            calls[17].1 = kind;
            let error = run(&mut engine, &calls).unwrap_err();
            assert!(matches!(error, EngineError::Poisoned(_)), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("call 17 of epoch 2 (pieces)"), "{kind}: {text}");
            assert!(text.contains(what), "{kind}: {text}");
            drop(engine);
            let mut again = open(&device, workers, threshold).unwrap();
            assert_eq!(
                again.epoch(),
                EpochNumber(2),
                "the epoch is in the log, and is replayed without the call"
            );
            run(&mut again, &[(0, 20)]).unwrap();
            let value = again.get(TableId(0), &ROW).unwrap().unwrap();
            assert_eq!(value[0], 1 + 39 + 1, "39 calls have counted, and the one of now");
        }
    }
}

/// O-49: one bad call is left out after the other, if several of an epoch are.
#[test]
fn o_49_every_call_that_poisons_an_epoch_is_left_out() {
    let device = device();
    let mut engine = open(&device, 2, 0).unwrap();
    run(&mut engine, &[(0, 0)]).unwrap();
    let mut calls = [(0, 20); 20];
    (calls[3].1, calls[9].1, calls[15].1) = (10, 11, 15);
    run(&mut engine, &calls).unwrap_err();
    drop(engine);
    let mut opened = open(&device, 2, 0);
    for _ in 0..2 {
        assert!(matches!(opened, Err(EngineError::Poisoned(_))), "{:?}", opened.err());
        opened = open(&device, 2, 0);
    }
    let engine = opened.unwrap();
    assert_eq!(engine.get(TableId(0), &ROW).unwrap().unwrap()[0], 1 + 17);
}
