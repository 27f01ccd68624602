//! Which call runs is told to other threads in each of its steps, in both parts of an epoch: what
//! does not end is named.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use engine::{
    Abort, Calls, Engine, EngineConfig, EpochInfo, Piece, PieceResult, Procedure, ProcedureTable,
    RunningCalls, Sequences, Steps, Stop, Transaction, WriteSet,
};
use pmem::{AnyDevice, Dram};
use storage::TableId;

use crate::support::rows;

const NAMES: [&str; 3] = ["first", "second", "third"];
const STEPS: [&str; 5] = ["sequences", "write set", "body", "piece", "finish"];

/// Epoch, position and procedure of a call, and its step.
type Told = BTreeSet<(u64, u32, String, &'static str)>;

/// Notes which call is said to run while it does.
struct Noting {
    name: &'static str,
    running: RunningCalls,
    told: Arc<Mutex<Told>>,
}

impl Noting {
    fn note(&self, step: &'static str) {
        let call = self.running.first().expect("this one runs");
        let told = (call.epoch.0, call.position.0, call.procedure, step);
        self.told.lock().unwrap().insert(told);
    }
}

impl Procedure for Noting {
    fn name(&self) -> &str {
        self.name
    }

    fn steps(&self) -> Steps {
        Steps { sequences: true, pieces: true, finish: true }
    }

    fn sequences(&self, _: &[u8], _: &mut Sequences<'_>) -> Result<(), Abort> {
        self.note("sequences");
        Ok(())
    }

    fn write_set(&self, key: &[u8], set: &mut WriteSet<'_>) -> Result<(), Abort> {
        self.note("write set");
        set.update_piece(TableId(0), key, 1);
        Ok(())
    }

    fn run(&self, _: &[u8], _: &mut Transaction<'_>) -> Result<(), Stop> {
        self.note("body");
        Ok(())
    }

    fn piece(&self, _: &[u8], piece: &mut Piece<'_>) -> Result<PieceResult, Stop> {
        self.note("piece");
        piece.update(&[1; 8]).map(|is_there| u64::from(is_there).into())
    }

    fn finish(&self, _: &[u8], _: &[PieceResult], _: &mut Vec<u8>) {
        self.note("finish");
    }
}

#[test]
fn a_call_that_runs_is_told_by_its_position_and_procedure_in_each_of_its_steps() {
    for is_serial in [false, true] {
        let (running, told) = (RunningCalls::default(), Arc::new(Mutex::new(Told::new())));
        let mut procedures = ProcedureTable::new();
        for name in NAMES {
            let (running, told) = (running.clone(), Arc::clone(&told));
            procedures.add(Noting { name, running, told });
        }
        let device = AnyDevice::new(Dram::new(16 << 20, 16 << 20).unwrap());
        let config = EngineConfig { running: running.clone(), ..EngineConfig::default() };
        let (mut engine, _) = Engine::open(device, config, &[rows(8)], procedures).unwrap();
        let order = [2, 0, 1, 2];
        let mut calls = Calls::new();
        for procedure in order {
            let key = u64::from(procedure).to_be_bytes();
            match is_serial {
                true => calls.push_serial(procedure, &key).unwrap(),
                false => calls.push(procedure, &key).unwrap(),
            }
        }
        engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        let of_call = |(position, procedure): (u32, u16)| {
            let name = NAMES[usize::from(procedure)];
            STEPS.map(|step| (1, position, name.to_string(), step))
        };
        let expected: Told = (0..).zip(order).flat_map(of_call).collect();
        assert_eq!(*told.lock().unwrap(), expected, "serial: {is_serial}");
        assert_eq!(running.first(), None, "serial: {is_serial}");
    }
}
