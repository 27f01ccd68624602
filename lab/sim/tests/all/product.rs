//! Features beside each other, three at a time: a covering array of row formats, keys, values that
//! got longer, indexes, snapshots, deletes, devices and crashes.
//!
//! A table of words whose values got longer lost its store with the first longer one, and nothing
//! that ran before had the two together.

use std::time::Instant;

use sim::history::effort;
use sim::product::{FACTORS, Seen, covering, in_words, levels, run};

/// O-22, O-26 to O-33, O-48, O-92, O-93.
#[test]
fn o_29_any_three_features_recover() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    let images_max = effort("NVCARACAL_IMAGES", 80);
    let (rows, started, mut seen) = (covering(&levels()), Instant::now(), Seen::default());
    for seed in first..first + effort("NVCARACAL_PRODUCTS", 1) {
        for (number, row) in rows.iter().enumerate() {
            run(row, seed * 1000 + number as u64, images_max, &mut seen).unwrap_or_else(|what| {
                panic!("seed {seed}: {what}; row {number} ({})", in_words(row))
            });
        }
    }
    println!("{} factors, {} rows: {seen:?} in {:?}", FACTORS.len(), rows.len(), started.elapsed());
    assert!(seen.images > 200 && seen.reopened > 60 && seen.left > 200, "{seen:?}");
}
