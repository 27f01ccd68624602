//! `bench arulraj` runs the six storage engines, verifies them and recovers them.

use crate::support::{Room, run};

const SMALL: &str = "--tuples 300 --transactions 1500 --partitions 2 --device emulated:none \
                     --memtable-kib 64 --checkpoint 300 --group 16";

#[test]
fn every_engine_runs_recovers_and_is_verified() {
    let room = Room::new();
    for engine in ["inp", "cow", "log", "nvm-inp", "nvm-cow", "nvm-log"] {
        let file = room.text("report.json");
        let line =
            format!("bench arulraj --engine {engine} {SMALL} --verify --recover --json {file}");
        let ran = run(&line).succeeded();
        assert!(ran.stdout.contains("every tuple is as"), "{ran:#?}");
        let report: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(report["engine"], engine);
        assert_eq!(report["verified"], true);
        assert!(report["counts"]["lines_written"].as_f64().unwrap() > 0.0, "{report}");
        assert!(report["recovery"]["slots"].as_u64().unwrap() > 0, "{report}");
        let redone = report["recovery"]["redone"].as_u64().unwrap();
        assert_eq!(redone > 0, ["inp", "log"].contains(&engine), "{report}");
    }
}

#[test]
fn a_run_that_cannot_be_says_why() {
    run("bench arulraj --engine fast").failed(2, &["nvm-inp"]);
    run("bench arulraj --tuples 15 --partitions 2").failed(2, &["--tuples is 15"]);
    run("bench arulraj --device file:/tmp").failed(2, &["dram"]);
}
