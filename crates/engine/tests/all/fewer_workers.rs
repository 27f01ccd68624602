//! Epochs may run on some of the workers only, another number each time: their answers and the
//! state are the same (O-11, O-81). Random histories vary the number, too ([`sim::history::Pair`]).

use engine::{Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Dram};
use storage::TableId;

use crate::support::rows;

/// Adds one to the row that the argument names.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "add",
        sequences: None,
        write_set: |args, set| {
            set.insert(TableId(0), &key(args[0]));
            Ok(())
        },
        body: |args, tx| {
            let before = tx.get(TableId(0), &key(args[0]))?.map_or(0, |value| value[0]);
            // Long enough for a value outside of its row, and as long again once more.
            let value = vec![before.wrapping_add(1); 300 + usize::from(before % 3) * 100];
            tx.insert(TableId(0), &key(args[0]), &value)?;
            tx.output().push(before);
            Ok(())
        },
        pieces: None,
    });
    table
}

fn key(of: u8) -> [u8; 8] {
    u64::from(of).to_be_bytes()
}

/// Runs epochs of which each is limited to a number of workers; what each came to.
fn run(workers: usize, limits: &[usize]) -> (Vec<(Vec<u8>, String)>, Vec<usize>) {
    let device = AnyDevice::new(Dram::new(64 << 20, 64 << 20).unwrap());
    let config = EngineConfig { workers, checkpoint_every: 3, ..EngineConfig::default() };
    let (mut engine, _) = Engine::open(device, config, &[rows(1000)], procedures()).unwrap();
    let (mut states, mut ran) = (Vec::new(), Vec::new());
    for (epoch, &limit) in limits.iter().enumerate() {
        let mut calls = Calls::new();
        (0..200u32).for_each(|call| {
            let row = if call % 2 == 0 { 0 } else { (call as usize * (epoch + 1) % 50) as u8 };
            calls.push(0, &[row]).unwrap();
        });
        engine.limit_workers(limit);
        let outcome = engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        let answers = (0..outcome.len()).map(|at| match outcome.answer(at) {
            engine::Answer::Committed(bytes) => bytes[0],
            other => panic!("{other:?}"),
        });
        states.push((answers.collect(), format!("{}", engine.state_hash())));
        ran.push(outcome.stats.workers);
    }
    (states, ran)
}

#[test]
fn o_11_an_epoch_comes_to_the_same_on_any_number_of_workers() {
    let limits: Vec<usize> = (0..24).map(|epoch| [4, 1, 2, 3, 0, 99][epoch % 6]).collect();
    let (expected, alone) = run(1, &limits);
    assert!(alone.iter().all(|&workers| workers == 1));
    let (found, ran) = run(4, &limits);
    assert_eq!(ran[..6], [4, 1, 2, 3, 1, 4], "at least one, at most all");
    assert_eq!(found, expected);
}
