//! Inline heaps that both versions of a row share (NV 5.3): whether a value is inline depends on
//! the version beside it, and nothing else does.

use std::sync::Arc;

use engine::{Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Dram};
use sim::history::{Mix, Model, Pair, Random, Setup, batch, check_clean};
use storage::{TableDefinition, TableId};

use crate::support::rows;

const KEY: [u8; 8] = [7; 8];

/// Writes the row with the arguments as its value.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "put",
        sequences: None,
        write_set: |_, set| {
            set.insert(TableId(0), &KEY);
            Ok(())
        },
        body: |args, tx| {
            tx.insert(TableId(0), &KEY, args)?;
            Ok(())
        },
        pieces: None,
    });
    table
}

fn open(device: &Arc<AnyDevice>, workers: usize) -> Engine {
    let definition = TableDefinition { row_bytes: 256, shared_heap_bytes: 168, ..rows(400) };
    let config = EngineConfig { workers, ..EngineConfig::default() };
    Engine::open(Arc::clone(device), config, &[definition], procedures()).unwrap().0
}

/// The lengths of inline values in the two slots, as one would write them down.
#[derive(Default)]
struct Heap {
    lens: [usize; 2],
    newest: usize,
}

impl Heap {
    /// Whether a value that comes after the newest one is inline. The front ends where the back
    /// begins, which is at a multiple of 8.
    fn takes(&mut self, len: usize) -> bool {
        let slot = 1 - self.newest;
        let other = self.lens[self.newest];
        let (front, back) = if slot == 0 { (len, other) } else { (other, len) };
        let fits = match (front, back) {
            (0, alone) | (alone, 0) => alone <= 168,
            _ => back <= 168 && front <= (168 - back) / 8 * 8,
        };
        self.lens[slot] = if fits { len } else { 0 };
        self.newest = slot;
        fits
    }
}

/// O-32: for each order of three lengths, values are inline exactly if there is room beside the
/// version before, and are read and recovered wherever they are.
#[test]
fn o_32_a_value_is_inline_if_it_fits_beside_the_one_before() {
    let lens = [0, 8, 80, 81, 88, 152, 160, 161, 168, 169, 400];
    let device = AnyDevice::new(Dram::new(64 << 20, 16 << 20).unwrap());
    let mut engine = open(&device, 1);
    // The first version of a row is in slot 0.
    let mut heap = Heap { newest: 1, ..Heap::default() };
    let mut number = 0_u8;
    for order in 0..lens.len().pow(3) {
        let [first, second, third] =
            [1, lens.len(), lens.len().pow(2)].map(|places| lens[order / places % lens.len()]);
        for len in [first, second, third] {
            number = number.wrapping_add(1);
            let (value, mut calls) = (vec![number; len], Calls::new());
            calls.push(0, &value).unwrap();
            engine.run_epoch(&calls, EpochInfo::default()).unwrap();
            let what = format!("{len} of {first} {second} {third}");
            let (mut seen, epoch) = (Vec::new(), engine.epoch());
            let mut note = |len: usize, is_inline: bool| seen.push((len, is_inline));
            engine.for_each_version(TableId(0), epoch, &mut note).unwrap();
            assert_eq!(seen, [(len, heap.takes(len))], "{what}");
            engine.for_each_version(TableId(0), epoch.next(), &mut |_, _| panic!("newer")).unwrap();
            assert_eq!(engine.get(TableId(0), &KEY).unwrap(), Some(value), "{what}");
        }
        if first == second {
            let before = engine.state_hash();
            drop(engine);
            let report = storage::check::check(Arc::clone(&device)).unwrap();
            assert_eq!((report.problems, report.state_hash), (vec![], before));
            engine = open(&device, 1 + first % 3);
            assert_eq!(engine.state_hash(), before);
        }
    }
}

/// A halved and a shared heap come to the same answers and states, for any number of workers, with
/// and without a cache, whatever the checkpoint interval.
#[test]
fn o_32_the_same_calls_come_to_the_state_of_halves() {
    let halves = Setup { row_bytes: [256, 256, 256, 0], ..Setup::default() };
    for (seed, heap_bytes) in (0..).zip([168, 176, 40, 8]) {
        let mut random = Random::new(seed);
        let mix = Mix { keys: 9, long_values: seed == 1, lookups: 15 };
        let batches: Vec<_> = (0..12).map(|_| batch(&mut random, &mix, 40)).collect();
        let run = |setup: Setup| {
            let device = AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap());
            let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
            let states = batches.iter().map(|batch| {
                pair.run(batch).unwrap_or_else(|error| panic!("seed {seed}, {setup:?}: {error}"));
                pair.engine.state_hash()
            });
            let states: Vec<_> = states.collect();
            let Pair { engine, model, .. } = pair;
            engine.close().unwrap();
            check_clean(&device, &model).unwrap_or_else(|error| panic!("{setup:?}: {error}"));
            states
        };
        let expected = run(halves);
        for workers in [1, 2, 4] {
            for cache_bytes in [0, 1 << 20] {
                for checkpoint_every in [1, 3] {
                    let shared_heap_bytes = [heap_bytes; 4];
                    let setup = Setup {
                        workers,
                        cache_bytes,
                        checkpoint_every,
                        shared_heap_bytes,
                        ..halves
                    };
                    assert_eq!(run(setup), expected, "seed {seed}, {setup:?}");
                }
            }
        }
    }
}
