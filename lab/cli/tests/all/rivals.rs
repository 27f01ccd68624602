//! The rival engines run every workload, agree with the serial oracle, recover, and say what they
//! read and wrote.

use crate::support::{Room, SMALL, run};

#[test]
fn rivals_agree_with_the_oracle_and_recover() {
    for (workload, options) in SMALL {
        for design in ["zen-occ", "zen-mvcc", "wbl"] {
            for workers in [1, 4] {
                let line = format!(
                    "bench {workload} {options} --contention high --design {design} --epochs 2 \
                     --workers {workers} --device emulated:none --verify --recover --json -"
                );
                let report = run(&line).succeeded().json();
                assert_eq!(report["design"], design);
                assert_eq!(report["verified"], true, "{line}");
                assert!(report["committed"].as_u64() > Some(0), "{line}");
                assert!(report["recovery"]["rows"].as_u64() > Some(0), "{line}");
                let counters = &report["counters"];
                for name in ["tuples_written", "blocks_written", "fences"] {
                    assert!(counters[name].as_u64() > Some(0), "{name}: {line}");
                }
            }
        }
    }
}

#[test]
fn engines_of_one_partition_agree_with_the_oracle_and_recover() {
    for (workload, options) in SMALL {
        for design in ["inp", "cow", "log", "nvm-inp", "nvm-cow", "nvm-log"] {
            let line = format!(
                "bench {workload} {options} --contention high --design {design} --epochs 2 \
                 --device emulated:none --verify --recover --json -"
            );
            let report = run(&format!("{line} --workers 1")).succeeded().json();
            assert_eq!(report["design"], design);
            assert_eq!(report["verified"], true, "{line}");
            assert!(report["committed"].as_u64() > Some(0), "{line}");
            run(&format!("{line} --workers 2")).failed(2, &["a partition's engine has one"]);
        }
    }
}

/// What the DBX family counts is what each of its designs is for.
#[test]
fn the_dbx_family_agrees_with_the_oracle_and_recovers() {
    let room = Room::new();
    let file = room.text("log");
    for (workload, options) in SMALL {
        for (design, device) in [
            ("dbx-dram", "emulated:none".to_string()),
            ("dbx-nvm", "emulated:none".to_string()),
            ("dbx-disk", format!("file:{file}")),
            ("dbx-naive", "emulated:none".to_string()),
            ("dbxn", "emulated:optane".to_string()),
            ("dbxn-nvm", "emulated:optane".to_string()),
            ("pisces", "emulated:optane-lines".to_string()),
        ] {
            let recover = if design == "dbx-dram" { "" } else { "--recover" };
            let line = format!(
                "bench {workload} {options} --contention high --design {design} --epochs 2 \
                 --workers 2 --device {device} --verify {recover} --group-us 500 --json -"
            );
            let report = run(&line).succeeded().json();
            assert_eq!(report["design"], design);
            assert_eq!(report["verified"], true, "{line}");
            let counters = &report["counters"];
            let of = |name: &str| counters[name].as_u64().unwrap_or_else(|| panic!("{name}"));
            assert_eq!(of("regions_ended") > 0, design != "pisces", "{line}");
            let isolation = if design == "pisces" { "snapshots" } else { "serializable" };
            assert_eq!(report["isolation"], isolation, "{line}");
            let cost = &report["cost"];
            assert!(cost["latency_ns"].as_f64() > Some(0.0), "{line}");
            let is_grouped = ["dbx-nvm", "dbx-disk"].contains(&design);
            let waiting_ns = if is_grouped { 250_000.0 } else { 0.0 };
            assert_eq!(cost["waiting_ns"].as_f64(), Some(waiting_ns), "{line}");
            assert_eq!(of("log_records") > 0, design != "dbx-dram", "{line}");
            assert_eq!(of("regions_aborted_forbidden") > 0, design == "dbx-naive", "{line}");
            let is_read = ["dbxn-nvm", "pisces"].contains(&design);
            assert_eq!(of("lines_read") > 0, is_read, "{line}");
            let recovered = report["recovery"]["rows"].as_u64() > Some(0);
            assert_eq!(recovered, design != "dbx-dram", "{line}");
        }
    }
}

#[test]
fn the_steps_of_dbxn_run_and_say_what_regions_are() {
    let room = Room::new();
    let small = "bench smallbank --customers 540 --epochs 2 --epoch-size 50 --verify --recover";
    for design in ["dbxn-parity", "dbxn-64", "dbxn-nt"] {
        let shown = run(&format!("{small} --design {design} --device emulated:none")).succeeded();
        assert!(shown.stdout.contains("regions "), "{shown:#?}");
        assert!(!shown.stdout.to_lowercase().contains("htm"), "{shown:#?}");
    }
    let file = room.text("log");
    run(&format!("{small} --design dbx-sync-disk --device file:{file}")).succeeded();
    run(&format!("{small} --design dbx-sync-disk")).succeeded();
    let line = "bench smallbank --customers 540 --epochs 1 --epoch-size 50";
    run(&format!("{line} --design dbx-disk --device emulated:none")).failed(2, &["file:DIR"]);
    run(&format!("{line} --design dbxn --device file:{file}")).failed(2, &["--device emulated"]);
    let dram = format!("{line} --design dbx-dram --device emulated:none --recover");
    run(&dram).failed(2, &["--recover is for the engine"]);
}

/// The deterministic rivals run every workload and agree with the oracle; those that keep the order
/// of the batch come to the state of the engine.
#[test]
fn deterministic_rivals_come_to_the_state_of_the_engine() {
    for (workload, options) in SMALL {
        let base = format!("bench {workload} {options} --contention high --epochs 2 --verify");
        let engine = run(&format!("{base} --design all-dram --json -")).succeeded().json();
        let in_order = ["serial", "calvin", "orthrus", "bohm", "caracal", "granola", "pwv"];
        for design in in_order.into_iter().chain(["aria", "bcdb"]) {
            for workers in [1, 2, 4] {
                let line = format!("{base} --design {design} --workers {workers} --json -");
                let report = run(&line).succeeded().json();
                assert_eq!(report["design"], design);
                assert_eq!(report["verified"], true, "{line}");
                if in_order.contains(&design) {
                    assert_eq!(report["committed"], engine["committed"], "{line}");
                    assert_eq!(report["state_digest"], engine["state_digest"], "{line}");
                }
                for name in ["waits", "hand_overs", "messages", "versions", "reruns"] {
                    assert!(report["counters"][name].is_u64(), "{name}: {line}");
                }
            }
        }
    }
}

#[test]
fn what_a_rival_cannot_do_is_told() {
    let line = "bench smallbank --customers 540 --epochs 1 --epoch-size 50 --design zen-occ";
    let needs = ["--device emulated"];
    for device in ["", "--device dram", "--device file:/tmp/none"] {
        run(&format!("{line} {device}")).failed(2, &needs);
    }
    let serial = "bench smallbank --customers 540 --epochs 1 --epoch-size 50 --design serial";
    run(&format!("{serial} --device emulated:none")).failed(2, &["runs on dram"]);
    run(&format!("{serial} --recover")).failed(2, &["--recover is for the engine"]);
    let shown = run(serial).succeeded().stdout;
    for word in ["smallbank on serial", "throughput ", "durable     NO", "messages"] {
        assert!(shown.contains(word), "{word:?} is not in\n{shown}");
    }
    let clients = "bench smallbank --customers 540 --design zen-occ --device emulated:none \
                   --clients 2";
    run(clients).failed(2, &["--clients is for the engine"]);
    let shown = run(&format!("{line} --device emulated:none")).succeeded().stdout;
    for word in ["smallbank on zen-occ", "throughput ", "durable     NO", "latency ", "retries"] {
        assert!(shown.contains(word), "{word:?} is not in\n{shown}");
    }
}
