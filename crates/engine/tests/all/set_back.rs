//! A refused epoch gives its numbers back where a call has set a sequence to a smaller one, too.
//!
//! The engine took the smaller number for a mistake of its own, and stopped instead of refusing.

use engine::{Answer, Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Dram};
use storage::{IndexKind, TableDefinition, TableId};

use crate::support::rows;

const NUMBERS: TableId = TableId(0);
const ALLOCATE: &[u8] = &[1];
const LOG_BYTES: u64 = 1 << 20;

fn open(workers: usize) -> Engine {
    let mut procedures = ProcedureTable::new();
    procedures.add(ProcedureDefinition {
        name: "allocate or set back",
        sequences: Some(|args, sequences| {
            match args {
                ALLOCATE => sequences.allocate(NUMBERS, 7),
                _ => sequences.set(NUMBERS, 7, 1),
            }
            Ok(())
        }),
        write_set: |_, _| Ok(()),
        body: |_, tx| {
            let number = tx.sequence_number(0) as u8;
            tx.output().push(number);
            Ok(())
        },
        pieces: None,
    });
    let device = AnyDevice::new(Dram::new(16 << 20, LOG_BYTES).unwrap());
    let tables =
        [TableDefinition { name: "numbers".into(), index: IndexKind::Sequence, ..rows(8) }];
    let config = EngineConfig { workers, ..EngineConfig::default() };
    Engine::open(device, config, &tables, procedures).unwrap().0
}

#[test]
fn o_43_a_refused_epoch_gives_numbers_back_that_were_set_back() {
    for (workers, is_serial) in [(1, false), (2, false), (1, true), (2, true)] {
        let mut engine = open(workers);
        let mut run = |args: &[u8]| {
            let mut calls = Calls::new();
            calls.push_of(0, is_serial, 0, args).unwrap();
            let outcome = engine.run_epoch(&calls, EpochInfo::default())?;
            let Answer::Committed(output) = outcome.answer(0) else { panic!("it commits") };
            Ok::<_, engine::EngineError>(output[0])
        };
        assert_eq!([0, 1, 2], [(); 3].map(|()| run(ALLOCATE).unwrap()));
        // The log has no room for it.
        let error = run(&vec![0; 2 * LOG_BYTES as usize]).unwrap_err();
        assert!(error.is_limit(), "{workers} workers, serial {is_serial}: {error}");
        assert_eq!(run(ALLOCATE).unwrap(), 3, "{workers} workers, serial {is_serial}");
    }
}
