//! The lab of the library: random callers of one database, in threads and tasks, with batches,
//! snapshots, limits, a clock that is set back, closes, power cuts and kills, beside a model. What
//! they were told must be what the calls do one after the other, in the order of their serial ids.
//!
//! Seeds give the choices and not how threads come on, so a failure may need some runs.
//! `NVCARACAL_LAB` is how many cases run, from `NVCARACAL_FIRST_SEED` on.
#![cfg(test)]

mod callers;
mod case;
mod deaths;
mod feeds;
mod items;
mod program;
mod records;
mod tasks;
mod world;

use std::panic;

/// Cases of an ordinary run.
const CASES: u64 = 60;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Says nothing of panics that are meant.
fn silence() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or_default();
        if !text.starts_with(program::PANIC) {
            usual(info);
        }
    }));
}

#[test]
fn callers_are_told_what_happened() {
    silence();
    let first = number("NVCARACAL_FIRST_SEED", 1);
    for seed in first..first + number("NVCARACAL_LAB", CASES) {
        if let Err(what) = case::Case::of_seed(seed).run() {
            panic!("seed {seed}: {what}\nagain: NVCARACAL_LAB=1 NVCARACAL_FIRST_SEED={seed}");
        }
    }
}
