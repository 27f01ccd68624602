//! `bench roofline` measures every limit, on any machine, and leaves nothing behind.

use crate::support::{Room, run};

/// Keys that scripts may rely on.
const FIGURES: [&str; 18] = [
    "first_touch_2_mib_us",
    "read_64_b_dependent_ns",
    "read_64_b_16_in_flight_ns",
    "read_64_b_16_in_flight_all_workers_ns",
    "read_1024_b_10_in_flight_ns",
    "stream_read_gb_per_s",
    "stream_write_gb_per_s",
    "stream_write_nt_gb_per_s",
    "store_64_b_flush_fence_16_ns",
    "store_64_b_nt_fence_16_ns",
    "store_256_b_nt_fence_16_ns",
    "plain_10_rmw_1000_b_us",
    "plain_smallbank_us",
    "plain_smallbank_hot_us",
    "add_xor_8_words_operations_per_ns",
    "overwrite_4_kib_fdatasync_us",
    "overwrite_64_kib_fdatasync_us",
    "overwrite_1_mib_fdatasync_us",
];

#[test]
fn every_figure_is_there_and_positive() {
    let room = Room::new();
    let (file, directory) = (room.text("roofline.json"), room.path("files"));
    std::fs::create_dir(&directory).expect("a directory");
    let line = format!("bench roofline --memory-mib 16 --workers 2 --json {file} --dir");
    let ran = run(&format!("{line} {}", directory.display())).succeeded();
    let text = std::fs::read_to_string(&file).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&report["memory_mib"], &report["workers"]), (&16.into(), &2.into()));
    let figures = report["figures"].as_object().expect("an object");
    assert_eq!(figures.len(), FIGURES.len());
    for name in FIGURES {
        let figure = &figures.get(name).unwrap_or_else(|| panic!("{name} is missing in {text}"));
        let number = |key: &str| figure[key].as_f64();
        let value = number("value").unwrap_or_else(|| panic!("{name} has no value in {text}"));
        assert!(value > 0.0, "{name} in {text}");
        assert!(number("ratio").is_none_or(|ratio| ratio > 0.0), "{name} in {text}");
        assert_eq!(number("ratio").is_some(), number("reference").is_some(), "{name} in {text}");
        let what = figure["what"].as_str().expect("words");
        assert!(ran.stdout.contains(what), "{what:?} is not in {ran:#?}");
    }
    assert!(ran.stdout.contains("on which the goals of docs/benchmarks.md were measured"));
    assert_eq!(std::fs::read_dir(&directory).expect("a directory").count(), 0);
}

#[test]
fn what_cannot_be_measured_is_a_wrong_command_line() {
    run("bench roofline --memory-mib 1 --dir /no/such/place").failed(2, &["/no/such/place"]);
    run("bench roofline --memory-mib 0").failed(2, &["memory-mib"]);
}

#[test]
fn the_help_of_bench_shows_it() {
    let help = run("bench --help").succeeded().stdout;
    assert!(help.contains("roofline") && help.contains("Not a workload"), "{help}");
}
