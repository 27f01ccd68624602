//! `bench WORKLOAD --epochs N`: the stream through the library comes to the same state whatever the
//! workers, the device, the cache and the checkpoints are (O-11, O-21), with the serial oracle
//! agreeing on every answer and row.

use serde_json::Value;

use crate::support::{Room, SMALL, run};

const KEYS: &str = "workload device durable workers parameters epochs epoch_size seed contention \
    interrupted checkpoint_every checkpoint_log_bytes cache_bytes cache_epochs split_threshold \
    committed aborted failed \
    first_failure deferred seconds throughput_txn_per_s latency_ns rows epoch loading_epochs \
    resumed_at_epoch recovered_hash state_digest verified checked problems generate_seconds \
    loading_seconds close_seconds wall_seconds";

fn report(line: &str) -> Value {
    let report = run(&format!("bench {line} --json -")).succeeded().json();
    assert_eq!(report["verified"], true, "{line}");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{line}");
    assert_eq!(report["failed"], 0, "{line}");
    report
}

fn check(workload: &str, options: &str) {
    let room = Room::new();
    let base = format!("{workload} {options} --epochs 4 --verify");
    let expected = report(&format!("{base} --workers 1 --device dram"));
    for key in KEYS.split_whitespace() {
        assert!(expected.get(key).is_some(), "{key} is missing in {expected}");
    }
    let calls = |of: &str| expected[of].as_u64().expect("a number");
    assert_eq!(calls("committed") + calls("aborted"), 4 * calls("epoch_size"));
    let file = room.text("store");
    for setting in [
        "--workers 2 --device dram --checkpoint-every 3".to_string(),
        "--workers 2 --device emulated:none --cache-bytes 100000 --cache-epochs 0".to_string(),
        "--workers 4 --device emulated:optane --cache-bytes 10000000 --cache-epochs 1".to_string(),
        format!("--workers 2 --device file:{file} --checkpoint-every 2"),
    ] {
        let found = report(&format!("{base} {setting}"));
        for same in ["state_digest", "epoch", "committed", "deferred"] {
            assert_eq!(found[same], expected[same], "{same}: {workload} {options} {setting}");
        }
    }
    let check = run(&format!("check {file} --json")).succeeded().json();
    assert_eq!(check["state_digest"], expected["state_digest"]);
}

#[test]
fn ycsb_comes_to_one_state() {
    check(SMALL[0].0, &format!("{} --contention high", SMALL[0].1));
    check("ycsb", "--rows 500 --epoch-size 50 --pieces --split-threshold 2 --hot-keys 7");
}

#[test]
fn smallbank_comes_to_one_state() {
    check(SMALL[1].0, &format!("{} --contention high", SMALL[1].1));
    check(SMALL[1].0, "--customers 540 --epoch-size 20 --commit-points");
}

#[test]
fn tpcc_comes_to_one_state() {
    check(SMALL[2].0, SMALL[2].1);
    let two = "--warehouses 2 --items 300 --customers-per-district 30 --epoch-size 300";
    check("tpcc", two);
    check("tpcc", &format!("{two} --pieces --split-threshold 2"));
}

#[test]
fn what_is_shown_are_a_few_words() {
    let (workload, size) = SMALL[1];
    let shown = run(&format!("bench {workload} {size} --epochs 2 --device dram --verify"));
    let shown = shown.succeeded().stdout;
    for words in [
        "smallbank through the library, customers 3600",
        "2 epochs; ",
        "state       digest ",
        "throughput  ",
        "durable     NO: dram",
        "all is as in a serial run",
    ] {
        assert!(shown.contains(words), "{words:?} is not in\n{shown}");
    }
    assert!(shown.lines().all(|line| line.len() <= 100), "{shown}");
}
