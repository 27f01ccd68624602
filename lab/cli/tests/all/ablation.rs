//! `bench ablation`: one row for each work and variant, all variants come to one state, another
//! program takes part, and a signal ends it with a table of what has run.

use std::process::Stdio;

use crate::support::{Background, PATIENCE, PAUSE, Room, command, run};
use rustix::process::Signal;

/// What all works run with.
const VARIANTS: [&str; 3] = ["as it is", "without state hash", "append by row lock"];

#[test]
fn each_work_runs_with_each_variant_and_comes_to_one_state() {
    let room = Room::new();
    let file = room.text("ablation.json");
    let other = crate::BINARY;
    let line = format!("bench ablation --quick --workers 1 --json {file} --against {other}");
    let ran = run(&line).succeeded();
    let text = std::fs::read_to_string(&file).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&report["quick"], &report["interrupted"]), (&true.into(), &false.into()));
    let works = report["works"].as_array().expect("works");
    let names: Vec<_> = works.iter().map(|work| work["work"].as_str().expect("a name")).collect();
    assert_eq!(names, ["ycsb-reads", "ycsb-updates", "ycsb-hot", "smallbank", "tpcc"]);
    for work in works {
        let variants = work["variants"].as_array().expect("variants");
        let shown: Vec<_> =
            variants.iter().map(|v| v["variant"].as_str().expect("a name")).collect();
        let pieces: &[&str] = match work["work"].as_str() {
            Some("ycsb-hot") => &["pieces", "pieces split off"],
            Some("ycsb-reads" | "ycsb-updates") => &["pieces"],
            _ => &[],
        };
        assert_eq!(shown, [&VARIANTS, pieces, &["the other program"]].concat());
        assert_eq!(variants[1]["options"], "--no-state-hash");
        let figure = |variant: usize, name: &str| {
            variants[variant][name].as_f64().unwrap_or_else(|| panic!("{name} in {work}"))
        };
        let lines = |variant| figure(variant, "lines_written_per_txn");
        for (index, variant) in shown.iter().enumerate() {
            assert!(figure(index, "ratio") > 0.0 && figure(index, "txn_per_s") > 0.0, "{work}");
            assert_eq!(figure(index, "runs"), 1.0);
            // With one worker counts follow from the calls alone.
            assert_eq!(lines(index), lines(0), "{variant} in {work}");
        }
        assert_eq!(figure(0, "ratio"), 1.0);
        // The state is that of an ordinary run.
        let words = work["command"].as_str().expect("a command").replace("nvcaracal-lab ", "");
        let alone = run(&format!("{words} --json -")).succeeded().json();
        assert_eq!(alone["state_digest"], work["state_digest"]);
    }
    for word in VARIANTS.iter().chain(&names).chain(&["TINY", "the other program", "fences"]) {
        assert!(ran.stdout.contains(word), "{word} is not in {ran:#?}");
    }
}

#[test]
fn works_can_be_chosen_and_what_cannot_run_is_refused() {
    let line = "bench ablation --quick --workers 2 --rounds 2 --device dram --work smallbank";
    let report = run(&format!("{line} --json -")).succeeded().json();
    assert_eq!((&report["rounds"], &report["works"][1]), (&2.into(), &serde_json::Value::Null));
    assert_eq!(report["works"][0]["variants"][0]["runs"], 2);
    run("bench ablation --quick --work tpch").failed(2, &["ycsb-reads", "tpcc"]);
    run("bench ablation --quick --device file:x").failed(2, &["only dram"]);
    run("bench ablation --quick --against /no/such/program").failed(2, &["/no/such/program"]);
    run(&format!("{line} --against /bin/false")).failed(1, &["/bin/false", "did not say why"]);
    run(&format!("{line} --against /bin/true")).failed(1, &["/bin/true", "the other program"]);
    let help = run("bench --help").succeeded().stdout;
    assert!(help.contains("ablation"), "{help}");
}

#[test]
fn o_62_a_signal_ends_it_with_a_table_of_what_has_run() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let room = Room::new();
        let file = room.path("ablation.json");
        let line = format!("bench ablation --quick --rounds 1000 --json {}", file.display());
        let mut command = command(&line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Background::start_command(&mut command);
        // It listens before it makes the file.
        let started = std::time::Instant::now();
        while !file.exists() {
            assert!(started.elapsed() < PATIENCE, "it does not begin");
            std::thread::sleep(PAUSE);
        }
        running.signal(signal);
        let ran = running.ended();
        assert_eq!(ran.code, code, "{ran:#?}");
        assert!(ran.stdout.ends_with("interrupted: not all rounds are in it\n"), "{ran:#?}");
        let text = std::fs::read_to_string(&file).expect("the report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(report["interrupted"], true);
    }
}
