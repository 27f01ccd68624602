//! A mistake fails its call whatever the procedure makes of the error.
//!
//! `let _ = tx.insert(undeclared)` and then `Ok` once committed the writes before and after it:
//! half of what the procedure meant to do.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use engine::{
    Abort, Answer, Calls, Engine, EngineError, Piece, PieceFunctions, PieceResult,
    ProcedureDefinition, ProcedureTable, Stop, Transaction, WriteSet,
};
use pmem::{AnyDevice, Dram};
use sim::history::{HASHED, LONG, ORDERED, SEQUENCES, Setup};
use storage::TableId;

const H: TableId = TableId(HASHED as u16);
const O: TableId = TableId(ORDERED as u16);
const L: TableId = TableId(LONG as u16);
const S: TableId = TableId(SEQUENCES as u16);
const NOWHERE: TableId = TableId(77);
const SHORT: &[u8] = b"short";
const KEY: &[u8] = b"12345678";
const ABSENT: &[u8] = b"22345678";

type Wrong = fn(&mut Transaction<'_>) -> Result<(), Stop>;

/// Everything that a body can do wrong, and a part of the message.
const WRONG: &[(Wrong, &str)] = &[
    (|tx| tx.get(NOWHERE, KEY).map(drop), "table 77"),
    (|tx| tx.get(H, SHORT).map(drop), "5 bytes"),
    (|tx| tx.get(S, KEY).map(drop), "sequences"),
    (|tx| tx.get_many(O, [KEY, SHORT].into_iter(), |_| {}), "5 bytes"),
    (|tx| tx.get_many(NOWHERE, [KEY].into_iter(), |_| {}), "table 77"),
    (|tx| tx.scan(H, KEY, ABSENT, false, &mut go_on), "not ordered"),
    (|tx| tx.scan(O, SHORT, ABSENT, true, &mut go_on), "all keys have 8"),
    (|tx| tx.sequence_start(H, 1).map(drop), "holds rows"),
    (|tx| tx.insert(L, b"other", b""), "undeclared"),
    (|tx| tx.insert(O, KEY, b""), "for update only"),
    (|tx| tx.insert(L, b"row", &[0; 2501]), "2501 bytes"),
    (|tx| tx.insert(NOWHERE, KEY, b""), "table 77"),
    (|tx| tx.update(L, b"row", &[0; 2502]).map(drop), "2502 bytes"),
    (|tx| tx.update(O, ABSENT, b"").map(drop), "undeclared"),
    (|tx| tx.update(L, b"piece", b"").map(drop), "for a piece"),
    (|tx| tx.delete(O, ABSENT).map(drop), "undeclared"),
    (|tx| tx.delete(S, KEY).map(drop), "sequences"),
    (|tx| tx.modify(H, SHORT, |_| {}).map(drop), "5 bytes"),
    (|tx| tx.modify(O, ABSENT, |_| {}).map(drop), "undeclared"),
    (|tx| tx.modify_part(O, ABSENT, 0..0, |_, _| {}).map(drop), "undeclared"),
    (|tx| tx.modify_part(L, b"row", 0..99, |_, _| {}).map(drop), "bytes 0 to 99 of"),
    (|tx| tx.modify_part(L, b"old", 0..98, |_, _| {}).map(drop), "bytes 0 to 98 of"),
    (|tx| tx.piece_result(1).map(drop), "piece 1 of 1"),
];

fn go_on(_: &[u8], _: &[u8]) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// How a body ends that has ignored a mistake: number, and how.
type End = fn(&mut Transaction<'_>) -> Result<(), Stop>;
const ENDS: &[End] = &[
    |_| Ok(()),
    |_| Err(Abort::new("aborted instead").into()),
    |_| Err(Stop::mistake("another mistake")),
    |tx| tx.insert(L, b"unheard of", b""),
    |_| panic!("panicked instead"),
    |tx| tx.commit_point().or(Ok(())),
    |tx| tx.piece_result(0).map(drop).or(Ok(())),
];

fn write_set(_: &[u8], set: &mut WriteSet<'_>) -> Result<(), Abort> {
    set.insert(L, b"row");
    set.insert(L, b"old");
    set.insert(L, b"late");
    set.update(O, KEY);
    set.update_piece(L, b"piece", 1);
    Ok(())
}

fn whole(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    tx.insert(L, b"row", args)?;
    let _ = WRONG[usize::from(args[0])].0(tx);
    tx.insert(L, b"late", args)?;
    ENDS[usize::from(args[1])](tx)
}

fn procedures(body: engine::BodyFn, piece: engine::PieceFn) -> ProcedureTable {
    let mut table = ProcedureTable::new();
    let pieces = Some(PieceFunctions { piece, finish: None });
    table.add(ProcedureDefinition { name: "careless", sequences: None, write_set, body, pieces });
    table.add(ProcedureDefinition {
        name: "fill",
        sequences: None,
        write_set: |_, set| {
            set.insert(L, b"old");
            set.insert(L, b"piece");
            Ok(())
        },
        body: |_, tx| {
            tx.insert(L, b"old", b"stays")?;
            tx.insert(L, b"piece", b"stays")
        },
        pieces: None,
    });
    table
}

fn open(workers: usize, body: engine::BodyFn, piece: engine::PieceFn) -> (Arc<AnyDevice>, Engine) {
    let device = AnyDevice::new(Dram::new(64 << 20, 64 << 20).unwrap());
    let setup = Setup { workers, ..Setup::default() };
    let procedures = procedures(body, piece);
    let (mut engine, _) =
        Engine::open(Arc::clone(&device), setup.config(), &setup.tables(), procedures).unwrap();
    let mut calls = Calls::new();
    calls.push(1, &[]).unwrap();
    engine.run_epoch(&calls, sim::history::info(1)).unwrap();
    (device, engine)
}

fn piece(_: &[u8], piece: &mut Piece<'_>) -> Result<PieceResult, Stop> {
    piece.update(b"changed").map(|is_there| u64::from(is_there).into())
}

/// O-02, O-03: nothing of a call that made a mistake is committed, however it ends.
#[test]
fn an_ignored_mistake_fails_the_whole_call() {
    for workers in [1, 2] {
        let (device, mut engine) = open(workers, whole, piece);
        let mut calls = Calls::new();
        let cases = || (0..WRONG.len()).flat_map(|w| (0..ENDS.len()).map(move |end| (w, end)));
        cases().for_each(|(wrong, end)| calls.push(0, &[wrong as u8, end as u8]).unwrap());
        let outcome = engine.run_epoch(&calls, sim::history::info(2)).unwrap();
        for (position, (wrong, end)) in cases().enumerate() {
            let words = WRONG[wrong].1;
            match outcome.answer(position) {
                Answer::Failed(what) if what.contains(words) => {}
                other => panic!("mistake {wrong}, end {end}: {other:?}, expected {words:?}"),
            }
        }
        assert_eq!(engine.rows(), 2, "only the old ones");
        for old in [b"old" as &[u8], b"piece"] {
            assert_eq!(engine.get(L, old).unwrap().unwrap(), b"stays");
        }
        engine.close().unwrap();
        assert_eq!(storage::check::check(device).unwrap().problems, Vec::<String>::new());
    }
}

/// Whoever reads `row` sees nothing of a call that has failed, and a mistake after the commit
/// point stops the engine though the body ignores it (O-49).
#[test]
fn o_49_an_ignored_mistake_after_the_commit_point_stops_the_engine() {
    fn late(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
        tx.commit_point()?;
        whole(args, tx)
    }
    for wrong in 0..WRONG.len() as u8 {
        let (_, mut engine) = open(2, late, piece);
        let mut calls = Calls::new();
        calls.push(0, &[wrong, 0]).unwrap();
        let error = engine.run_epoch(&calls, sim::history::info(2)).unwrap_err();
        assert!(matches!(error, EngineError::Poisoned(_)), "{error:?}");
        let words = WRONG[usize::from(wrong)].1;
        assert!(error.to_string().contains("after its commit point"), "{error}");
        assert!(error.to_string().contains(words), "{error}, expected {words:?}");
    }
}

/// O-49: a call with pieces commits before they run, so a mistake that a piece ignores stops the
/// engine, as one that it passes on does.
#[test]
fn o_49_a_mistake_that_a_piece_ignores_stops_the_engine() {
    type Wrong = fn(&mut Piece<'_>) -> Result<(), Stop>;
    const WRONG: &[(Wrong, &str)] = &[
        (|piece| piece.get(NOWHERE, KEY).map(drop), "table 77"),
        (|piece| piece.get(L, b"old").map(drop), "which its call may write"),
        (|piece| piece.update(&[0; 2503]).map(drop), "2503 bytes"),
        (|piece| piece.modify_part(0..97, |_, _| {}).map(drop), "bytes 0 to 97 of"),
        (
            |piece| {
                piece.update(b"new")?;
                piece.modify_part(0..96, |_, _| {}).map(drop)
            },
            "bytes 0 to 96 of a value of 3",
        ),
    ];
    fn careless(args: &[u8], piece: &mut Piece<'_>) -> Result<PieceResult, Stop> {
        let _ = WRONG[usize::from(args[0])].0(piece);
        piece.update(b"changed").map(|is_there| u64::from(is_there).into())
    }
    for (wrong, (_, words)) in WRONG.iter().enumerate() {
        let (_, mut engine) = open(1, |_, _| Ok(()), careless);
        let mut calls = Calls::new();
        calls.push(0, &[wrong as u8]).unwrap();
        let error = engine.run_epoch(&calls, sim::history::info(2)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}, expected {words:?}");
    }
}

/// A declaration says its first mistake, too, though it panics or aborts after it.
#[test]
fn the_first_mistake_of_a_declaration_is_the_answer() {
    fn end(args: &[u8]) -> Result<(), Abort> {
        match args[1] {
            0 => Ok(()),
            1 => Err(Abort::new("aborted instead")),
            _ => panic!("panicked instead"),
        }
    }
    let mut procedures = procedures(|_, _| Ok(()), piece);
    let number = procedures.add(ProcedureDefinition {
        name: "declares",
        sequences: Some(|args, sequences| {
            if args[0] == 0 {
                sequences.allocate(S, 1);
                sequences.allocate(H, 1);
                sequences.allocate(NOWHERE, 1);
                return end(args);
            }
            Ok(())
        }),
        write_set: |args, set| {
            set.insert(H, KEY);
            set.update(H, SHORT);
            set.insert(NOWHERE, KEY);
            end(args)
        },
        body: |_, tx| tx.insert(H, KEY, b""),
        pieces: None,
    });
    let device = AnyDevice::new(Dram::new(64 << 20, 64 << 20).unwrap());
    let setup = Setup::default();
    let (mut engine, _) =
        Engine::open(device, setup.config(), &setup.tables(), procedures).unwrap();
    let mut calls = Calls::new();
    let cases = || (0..2u8).flat_map(|step| (0..3u8).map(move |end| (step, end)));
    cases().for_each(|(step, end)| calls.push(number, &[step, end]).unwrap());
    let outcome = engine.run_epoch(&calls, sim::history::info(1)).unwrap();
    for (position, (step, end)) in cases().enumerate() {
        let words = ["holds rows", "5 bytes"][usize::from(step)];
        match outcome.answer(position) {
            Answer::Failed(what) if what.contains(words) => {}
            other => panic!("step {step}, end {end}: {other:?}, expected {words:?}"),
        }
    }
    assert_eq!(engine.rows(), 0);
}

/// A call that hides that another one has stopped the engine does not hide that one's reason.
#[test]
fn o_50_who_hides_that_the_engine_was_stopped_is_stopped() {
    fn body(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
        if args[0] == 0 {
            tx.commit_point()?;
            panic!("the reason")
        }
        // Waits for the call before, which will never write the row.
        let first = catch_unwind(AssertUnwindSafe(|| tx.get(L, b"row").map(drop)));
        let _ = tx.insert(L, b"unheard of", b"");
        let _ = tx.commit_point();
        assert_eq!(first.unwrap().unwrap_err(), Stop::Stopped);
        panic!("another reason")
    }
    for _ in 0..20 {
        let (_, mut engine) = open(2, body, piece);
        let mut calls = Calls::new();
        (0..8).for_each(|call| calls.push(0, &[call]).unwrap());
        let error = engine.run_epoch(&calls, sim::history::info(2)).unwrap_err();
        assert!(error.to_string().contains("the reason"), "{error}");
    }
}
