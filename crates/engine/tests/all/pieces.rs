//! Pieces of calls, within their calls and apart from them (split-on-demand, CA 3.4).

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::{
    Answer, Calls, Engine, EngineConfig, EngineError, EpochInfo, Packing, PieceFunctions,
    PieceResult, ProcedureDefinition, ProcedureTable, WorkCounts,
};
use pmem::{AnyDevice, Dram};
use sim::history::{HASHED, Model, ORDERED, Op, Pair, Program, Random, Setup, Step};
use storage::{EpochNumber, IndexKind, TableDefinition, TableId};

use crate::support::rows;

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap())
}

/// Rows that many calls want.
const HOT: u8 = 3;
/// With those that pieces only read. Behind them are rows of ranges.
const ROWS: u8 = HOT + 2;

fn piece(key: u8, tag: u8) -> Step {
    let step = Step::new(Op::DeclarePiece, ORDERED, key).tag(tag).n(tag % 4).size(1 + tag % 5);
    step.to(HOT + tag % 2).flag(tag.is_multiple_of(3))
}

/// Rows of the hashed table that only pieces write: its own calls' numbers are below.
const OF_PIECES: u8 = 200;

/// What else the piece declared last may write: a row that it may insert, which few or many calls
/// want, one that it may update, and a range of the ordered table in which nothing else is written.
fn own_rows(random: &mut Random, declares: &mut Vec<Step>) {
    let (many, few) = (OF_PIECES + random.byte(3), OF_PIECES + 3 + random.byte(50));
    let own = |op, table, key, random: &mut Random| {
        Step::new(op, table, key).n(random.byte(4)).size(random.byte(6)).tag(random.byte(250))
    };
    declares.push(own(Op::InsertInPiece, HASHED, random.pick(&[few, few, many]), random));
    if random.percent(30) && declares.iter().all(|step| step.op != Op::RangeInPiece) {
        declares.push(own(Op::RangeInPiece, ORDERED, ROWS, random).to(ROWS + 6));
    }
}

/// A call with one or two pieces on hot rows; its body reads them, writes a row of its own, and may
/// give up. One in eight asks what its piece came to; half of the second pieces ask that, too. Some
/// pieces have further rows.
fn hot_call(random: &mut Random, own: u8) -> Vec<u8> {
    let (first, second) = (random.pick(&[0, 0, 0, 1, 2]), random.byte(HOT.into()));
    let mut declares = vec![piece(first, random.byte(250))];
    if random.percent(40) {
        own_rows(random, &mut declares);
    }
    if second != first {
        let step = piece(second, random.byte(250));
        declares.push(step.n(step.n | random.pick(&[0, 4])));
        if random.percent(40) {
            let before = declares.len();
            own_rows(random, &mut declares);
            // A key belongs to one piece.
            let is_first = |i: usize| {
                let same = |step: &Step| (step.table, step.a) == (declares[i].table, declares[i].a);
                declares[..i].iter().position(same).is_none()
            };
            let kept: Vec<_> = (0..declares.len()).filter(|&i| i < before || is_first(i)).collect();
            declares = kept.into_iter().map(|i| declares[i]).collect();
        }
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
        2 | 3 => {
            let pieces = declares.iter().filter(|step| step.op == Op::DeclarePiece).count();
            body.push(Step::new(Op::PieceResult, HASHED, 0).n(random.byte(pieces as u64)));
        }
        _ => {}
    }
    Program { sequences: vec![], declares, body }.encode()
}

/// A call that writes or reads hot rows as a whole.
fn whole_call(random: &mut Random) -> Vec<u8> {
    let key = random.byte(ROWS.into());
    let step = |op| Step::new(op, ORDERED, key).size(9);
    let (declares, body) = match random.below(7) {
        5 => {
            let key = OF_PIECES + random.byte(3);
            let step = |op| Step::new(op, HASHED, key).size(7).tag(4);
            (vec![step(Op::DeclareUpdate)], vec![step(Op::Modify), step(Op::Get)])
        }
        6 => {
            let key = ROWS + random.byte(6);
            let step = |op| Step::new(op, ORDERED, key).size(7).tag(4);
            (vec![step(Op::DeclareInsert)], vec![step(Op::Insert), step(Op::Get)])
        }
        0 => (vec![step(Op::DeclareInsert)], vec![step(Op::Insert).tag(random.byte(250))]),
        1 => (vec![step(Op::DeclareUpdate)], vec![step(Op::Modify).tag(3)]),
        2 => (vec![step(Op::DeclareDelete)], vec![step(Op::Delete)]),
        // Declared and not written: a last version of this kind falls back to the one before.
        3 => (vec![step(Op::DeclareUpdate)], vec![]),
        _ => (vec![], vec![Step::new(Op::Scan, ORDERED, 0).to(ROWS)]),
    };
    Program { sequences: vec![], declares, body }.encode()
}

/// Versions of a row that the first hot row has in each epoch, and no other one: pieces run apart
/// whose calls have others that do not.
const SOME_SPLIT: u32 = 90;

/// O-03, O-06, O-11, O-14: whatever runs apart, the result is the serial one, and every epoch ends.
#[test]
fn o_11_pieces_of_contended_rows_end_with_the_serial_result() {
    for workers in [1, 2, 3, 8] {
        for split_threshold in [0, 1, 3, SOME_SPLIT, 1_000_000] {
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
    assert!(work.pieces > 500, "{work:?}");
    let expected = match setup.split_threshold {
        0 | 1_000_000 => 0..1,
        SOME_SPLIT => 1..work.pieces - 50,
        _ => 500..work.pieces + 1,
    };
    assert!(expected.contains(&work.pieces_split), "{setup:?}: {work:?}");
}

const ROW: [u8; 8] = [7; 8];
const OTHER: [u8; 8] = [8; 8];
const SECOND: [u8; 8] = [10; 8];

/// What the second piece of these calls does wrong, if anything.
fn of_second(kind: u8, piece: &mut engine::Piece<'_>) -> Result<PieceResult, engine::Stop> {
    let of_first = [kind, 9, 9, 9, 9, 9, 9, 9];
    if piece.number() == 0 {
        piece.insert_row(TableId(0), &of_first, &[kind; 8])?;
        let result = piece.get(TableId(0), &of_first)?.map_or(0, |value| value[0]);
        return Ok([u64::from(result), 2, 3, 4, 5].into());
    }
    let result = *piece.result(0)?.words();
    assert_eq!(result, [u64::from(kind), 2, 3, 4, 5]);
    match kind {
        21 => piece.result(1).map(drop)?,
        // What the first piece has made was not there before the call.
        22 => assert_eq!(piece.get(TableId(0), &of_first)?, None),
        23 => piece.update_row(TableId(0), &of_first, &[1; 8]).map(drop)?,
        24 => piece.insert_row(TableId(0), &[11; 8], &[1; 8])?,
        25 => piece.scan(TableId(0), &ROW, &OTHER, false, &mut |_, _| ControlFlow::Continue(()))?,
        26 => piece.delete_row(TableId(0), &[12; 8]).map(drop)?,
        // A row of its range that is not there.
        _ => assert!(!piece.update_row(TableId(0), &[11; 8], &[1; 8])?),
    }
    Ok(PieceResult::NONE)
}

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
                    5 => {
                        set.update_piece(TableId(0), &ROW, 1);
                        set.insert_in_piece(TableId(0), &ROW);
                    }
                    6 => set.update_in_piece(TableId(0), &ROW),
                    7 => set.update_range_in_piece(TableId(0), &ROW, &OTHER),
                    kind @ (21..=27 | 8) => {
                        set.update(TableId(0), &OTHER);
                        set.update_piece(TableId(0), &ROW, 1);
                        set.insert_in_piece(TableId(0), &[kind, 9, 9, 9, 9, 9, 9, 9]);
                        set.update_piece(TableId(0), &SECOND, 1);
                        set.update_range_in_piece(TableId(0), &[11; 8], &[12; 8]);
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
                8 => tx.update(TableId(0), &[8, 9, 9, 9, 9, 9, 9, 9], &[3; 8]).map(drop),
                21..=27 => Ok(()),
                _ => tx.insert(TableId(0), &OTHER, &[2; 8]),
            },
            pieces,
        });
    };
    let piece = |args: &[u8], piece: &mut engine::Piece<'_>| match args[0] {
        10 => panic!("as planned"),
        11 => Err(engine::Abort::code(5).into()),
        12 => piece.get(TableId(0), &OTHER).map(|_| 0.into()),
        13 => piece.update(&[0; 9]).map(|_| 0.into()),
        14 => piece.get(TableId(77), &OTHER).map(|_| 0.into()),
        kind @ 21..=27 => of_second(kind, piece),
        _ => piece.modify(|value| value[0] += 1).map(|is_there| u64::from(is_there).into()),
    };
    let finish = |args: &[u8], results: &[PieceResult], output: &mut Vec<u8>| {
        assert_ne!(args[0], 15, "as planned");
        output.extend(results.iter().map(|result| result.words()[0] as u8));
    };
    add("pieces", Some(PieceFunctions { piece, finish: Some(finish) }));
    add("none", None);
    table
}

fn open(device: &Arc<AnyDevice>, workers: usize, split_threshold: u32) -> engine::Result<Engine> {
    let definition = TableDefinition { index: IndexKind::Ordered, ..rows(8) };
    let config = EngineConfig { workers, split_threshold, ..EngineConfig::default() };
    Ok(Engine::open(Arc::clone(device), config, &[definition], mistakes())?.0)
}

/// What calls of these kinds come to, in one epoch.
fn run(engine: &mut Engine, calls: &[(u16, u8)]) -> engine::Result<Vec<String>> {
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
        let of_pieces = [
            (5, "declared twice"),
            (6, "comes before every piece"),
            (7, "comes before every piece"),
            (8, "declared for a piece"),
        ];
        for (kind, part) in of_pieces {
            let answer = &run(&mut engine, &[(0, kind)]).unwrap()[0];
            assert!(answer.contains(part), "{answer}");
        }
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
        (21, "piece 1 asks for the result of piece 1"),
        (23, "not declared for it"),
        (24, "declared for update only"),
        (25, "which its call may write"),
        (26, "not declared for it"),
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
            // The rows of its pieces do as they should where nothing is wrong with it.
            assert_eq!(run(&mut again, &[(0, 27)]).unwrap(), ["Committed([27, 0])"]);
            let own = again.get(TableId(0), &[27, 9, 9, 9, 9, 9, 9, 9]).unwrap();
            assert_eq!(own, Some(vec![27; 8]));
            assert_eq!(again.get(TableId(0), &[kind, 9, 9, 9, 9, 9, 9, 9]).unwrap(), None);
            run(&mut again, &[(0, 20)]).unwrap();
            let value = again.get(TableId(0), &ROW).unwrap().unwrap();
            assert_eq!(value[0], 1 + 39 + 1, "39 calls have counted, and the one of now");
        }
    }
}

/// A piece may not read a row that the rest of its call may write. Whether there is one depends
/// neither on the part of the epoch nor on what of the epoch comes behind the call.
#[test]
fn o_49_a_row_of_its_call_is_there_for_a_piece_or_not_wherever_it_runs() {
    for (workers, threshold) in [(1, 0), (2, 1)] {
        let mut engine = open(&device(), workers, threshold).unwrap();
        run(&mut engine, &[(0, 0)]).unwrap();
        let serial = |engine: &mut Engine, kind| {
            let mut batch = Calls::new();
            batch.push_serial(0, &[kind]).unwrap();
            let outcome = engine.run_epoch(&batch, EpochInfo::default()).unwrap();
            format!("{:?}", outcome.answer(0))
        };
        assert_eq!(serial(&mut engine, 22), "Committed([22, 0])");
        assert!(serial(&mut engine, 22).contains("which its call may write"));
        let mut engine = open(&device(), workers, threshold).unwrap();
        run(&mut engine, &[(0, 0)]).unwrap();
        // The call behind it makes the row, too.
        let answers = run(&mut engine, &[(0, 12), (0, 20)]).unwrap();
        assert_eq!(answers, ["Committed([0])", "Committed([1])"]);
        let error = run(&mut engine, &[(0, 12)]).unwrap_err();
        assert!(error.to_string().contains("which its call may write"), "{error}");
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
