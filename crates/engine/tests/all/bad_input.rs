//! Mistakes of callers and procedures, limits, and stores without space: an error with words,
//! nothing half-done, and the engine goes on.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::{
    ARGUMENT_BYTES_MAX, Answer, Calls, Engine, EngineError, ProcedureDefinition, ProcedureTable,
};
use pmem::{AnyDevice, Dram};
use sim::history::{
    HASHED, LONG, Model, ORDERED, Op, Pair, Program, SEQUENCES, Setup, Step, check_clean,
    for_serial_part,
};
use storage::{StorageError, TableDefinition, TableId};

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap())
}

fn insert(table: u8, key: u8, size: u8) -> Vec<u8> {
    Program {
        sequences: vec![],
        declares: vec![Step::new(Op::DeclareInsert, table, key)],
        body: vec![Step::new(Op::Insert, table, key).size(size)],
    }
    .encode()
}

fn get(table: u8, key: u8) -> Vec<u8> {
    let body = vec![Step::new(Op::Get, table, key), Step::new(Op::Scan, ORDERED, 0).to(key)];
    Program { body, ..Program::default() }.encode()
}

fn delete(table: u8, key: u8) -> Vec<u8> {
    Program {
        sequences: vec![],
        declares: vec![Step::new(Op::DeclareDelete, table, key)],
        body: vec![Step::new(Op::Delete, table, key)],
    }
    .encode()
}

/// Inserts a row that is named after an allocated number, with a long value.
fn allocating() -> Vec<u8> {
    Program {
        sequences: vec![Step::new(Op::Allocate, HASHED, 1)],
        declares: vec![Step::new(Op::DeclareAllocated, ORDERED, 0)],
        body: vec![Step::new(Op::InsertAllocated, ORDERED, 0).size(23)],
    }
    .encode()
}

/// A batch with a wrong procedure number is refused as a whole, and its numbers are not used up.
#[test]
fn unknown_procedures_are_refused() {
    let mut pair = Pair::open(&device(), &Setup::default(), Model::default()).unwrap();
    pair.run(&[insert(HASHED, 1, 3)]).unwrap();
    let mut calls = sim::history::to_calls(&[insert(HASHED, 2, 3)]);
    calls.push(2, &[0, 0]).unwrap();
    let error = pair.engine.run_epoch(&calls, sim::history::info(2)).unwrap_err();
    assert!(error.is_limit(), "{error:?}");
    assert!(error.to_string().contains("call 1 names procedure 2"), "{error}");
    pair.compare_state().unwrap();
    pair.run(&[insert(HASHED, 3, 3)]).unwrap();
    pair.compare_state().unwrap();
}

/// O-51: long arguments are logged and run again, longer ones than 64 MiB are refused.
#[test]
fn o_51_arguments_up_to_the_limit() {
    let mut calls = Calls::new();
    let error = calls.push(0, &vec![0; ARGUMENT_BYTES_MAX + 1]).unwrap_err();
    assert!(error.is_limit() && error.to_string().contains("67108865"), "{error}");
    assert!(calls.is_empty());

    let device = device();
    let setup = Setup { checkpoint_every: 10, ..Setup::default() };
    let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
    let mut longest = insert(ORDERED, 1, 3);
    let step = Program { body: vec![Step::new(Op::Spin, HASHED, 0)], ..Program::default() };
    const BYTES: usize = 1 << 20;
    while longest.len() + 8 <= BYTES {
        longest.extend_from_slice(&step.encode()[2..]);
    }
    longest.resize(BYTES, 0);
    pair.run(&[longest, insert(ORDERED, 2, 4)]).unwrap();
    let model = pair.model.clone();
    drop(pair);
    Pair::open(&device, &setup, model).unwrap();
}

/// The first byte chooses what is done wrong.
fn mistakes() -> ProcedureTable {
    const NOWHERE: TableId = TableId(77);
    let (hashed, ordered, long) = (u16::from(HASHED), u16::from(ORDERED), u16::from(LONG));
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "mistakes",
        sequences: Some(|args, sequences| {
            match args[0] {
                0 => sequences.allocate(TableId(77), 1),
                1 => sequences.allocate(TableId(u16::from(HASHED)), 1),
                2 => drop(sequences.lookup(TableId(u16::from(HASHED)), b"short")),
                _ => sequences.allocate(TableId(u16::from(SEQUENCES)), 1),
            }
            Ok(())
        }),
        write_set: |args, set| {
            match args[0] {
                3 => set.insert(NOWHERE, b"12345678"),
                4 => set.insert(TableId(u16::from(SEQUENCES)), b"12345678"),
                5 => set.insert(TableId(u16::from(HASHED)), b"1234567"),
                6 => set.update(TableId(u16::from(ORDERED)), b"123456789"),
                7 => set.insert(TableId(u16::from(LONG)), b""),
                8 => set.delete(TableId(u16::from(LONG)), &[b'x'; 41]),
                9 => set.update_range(TableId(u16::from(HASHED)), b"12345678", b"22345678"),
                10 => set.update_range(TableId(u16::from(ORDERED)), b"1", b"22345678"),
                11 => drop(set.lookup(NOWHERE, b"1")),
                12 => {
                    set.lookup_scan(TableId(u16::from(HASHED)), b"1", b"2", false, &mut |_, _| {
                        ControlFlow::Continue(())
                    })
                }
                13 => drop(set.sequence_start(TableId(u16::from(HASHED)), 1)),
                14 => drop(set.sequence_number(1)),
                _ => set.insert(TableId(u16::from(LONG)), b"row"),
            }
            Ok(())
        },
        body: |args, tx| {
            let (hashed, ordered, long) = (u16::from(HASHED), u16::from(ORDERED), u16::from(LONG));
            let mut any = |_: &[u8], _: &[u8]| ControlFlow::Continue(());
            match args[0] {
                15 => drop(tx.get(NOWHERE, b"1")?),
                16 => drop(tx.get(TableId(hashed), b"1")?),
                17 => drop(tx.get(TableId(u16::from(SEQUENCES)), b"12345678")?),
                18 => tx.scan(TableId(hashed), b"1", b"2", false, &mut any)?,
                19 => tx.scan(TableId(ordered), b"1", b"2", true, &mut any)?,
                20 => drop(tx.update(TableId(hashed), b"123", b"")?),
                21 => tx.insert(TableId(long), b"row", &[0; 2501])?,
                22 => drop(tx.sequence_number(1)),
                23 => drop(tx.sequence_start(TableId(hashed), 1)?),
                24 => drop(tx.delete(TableId(u16::from(SEQUENCES)), b"12345678")?),
                25 => panic!("on purpose, with {} words", 4),
                _ => tx.insert(TableId(long), b"row", &[7; 2500])?,
            }
            Ok(())
        },
        pieces: None,
    });
    assert_eq!((hashed, ordered, long), (0, 1, 2));
    table
}

/// O-02, O-04, O-51: every mistake fails its own call, says what is wrong, and leaves nothing.
#[test]
fn o_51_mistakes_fail_the_call_with_words() {
    let words = [
        "table 77",
        "holds rows",
        "5 bytes",
        "table 77",
        "sequences",
        "7 bytes",
        "9 bytes",
        "0 bytes",
        "41 bytes",
        "cannot be scanned",
        "cannot be scanned",
        "table 77",
        "not ordered",
        "holds rows",
        "panicked",
        "table 77",
        "1 bytes",
        "sequences",
        "not ordered",
        "all keys have 8",
        "3 bytes",
        "2501 bytes",
        "panicked",
        "holds rows",
        "sequences",
        "on purpose, with 4 words",
    ];
    for workers in [1, 2] {
        let setup = Setup { workers, ..Setup::default() };
        let device = device();
        let (mut engine, _) =
            Engine::open(Arc::clone(&device), setup.config(), &setup.tables(), mistakes()).unwrap();
        let mut calls = Calls::new();
        (0..words.len() as u8 + 1).for_each(|mistake| calls.push(0, &[mistake]).unwrap());
        for _ in 0..2 {
            let outcome = engine.run_epoch(&calls, sim::history::info(1)).unwrap();
            for (position, words) in words.iter().enumerate() {
                match outcome.answer(position) {
                    Answer::Failed(why) if why.contains(words) => {}
                    other => panic!("mistake {position}: {other:?}, expected {words:?}"),
                }
            }
            assert_eq!(outcome.answer(words.len()), Answer::Committed(&[]));
        }
        assert_eq!(engine.rows(), 2, "one row and one sequence");
        assert_eq!(engine.get(TableId(LONG.into()), b"row").unwrap(), Some(vec![7; 2500]));
        assert!(engine.get(TableId(77), b"row").unwrap_err().is_limit());
        assert!(engine.get(TableId(LONG.into()), b"").unwrap_err().is_limit());
        assert!(engine.for_each(TableId(77), &mut |_, _| {}).unwrap_err().is_limit());
        engine.close().unwrap();
        assert_eq!(storage::check::check(device).unwrap().problems, Vec::<String>::new());
    }
}

/// O-43: without space an epoch is refused before anything is logged; smaller ones still run.
#[test]
fn o_43_a_full_store_refuses_and_goes_on() {
    for workers in [1, 4] {
        let device = AnyDevice::new(Dram::new(2 << 20, 16 << 20).unwrap());
        let setup =
            Setup { workers, segment_bytes: 4096, row_bytes: [0, 128, 128, 0], ..Setup::default() };
        let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
        let large = vec![allocating(); 100];
        let mut refused = 0;
        for _ in 0..40 {
            match pair.engine.run_epoch(&sim::history::to_calls(&large), sim::history::info(1)) {
                Ok(_) => drop(pair.model.run(&large, sim::history::info(1).timestamp_ns)),
                Err(error) => {
                    assert!(error.is_limit(), "{error:?}");
                    refused += 1;
                }
            }
            pair.compare_state().unwrap();
        }
        assert!(refused > 0, "the store is full at some time");
        pair.run(&[get(ORDERED, 3), delete(ORDERED, 3)]).unwrap();
        // Small epochs, until they do not fit either; the sequence has no gaps.
        let small = [allocating()];
        let mut more = 0;
        while let Ok(outcome) =
            pair.engine.run_epoch(&sim::history::to_calls(&small), sim::history::info(2))
        {
            assert!(matches!(outcome.answer(0), Answer::Committed(_)));
            pair.model.run(&small, sim::history::info(2).timestamp_ns);
            more += 1;
        }
        assert!(more > 0, "a smaller epoch fits");
        pair.compare_state().unwrap();
        let model = pair.model.clone();
        pair.engine.close().unwrap();
        check_clean(&device, &model).unwrap();
        let mut pair = Pair::open(&device, &setup, model).unwrap();
        pair.run(&[get(ORDERED, 3)]).unwrap();
    }
}

/// O-43, O-44: whatever an epoch reserved, its replay fits into, with any number of workers.
#[test]
fn o_44_replay_fits_into_a_full_store_with_other_workers() {
    for (before, after) in [(1, 1), (1, 4), (8, 1), (4, 8), (1, 64)] {
        let device = AnyDevice::new(Dram::new(2 << 20, 16 << 20).unwrap());
        let setup = Setup {
            workers: before,
            segment_bytes: 4096,
            checkpoint_every: 1000,
            ..Setup::default()
        };
        let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
        let batch = vec![allocating(); 3];
        loop {
            let info = sim::history::info(pair.engine.epoch().0 + 1);
            if pair.engine.run_epoch(&sim::history::to_calls(&batch), info).is_err() {
                break;
            }
            pair.model.run(&batch, info.timestamp_ns);
        }
        assert!(pair.model.epoch > 20, "the store is full at some time");
        let model = pair.model.clone();
        drop(pair);
        let setup = Setup { workers: after, ..setup };
        Pair::open(&device, &setup, model)
            .unwrap_or_else(|error| panic!("{before} workers, then {after}: {error}"));
    }
}

/// O-43: a full log refuses epochs until a checkpoint frees it.
#[test]
fn o_43_a_full_log_refuses_until_the_next_checkpoint() {
    let device = AnyDevice::new(Dram::new(64 << 20, 128 << 10).unwrap());
    let setup =
        Setup { segment_bytes: 4096, checkpoint_every: 100_000, workers: 2, ..Setup::default() };
    let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
    let batch: Vec<Vec<u8>> = (0..50).map(|key| insert(ORDERED, key, key % 20)).collect();
    for _ in 0..3 {
        let error = loop {
            let info = sim::history::info(pair.engine.epoch().0 + 1);
            match pair.engine.run_epoch(&sim::history::to_calls(&batch), info) {
                Ok(_) => drop(pair.model.run(&batch, info.timestamp_ns)),
                Err(error) => break error,
            }
        };
        assert!(error.is_limit(), "{error:?}");
        pair.compare_state().unwrap();
        pair.engine.checkpoint().unwrap();
        pair.run(&batch).unwrap();
    }
    let model = pair.model.clone();
    drop(pair);
    Pair::open(&device, &setup, model).unwrap();
}

/// A table that is asked for in another way is refused; nothing is changed.
#[test]
fn changed_table_definitions_are_refused() {
    let (device, setup) = (device(), Setup::default());
    let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
    pair.run(&[insert(LONG, 1, 3)]).unwrap();
    let model = pair.model.clone();
    pair.engine.close().unwrap();
    let changes: [fn(&mut TableDefinition); 4] = [
        |table| table.key_bytes_max += 1,
        |table| table.value_bytes_max -= 1,
        |table| table.row_bytes = 512,
        |table| table.index = storage::IndexKind::Hash,
    ];
    for change in changes {
        let mut tables = setup.tables();
        change(&mut tables[usize::from(LONG)]);
        let procedures = sim::history::procedures::procedures();
        let result = Engine::open(Arc::clone(&device), setup.config(), &tables, procedures);
        let error = result.err().expect("another definition");
        let is_other = matches!(error, EngineError::Storage(StorageError::OtherTable(_)));
        assert!(is_other && error.to_string().contains("\"long\""), "{error}");
    }
    Pair::open(&device, &setup, model).unwrap();
}

/// The log names procedures by number: replay refuses another list, and takes a longer one.
#[test]
fn replay_needs_the_procedures_of_the_log() {
    let (device, setup) = (device(), Setup { checkpoint_every: 100, ..Setup::default() });
    let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
    pair.run(&[insert(LONG, 1, 3)]).unwrap();
    let model = pair.model.clone();
    drop(pair);
    let open = |procedures| setup.open_with(&device, setup.config(), procedures);
    for other in [ProcedureTable::new(), mistakes()] {
        let error = open(other).err().expect("other procedures");
        assert!(matches!(error, EngineError::OtherProgram(_)), "{error:?}");
    }
    let mut longer = sim::history::procedures::procedures();
    longer.add(ProcedureDefinition {
        name: "new",
        sequences: None,
        write_set: |_, _| Ok(()),
        body: |_, _| Ok(()),
        pieces: None,
    });
    let engine = open(longer).unwrap().0;
    let pair = Pair::new(engine, model);
    pair.compare_state().unwrap();
    pair.engine.close().unwrap();
    // Nothing to replay: any procedures will do.
    open(mistakes()).unwrap();
}

/// O-61: no calls, one call, only reads, and twenty thousand writes of one key.
#[test]
fn o_61_odd_sizes_of_epochs() {
    for workers in [1, 4] {
        let setup = Setup { workers, cache_bytes: 1 << 20, ..Setup::default() };
        let device = device();
        let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
        pair.run(&[]).unwrap();
        pair.run(&[insert(ORDERED, 1, 18)]).unwrap();
        pair.run(&[]).unwrap();
        pair.run(&vec![get(ORDERED, 1); 300]).unwrap();
        let modify = Program {
            sequences: vec![],
            declares: vec![Step::new(Op::DeclareUpdate, ORDERED, 1)],
            body: vec![Step::new(Op::Modify, ORDERED, 1).tag(3)],
        };
        pair.run(&vec![modify.encode(); 20_000]).unwrap();
        pair.compare_state().unwrap();
        let model = pair.model.clone();
        pair.engine.close().unwrap();
        check_clean(&device, &model).unwrap();
        Pair::open(&device, &setup, model).unwrap();
    }
}

/// A random history found that the serial part called the key undeclared: a call with pieces that
/// inserts into a range which it declared is told the same in either part.
#[test]
fn o_68_an_insert_into_a_declared_range_is_named_alike_in_both_parts() {
    let mut pair = Pair::open(&device(), &Setup::default(), Model::default()).unwrap();
    pair.run(&[insert(HASHED, 1, 3), insert(LONG, 2, 3)]).unwrap();
    for key in [2, 3] {
        let declares = vec![
            Step::new(Op::DeclarePiece, HASHED, 1),
            Step::new(Op::DeclareRange, LONG, 0).to(9),
        ];
        let body = vec![Step::new(Op::Insert, LONG, key).size(3)];
        let call = Program { sequences: vec![], declares, body }.encode();
        pair.run(&[call.clone(), for_serial_part(call)]).unwrap();
    }
}
