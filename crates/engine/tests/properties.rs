//! Random histories against the oracle, over all choices that must change nothing.

mod common;

use std::sync::Arc;

use common::{Bench, Mix, Model, Random, Setup, batch, check_clean, effort};
use pmem::{Crash, Device, Dram, Emulated, Profile};

const IMAGE_BYTES: u64 = 256 << 20;
const LOG_BYTES: u64 = 64 << 20;

fn random_setup(random: &mut Random) -> Setup {
    Setup {
        workers: random.pick(&[1, 2, 4]),
        cache_bytes: random.pick(&[0, 64 << 10, 1 << 20]),
        cache_epochs: random.pick(&[0, 1, 20]),
        checkpoint_every: random.pick(&[1, 1, 3, 10]),
        row_bytes: [
            random.pick(&[0, 64, 128, 256]),
            random.pick(&[0, 64, 128, 256]),
            random.pick(&[0, 128, 256]),
        ],
        segment_bytes: random.pick(&[4096, 256 << 10]),
    }
}

/// The batches of a history.
fn history(random: &mut Random) -> Vec<Vec<Vec<u8>>> {
    let mix = Mix::random(random);
    let most = random.pick(&[3, 12, 40, 200]);
    let epochs = 3 + random.below(10);
    (0..epochs)
        .map(|_| {
            let calls = if random.percent(5) { 0 } else { 1 + random.below(most) };
            batch(random, &mix, calls)
        })
        .collect()
}

/// Runs a history on one device: with reopening, with kills, and with changing choices.
fn run<D: Device>(device: &Arc<D>, random: &mut Random, first: Setup) -> Result<(), String> {
    let mut setup = first;
    let mut bench = Bench::open(device, &setup, Model::default())?;
    for batch in &history(random) {
        bench.run(batch)?;
        if random.percent(30) {
            bench.compare_state()?;
        }
        if random.percent(25) {
            bench = reopen(bench, device, random, &mut setup)?;
        }
    }
    bench.compare_state()?;
    let model = bench.model.clone();
    bench.engine.close().map_err(|error| error.to_string())?;
    check_clean(device, &model)?;
    let bench = Bench::open(device, &setup, model)?;
    drop(bench);
    Ok(())
}

/// Closes or kills the engine, and opens the store with other choices.
fn reopen<D: Device>(
    bench: Bench<D>,
    device: &Arc<D>,
    random: &mut Random,
    setup: &mut Setup,
) -> Result<Bench<D>, String> {
    let Bench { mut engine, model } = bench;
    match random.below(3) {
        0 => engine.close().map_err(|error| error.to_string())?,
        1 => {
            engine.checkpoint().map_err(|error| error.to_string())?;
            drop(engine);
        }
        // Killed: stores that were made stay in memory (O-25, O-30).
        _ => drop(engine),
    }
    check_clean(device, &model)?;
    let other = random_setup(random);
    *setup = Setup { row_bytes: setup.row_bytes, segment_bytes: setup.segment_bytes, ..other };
    Bench::open(device, setup, model)
}

fn one_seed(seed: u64) {
    let mut random = Random::new(seed);
    let setup = random_setup(&mut random);
    let result = match random.below(6) {
        0 => run(&Arc::new(Crash::new(IMAGE_BYTES, LOG_BYTES).unwrap()), &mut random, setup),
        1 => {
            let device = Emulated::new(Profile::None, IMAGE_BYTES, LOG_BYTES).unwrap();
            run(&Arc::new(device), &mut random, setup)
        }
        _ => run(&Arc::new(Dram::new(IMAGE_BYTES, LOG_BYTES).unwrap()), &mut random, setup),
    };
    if let Err(difference) = result {
        panic!("seed {seed}, {setup:?}: {difference}");
    }
}

/// O-02 to O-10, O-14, O-18, O-25, O-28, O-30 to O-33, O-37 to O-44, O-48, O-49.
#[test]
fn random_histories_match_the_serial_oracle() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for seed in first..first + effort("NVCARACAL_HISTORIES", 150) {
        one_seed(seed);
    }
}
