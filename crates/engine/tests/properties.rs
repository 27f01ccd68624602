//! Random histories against the oracle, over all choices that must change nothing.

mod common;

use std::sync::Arc;

use common::shrink::{Step, describe, shrink};
use common::{Bench, Mix, Model, Random, Setup, batch, check_clean, effort};
use pmem::{Crash, Device, Dram, Emulated, Profile};

const IMAGE_BYTES: u64 = 256 << 20;
const LOG_BYTES: u64 = 64 << 20;

/// How an engine ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Close,
    CheckpointAndDrop,
    /// Killed: stores that were made stay in memory.
    Drop,
}

/// Ends the engine and opens the store with other choices.
#[derive(Debug, Clone)]
struct Reopen {
    end: End,
    setup: Setup,
}

type History = Vec<Step<Reopen>>;

fn random_history(random: &mut Random, first: &Setup) -> History {
    let mix = Mix::random(random);
    let most = random.pick(&[3, 12, 40, 200]);
    let epochs = 3 + random.below(10);
    (0..epochs)
        .map(|_| {
            let calls = if random.percent(5) { 0 } else { 1 + random.below(most) };
            let calls = batch(random, &mix, calls);
            let after = random.percent(25).then(|| {
                let setup = first.reopened(random);
                Reopen { end: random.pick(&[End::Close, End::CheckpointAndDrop, End::Drop]), setup }
            });
            Step { calls, after }
        })
        .collect()
}

/// Runs a history on one device and compares with the oracle all the way.
fn run<D: Device>(device: D, first: &Setup, history: &[Step<Reopen>]) -> Result<(), String> {
    let device = Arc::new(device);
    let mut bench = Bench::open(&device, first, Model::default())?;
    for step in history {
        bench.run(&step.calls)?;
        if let Some(reopen) = &step.after {
            bench.compare_state()?;
            bench = bench.end_and_open(&device, reopen)?;
        }
    }
    bench.compare_state()?;
    let last = Reopen { end: End::Close, setup: *first };
    bench.end_and_open(&device, &last)?;
    Ok(())
}

impl<D: Device> Bench<D> {
    fn end_and_open(self, device: &Arc<D>, reopen: &Reopen) -> Result<Self, String> {
        let Self { mut engine, model } = self;
        match reopen.end {
            End::Close => engine.close().map_err(|error| format!("close: {error}"))?,
            End::CheckpointAndDrop => {
                engine.checkpoint().map_err(|error| format!("checkpoint: {error}"))?;
            }
            End::Drop => drop(engine),
        }
        check_clean(device, &model)?;
        Bench::open(device, &reopen.setup, model)
    }
}

fn run_on(device: u64, first: &Setup, history: &[Step<Reopen>]) -> Result<(), String> {
    match device {
        0 => run(Crash::new(IMAGE_BYTES, LOG_BYTES).unwrap(), first, history),
        1 => run(Emulated::new(Profile::None, IMAGE_BYTES, LOG_BYTES).unwrap(), first, history),
        _ => run(Dram::new(IMAGE_BYTES, LOG_BYTES).unwrap(), first, history),
    }
}

/// A difference without its numbers, so that a smaller history shows the same one.
fn kind_of(difference: &str) -> String {
    difference.chars().filter(|c| c.is_ascii_alphabetic()).take(30).collect()
}

fn one_seed(seed: u64) {
    let mut random = Random::new(seed);
    let setup = Setup::random(&mut random);
    let device = random.below(5);
    let history = random_history(&mut random, &setup);
    let Err(difference) = run_on(device, &setup, &history) else {
        return;
    };
    if effort("NVCARACAL_SHRINK", 0) > 0 {
        let kind = kind_of(&difference);
        let same = |result: Result<(), String>| result.is_err_and(|other| kind_of(&other) == kind);
        let small = shrink(history, &mut |smaller| same(run_on(device, &setup, smaller)));
        let difference = run_on(device, &setup, &small);
        panic!("seed {seed}, device {device}, {setup:?}: {difference:?}\n{}", describe(&small));
    }
    panic!("seed {seed}, device {device}, {setup:?}: {difference}");
}

/// O-02 to O-10, O-14, O-18, O-25, O-28, O-30 to O-33, O-37 to O-44, O-48, O-49.
#[test]
fn random_histories_match_the_serial_oracle() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for seed in first..first + effort("NVCARACAL_HISTORIES", 150) {
        one_seed(seed);
    }
}
