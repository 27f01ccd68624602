//! What an epoch counts: calls by how they ended, and rows and versions by what became of them.

use engine::{
    Abort, AppendMethod, Calls, Engine, EngineConfig, EpochInfo, Lab, ProcedureDefinition,
    ProcedureTable, Stop, Transaction, WorkCounts, WriteSet,
};
use pmem::{AnyDevice, Dram};
use storage::TableId;

use crate::support::rows;

/// What the looking call looks up.
const LOOKED_AT: u8 = 1;

const WRITE: u16 = 0;
const DELETE: u16 = 1;
const ABORT: u16 = 2;
const MISTAKE: u16 = 3;
const LOOK: u16 = 4;

fn insert(args: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    let value = tx.get(TableId(0), args)?.map_or(1, |value| value[0] + 1);
    tx.insert(TableId(0), args, &[value; 8])
}

fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    let declare: engine::WriteSetFn = |args: &[u8], set: &mut WriteSet<'_>| {
        set.insert(TableId(0), args);
        Ok(())
    };
    let look: engine::WriteSetFn = |args: &[u8], set: &mut WriteSet<'_>| {
        set.lookup(TableId(0), &[LOOKED_AT; 8]);
        set.insert(TableId(0), args);
        Ok(())
    };
    let bodies: [(&'static str, engine::WriteSetFn, engine::BodyFn); 5] = [
        ("write", declare, insert),
        ("delete", declare, |args, tx| tx.delete(TableId(0), args).map(drop)),
        ("abort", declare, |_, _| Err(Abort::new("on purpose").into())),
        ("mistake", declare, |_, tx| tx.insert(TableId(0), b"short", &[0; 8])),
        ("look", look, insert),
    ];
    for (name, write_set, body) in bodies {
        table.add(ProcedureDefinition { name, sequences: None, write_set, body, pieces: None });
    }
    table
}

fn run(engine: &mut Engine, calls: &[(u16, u8)]) -> WorkCounts {
    let mut batch = Calls::new();
    calls.iter().for_each(|&(procedure, key)| batch.push(procedure, &[key; 8]).unwrap());
    engine.run_epoch(&batch, EpochInfo::default()).unwrap().stats.work
}

/// Two epochs of which everything is known that is counted here, for each number of workers and
/// each way to append.
#[test]
fn calls_rows_and_versions_are_counted() {
    for append in AppendMethod::ALL {
        for workers in [1, 3] {
            let device = AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap());
            let table = rows(8);
            let lab = Lab { append, ..Lab::default() };
            let config = EngineConfig { workers, lab, ..EngineConfig::default() };
            let (mut engine, _) = Engine::open(device, config, &[table], procedures()).unwrap();

            let made = [
                (WRITE, LOOKED_AT),
                (WRITE, LOOKED_AT),
                (WRITE, 2),
                (ABORT, 3),
                (ABORT, 3),
                (MISTAKE, 4),
                (MISTAKE, 4),
                (MISTAKE, 4),
                (LOOK, 5),
                (LOOK, 6),
            ];
            let work = run(&mut engine, &made);
            let calls = (work.committed, work.aborted, work.failed, work.deferred);
            assert_eq!(calls, (3, 2, 3, 2), "{append:?} {workers}");
            // Six keys were declared, and two of them became rows.
            let rows = (work.rows_inserted, work.rows_removed, work.version_arrays);
            assert_eq!(rows, (6, 4, 3), "{append:?} {workers}");

            // The two calls that looked are made again in front of these.
            let work = run(&mut engine, &[(DELETE, LOOKED_AT), (DELETE, 2), (WRITE, 7)]);
            let calls = (work.committed, work.aborted, work.failed, work.deferred);
            assert_eq!(calls, (5, 0, 0, 0), "{append:?} {workers}");
            let rows = (work.rows_inserted, work.rows_removed, work.version_arrays);
            assert_eq!(rows, (3, 2, 0), "{append:?} {workers}");
        }
    }
}
