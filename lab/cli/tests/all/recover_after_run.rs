//! `bench --recover`: a run forgets all but its device and recovers from it, on every device.

use crate::support::{Room, run};
use serde_json::Value;

const SIZE: &str = "--customers 2000 --epoch-size 500 --epochs 5 --no-progress";

/// What `bench smallbank --recover` reports, and the recovery in it.
#[track_caller]
fn recovered(options: &str) -> (Value, Value) {
    let report = run(&format!("bench smallbank {SIZE} --recover --json - {options}"));
    let report = report.succeeded().json();
    let recovery = report["recovery"].clone();
    assert_eq!(recovery["state_digest"], report["state_digest"], "{options}");
    assert_eq!(recovery["epoch"], report["epoch"], "{options}");
    assert_eq!(recovery["rows"], report["rows"], "{options}");
    (report, recovery)
}

/// Lines that a part of a recovery read.
fn lines(recovery: &Value, part: &str) -> u64 {
    recovery[part]["lines_read"].as_u64().expect("a count")
}

#[test]
fn all_epochs_of_the_stream_are_replayed_on_every_device() {
    let room = Room::new();
    let file = format!("file:{}", room.text("store"));
    let digests = ["dram", "emulated:none", "emulated:high", &file].map(|device| {
        let (report, recovery) = recovered(&format!("--workers 2 --device {device}"));
        assert_eq!(
            (&recovery["epochs_replayed"], &recovery["calls_replayed"]),
            (&5.into(), &2500.into())
        );
        // Two accounts and a row for each customer, each small enough that header and value are
        // one line; the key of each is read again.
        let rows = report["rows"].as_u64().expect("a count");
        assert_eq!(rows, 6000, "{device}");
        // On `file` the indexes are kept, and no row is visited.
        let visited = if device.starts_with("file:") { 0 } else { rows };
        assert_eq!((lines(&recovery, "scan"), lines(&recovery, "rebuild")), (visited, visited));
        let parts = ["load_log", "scan", "rebuild", "replay"];
        let sum: u64 = parts.iter().map(|part| lines(&recovery, part)).sum();
        assert_eq!(lines(&recovery, "total"), sum, "{device}");
        report["state_digest"].to_string()
    });
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
}

#[test]
fn a_replay_reads_what_the_epochs_read() {
    for device in ["emulated:none", "emulated:high"] {
        let (report, recovery) =
            recovered(&format!("--device {device} --workers 1 --cache-bytes 0"));
        assert_eq!(report["counters"]["lines_read"], recovery["replay"]["lines_read"], "{device}");
    }
}

#[test]
fn a_checkpoint_interval_leaves_what_comes_after_it() {
    for (every, left) in [(1, 0), (2, 1), (3, 2)] {
        let (_, recovery) =
            recovered(&format!("--device emulated:none --checkpoint-every {every}"));
        assert_eq!(recovery["epochs_replayed"], left, "{every}");
    }
}

#[test]
fn the_table_shows_each_part() {
    let shown = run(&format!("bench smallbank {SIZE} --recover --device dram")).succeeded().stdout;
    assert!(shown.contains("5 epochs with 2500 calls replayed"), "{shown}");
    for part in ["open device", "load log", "scan", "rebuild", "replay", "total"] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    let shown = run(&format!("bench smallbank {SIZE} --device dram")).succeeded().stdout;
    assert!(!shown.contains("Recovery"), "{shown}");
}
