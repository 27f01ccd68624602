//! `bench peers` measures callers of several databases, each in a process of its own, and leaves
//! nothing behind.

use crate::support::{Room, run};

/// Those that every build has, in the order of the report.
const NAMES: [&str; 5] = ["nvcaracal", "redb", "fjall", "SQLite", "LMDB"];
const DATABASES: &str = "nvcaracal,redb,fjall,sqlite,lmdb";

#[test]
fn callers_of_all_databases_are_measured_on_one_disk() {
    let room = Room::new();
    let (file, directory) = (room.text("peers.json"), room.text("disk"));
    std::fs::create_dir(&directory).unwrap();
    let line = format!(
        "bench peers --quick --seconds 0.1 --rounds 2 --rows 50 --value-bytes 40 --read-ratio 5,0 \
         --hot all,1 --database {DATABASES} --json {file} --directory {directory}"
    );
    let ran = run(&line).succeeded();
    assert!(ran.stdout.contains("each of 5 holds every update that it answered"), "{ran:#?}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(report["fdatasync_p50_ns"].as_u64().unwrap() > 0);
    assert_eq!(report["rounds"], 2);
    assert_eq!(report["value_bytes"], 40);
    assert!(report["memory_bytes"].is_null());
    let built = report["built"].as_array().unwrap();
    assert_eq!(built.len() + report["not_built"].as_array().unwrap().len(), 6);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 2 * NAMES.len());
    for (at, row) in rows.iter().enumerate() {
        let load = at / NAMES.len();
        assert_eq!(row["clients"], [1, 64][load % 2], "{row}");
        assert_eq!(row["read_ratio"], [5, 0][load / 2 % 2], "{row}");
        let rows = [serde_json::json!("all"), serde_json::json!({"hot": 1})];
        assert_eq!(row["rows"], rows[load / 4], "{row}");
        assert!(row["peer"].as_str().unwrap().starts_with(NAMES[at % NAMES.len()]), "{row}");
        assert!(row["does_not_run"].is_null(), "{row}");
        assert!(row["transactions"].as_u64().unwrap() > 0, "{row}");
        for figure in ["per_second", "p50_ns", "p99_ns", "p50_of_fdatasync", "cpu_us"] {
            let of = |which: &str| row[figure][which].as_f64().unwrap();
            // In a round of a tenth of a second a database may answer nothing.
            assert!(0.0 <= of("least") && of("least") <= of("median"), "{figure} of {row}");
            assert!(of("median") <= of("most") && 0.0 < of("most"), "{figure} of {row}");
        }
        assert!(row["p99_ns"]["most"].as_f64() >= row["p50_ns"]["most"].as_f64(), "{row}");
        let written = &row["written_bytes"];
        assert!(written.is_null() || written["least"].as_f64().unwrap() >= 0.0, "{row}");
    }
    let at_end = report["at_end"].as_array().unwrap();
    assert_eq!(at_end.len(), NAMES.len());
    for of in at_end {
        assert_eq!(of["checked_rows"], 50, "{of}");
        for figure in ["updates", "disk_bytes", "closed_disk_bytes"] {
            assert!(of[figure].as_u64().unwrap() > 0, "{figure} of {of}");
        }
        assert!(of["load_seconds"].as_f64().unwrap() > 0.0, "{of}");
        assert!(!of["way"].as_str().unwrap().is_empty(), "{of}");
    }
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_comparison_that_cannot_run_says_why() {
    run("bench peers --directory /no/such/place").failed(1, &["/no/such/place"]);
    run("bench peers --seconds 0").failed(2, &["--seconds is 0"]);
    run("bench peers --rows 0").failed(2, &["--rows"]);
    run("bench peers --operations 3 --hot 2").failed(2, &["3 operations on 2 of 100000 rows"]);
    run("bench peers --rows 5 --hot 6").failed(2, &["on 6 of 5 rows"]);
    run("bench peers --read-ratio 10 --hot 1").failed(2, &["there is nothing to measure"]);
    run("bench peers --read-ratio 11").failed(2, &["--read-ratio"]);
    run("bench peers --data 4x").failed(2, &["--memory"]);
    run("bench peers --memory 4").failed(2, &["in KiB, MiB or GiB"]);
}

#[test]
fn a_limit_of_memory_without_a_control_group_is_not_made_up() {
    let room = Room::new();
    let (directory, group) = (room.text("disk"), room.text("group"));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::create_dir_all(&group).unwrap();
    let line =
        format!("bench peers --quick --memory 1GiB --cgroup {group} --directory {directory}");
    run(&line).failed(1, &["is no memory control group"]);
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "nothing is left behind");
}
