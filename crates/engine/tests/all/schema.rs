//! Tables that are renamed, dropped, made longer and added, with the power cut in between (O-91).

use std::sync::Arc;

use engine::{
    Abort, Answer, Body, Calls, Definitions, Earlier, Engine, EngineConfig, EngineError, EpochInfo,
    LoggedSchema, ProcedureDefinition, ProcedureTable, Stop, TableSchema, Transaction, WriteSet,
};
use pmem::{AnyDevice, Traced};
use storage::check::CheckReport;
use storage::{StoreOptions, TableDefinition, TableId};

use crate::cuts::{device, each_cut, each_kill, recorded};
use crate::support::rows;

/// Keys of each table.
const KEYS: u64 = 6;

/// Who opens the store.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Program {
    Old,
    New,
}

impl Program {
    /// Names of the tables and their longest values, in the order in which they are asked for.
    fn tables(self) -> &'static [(&'static str, u32)] {
        match self {
            Self::Old => &[("kept", 8), ("lost", 400), ("before", 100), ("lost, too", 8)],
            Self::New => &[("added", 300), ("after", 1000), ("kept", 8)],
        }
    }
}

/// Writes all keys of the first tables of the program, with values as long as they can be.
fn fill(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    for (number, bytes) in tables(args) {
        for key in 0..KEYS {
            tx.insert(TableId(number), &key.to_be_bytes(), &vec![args[0]; bytes])?;
        }
    }
    Ok(())
}

fn declare(args: &[u8], set: &mut WriteSet<'_>) -> Result<(), Abort> {
    for (number, _) in tables(args) {
        (0..KEYS).for_each(|key| set.insert(TableId(number), &key.to_be_bytes()));
    }
    Ok(())
}

/// What to write, after the byte that goes into each value: numbers of tables and bytes of values.
fn tables(args: &[u8]) -> impl Iterator<Item = (u16, usize)> {
    args[1..].as_chunks::<2>().0.iter().map(|&[number, tens]| (number.into(), 10 * tens as usize))
}

/// What the bodies of the program that opens the store do besides.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Keeps {
    /// It has the body of the log, and no other.
    Nothing,
    /// As above, and checkpoints are rare.
    Log,
    /// Its own body does nothing, and it has kept that of the log.
    BodyOfLog,
}

fn open(device: &Arc<Traced>, program: Program) -> engine::Result<Engine> {
    open_with(device, program, Keeps::Nothing)
}

fn open_with(device: &Arc<Traced>, program: Program, keeps: Keeps) -> engine::Result<Engine> {
    let tables: Vec<TableSchema> = program
        .tables()
        .iter()
        .map(|&(name, value_bytes_max)| {
            let row_bytes = if name == "kept" { 128 } else { 0 };
            let definition =
                TableDefinition { name: name.into(), row_bytes, ..rows(value_bytes_max) };
            TableSchema { row_bytes_if_new: 128, ..definition.into() }
        })
        .collect();
    let (renamed, dropped) = match program {
        Program::Old => (vec![], vec![]),
        Program::New => (
            vec![("before".to_string(), "after".to_string())],
            vec!["lost".to_string(), "lost, too".to_string()],
        ),
    };
    open_tables(device, &tables, &renamed, (&dropped, keeps))
}

/// The version of the body that the program of now has, if it has kept another one.
const VERSION: u32 = 2;

/// The body that was logged, and one that does nothing.
fn body(does: bool) -> ProcedureDefinition {
    let body = if does { fill } else { |_: &[u8], _: &mut Transaction<'_>| Ok(()) };
    let write_set = declare;
    ProcedureDefinition { name: "fill", sequences: None, write_set, body, pieces: None }
}

/// All bodies, that of the log last.
fn bodies(_: &LoggedSchema) -> engine::Result<Vec<Body>> {
    let body = |version| Body {
        procedure: Arc::new(body(version != VERSION)),
        types: String::new(),
        version,
        is_kept: version != VERSION,
    };
    Ok([VERSION, 1].map(body).into())
}

fn open_tables(
    device: &Arc<Traced>,
    tables: &[TableSchema],
    renamed: &[(String, String)],
    (dropped, keeps): (&[String], Keeps),
) -> engine::Result<Engine> {
    let keeps_body = keeps == Keeps::BodyOfLog;
    let mut procedures = |_: &[TableId]| {
        let mut table = ProcedureTable::new();
        match keeps_body {
            true => table.add_version(Arc::new(body(false)), String::new(), VERSION),
            false => table.add(body(true)),
        };
        Ok(table)
    };
    let mut bodies = bodies;
    let earlier = Earlier {
        indexes: &[],
        bodies: &mut bodies,
        missing: Arc::new(|| None),
        info: EpochInfo::default(),
    };
    let config = EngineConfig {
        workers: 2,
        checkpoint_every: if keeps == Keeps::Log { 100 } else { 1 },
        store: StoreOptions { segment_bytes: 4096, log_segment_bytes: 4096, ..Default::default() },
        ..EngineConfig::default()
    };
    let earlier = keeps_body.then_some(earlier);
    let definitions =
        Definitions { renamed, dropped, earlier, ..Definitions::new(tables, &mut procedures) };
    Ok(Engine::open_with(Arc::clone(&AnyDevice::of(device)), config, definitions)?.0)
}

/// One epoch with one call.
fn run(engine: &mut Engine, args: &[u8]) {
    let mut calls = Calls::new();
    calls.push(0, args).unwrap();
    let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
    assert!(matches!(outcome.answer(0), Answer::Committed(_)), "{:?}", outcome.answer(0));
}

/// A store of the old program: values were written twice, so that there are stale ones.
fn old_store() -> Arc<Traced> {
    let device = Arc::new(device());
    let mut engine = open(&device, Program::Old).unwrap();
    for byte in 1..=2 {
        run(&mut engine, &[byte, 0, 0, 1, 40, 2, 10, 3, 0]);
    }
    engine.close().unwrap();
    device
}

fn check(device: &Arc<Traced>) -> CheckReport {
    let report = storage::check::check(Arc::clone(&AnyDevice::of(device))).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    report
}

/// What is in a store: tables with their rows.
fn found(device: &Arc<Traced>) -> Vec<(String, u64)> {
    check(device).rows
}

fn named(tables: &[(&str, u64)]) -> Vec<(String, u64)> {
    tables.iter().map(|&(name, rows)| (name.to_string(), rows)).collect()
}

/// The new program has what it asked for, and goes on.
fn assert_new(device: &Arc<Traced>, at: usize) {
    let mut engine = open(device, Program::New).unwrap_or_else(|e| panic!("after {at}: {e}"));
    let [added, after, kept] = *engine.table_ids() else { panic!("three tables") };
    let value = |engine: &Engine, table| engine.get(table, &5u64.to_be_bytes()).unwrap();
    assert_eq!((added, after, kept), (TableId(1), TableId(2), TableId(0)), "after {at}");
    assert_eq!(value(&engine, kept), Some(vec![]));
    assert_eq!(value(&engine, after), Some(vec![2; 100]));
    assert_eq!(value(&engine, added), None);
    assert_eq!(engine.rows(), 2 * KEYS);
    run(&mut engine, &[9, added.0 as u8, 30, after.0 as u8, 100, kept.0 as u8, 0]);
    assert_eq!(value(&engine, after), Some(vec![9; 1000]));
    engine.close().unwrap();
    let all = [("kept", KEYS), ("added", KEYS), ("after", KEYS)];
    assert_eq!(found(device), named(&all), "after {at}");
}

/// The old program has all that it had, and goes on; or the change has taken place.
fn assert_old(device: &Arc<Traced>, at: usize) {
    let mut engine = open(device, Program::Old).unwrap_or_else(|e| panic!("after {at}: {e}"));
    assert_eq!(engine.rows(), 4 * KEYS);
    let value = engine.get(TableId(1), &5u64.to_be_bytes()).unwrap();
    assert_eq!(value, Some(vec![2; 400]), "after {at}");
    run(&mut engine, &[3, 0, 0, 1, 40, 2, 10, 3, 0]);
    engine.close().unwrap();
    check(device);
}

const OLD: [(&str, u64); 4] =
    [("kept", KEYS), ("lost", KEYS), ("before", KEYS), ("lost, too", KEYS)];
const NEW: [(&str, u64); 3] = [("kept", KEYS), ("added", 0), ("after", KEYS)];

/// O-91: whenever the power is cut, the schema is the one before with all its rows, or the one
/// after, and either program goes on with it.
#[test]
fn o_91_a_change_takes_place_as_a_whole_or_not_at_all() {
    let change = recorded(&old_store(), |device| drop(open(device, Program::New).unwrap()));
    let (mut old, mut new) = (0, 0);
    each_cut(&change, |at, load| {
        let tables = found(&load());
        if tables == named(&OLD) {
            old += 1;
            assert_old(&load(), at);
        } else {
            new += 1;
            assert_eq!(tables, named(&NEW), "after {at}");
        }
        assert_new(&load(), at);
    });
    assert!(old > 20 && new > 0, "{old} images of before, {new} of after");
}

/// O-91: as above, where the process is killed and the next one does the same.
#[test]
fn o_91_a_killed_change_is_made_again() {
    let change = recorded(&old_store(), |device| drop(open(device, Program::New).unwrap()));
    let again = |device: &Arc<Traced>| drop(open(device, Program::New).unwrap());
    each_kill(&change, again, |at, device| {
        assert_eq!(found(device), named(&NEW), "killed after {at}");
        assert_new(device, at);
    });
}

/// O-91: an epoch in the log, or calls that are deferred, and everything stays as it was.
#[test]
fn o_91_a_past_refuses_the_change() {
    let device = old_store();
    let mut engine = open(&device, Program::Old).unwrap();
    let epoch = recorded(&device, |_| run(&mut engine, &[3, 0, 0, 1, 40, 2, 10, 3, 0]));
    let mut refused = 0;
    each_cut(&epoch, |at, load| {
        let device = load();
        let has_log = open_log(&device);
        let before = found(&device);
        match open(&device, Program::New) {
            Err(error) => {
                refused += 1;
                assert!(has_log && matches!(error, EngineError::OtherProgram(_)), "{at}: {error}");
                assert_eq!((found(&device), device.stores()), (before, 0), "after {at}");
                let engine = open(&device, Program::Old).unwrap();
                assert_eq!((engine.epoch().0, engine.rows()), (3, 4 * KEYS), "after {at}");
            }
            Ok(_) => assert!(!has_log, "after {at}"),
        }
    });
    assert!(refused > 20, "{refused} images with a log");
}

/// A store of the old program whose log has an epoch that its checkpoint lacks.
fn killed_store() -> Arc<Traced> {
    let device = old_store();
    let mut engine = open_with(&device, Program::Old, Keeps::Log).unwrap();
    run(&mut engine, &[3, 0, 0, 1, 40, 2, 10, 3, 0]);
    drop(engine);
    assert!(open_log(&device));
    device
}

/// O-107, O-108: a log of the program before is replayed with its body and under its tables, and
/// the change takes place then. Whenever the power is cut, the store is that of before, which
/// either program opens, or that of after.
#[test]
fn o_108_a_change_over_a_log_takes_place_behind_the_replay() {
    let new = |device: &Arc<Traced>| open_with(device, Program::New, Keeps::BodyOfLog);
    let change = recorded(&killed_store(), |device| drop(new(device).unwrap()));
    let (mut with_log, mut closed, mut changed) = (0, 0, 0);
    each_cut(&change, |at, load| {
        let has_log = open_log(&load());
        let tables = found(&load());
        if tables == named(&OLD) {
            (with_log, closed) = (with_log + usize::from(has_log), closed + usize::from(!has_log));
            let engine = open(&load(), Program::Old).unwrap_or_else(|e| panic!("{at}: {e}"));
            let value = engine.get(TableId(1), &5u64.to_be_bytes()).unwrap();
            assert_eq!((value, engine.rows()), (Some(vec![3; 400]), 4 * KEYS), "after {at}");
        } else {
            changed += 1;
            assert_eq!(tables, named(&NEW), "after {at}");
        }
        assert_eq!(open(&load(), Program::New).is_err(), has_log, "after {at}");
        let device = load();
        let engine = new(&device).unwrap_or_else(|e| panic!("after {at}: {e}"));
        let value = engine.get(TableId(2), &5u64.to_be_bytes()).unwrap();
        assert_eq!((value, engine.rows()), (Some(vec![3; 100]), 2 * KEYS), "after {at}");
        drop(engine);
        assert_eq!(found(&device), named(&NEW), "after {at}");
    });
    assert!(with_log > 20 && closed > 20 && changed > 0, "{with_log}, {closed}, {changed}");
}

/// O-108: the same where the process is killed, and the next one does what it did.
#[test]
fn o_108_a_killed_change_over_a_log_is_made_again() {
    let new = |device: &Arc<Traced>| open_with(device, Program::New, Keeps::BodyOfLog).unwrap();
    let change = recorded(&killed_store(), |device| drop(new(device)));
    each_kill(
        &change,
        |device| drop(new(device)),
        |at, device| {
            assert_eq!(found(device), named(&NEW), "killed after {at}");
            let value = new(device).get(TableId(2), &5u64.to_be_bytes()).unwrap();
            assert_eq!(value, Some(vec![3; 100]), "killed after {at}");
        },
    );
}

/// Whether there is something to replay.
fn open_log(device: &Arc<Traced>) -> bool {
    let options = StoreOptions { create: false, ..Default::default() };
    !storage::Store::open(Arc::clone(&AnyDevice::of(device)), &options)
        .unwrap()
        .log
        .committed
        .is_empty()
}

/// O-92: whatever is dropped and added, in all orders of three tables with rows of other sizes, a
/// table has the rows that were put into it and no others, also after a crash.
#[test]
fn o_92_dropped_tables_never_come_back_with_rows() {
    let sizes = [("a", 0, 64), ("b", 400, 128), ("c", 1000, 256)];
    for order in 0..8u32.pow(3) {
        let device = Arc::new(device());
        let mut model = vec![0u64; sizes.len()];
        for round in 0..3 {
            let asked = order >> (3 * round) & 7;
            let is_asked = |table: usize| asked >> table & 1 == 1;
            let tables: Vec<TableSchema> = (0..sizes.len())
                .filter(|&table| is_asked(table))
                .map(|table| {
                    let (name, value, row_bytes) = sizes[table];
                    TableDefinition { name: name.into(), row_bytes, ..rows(value) }.into()
                })
                .collect();
            let dropped: Vec<String> = (0..sizes.len())
                .filter(|&table| !is_asked(table))
                .map(|table| sizes[table].0.to_string())
                .collect();
            let mut engine =
                open_tables(&device, &tables, &[], (&dropped, Keeps::Nothing)).unwrap();
            (0..sizes.len()).filter(|&table| !is_asked(table)).for_each(|table| model[table] = 0);
            let rows = |engine: &Engine, id: TableId| {
                let mut rows = 0;
                engine.for_each(id, &mut |_, _| rows += 1).unwrap();
                rows
            };
            let asked: Vec<usize> = (0..sizes.len()).filter(|&table| is_asked(table)).collect();
            let mut args = vec![round as u8 + 1];
            for (&id, &table) in engine.table_ids().iter().zip(&asked) {
                assert_eq!(rows(&engine, id), model[table], "order {order:o}, round {round}");
                args.extend([id.0 as u8, (sizes[table].1 / 10) as u8]);
                model[table] = KEYS;
            }
            run(&mut engine, &args);
            // Without a close the next open finds a log, which is of these tables.
            if order % 2 == 0 {
                drop(engine);
                engine = open_tables(&device, &tables, &[], (&[], Keeps::Nothing)).unwrap();
            }
            assert_eq!(engine.rows(), model.iter().sum::<u64>());
            engine.close().unwrap();
            assert_eq!(check(&device).rows.len(), asked.len());
        }
    }
}
