//! A replay comes to the past that was answered, or the store is not opened: a program with other
//! procedures, bodies or tables came to another one without a word, and so did one that read a
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{
    Abort, Calls, Definitions, Engine, EngineConfig, EngineError, EpochInfo, ProcedureDefinition,
    ProcedureTable, RecoveryReport,
};
use pmem::{AnyDevice, Device, Dram, Port};
use storage::{EpochNumber, IndexKind, TableDefinition, TableId};

const ROW: [u8; 8] = [1; 8];
const OTHER: [u8; 8] = [2; 8];

fn table(name: &str) -> TableDefinition {
    TableDefinition {
        name: name.into(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max: 8,
        row_bytes: 0,
        shared_heap_bytes: 0,
    }
}

fn word(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

/// What a program does that opens the store.
#[derive(Clone, Copy)]
struct Program {
    tables: &'static [&'static str],
    /// Name, types, body.
    procedures: &'static [(&'static str, &'static str, engine::BodyFn)],
}

fn add(amount: u64, tx: &mut engine::Transaction<'_>) -> Result<(), engine::Stop> {
    let sum = word(tx.get(TableId(0), &ROW)?) + amount;
    tx.insert(TableId(0), &ROW, &sum.to_le_bytes())
}

fn deposit(_: &[u8], tx: &mut engine::Transaction<'_>) -> Result<(), engine::Stop> {
    add(1, tx)
}

fn changed_deposit(_: &[u8], tx: &mut engine::Transaction<'_>) -> Result<(), engine::Stop> {
    add(2, tx)
}

fn clock_deposit(_: &[u8], tx: &mut engine::Transaction<'_>) -> Result<(), engine::Stop> {
    static CLOCK: AtomicU64 = AtomicU64::new(0);
    add(CLOCK.fetch_add(1, Ordering::Relaxed), tx)
}

/// Its write set depends on a row that `deposit` changes.
fn mirror(_: &[u8], tx: &mut engine::Transaction<'_>) -> Result<(), engine::Stop> {
    let sum = tx.get(TableId(0), &ROW)?.map(<[u8]>::to_vec).unwrap_or_default();
    tx.insert(TableId(0), &OTHER, &sum)
}

const BEFORE: Program = Program {
    tables: &["rows", "more"],
    procedures: &[("deposit", "u64 -> u64", deposit), ("mirror", "", mirror)],
};

fn open(device: &Arc<AnyDevice>, program: Program) -> engine::Result<(Engine, RecoveryReport)> {
    let tables: Vec<_> = program.tables.iter().map(|name| table(name).into()).collect();
    let mut procedures = |_: &[TableId]| {
        let mut table = ProcedureTable::new();
        for &(name, types, body) in program.procedures {
            let definition = ProcedureDefinition {
                name,
                sequences: None,
                write_set: if name == "mirror" { look_and_declare } else { declare },
                body,
                pieces: None,
            };
            table.add_typed(Arc::new(definition), types.to_string());
        }
        Ok(table)
    };
    let config = EngineConfig { checkpoint_every: 100, ..EngineConfig::default() };
    let definitions = Definitions::new(&tables, &mut procedures);
    Engine::open_with(Arc::clone(device), config, definitions)
}

fn declare(_: &[u8], set: &mut engine::WriteSet<'_>) -> Result<(), Abort> {
    set.insert(TableId(0), &ROW);
    Ok(())
}

fn look_and_declare(_: &[u8], set: &mut engine::WriteSet<'_>) -> Result<(), Abort> {
    set.lookup(TableId(0), &ROW);
    set.insert(TableId(0), &OTHER);
    Ok(())
}

fn run(engine: &mut Engine, calls: &[u16]) -> Vec<String> {
    let mut batch = Calls::new();
    calls.iter().for_each(|&procedure| batch.push(procedure, &[7]).unwrap());
    let outcome = engine.run_epoch(&batch, EpochInfo::default()).unwrap();
    (0..outcome.len()).map(|position| format!("{:?}", outcome.answer(position))).collect()
}

/// A store with three epochs in the log and a checkpoint before them.
fn killed(program: Program) -> Arc<AnyDevice> {
    let device = AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap());
    let (mut engine, _) = open(&device, program).unwrap();
    for _ in 0..3 {
        run(&mut engine, &[0, 0]);
    }
    device
}

fn refusal(device: &Arc<AnyDevice>, program: Program) -> EngineError {
    open(device, program).err().expect("it must not be opened")
}

#[test]
fn the_program_that_wrote_the_log_replays_it_and_says_what_was_verified() {
    let device = killed(BEFORE);
    let (engine, report) = open(&device, BEFORE).unwrap();
    // Nothing on this device knows what the last epoch came to.
    assert_eq!((report.epochs_replayed, report.epochs_verified), (3, 2));
    assert_eq!(word(engine.get(TableId(0), &ROW).unwrap().as_deref()), 6);
}

#[test]
fn o_65_a_changed_body_is_refused_with_the_epoch_and_its_procedures() {
    let device = killed(BEFORE);
    let changed: &[_] =
        &[("deposit", "u64 -> u64", changed_deposit as engine::BodyFn), BEFORE.procedures[1]];
    let error = refusal(&device, Program { procedures: Box::leak(Box::from(changed)), ..BEFORE });
    assert!(matches!(error, EngineError::OtherPast { epoch: EpochNumber(1), .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("deposit (2 calls)") && text.contains("close it"), "{text}");
    let (engine, report) = open(&device, BEFORE).unwrap();
    assert_eq!((engine.epoch().0, report.epochs_replayed), (3, 3), "nothing was lost");
}

#[test]
fn o_47_a_procedure_that_reads_a_clock_is_refused() {
    let clock = Program { procedures: &[("deposit", "", clock_deposit)], ..BEFORE };
    let device = killed(clock);
    let error = refusal(&device, clock);
    assert!(matches!(error, EngineError::OtherPast { epoch: EpochNumber(1), .. }), "{error:?}");
}

#[test]
fn o_65_other_procedures_types_and_tables_are_refused_by_name() {
    let device = killed(BEFORE);
    let other_types: &[_] =
        &[("deposit", "(u64, u64) -> u64", deposit as engine::BodyFn), BEFORE.procedures[1]];
    let cases = [
        (
            Program { procedures: Box::leak(Box::from(other_types)), ..BEFORE },
            "\"deposit\" was u64",
        ),
        (Program { procedures: &BEFORE.procedures[..1], ..BEFORE }, "\"mirror\" is not registered"),
        (
            Program { procedures: &BEFORE.procedures[1..], ..BEFORE },
            "\"deposit\" is not registered",
        ),
        (Program { tables: &["rows"], ..BEFORE }, "table \"more\" is not registered"),
    ];
    for (program, words) in cases {
        let error = refusal(&device, program);
        assert!(matches!(error, EngineError::OtherProgram(_)), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
    // After a close there is nothing to replay, and the program may be another one.
    open(&device, BEFORE).unwrap().0.close().unwrap();
    for (program, _) in cases {
        open(&device, program).unwrap().0.close().unwrap();
    }
}

/// O-65: in which part of its epoch a call runs is in the log: one that was deferred runs before
/// the calls that were submitted later, in a replay, too.
#[test]
fn o_65_a_deferred_call_is_replayed_where_it_ran() {
    let device = AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap());
    let (mut engine, _) = open(&device, BEFORE).unwrap();
    let answers = run(&mut engine, &[0, 1]);
    assert!(answers[1].contains("Deferred"), "{answers:?}");
    let answers = run(&mut engine, &[0, 0]);
    assert!(answers.iter().all(|answer| answer.contains("Committed")), "{answers:?}");
    drop(engine);
    let (engine, report) = open(&device, BEFORE).unwrap();
    assert_eq!((report.epochs_replayed, engine.deferred()), (2, 0));
    assert_eq!(
        word(engine.get(TableId(0), &OTHER).unwrap().as_deref()),
        1,
        "before the second epoch's own"
    );
    assert_eq!(word(engine.get(TableId(0), &ROW).unwrap().as_deref()), 3);
}

/// O-65: calls that a checkpoint hands over to the next epoch belong to the program that logged
/// them, also where nothing is replayed.
#[test]
fn o_65_another_program_does_not_get_the_calls_that_a_checkpoint_hands_over() {
    let device = AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap());
    let (mut engine, _) = open(&device, BEFORE).unwrap();
    let answers = run(&mut engine, &[0, 1]);
    assert!(answers[1].contains("Deferred"), "{answers:?}");
    engine.checkpoint().unwrap();
    drop(engine);
    let other = [("deposit", "u64 -> u64", deposit as engine::BodyFn), ("mirror", "u64", mirror)];
    let other = Program { procedures: Box::leak(Box::new(other)), ..BEFORE };
    assert!(refusal(&device, other).to_string().contains("mirror"));
    let (engine, report) = open(&device, BEFORE).unwrap();
    assert_eq!((report.epochs_replayed, engine.deferred()), (0, 1));
}

/// O-65: two copies of one store went on apart, with epochs of the same numbers; the log of one
/// beside the image of the other would replay epochs that began from another state.
#[test]
fn o_65_the_log_of_another_copy_of_the_store_is_refused() {
    // What was done to them is the same until the second epoch, so they are copies.
    let [device, other] = [1, 3].map(|deposits| {
        let device = AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap());
        let (mut engine, _) = open(&device, BEFORE).unwrap();
        run(&mut engine, &[0, 0]);
        run(&mut engine, &vec![0; deposits]);
        engine.checkpoint().unwrap();
        run(&mut engine, &[0]);
        device
    });
    let mut log = vec![0; other.log_bytes() as usize];
    other.log_read(0, &mut log).unwrap();
    Port::new(Arc::clone(&device), 9).log_write(0, &log).unwrap();
    let error = refusal(&device, BEFORE);
    assert!(error.is_corrupt(), "{error}");
    assert!(error.to_string().contains("belongs to another copy of the store"), "{error}");
    let (engine, _) = open(&other, BEFORE).unwrap();
    assert_eq!(word(engine.get(TableId(0), &ROW).unwrap().as_deref()), 6);
}
