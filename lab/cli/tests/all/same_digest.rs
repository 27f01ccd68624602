//! Same parameters, same digest: whatever the workers, the device, the cache and the checkpoints
//! are (O-11, O-21), with the serial oracle agreeing on every answer and row.

use crate::support::{Room, SMALL, run};

/// Options that must change no state.
const OTHER_WAYS: &str = "--no-state-hash --append row-lock --packing whole";

fn digest(line: &str) -> String {
    let report = run(&format!("bench {line} --json -")).succeeded().json();
    assert_eq!(report["verified"], true, "{line}");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{line}");
    assert_eq!(report["failed"], 0, "{line}");
    report["state_digest"].as_str().expect("a digest").to_string()
}

fn check(workload: &str, options: &str) {
    let room = Room::new();
    let base = format!("{workload} {options} --epochs 4 --verify");
    let expected = digest(&format!("{base} --workers 1 --device dram"));
    let file = room.text("store");
    for setting in [
        "--workers 2 --device dram".to_string(),
        "--workers 4 --device dram --checkpoint-every 3".to_string(),
        "--workers 2 --device emulated:none --cache-bytes 100000 --cache-epochs 0".to_string(),
        "--workers 4 --device emulated:optane --cache-bytes 10000000 --cache-epochs 1".to_string(),
        "--workers 1 --device crash --cache-bytes 5000000".to_string(),
        "--workers 2 --device emulated:none --no-state-hash --cache-bytes 100000".to_string(),
        "--workers 2 --device dram --no-minor-gc --checkpoint-every 2".to_string(),
        "--workers 2 --device emulated:optane --cache-policy hot --no-minor-gc".to_string(),
        "--workers 1 --device emulated:optane --cache-policy hot".to_string(),
        "--workers 2 --device emulated:none --design no-logging".to_string(),
        "--workers 2 --device emulated:none --design hybrid --cache-bytes 1000000".to_string(),
        "--workers 4 --device emulated:none --design all-nvmm".to_string(),
        "--workers 2 --design all-dram".to_string(),
        "--workers 2 --device emulated:none --design report-2021".to_string(),
        format!("--workers 2 --device dram {OTHER_WAYS} --checkpoint-every 2"),
        format!("--workers 2 --device file:{file} --checkpoint-every 2"),
    ] {
        let found = digest(&format!("{base} {setting}"));
        assert_eq!(found, expected, "{workload} {options} {setting}");
    }
    if !options.contains("--row-bytes") {
        // Other rows are another store with the same state.
        for rows in [
            "--workers 2 --device emulated:none --row-bytes 256 --no-minor-gc",
            "--workers 2 --device emulated:none --row-bytes 256 --shared-heap-bytes 168",
            "--workers 4 --device dram --shared-heap-bytes 40 --checkpoint-every 3",
        ] {
            assert_eq!(digest(&format!("{base} {rows}")), expected, "{workload} {options} {rows}");
        }
    }
    let check = run(&format!("check {file} --json")).succeeded().json();
    assert_eq!(check["state_digest"], *expected);
    assert_eq!(check["state_digest_stored"], true);
    // A store that does not know its hash, and one whose hash is computed on the way.
    let (file, half) = (room.text("without"), format!("{workload} {options} --verify"));
    let found = digest(&format!("{half} --epochs 2 --device file:{file} --no-state-hash"));
    let check = run(&format!("check {file} --json")).succeeded().json();
    assert_eq!((&check["state_digest"], &check["clean"]), (&found.into(), &true.into()));
    assert_eq!(check["state_digest_stored"], false);
    let resumed = format!("{half} --epochs 4 --device file:{file} --resume");
    assert_eq!(digest(&format!("{resumed} {OTHER_WAYS}")), expected, "{resumed}");
    assert_eq!(digest(&resumed), expected, "{resumed}");
}

fn check_levels(workload: usize) {
    let (name, options) = SMALL[workload];
    for contention in ["low", "medium", "high"] {
        check(name, &format!("{options} --contention {contention}"));
    }
}

#[test]
fn ycsb_at_each_contention_level() {
    check_levels(0);
}

#[test]
fn smallbank_at_each_contention_level() {
    check_levels(1);
}

#[test]
fn tpcc_at_each_contention_level() {
    let size = "--items 300 --customers-per-district 30 --epoch-size 300";
    for (contention, mix) in [("low", "full"), ("medium", "paper"), ("high", "full")] {
        check("tpcc", &format!("{size} --contention {contention} --mix {mix}"));
    }
}

#[test]
fn ycsb_with_reads_skew_and_values_outside_of_rows() {
    check("ycsb", "--rows 2000 --epoch-size 400 --read-ratio 8 --theta 0.9");
    check("ycsb", "--rows 2000 --epoch-size 400 --row-bytes 256 --contention medium");
    check("ycsb", "--rows 2000 --epoch-size 400 --value-bytes 64 --hot-rows 77 --hot-keys 7");
}

/// O-03, O-11: pieces within their transactions, and split off (CA 3.4).
#[test]
fn ycsb_in_pieces() {
    let base = "ycsb --rows 2000 --epoch-size 400 --contention high";
    check(base, "--pieces");
    check(base, "--pieces --split-threshold 5");
    let whole = digest(&format!("{base} --epochs 4 --verify --device dram"));
    let options = "--epochs 4 --verify --device dram --workers 3 --pieces --split-threshold 2";
    let report = run(&format!("bench {base} {options} --json -")).succeeded().json();
    assert_eq!(report["state_digest"], *whole);
    let split = report["counters"]["pieces_split_per_txn"].as_f64().unwrap();
    assert!((7.0..=10.0).contains(&split), "7 of 10 rows are hot: {split}");
}

/// O-03, O-11: pieces of several rows that wait for one another, within their transactions and
/// split off (CA 5.4).
#[test]
fn tpcc_in_pieces() {
    let size = "--items 300 --customers-per-district 30 --epoch-size 300 --contention high";
    for mix in ["paper", "full"] {
        let base = format!("tpcc {size} --mix {mix}");
        let whole = digest(&format!("{base} --epochs 4 --verify --workers 1 --device dram"));
        for threshold in [0, 2, 40] {
            if (mix == "full") == (threshold == 40) {
                check(&base, &format!("--pieces --split-threshold {threshold}"));
            }
            let options = format!("--epochs 4 --verify --pieces --split-threshold {threshold}");
            for setting in [
                "--workers 1 --device dram",
                "--workers 4 --device dram --commit-points --checkpoint-every 3",
                "--workers 3 --device emulated:optane --cache-bytes 1000000",
                "--workers 4 --device emulated:none --design all-nvmm --packing whole",
            ] {
                let line = format!("bench {base} {options} {setting} --json -");
                let report = run(&line).succeeded().json();
                assert_eq!(report["state_digest"], *whole, "{line}");
                let split = report["counters"]["pieces_split_per_txn"].as_f64().unwrap();
                assert_eq!(split > 0.5, threshold > 0, "{line}: {split}");
            }
        }
    }
}

/// O-05, O-11: with commit points others see writes of transactions that still run, and the state
/// is the same.
#[test]
fn smallbank_and_tpcc_with_commit_points() {
    let tpcc = "tpcc --items 300 --customers-per-district 30 --epoch-size 300 --contention high";
    for line in [
        format!("{} {} --contention high", SMALL[1].0, SMALL[1].1),
        format!("{tpcc} --mix paper"),
        format!("{tpcc} --mix full"),
    ] {
        let without = digest(&format!("{line} --epochs 4 --verify --workers 1 --device dram"));
        let with = format!("{line} --commit-points --epochs 4 --verify");
        for setting in [
            "--workers 1 --device dram",
            "--workers 4 --device dram --checkpoint-every 3",
            "--workers 3 --device emulated:optane --cache-bytes 1000000",
            "--workers 2 --device emulated:none --design hybrid --cache-bytes 100000",
            "--workers 4 --device emulated:none --design all-nvmm",
            "--workers 2 --design all-dram",
        ] {
            assert_eq!(digest(&format!("{with} {setting}")), without, "{line} {setting}");
        }
    }
}

#[test]
fn another_seed_gives_another_digest() {
    let digest = |seed: u64| {
        let line =
            format!("ycsb --rows 500 --epoch-size 100 --epochs 2 --device dram --seed {seed}");
        let report = run(&format!("bench {line} --json -")).succeeded().json();
        report["state_digest"].as_str().expect("a digest").to_string()
    };
    assert_ne!(digest(1), digest(2));
}
