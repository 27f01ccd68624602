//! Whole epochs of random programs against the serial oracle.

use engine::AppendMethod;
use sim::history::{Mix, Model, Pair, Random, Setup, batch, check_clean};

use crate::{device, explore, seeds};

/// A few epochs on a few rows by two or three workers.
pub(crate) fn small(seed: u64) -> (Setup, Vec<Vec<Vec<u8>>>) {
    let mut random = Random::new(seed);
    let setup = Setup {
        workers: 2 + random.below(2) as usize,
        cache_bytes: random.pick(&[0, 1 << 16]),
        cache_epochs: random.below(2),
        checkpoint_every: random.pick(&[1, 1, 2]),
        split_threshold: random.pick(&[0, 1, 2]),
        segment_bytes: random.pick(&[4096, 64 << 10]),
        // Each of them with the same histories, sooner or later.
        append: AppendMethod::ALL[seed as usize % 2],
        ..Setup::default()
    };
    let mix = Mix {
        keys: random.pick(&[1, 2, 4]),
        long_values: random.percent(30),
        lookups: random.pick(&[0, 20]),
    };
    let epochs = 1 + random.below(4);
    let batches = (0..epochs)
        .map(|_| {
            let calls = 6 + random.below(8);
            batch(&mut random, &mix, calls)
        })
        .collect();
    (setup, batches)
}

/// O-06, O-11, O-13: whatever the schedule, an epoch ends, and with the serial result; no slot is
/// lost or in two places afterwards.
#[test]
fn o_11_o_13_epochs_end_with_the_serial_result() {
    for seed in seeds(30) {
        let (setup, batches) = small(seed);
        explore("an epoch", seed, 8, move || {
            let device = device();
            let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
            for batch in &batches {
                pair.run(batch).unwrap_or_else(|error| panic!("{setup:?}: {error}"));
            }
            pair.compare_state().unwrap();
            check_clean(&device, &pair.model).unwrap();
        });
    }
}
