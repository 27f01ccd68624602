//! What the log holds beside epochs, across power cuts and kills: the record of the program that
//! the inputs are for, and verdicts on calls that must not run.
//!
//! A killed process had written the record of the program and fenced nothing. The next one trusted
//! it, named it in its commit records, and did not make it durable: a power cut took the record
//! back, and the store did not open any more. The crash lab found it.

use std::sync::Arc;

use engine::{
    Abort, Calls, Definitions, Engine, EngineConfig, EngineError, ProcedureDefinition,
    ProcedureTable, RecoveryReport, Stop, Transaction, WriteSet,
};
use pmem::{AllOldest, AnyDevice, Replay, Traced};
use storage::{EpochNumber, Position, StoreOptions, TableId};

use crate::cuts::{device, each_cut, each_kill, recorded};
use crate::support::rows;

const ROW: [u8; 8] = [1; 8];
const OTHER: [u8; 8] = [2; 8];

/// Adds its argument to the row.
const DEPOSIT: u16 = 0;
/// Has looked at the row before it declares: if another call changed it, it is deferred.
const MIRROR: u16 = 1;
/// Adds to the row, and fails when that cannot be taken back any more.
const TOO_LATE: u16 = 2;

fn sum(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

fn declare(_: &[u8], set: &mut WriteSet<'_>) -> Result<(), Abort> {
    set.insert(TableId(0), &ROW);
    Ok(())
}

fn look_and_declare(_: &[u8], set: &mut WriteSet<'_>) -> Result<(), Abort> {
    set.lookup(TableId(0), &ROW);
    set.insert(TableId(0), &OTHER);
    Ok(())
}

fn deposit(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    let sum = sum(tx.get(TableId(0), &ROW)?) + u64::from(args[0]);
    tx.insert(TableId(0), &ROW, &sum.to_le_bytes())
}

fn mirror(_: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    let row = tx.get(TableId(0), &ROW)?.map(<[u8]>::to_vec).unwrap_or_default();
    tx.insert(TableId(0), &OTHER, &row)
}

fn too_late(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    deposit(args, tx)?;
    tx.commit_point()?;
    tx.insert(TableId(0), b"unheard.", &[])
}

/// Who opens the store.
#[derive(Debug, Clone, Copy)]
struct Program {
    first_name: &'static str,
    /// It has one procedure more.
    has_more: bool,
    checkpoint_every: u64,
}

const PROGRAM: Program = Program { first_name: "deposit", has_more: false, checkpoint_every: 100 };

type Opened = engine::Result<(Engine, RecoveryReport)>;

fn open(device: &Arc<Traced>, program: Program) -> Opened {
    let tables = [rows(8).into()];
    let mut procedures = |_: &[TableId]| {
        let mut table = ProcedureTable::new();
        let all = [
            (program.first_name, declare as engine::WriteSetFn, deposit as engine::BodyFn),
            ("mirror", look_and_declare, mirror),
            ("too late", declare, too_late),
            ("more", declare, deposit),
        ];
        for (name, write_set, body) in all.into_iter().take(3 + usize::from(program.has_more)) {
            table.add(ProcedureDefinition { name, sequences: None, write_set, body, pieces: None });
        }
        Ok(table)
    };
    let config = EngineConfig {
        checkpoint_every: program.checkpoint_every,
        store: StoreOptions {
            segment_bytes: 4096,
            log_segment_bytes: 4096,
            ..StoreOptions::default()
        },
        ..EngineConfig::default()
    };
    let definitions = Definitions::new(&tables, &mut procedures);
    Engine::open_with(Arc::clone(&AnyDevice::of(device)), config, definitions)
}

fn run(engine: &mut Engine, calls: &[(u16, u8)]) -> engine::Result<()> {
    let mut batch = Calls::new();
    calls.iter().for_each(|&(procedure, amount)| batch.push(procedure, &[amount]).unwrap());
    let info = sim::history::info(engine.epoch().0 + 1);
    engine.run_epoch(&batch, info).map(drop)
}

fn row(engine: &Engine) -> u64 {
    sum(engine.get(TableId(0), &ROW).unwrap().as_deref())
}

/// O-24, O-29: the first process was killed in any moment of creating the store; the second one
/// answers two epochs, whose commit records name the record of the program.
#[test]
fn o_29_a_killed_process_record_of_the_program_is_made_durable_at_open() {
    let created = recorded(&Arc::new(device()), |device| drop(open(device, PROGRAM).unwrap()));
    let live = |device: &Arc<Traced>| {
        let (mut engine, _) = open(device, PROGRAM).unwrap();
        (0..2).for_each(|_| run(&mut engine, &[(DEPOSIT, 1)]).unwrap());
    };
    each_kill(&created, live, |kill, device| {
        let opened = open(device, PROGRAM);
        let (engine, _) = opened.unwrap_or_else(|error| panic!("killed after {kill}: {error}"));
        assert_eq!((engine.epoch().0, row(&engine)), (2, 2), "killed after {kill} events");
    });
}

/// An epoch that a call damages for good: two of its calls fail too late.
fn damaged(device: &Arc<Traced>) {
    let (mut engine, _) = open(device, PROGRAM).unwrap();
    run(&mut engine, &[(DEPOSIT, 1)]).unwrap();
    let calls = [(DEPOSIT, 10), (TOO_LATE, 1), (DEPOSIT, 20), (TOO_LATE, 2)];
    let error = run(&mut engine, &calls).unwrap_err();
    assert!(error.to_string().contains("the call is left out"), "{error}");
}

/// Opens a store until all verdicts are there that it needs: the row, and which calls are left out.
/// `None` if the epoch was not known to be damaged: nobody had been told, and a person must decide.
fn settled(device: &Arc<Traced>) -> Option<(u64, u64)> {
    for _ in 0..3 {
        match open(device, PROGRAM) {
            Ok((engine, _)) => return Some((engine.epoch().0, row(&engine))),
            Err(EngineError::StuckCall {
                epoch: EpochNumber(2), position: Position(1), ..
            }) => return None,
            Err(error @ EngineError::Poisoned(_)) => {
                assert!(error.to_string().contains("the call is left out"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it is never settled")
}

/// O-49: the epoch is there without the call or is not there, whenever the power is cut; when the
/// engine has said that the call is left out, it is.
#[test]
fn o_49_a_verdict_survives_power_cuts() {
    let life = recorded(&Arc::new(device()), damaged);
    let mut stuck = 0;
    each_cut(&life, |position, load| match settled(&load()) {
        Some((0..=1, _)) => {}
        Some(found) => assert_eq!(found, (2, 31), "after {position} events"),
        None => stuck += 1,
    });
    assert!(stuck > 0, "no cut lies between the commit record and the verdict");
    let mut end = Replay::new(&life, device());
    while end.step().is_some() {}
    let left = end.left(&mut AllOldest);
    // The first open finds the second call that fails too late; then there are two verdicts.
    let second = recorded(end.load(&left), |device| {
        let error = open(device, PROGRAM).err().unwrap();
        assert!(matches!(error, EngineError::Poisoned(_)), "{error}");
    });
    each_cut(&second, |position, load| {
        assert_eq!(settled(&load()), Some((2, 31)), "after {position} events");
    });
    let mut end = Replay::new(&second, device());
    while end.step().is_some() {}
    let left = end.left(&mut AllOldest);
    let third = recorded(end.load(&left), |device| {
        let (_, report) = open(device, PROGRAM).unwrap();
        let positions: Vec<u32> = report.skipped.iter().map(|verdict| verdict.position.0).collect();
        assert_eq!(positions, [1, 3]);
    });
    each_cut(&third, |position, load| {
        let (engine, _) = open(&load(), PROGRAM).unwrap();
        assert_eq!((engine.epoch().0, row(&engine)), (2, 31), "after {position} events");
    });
}

/// O-29, O-49: as above, where the process is killed: what it left of a verdict is trusted, and so
/// made durable.
#[test]
fn o_49_a_killed_process_verdict_is_made_durable_at_open() {
    let life = recorded(&Arc::new(device()), damaged);
    each_kill(
        &life,
        |device| {
            settled(device);
        },
        |kill, device| {
            let (epoch, row) = settled(device).unwrap_or((1, 1));
            assert_eq!(row, [0, 1, 31][epoch as usize], "killed after {kill} events");
        },
    );
}

/// O-29, O-65: the record of a program with one procedure more takes the place of the one before.
/// Whenever the power is cut, one of them is there, and the calls that were deferred run, or
/// another program is refused.
#[test]
fn o_65_a_record_of_the_program_is_replaced_by_a_whole_one() {
    let often = Program { checkpoint_every: 1, ..PROGRAM };
    let more = Program { has_more: true, ..PROGRAM };
    let device = Arc::new(device());
    let (mut engine, _) = open(&device, often).unwrap();
    run(&mut engine, &[(DEPOSIT, 1), (MIRROR, 0)]).unwrap();
    assert_eq!(engine.deferred(), 1);
    drop(engine);
    let life = recorded(&device, |device| {
        let (mut engine, _) = open(device, more).unwrap();
        run(&mut engine, &[(DEPOSIT, 1)]).unwrap();
        run(&mut engine, &[(DEPOSIT, 1)]).unwrap();
    });
    drop(device);
    let renamed = Program { first_name: "other", ..PROGRAM };
    each_cut(&life, |position, load| {
        let error = open(&load(), renamed).err();
        let refused = matches!(error, Some(EngineError::OtherProgram(_)));
        assert!(refused, "after {position} events: {error:?}");
        for program in [more, Program { checkpoint_every: 1, ..more }] {
            let opened = open(&load(), program);
            let (engine, _) =
                opened.unwrap_or_else(|error| panic!("after {position} events: {error}"));
            assert_eq!(row(&engine), engine.epoch().0, "after {position} events");
            assert_eq!(engine.deferred(), usize::from(engine.epoch().0 == 1));
        }
    });
    each_kill(
        &life,
        |device| drop(open(device, more).unwrap()),
        |kill, device| {
            let opened = open(device, more);
            let (engine, _) = opened.unwrap_or_else(|error| panic!("killed after {kill}: {error}"));
            assert_eq!(row(&engine), engine.epoch().0, "killed after {kill} events");
        },
    );
}
