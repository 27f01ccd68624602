//! What scripts rely on: the keys of every `--json`, and what the table says.

use crate::support::{Room, run};

const SIZE: &str = "--customers 2000 --epoch-size 500 --epochs 3 --no-progress";

/// Keys that scripts may rely on.
const KEYS: &str = "workload design device durable device_note workers epochs interrupted \
    epoch_size seed committed aborted failed deferred seconds throughput_txn_per_s latency_ns \
    phase_ns values counters balance memory_bytes state_digest contention append parameters";
const PHASES: &str = "log_inputs insert major_gc evict_cache append execute checkpoint";
const COUNTERS: &str = "committed transient_versions versions_reused persistent_versions \
    minor_collections major_collections cache_hits blocks_read blocks_written lines_read \
    lines_written flushes fences log_bytes declared_keys appends locks_handed_over batched_appends \
    claims_of_others versions_handed_over final_versions_read store_orders \
    media_bytes_written added_ns";
const BALANCE: &str = "calls_most_to_mean appends_most_to_mean waiting_percent \
    waiting_percent_of busiest_to_mean_of chain_calls_per_epoch calls_by_chain";

#[track_caller]
fn has_keys(object: &serde_json::Value, keys: &str) {
    for key in keys.split_whitespace() {
        assert!(object.get(key).is_some(), "{key} is missing in {object}");
    }
}

#[test]
fn the_report_of_a_run_has_all_keys_and_adds_up() {
    let room = Room::new();
    let (store, file) = (room.text("store"), room.text("report.json"));
    run(&format!("bench smallbank {SIZE} --device file:{store} --json {file} --workers 2"))
        .succeeded();
    let text = std::fs::read_to_string(&file).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    has_keys(&report, KEYS);
    has_keys(&report["phase_ns"], PHASES);
    has_keys(&report["counters"], COUNTERS);
    has_keys(&report["counters"], &COUNTERS.replace(' ', "_per_txn "));
    has_keys(&report["latency_ns"], "p50 p99 p999");
    has_keys(&report["balance"], BALANCE);
    assert!(report.get("limits").is_none(), "a short run pays for no measurement");
    assert_eq!(report["workload"], "smallbank");
    assert_eq!(report["design"], "nvcaracal");
    assert_eq!(report["durable"], true);
    assert_eq!(report["interrupted"], false);
    assert_eq!(report["parameters"]["customers"], 2000);
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    assert_eq!(number(&report["committed"]) + number(&report["aborted"]), 1500);
    let latency = &report["latency_ns"];
    assert!(number(&latency["p50"]) > 0 && number(&latency["p50"]) <= number(&latency["p999"]));
}

#[test]
fn the_table_says_what_was_measured_and_where() {
    let ran = run(&format!("bench smallbank {SIZE} --device emulated:low --json -")).succeeded();
    let report = ran.json();
    let line = format!("bench smallbank {SIZE} --device emulated:low");
    let table = run(&format!("{line} --details")).succeeded().stdout;
    let digest = report["state_digest"].as_str().expect("a digest");
    for word in [
        digest,
        "device emulated:low (NOT durable)",
        "generated outside the timed region",
        "txn/s",
        "latency p99.9",
        "ms per epoch",
        "transient versions",
        "blocks read (256 bytes)",
        "flushes (lines)",
        "persistent rows",
        "MiB",
    ] {
        assert!(table.contains(word), "{word:?} is not in\n{table}");
    }
    // Without details: where the time went, and four lines that need no paper.
    let short = run(&line).succeeded().stdout;
    let lines: Vec<&str> = short.lines().collect();
    let ends = ["throughput  ", "durable     NO: emulated:low", "latency     ", "verified    "];
    for (line, begins) in lines[lines.len() - 4..].iter().zip(ends) {
        assert!(line.starts_with(begins), "{begins:?} is not where it should be in\n{short}");
    }
    assert!(short.contains("Where the time of an epoch goes"), "{short}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("  declare what is written  ") && line.ends_with('%')),
        "{short}"
    );
    for word in ["transient", "blocks", "major"] {
        assert!(!short.contains(word), "{word:?} is in\n{short}");
    }
    assert!(lines.len() < 24 && lines.iter().all(|line| line.len() <= 100), "{short}");
}

#[test]
fn a_run_is_held_against_the_limits_of_the_machine_where_asked() {
    let room = Room::new();
    let (store, file) = (room.text("store"), room.text("report.json"));
    let line = format!("bench smallbank {SIZE} --device file:{store} --json {file}");
    let table = run(&format!("{line} --limits --workers 2")).succeeded().stdout;
    let text = std::fs::read_to_string(&file).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let limits = &report["limits"];
    has_keys(limits, "costs percent limit_txn_per_s phases");
    for cost in ["read_line_ns", "store_line_ns", "stream_nt_byte_ns", "log_sync_ns"] {
        assert!(limits["costs"][cost].as_f64() > Some(0.0), "{cost} in {limits}");
    }
    let phases = limits["phases"].as_array().expect("phases");
    let least = |phase: &serde_json::Value| phase["least_ns"].as_f64().expect("a number");
    for name in ["log_inputs", "append", "execute"] {
        let phase = phases.iter().find(|phase| phase["phase"] == name).expect("a phase");
        has_keys(phase, "measured_ns least_ns percent waiting_percent bound_by parts");
        assert!(least(phase) > 0.0 && phase["bound_by"] != "", "{phase}");
    }
    let sum: f64 = phases.iter().map(least).sum();
    let limit = limits["limit_txn_per_s"].as_f64().expect("a number");
    assert!((limit * sum / 1e9 - 1500.0).abs() < 1.0, "{limits}");
    for word in ["Limits: ", "least ms", "bound by", "an epoch's log"] {
        assert!(table.contains(word), "{word:?} is not in\n{table}");
    }
    assert!(!std::path::Path::new(&store).read_dir().expect("a store").any(|entry| {
        entry.expect("an entry").file_name().to_string_lossy().contains("roofline")
    }));
    run(&format!("bench smallbank {SIZE} --limits=sometimes")).failed(2, &["sometimes"]);
}

#[test]
fn beside_the_oracle_the_report_has_the_longest_chain() {
    let line = format!("bench smallbank {SIZE} --device dram --json -");
    let report = run(&format!("{line} --verify")).succeeded().json();
    let balance = &report["balance"];
    let chain = balance["chain_calls_per_epoch"].as_f64().expect("a number");
    assert!((1.0..=500.0).contains(&chain), "{balance}");
    assert!((balance["calls_by_chain"].as_f64().expect("a number") * chain - 500.0).abs() < 0.1);
    assert!(run(&line).succeeded().json()["balance"]["chain_calls_per_epoch"].is_null());
}

#[test]
fn check_recover_and_inspect_agree_with_the_run() {
    let room = Room::new();
    let store = room.text("store");
    let report = run(&format!("bench smallbank {SIZE} --device file:{store} --json -"));
    let report = report.succeeded().json();

    let check = run(&format!("check {store} --json")).succeeded().json();
    assert_eq!(check["clean"], true);
    assert_eq!(check["epoch"], report["epoch"]);
    assert_eq!(check["state_digest"], report["state_digest"]);
    assert_eq!(check["problems"].as_array().map(Vec::len), Some(0));
    assert_eq!(check["tables"][1]["rows"], 2000);

    let recover = run(&format!("recover {store} --workers 3 --json")).succeeded().json();
    assert_eq!(recover["epoch"], report["epoch"]);
    assert_eq!(recover["state_digest"], report["state_digest"]);
    for part in ["load_log_ms", "scan_ms", "rebuild_ms", "replay_ms", "total_ms"] {
        assert!(recover[part].is_f64(), "{part} in {recover}");
    }

    let inspect = run(&format!("inspect {store} --json")).succeeded().json();
    assert_eq!(inspect["superblock"]["state_digest"], report["state_digest"]);
    assert_eq!(inspect["tables"][0]["name"], "accounts");
    assert!(inspect["pools"][0]["slots_allocated"].as_u64() >= Some(2000));
    let page = run(&format!("inspect {store} log --json")).succeeded().json();
    assert!(page.get("log").is_some() && page.get("tables").is_none());
    for page in ["", "superblock", "pools", "tables", "log"] {
        assert!(!run(&format!("inspect {store} {page}")).succeeded().stdout.is_empty());
    }
}

#[test]
fn a_temporary_store_is_named_and_removed_unless_it_is_kept() {
    let room = Room::new();
    for (keep, left) in [("", 0), ("--keep", 1)] {
        let mut command = crate::support::command(&format!("bench smallbank {SIZE} {keep}"));
        // Under /tmp: a file system in memory would send it to the current directory.
        command.env("TMPDIR", room.path("")).current_dir(room.path(""));
        let ran = crate::support::run_command(&mut command).succeeded();
        assert!(ran.stderr.contains("nvcaracal-bench-"), "{ran:#?}");
        let entries = std::fs::read_dir(room.path("")).expect("a directory").count();
        assert_eq!(entries, left, "{ran:#?}");
    }
}

/// What is not asked for comes from where the library takes it, too.
#[test]
fn a_run_has_the_engines_defaults_for_its_device() {
    let room = Room::new();
    let file = format!("file:{}", room.text("store"));
    for device in ["dram", "emulated:none", "emulated:optane", &file] {
        let line = format!("bench smallbank {SIZE} --workers 1 --device {device} --json -");
        let report = run(&line).succeeded().json();
        let expected = engine::EngineConfig::for_device(&device.parse().expect("a device"));
        assert_eq!(report["cache_bytes"], expected.cache_bytes, "{device}");
        assert_eq!(report["checkpoint_every"], expected.checkpoint_every, "{device}");
    }
}
