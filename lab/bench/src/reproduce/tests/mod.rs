//! Scenario files are sound, rules judge as they say, and reports show all that was found. Runs are
//! canned: what they came to is computed from their command lines.

mod reports;
mod rules;
mod scenarios;

use serde_json::{Value, json};

use super::data::{Found, Outcome, Recorded, Session};
use super::machine::Machine;
use super::plan::{Plan, Run};
use super::report::{ReproduceReport, report};
use super::scale::Scale;
use super::scenario::{MODEL_CORES, Suite, figures_named};
use crate::cost::{Answered, Cost, Took};

fn plan_of(names: &[&str], scale: Scale, rounds: u64) -> Plan {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let suite = Suite::of(&figures_named(&names).expect("known names"));
    Plan { suite, scale, rounds, workers: 2, seed: 1 }
}

fn session(scale: Scale, build: &str) -> Session {
    let machine =
        Machine { processor: "A & B <8>".into(), cores: 2, memory_gib: 16.0, kernel: "6.1".into() };
    Session { scale, build: build.into(), commit: None, machine }
}

fn lines_by_part() -> Value {
    let lines = json!({"flushed": 1.0, "pushed_out": 0.5, "past_cache": 0.25});
    let parts = [
        "tuples",
        "fields",
        "index",
        "pages",
        "log",
        "log_head",
        "log_buffer",
        "files",
        "other",
        "marks",
    ];
    parts.into_iter().map(|part| (part.to_string(), lines.clone())).collect()
}

/// A report of a run, with a throughput.
fn canned(throughput: f64) -> Value {
    let memory = ["index", "row_entries", "transient_pool", "cache", "persistent_rows"]
        .into_iter()
        .chain(["persistent_values", "input_log"])
        .map(|name| (name.to_string(), json!(1_000_000)))
        .collect::<serde_json::Map<_, _>>();
    let point = |cores| {
        json!({"cores": cores, "throughput_txn_per_s": throughput, "control_ms": 1.0,
            "execute_ms": 2.0})
    };
    json!({
        "throughput_txn_per_s": throughput,
        "points": MODEL_CORES.map(point),
        "device_note": "DRAM, with <waits>",
        "split_threshold": 4, "workers": 2, "error_percent": -3.0,
        "latency_ns": {"p50": 1e12 / throughput},
        "counters": {
            "transient_versions": 30, "persistent_versions": 970, "cache_hits": 1,
            "cache_misses": 1, "blocks_read_per_txn": 3.5, "blocks_written_per_txn": 2.5,
            "lines_written_per_txn": 7.0, "log_bytes_per_txn": 99.0,
            "waits_per_txn": 0.5, "waits": 5, "declared_keys": 50,
            "minor_collections_per_txn": 0.0, "major_collections_per_txn": 1.0,
            "lines_read_per_txn": 20.0, "fences_per_txn": 1.0, "media_bytes_written_per_txn": 9.0,
            "regions_ended": 9, "regions_ended_per_txn": 9.0, "regions_aborted_forbidden": 9,
            "regions_aborted_forbidden_per_txn": 1.0, "retries_per_txn": 0.1,
            "regions_fallbacks_per_txn": 0.1, "regions_aborted_write_set": 0,
            "regions_aborted_read_set": 0, "regions_aborted_conflict": 3, "log_records": 5,
        },
        "cpu_ns_per_txn": 2e9 / throughput,
        "mb_per_second": 90.0, "cpu_ns": 30.0, "lines_read": 1.0, "lines_written": 1.0,
        "system_calls": 2.0,
        "counts": {
            "load_waits": 6.0,
            "written_by_part": lines_by_part(),
            "lines_read": 9.0, "lines_written": 5.0, "fences": 3.0, "system_calls": 0.5,
            "copied_bytes": 99.0,
        },
        "cost": {
            "shares": {"storage": 40.0, "recovery": 15.0, "index": 35.0, "other": 10.0},
            "per_second_overlapped": {"at_160": 950.0, "at_320": 900.0, "at_1280": 800.0},
            "cpu_ns": 900.0,
            "per_second": {"at_160": 900.0, "at_320": 800.0, "at_1280": 700.0},
            "per_second_by_sync": {
                "at_10": 900.0, "at_100": 800.0, "at_1000": 700.0, "at_10000": 90.0,
            },
        },
        "footprint": {"table": 9, "index": 8, "log": 7, "cache": 6, "file": 5, "other": 4},
        "memory_bytes": memory,
        "values": {
            "all": 1000, "inline": 990, "up_to_8_bytes": 10, "up_to_30_bytes": 600,
            "up_to_64_bytes": 800, "up_to_256_bytes": 900,
        },
        "written": {
            "all": 500, "inline": 300, "up_to_8_bytes": 10, "up_to_30_bytes": 100,
            "up_to_64_bytes": 200, "up_to_256_bytes": 300,
        },
        "recovery": {
            "open_device_ms": 0.5, "load_log_ms": 1.5, "scan_ms": 30.0, "rebuild_ms": 20.0,
            "replay_ms": 10.0, "total_ms": 62.0, "total": {"blocks_read": 5_000},
            "lines_read": 50, "lines_written": 7, "redone": 3, "undone": 1, "slots": 99,
            "lines_loaded": 20, "lines_redone": 30,
            "seconds": 0.001,
        },
    })
}

/// A run says what it costs; the six engines do so at several latencies, and nothing else of it.
fn say_cost(report: &mut Value, command: &str) {
    if command == "arulraj" {
        report["cpu_ns_per_txn"] = Value::Null;
    } else if let Some(cpu_ns) = report["cpu_ns_per_txn"].as_f64() {
        let took = Took { workers: 2, cpu_ns, added_ns: 0.0 };
        let cost = Cost::of(took, Answered::InEpochsOf(100));
        report["cost"] = serde_json::to_value(cost).expect("plain numbers");
    }
}

/// What the runs of a plan come to by a function of run.
fn found_by(plan: &Plan, outcome: impl Fn(&Run) -> Option<Outcome>) -> Found {
    let session = session(plan.scale, "b");
    let mut found = Found::default();
    for run in plan.runs() {
        if let Some(mut outcome) = outcome(&run) {
            if let Outcome::Report(report) = &mut outcome {
                say_cost(report, &run.words[0]);
            }
            found.add(Recorded::new(&session, &run, outcome));
        }
    }
    found
}

fn whole(plan: &Plan) -> Found {
    found_by(plan, |run| {
        let spread = 1000.0 * (1 + run.round) as f64;
        Some(Outcome::Report(canned(50_000.0 + spread + run.command().len() as f64)))
    })
}

fn report_of(plan: &Plan, found: &Found) -> ReproduceReport {
    report(plan, &session(plan.scale, "b"), found, false)
}
