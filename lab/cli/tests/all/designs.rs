//! The designs that NVCaracal is compared with do what they are for: what each writes to the device
//! and reads there (NV 6.4, 6.7). That they change no state is in `same_digest.rs`.

use serde_json::Value;

use crate::support::run;

/// Ten updates in each transaction, most of them of few rows.
const HOT: &str = "ycsb --rows 1000 --hot-rows 10 --hot-keys 7 --epochs 3 --epoch-size 300 \
                   --workers 2 --device emulated:optane";

fn counters(options: &str) -> Value {
    let report = run(&format!("bench {HOT} {options} --no-check --json -")).succeeded().json();
    assert_eq!(report["committed"], 900);
    report["counters"].clone()
}

fn of(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap_or_else(|| panic!("no {name} in {counters}"))
}

#[test]
fn each_design_writes_what_it_is_for() {
    let nvcaracal = counters("");
    let transient = of(&nvcaracal, "transient_versions");
    assert!(transient > 900 * 6, "most versions are not their rows' last: {transient}");
    let names = ["lines_written", "lines_read", "log_bytes", "transient_versions"];
    let [written, read, logged, _] = names.map(|name| of(&nvcaracal, name));
    assert!(logged > 900 * 1000, "inputs are logged: {logged}");

    let no_logging = counters("--design no-logging");
    assert_eq!(of(&no_logging, "log_bytes"), 0);
    assert_eq!(of(&no_logging, "lines_written"), written, "the log is counted apart");

    // A transient version of 1,000 bytes is 16 or 17 lines.
    let hybrid = counters("--design hybrid");
    let [hybrid_written, hybrid_read, hybrid_logged, same] = names.map(|name| of(&hybrid, name));
    assert_eq!((hybrid_logged, same, hybrid_read), (0, transient, read));
    let more = hybrid_written - written;
    assert!((16 * transient..=17 * transient).contains(&more), "{more} lines more");

    let all_nvmm = counters("--design all-nvmm");
    let [all_written, all_read, all_logged, same] = names.map(|name| of(&all_nvmm, name));
    assert_eq!((all_logged, same, of(&all_nvmm, "cache_hits")), (0, transient, 0));
    assert!(all_written > hybrid_written, "version arrays: {all_written}");
    assert!(all_read > read + 16 * transient, "transient versions are read there: {all_read}");
}

#[test]
fn all_dram_is_dram_without_a_log() {
    let line = "bench smallbank --customers 540 --epochs 2 --epoch-size 50 --design all-dram";
    let report = run(&format!("{line} --json -")).succeeded().json();
    assert_eq!((&report["design"], &report["device"]), (&"all-dram".into(), &"dram".into()));
    assert_eq!(of(&report["counters"], "log_bytes"), 0);
}

/// Without minor collection each row that was written is collected an epoch later.
#[test]
fn stale_versions_go_to_the_major_collector_where_asked() {
    let small = "--value-bytes 64 --row-bytes 256";
    let usual = counters(small);
    let without = counters(&format!("{small} --no-minor-gc"));
    assert_eq!(of(&usual, "major_collections"), 0);
    assert!(of(&usual, "minor_collections") > 0);
    assert_eq!(of(&without, "minor_collections"), 0, "the slots are empty");
    assert!(of(&without, "major_collections") > of(&usual, "persistent_versions") / 2);
    assert!(of(&without, "lines_written") > of(&usual, "lines_written"));
}

/// A row counts as often as an epoch wrote it, and not once at the end.
#[test]
fn versions_written_are_counted_where_asked() {
    let line = format!("bench {HOT} --value-bytes 64 --row-bytes 256 --no-check --json -");
    assert!(run(&line).succeeded().json().get("written").is_none());
    let report = run(&format!("{line} --count-written")).succeeded().json();
    let (values, written) = (&report["values"], &report["written"]);
    assert_eq!(of(values, "all"), 1000);
    assert_eq!(of(written, "all"), of(&report["counters"], "persistent_versions"));
    assert!(of(written, "all") != of(values, "all"));
    assert_eq!((of(written, "up_to_30_bytes"), of(written, "inline")), (0, of(written, "all")));
    assert_eq!(of(written, "up_to_64_bytes"), of(written, "all"));
    // One version in a heap for both is all that fits.
    let heap = format!("{line} --count-written --shared-heap-bytes 64");
    let report = run(&heap).succeeded().json();
    let (written, all) = (&report["written"], of(written, "all"));
    assert_eq!(of(written, "all"), all);
    assert!((1..all).contains(&of(written, "inline")), "{written}");
    let rival = "bench smallbank --design dbxn --device emulated:none --count-written";
    run(rival).failed(2, &["--count-written is for the engine"]);
}

#[test]
fn what_a_design_cannot_do_is_told() {
    let line = "bench smallbank --customers 540 --epochs 1 --epoch-size 50";
    let needs = ["keeps nothing durable", "--device emulated"];
    for design in ["no-logging", "hybrid", "all-nvmm"] {
        run(&format!("{line} --design {design}")).failed(2, &needs);
        run(&format!("{line} --design {design} --device file:/tmp/none")).failed(2, &needs);
        let every = format!("{line} --design {design} --device dram --checkpoint-every 2");
        run(&every).failed(2, &["checkpoint_every is 2, must be 1", design]);
    }
    let on_optane = format!("{line} --device emulated:optane");
    run(&format!("{on_optane} --design all-dram")).failed(2, &["leave out --device"]);
    let cached = format!("{on_optane} --design all-nvmm --cache-bytes 1000");
    run(&cached).failed(2, &["cache_bytes is 1000, must be 0"]);
    run(&format!("{line} --design faster")).failed(2, &["nvcaracal", "all-dram"]);
}
