//! What fixed small runs count (lines and blocks of the device, flushes, fences, log bytes,
//! versions, collections, cache hits, memory by structure) is exactly what it was: a change of any
//! of it shows in the golden file, where it is looked at, and is never an accident.
//!
//! With one worker everything follows from the parameters. Ports count in front of the device, so
//! neither the processor's instructions nor their widths change a figure, nor does the profile of
//! the build. No run has `--theta`: its keys go through `powf`, which may differ in the last bit
//! between platforms. Times are left out, and what depends on how workers meet (`waits`,
//! `contended_locks`) is 0 with one.

use std::collections::BTreeMap;

use crate::support::run;
use serde_json::Value;

const GOLDEN: &str = "counters.txt";

/// What all runs have in common.
const COMMON: &str = "--workers 1 --device emulated:none --seed 1";

/// The runs. Each is there for something that the others do not count.
const RUNS: [&str; 11] = [
    // Final writes of a few lines, in place of the other version; long version arrays.
    "ycsb --rows 4000 --epoch-size 1000 --epochs 5",
    // Whole rows read.
    "ycsb --rows 4000 --epoch-size 1000 --epochs 5 --read-ratio 8 --contention high",
    // Values outside of rows: the value pool, major collections.
    "ycsb --rows 2000 --epoch-size 500 --epochs 5 --row-bytes 256 --contention medium",
    // Values in a heap that both versions share, and outside of rows where two do not fit.
    "tpcc --warehouses 1 --items 500 --customers-per-district 30 --epoch-size 500 --epochs 4 \
     --row-bytes 256 --shared-heap-bytes 168",
    // The cache: hits, misses, evictions.
    "ycsb --rows 4000 --epoch-size 300 --epochs 8 --read-ratio 5 --cache-bytes 1500000 \
     --cache-epochs 1",
    // No checkpoint in most epochs: versions written in place.
    "ycsb --rows 4000 --epoch-size 500 --epochs 7 --checkpoint-every 3",
    // Small values, aborts.
    "smallbank --customers 9000 --epoch-size 2000 --epochs 5",
    "smallbank --customers 9000 --epoch-size 2000 --epochs 5 --contention high",
    // Inserts, deletes, scans, sequences.
    "tpcc --warehouses 1 --items 1000 --customers-per-district 60 --epoch-size 1000 --epochs 4",
    // The same with reconnaissance and rolled-back orders.
    "tpcc --warehouses 1 --items 1000 --customers-per-district 60 --epoch-size 1000 --epochs 4 \
     --mix full",
    "tpcc --warehouses 2 --items 500 --customers-per-district 60 --epoch-size 600 --epochs 5 \
     --mix full --checkpoint-every 2 --cache-bytes 1000000 --cache-epochs 1",
];

fn by_name(object: &Value) -> BTreeMap<&String, &Value> {
    object.as_object().expect("figures by name").iter().collect()
}

/// One line for each figure of a report that does not depend on time.
fn figures(report: &Value) -> Vec<String> {
    let mut figures = Vec::new();
    for name in ["state_digest", "rows", "deferred"] {
        figures.push(format!("{name} {}", report[name]));
    }
    for (name, value) in by_name(&report["counters"]) {
        // What is counted per transaction is the same, divided.
        if !name.ends_with("_per_txn") {
            figures.push(format!("{name} {value}"));
        }
    }
    for (name, value) in by_name(&report["memory_bytes"]) {
        // A build with debug assertions keeps a word in each index that checks its phases.
        if name != "index" {
            figures.push(format!("memory_bytes.{name} {value}"));
        }
    }
    figures
}

/// A run as the golden file has it: its command, then its figures.
fn counted(options: &str) -> String {
    let line = format!("bench {options} {COMMON}");
    let report = run(&format!("{line} --no-check --no-progress --json -")).succeeded().json();
    let figures = figures(&report).into_iter().map(|figure| format!("    {figure}\n"));
    format!("{line}\n{}", figures.collect::<String>())
}

/// Lines that differ, each with the run that it belongs to.
fn differences(golden: &str, found: &str) -> Vec<String> {
    let named = |text: &str| {
        let mut command = String::new();
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if line.starts_with("bench ") {
                command = line.to_string();
            }
            lines.push(format!("{command}: {}", line.trim()));
        }
        lines
    };
    let (golden, found) = (named(golden), named(found));
    let removed =
        golden.iter().filter(|line| !found.contains(line)).map(|line| format!("- {line}"));
    let new = found.iter().filter(|line| !golden.contains(line)).map(|line| format!("+ {line}"));
    let mut all: Vec<String> = removed.chain(new).collect();
    // The old value of a figure, then the new one.
    let name = |line: &str| line[2..].rsplit_once(' ').map(|(name, _)| name.to_string());
    all.sort_by_key(|line| name(line));
    all
}

#[test]
fn what_fixed_runs_count_is_in_the_golden_file() {
    let mut found = String::from(
        "# Made by: NVCARACAL_BLESS=1 cargo test -p nvcaracal-lab --test all counters::\n",
    );
    for options in RUNS {
        found += &counted(options);
    }
    let golden = crate::support::golden(GOLDEN, &found);
    let differences = differences(&golden, &found);
    assert!(
        golden == found,
        "fixed runs count something else than before (- golden file, + now):\n{}\nIf that is \
         meant, run with NVCARACAL_BLESS=1 and say in the commit what changed the figures",
        differences.join("\n")
    );
}

#[test]
fn a_changed_figure_is_named_with_its_run() {
    let found = differences(
        "# made by\nbench a\n    fences 9\n    flushes 2\nbench b\n    fences 9\n",
        "# made by\nbench a\n    fences 9\n    flushes 2\nbench b\n    fences 10\n",
    );
    assert_eq!(found, ["- bench b: fences 9", "+ bench b: fences 10"]);
}
