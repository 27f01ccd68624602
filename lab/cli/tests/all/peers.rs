//! `bench peers` measures callers of several databases, and leaves nothing behind.

use crate::support::{Room, run};

#[test]
fn callers_of_all_databases_are_measured_on_one_disk() {
    let room = Room::new();
    let (file, directory) = (room.text("peers.json"), room.text("disk"));
    std::fs::create_dir(&directory).unwrap();
    let line = format!(
        "bench peers --quick --seconds 0.05 --rows 50 --json {file} --directory {directory}"
    );
    let ran = run(&line).succeeded();
    assert!(ran.stdout.contains("every update that was answered is there"), "{ran:#?}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(report["fdatasync_p50_ns"].as_u64().unwrap() > 0);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for (row, clients) in rows.iter().zip([1, 1, 1, 1, 64, 64, 64, 64]) {
        assert_eq!(row["clients"], clients);
        assert!(row["per_second"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["p50_ns"].as_u64().unwrap() > 0, "{row}");
        assert!(row["p99_ns"].as_u64() >= row["p50_ns"].as_u64(), "{row}");
    }
    let names: Vec<_> = rows[..4].iter().map(|row| row["peer"].as_str().unwrap()).collect();
    for (name, begins) in names.iter().zip(["nvcaracal", "redb", "fjall", "SQLite"]) {
        assert!(name.starts_with(begins), "{names:?}");
    }
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_comparison_that_cannot_run_says_why() {
    run("bench peers --directory /no/such/place").failed(1, &["/no/such/place"]);
    run("bench peers --seconds 0").failed(2, &["--seconds is 0"]);
    run("bench peers --rows 0").failed(2, &["--rows"]);
}
