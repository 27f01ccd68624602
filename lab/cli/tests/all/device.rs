//! `bench device` measures every profile, and holds `optane` against the paper.

use pmem::Profile;

use crate::support::{Room, run};

/// Keys that scripts may rely on.
const KEYS: &str = "device device_note access_bytes memory_mib tolerance_percent figures";
const FIGURE_KEYS: &str = "access threads dram_mb_per_s device_mb_per_s ratio ratio_of_medians \
    paper_ratio within_tolerance write_amplification";

#[test]
fn both_accesses_of_one_and_of_two_threads_are_there() {
    let room = Room::new();
    let file = room.text("device.json");
    let ran = run(&format!("bench device --memory-mib 1 --json {file}")).succeeded();
    let text = std::fs::read_to_string(&file).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for key in KEYS.split_whitespace() {
        assert!(report.get(key).is_some(), "{key} is missing in {text}");
    }
    assert_eq!(
        (&report["device"], &report["access_bytes"]),
        (&"emulated:optane".into(), &256.into())
    );
    let figures = report["figures"].as_array().expect("an array");
    let found: Vec<_> = figures
        .iter()
        .map(|figure| (figure["access"].as_str().expect("a name"), figure["threads"].as_u64()))
        .collect();
    assert_eq!(
        found,
        [("write", Some(1)), ("read", Some(1)), ("write", Some(2)), ("read", Some(2))]
    );
    for figure in figures {
        for key in FIGURE_KEYS.split_whitespace() {
            assert!(figure.get(key).is_some(), "{key} is missing in {text}");
        }
        let is_write = figure["access"] == "write";
        assert_eq!(figure["paper_ratio"], if is_write { 11.9 } else { 3.2 }, "{text}");
        assert!(figure["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{text}");
        assert!(figure["within_tolerance"].is_boolean(), "{text}");
        // Whole blocks are written, each once.
        let amplification = if is_write { Some(1.0) } else { None };
        assert_eq!(figure["write_amplification"].as_f64(), amplification, "{text}");
    }
    for words in ["random write", "random read", "DRAM stands in", "within 15 %"] {
        assert!(ran.stdout.contains(words), "{words:?} is not in {ran:#?}");
    }
}

#[test]
fn only_optane_is_held_against_the_paper() {
    for profile in Profile::ALL.into_iter().filter(|profile| *profile != Profile::Optane) {
        let line = format!("bench device --profile {profile} --memory-mib 1 --json -");
        let report = run(&line).succeeded().json();
        assert_eq!(report["device"], format!("emulated:{profile}"));
        for figure in report["figures"].as_array().expect("an array") {
            assert!(figure["paper_ratio"].is_null() && figure["within_tolerance"].is_null());
        }
    }
}

#[test]
fn a_wrong_command_line_says_what_there_is() {
    run("bench device --profile fast").failed(2, &["optane", "eadr", "cxl", "low", "high", "none"]);
    run("bench device --memory-mib 3").failed(2, &["power of two"]);
    let help = run("bench --help").succeeded().stdout;
    assert!(help.contains("device") && help.contains("persistent memory"), "{help}");
    let help = run("bench ycsb --help").succeeded().stdout;
    assert!(help.contains("none|optane|optane-lines|eadr|cxl|low|high"), "{help}");
}
