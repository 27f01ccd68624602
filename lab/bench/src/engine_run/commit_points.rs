//! Commit points of workloads arrive where a workload runs: in the engine, in the library, and in
//! rivals, which show writes at the end of a transaction and so do nothing.

use std::sync::Arc;

use bench::{Contention, Parameters, WorkloadParameters};
use engine::{Calls, Engine, EngineConfig};
use nvcaracal::Tuning;
use pmem::{AnyDevice, DeviceSpec, Dram};
use workloads::{
    Abort, Declare, IndexKind, Observer, Procedure, ProcedureId, Register, StreamEpoch, TableId,
    TableSpec, Tx, View, Workload,
};

use super::adapter::answer;
use crate::Job;

const ROWS: TableId = TableId(0);

/// Updates a row, and aborts; with arguments, only behind a commit point.
enum AbortsLate {}

impl Procedure for AbortsLate {
    const NAME: &'static str = "aborts_late";
    fn write_set<D: Declare>(_: &[u8], declare: &mut D) -> Result<(), D::Error> {
        declare.insert(ROWS, &[0; 8]);
        Ok(())
    }
    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        tx.insert(ROWS, &[0; 8], b"x")?;
        if !args.is_empty() {
            tx.commit_point()?;
        }
        Err(Abort(9).into())
    }
}

struct Late;

impl Workload for Late {
    fn name(&self) -> &'static str {
        "late"
    }
    fn tables(&self) -> Vec<TableSpec> {
        let (key_bytes_max, value_bytes_max) = (8, 8);
        vec![TableSpec { name: "rows", index: IndexKind::Hash, key_bytes_max, value_bytes_max }]
    }
    fn register<R: Register>(&self, to: &mut R) {
        to.procedure::<AbortsLate>();
    }
    fn load_count(&self) -> u64 {
        0
    }
    fn load(&self, _: u64, _: &mut Vec<u8>) -> ProcedureId {
        0
    }
    fn generate(&self, _: StreamEpoch, _: u64, _: &mut Vec<u8>) -> ProcedureId {
        0
    }
    fn observer(&self, _: &dyn View) -> Box<dyn Observer> {
        unreachable!("no run is checked")
    }
}

/// The parameters are those of something else: nothing here depends on them.
fn job() -> Job {
    let workload = WorkloadParameters::smallbank(100, Contention::Low);
    Job::new(Arc::new(Late), Parameters::new(workload, Contention::Low))
}

const TOO_LATE: &str = "ended after its commit point without committing";

#[test]
fn o_05_the_engine_stops_at_an_abort_behind_a_commit_point() {
    let job = job();
    let (tables, procedures) = (job.table_definitions(), job.procedures().table);
    let device = AnyDevice::new(Dram::new(1 << 30, 1 << 26).expect("memory"));
    let opened = Engine::open(device, EngineConfig::default(), &tables, procedures);
    let (mut engine, _) = opened.expect("an engine");
    let mut calls = Calls::new();
    calls.push(0, b"").expect("within limits");
    let outcome = engine.run_epoch(&calls, job.info(1)).expect("an abort in time");
    assert_eq!(answer(&outcome.answer(0)), workloads::Answer::Aborted(9));
    calls.clear();
    calls.push(0, b"late").expect("within limits");
    let error = engine.run_epoch(&calls, job.info(2)).expect_err("half of it may have been seen");
    assert!(error.to_string().contains(TOO_LATE), "{error}");
}

#[test]
fn o_05_the_library_stops_at_an_abort_behind_a_commit_point() {
    let job = job();
    let opened = bench::options(&job.client_tables(), job.client_procedures());
    let (options, callables) = opened.expect("options");
    // A few calls would run in the serial part, where there are no commit points.
    let options = options.tuning(Tuning { serial_calls_max: 0, ..Tuning::default() });
    let database = options.open_device(DeviceSpec::Dram).expect("a database");
    let error = (callables[0].call)(&database, &[]).expect_err("it aborts");
    assert!(!error.to_string().contains(TOO_LATE), "{error}");
    (callables[0].call)(&database, &[]).expect_err("it aborts, and the database goes on");
    let error = (callables[0].call)(&database, b"late").expect_err("it aborts too late");
    assert!(error.to_string().contains(TOO_LATE), "{error}");
}
