//! `reproduce`: runs, reports and verdicts of a figure; a signal ends it, the same command goes on
//! and makes no run twice; other scales and wrong names are refused.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::support::{Background, PATIENCE, PAUSE, Room, command, run};
use rustix::process::Signal;
use serde_json::Value;

/// The lines of `runs.jsonl` that are whole.
fn lines(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("runs.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |at| &text[..at]);
    whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn o_62_a_signal_ends_it_with_a_report_and_the_same_command_goes_on() {
    let room = Room::new();
    let out = room.path("out");
    let line = format!("reproduce fig12 --scale smoke --workers 1 --out {}", out.display());
    let mut first = command(&line);
    first.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Background::start_command(&mut first);
    let started = Instant::now();
    while lines(&out).len() < 3 {
        assert!(started.elapsed() < PATIENCE, "it does not begin");
        std::thread::sleep(PAUSE);
    }
    running.signal(Signal::INT);
    let ran = running.ended();
    assert_eq!(ran.code, 130, "{ran:#?}");
    assert!(ran.stdout.ends_with("interrupted: the same command goes on\n"), "{ran:#?}");
    let before = lines(&out);
    let report = fs::read_to_string(out.join("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["interrupted"], &report["runs"]), (&true.into(), &before.len().into()));

    // A process that is killed while it writes leaves a part of a line.
    let mut torn = fs::read(out.join("runs.jsonl")).expect("runs");
    torn.extend_from_slice(br#"{"scale":"smo"#);
    fs::write(out.join("runs.jsonl"), torn).expect("it can be written");

    let report = run(&format!("{line} --json")).succeeded().json();
    let after = lines(&out);
    assert_eq!(after[..before.len()], before[..], "what was there is there");
    let once: HashSet<_> =
        after.iter().map(|run| (run["round"].to_string(), run["command"].to_string())).collect();
    assert_eq!(once.len(), after.len(), "no run was made twice");
    assert_eq!((after.len(), &report["runs_planned"]), (40, &40.into()));
    assert_eq!((&report["interrupted"], &report["runs"]), (&false.into(), &40.into()));
    check_lines(&after);
    check_report(&out, &report);

    // Now nothing is left to do.
    let again = run(&line).succeeded();
    assert!(again.stderr.contains("0 of 40 runs are to be made"), "{again:#?}");
    assert_eq!(lines(&out), after);
    let other = line.replace("smoke", "small");
    run(&other).failed(2, &["scale smoke", "asked for is small", "--out"]);
    check_redraw(&line, &out);
}

/// The reports of another build's runs are written anew, and nothing runs; whoever goes on is told
/// that they are of another build.
fn check_redraw(line: &str, out: &Path) {
    let runs = out.join("runs.jsonl");
    let text = fs::read_to_string(&runs).expect("runs");
    let own = lines(out)[0]["build"].as_str().expect("a build").to_string();
    let text = text.replace(&own, "another build");
    fs::write(&runs, &text).expect("it can be written");
    let read = |name: &str| fs::read_to_string(out.join(name)).expect("a report");
    let (page, data) = (read("report.html"), read("report.json"));
    fs::remove_file(out.join("report.html")).expect("it was there");
    run(line).failed(2, &["another build", "--out"]);
    let redrawn = run(&format!("{line} --redraw")).succeeded();
    assert!(!redrawn.stderr.contains("to be made"), "{redrawn:#?}");
    assert!(redrawn.stdout.contains("40 of 40 runs"), "{redrawn:#?}");
    assert_eq!(fs::read_to_string(&runs).expect("runs"), text, "no run was made");
    assert_eq!(read("report.html"), page.replace(&own, "another build"));
    assert_eq!(read("report.json"), data.replace(&own, "another build"));
    let other = line.replace("smoke", "small");
    run(&format!("{other} --redraw")).failed(2, &["scale smoke", "asked for is small"]);
    fs::write(&runs, "").expect("it can be written");
    run(&format!("{line} --redraw")).failed(2, &["cannot redraw", "no runs"]);
}

/// Each line says under what a run was made, where it is shown, and what it came to.
fn check_lines(runs: &[Value]) {
    for run in runs {
        assert_eq!((&run["scale"], &run["device"]), (&"smoke".into(), &"emulated:optane".into()));
        assert!(
            run["device_model"].as_str().is_some_and(|model| model.contains("ns for each 256")),
            "{run}"
        );
        assert!(run["machine"]["cores"].as_u64().is_some_and(|cores| cores > 0), "{run}");
        assert_eq!(run["uses"][0]["scenario"], "fig12");
        assert!(run["report"]["committed"].as_u64().is_some_and(|count| count > 0), "{run}");
        let command = run["command"].as_str().expect("a command");
        assert!(command.contains("--epoch-size") && !command.contains("--design"), "{command}");
    }
}

fn check_report(out: &Path, report: &Value) {
    let points: usize = report["figures"][0]["panels"]
        .as_array()
        .expect("panels")
        .iter()
        .flat_map(|panel| panel["groups"].as_array().expect("groups"))
        .map(|group| group["points"].as_array().expect("points").len())
        .sum();
    assert_eq!(points, 40);
    let statements = report["statements"].as_array().expect("statements");
    let verdict = |says: &str| {
        let of = |s: &&Value| s["says"].as_str().is_some_and(|text| text.starts_with(says));
        &statements.iter().find(of).expect("a statement")["verdict"]
    };
    assert_eq!(verdict("YCSB, high contention"), "cannot_be_shown", "times of tiny runs");
    assert_eq!(verdict("Larger epochs have more transient"), "holds");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert_eq!(page.matches("class=\"datum\"").count(), 40);
    assert!(page.ends_with("</html>") && page.contains("Times mean nothing"));
}

#[test]
fn wrong_names_and_options_are_refused_before_anything_is_made() {
    let room = Room::new();
    let out = room.path("out");
    let line = format!("--scale smoke --out {}", out.display());
    run(&format!("reproduce fig4 {line}")).failed(2, &["\"fig4\"", "fig5, fig6", "profiles"]);
    run(&format!("reproduce fig5 {line} --rounds 0")).failed(2, &["--rounds"]);
    run("reproduce fig5 --scale tiny").failed(2, &["smoke", "small", "full"]);
    assert!(!out.exists());
    fs::create_dir(&out).expect("a directory");
    fs::write(out.join("runs.jsonl"), "something else\n").expect("it can be written");
    run(&format!("reproduce fig8 {line}")).failed(2, &["runs.jsonl is no run", "--out"]);
    let help = run("reproduce --help").succeeded().stdout;
    assert!(help.contains("histograms") && help.contains("130"), "{help}");
}
