//! `bench WORKLOAD --clients N`: the library under clients.

use serde_json::Value;

use crate::support::{Room, run};

const KEYS: &str = "workload device durable workers parameters clients in_flight batch seconds \
    throughput_txn_per_s client_latency_ns committed aborted failed deferred epochs \
    calls_per_epoch engine by_epoch_size checked problems interrupted";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Latencies that clients saw are there and in order.
fn has_latencies(run: &Value) {
    let latency = &run["client_latency_ns"];
    assert!(number(&latency["p50"]) > 1000.0, "{run}");
    assert!(number(&latency["p50"]) <= number(&latency["p99"]), "{run}");
    assert!(number(&latency["p99"]) <= number(&latency["p999"]), "{run}");
}

#[test]
fn all_workloads_run_through_the_library_and_pass_their_checks() {
    for (batch, (workload, aborts)) in [
        ("ycsb --rows 500 --value-bytes 200", false),
        ("ycsb --rows 500 --pieces --split-threshold 2 --hot-rows 10 --hot-keys 9", false),
        ("smallbank --customers 500", true),
        ("tpcc --warehouses 1 --items 200 --customers-per-district 30", false),
        ("tpcc --warehouses 1 --items 200 --customers-per-district 30 --mix full", true),
        (
            "tpcc --warehouses 1 --items 200 --customers-per-district 30 --mix full --pieces \
             --split-threshold 2",
            true,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        // One by one, and together.
        let batch = 1 + 20 * (batch % 2);
        let line = format!(
            "bench {workload} --device dram --clients 3 --in-flight 300 --batch {batch} \
             --seconds 0.3 --json -"
        );
        let report = run(&line).succeeded().json();
        for key in KEYS.split_whitespace() {
            assert!(report.get(key).is_some(), "{key} is missing in {report}");
        }
        assert_eq!((&report["clients"], &report["in_flight"]), (&3.into(), &300.into()));
        assert_eq!(report["batch"], batch);
        assert_eq!((&report["checked"], &report["failed"]), (&true.into(), &0.into()), "{report}");
        assert_eq!(report["problems"], Value::Array(Vec::new()));
        assert!(number(&report["committed"]) > 300.0, "{report}");
        assert_eq!(number(&report["aborted"]) > 0.0, aborts, "{report}");
        assert!(number(&report["calls_per_epoch"]) > 1.0, "{report}");
        has_latencies(&report);
        assert_eq!(report["engine"], Value::Null);
    }
}

#[test]
fn clients_wait_for_answers_or_come_at_their_rate_and_epochs_have_their_sizes() {
    let line = "bench smallbank --customers 500 --device dram --seconds 0.3 --json -";
    let alone = run(&format!("{line} --clients 1")).succeeded().json();
    assert_eq!((&alone["in_flight"], &alone["engine"]), (&1.into(), &Value::Null));
    assert_eq!(number(&alone["calls_per_epoch"]), 1.0, "{alone}");

    let sizes = run(&format!("{line} --clients 2 --in-flight 200 --epoch-sizes 5,100"));
    let sizes = sizes.succeeded().json();
    let by_size = sizes["by_epoch_size"].as_array().expect("runs");
    for (run, most) in by_size.iter().zip([5, 100]) {
        assert_eq!(run["epoch_calls_max"], most);
        assert!(number(&run["calls_per_epoch"]) <= f64::from(most), "{run}");
        has_latencies(run);
    }
    assert_eq!(by_size.len(), 2);

    let open = run(&format!("{line} --clients 2 --rate 2000")).succeeded().json();
    let calls = number(&open["committed"]) + number(&open["aborted"]);
    assert_eq!(open["rate"], 2000.0);
    // Calls come when they come, and never more often.
    assert!((1.0..=650.0).contains(&calls), "{open}");
}

/// A store that clients made stays where it was asked for, and is whole.
#[test]
fn the_store_is_kept_where_it_was_asked_for() {
    let room = Room::new();
    let store = room.text("store");
    let line =
        format!("bench smallbank --customers 300 --device file:{store} --clients 4 --seconds 0.3");
    let ran = run(&line).succeeded();
    for word in [
        "smallbank through the library, customers 300",
        "4 threads call, 4 calls in flight",
        "throughput  ",
        "durable     yes: every answered transaction is on file:",
        "from call to answer, at a client",
        "verified    the workload's check found nothing wrong",
    ] {
        assert!(ran.stdout.contains(word), "{word:?} is not in\n{}", ran.stdout);
    }
    let check = run(&format!("check {store} --json")).succeeded().json();
    assert_eq!(check["clean"], true);
    assert_eq!(check["tables"][1]["rows"], 300);
    run(&line).failed(1, &["already holds a store", "another place"]);
    let recovered = run(&format!("recover {store} --json")).succeeded().json();
    assert_eq!(recovered["state_digest"], check["state_digest"]);
    let resume = format!("bench smallbank --device file:{store} --resume --epochs 3");
    run(&resume).failed(1, &["clients made this store", "no stream"]);
}

/// Without a word about it a few clients make many calls.
#[test]
fn a_run_is_one_of_clients_unless_it_is_asked_for_a_stream() {
    let line = "bench smallbank --customers 500 --device dram --seconds 0.1 --json -";
    run(line).failed(2, &["--clients"]);
    let line = "bench smallbank --customers 500 --device dram --json -";
    let report = run(line).succeeded().json();
    assert_eq!((&report["clients"], &report["in_flight"]), (&2.into(), &10_000.into()));
    assert!(number(&report["calls_per_epoch"]) > 100.0, "{report}");
}

#[test]
fn details_are_the_rows_for_which_calls_contend() {
    let line = "bench smallbank --customers 5 --device dram --clients 2 --in-flight 400 \
                --seconds 0.2";
    let ran = run(&format!("{line} --details")).succeeded();
    let table = ran.stdout.split("most contended rows of ").nth(1).expect("a table");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].ends_with("row") && lines[1].contains("writers"), "{table}");
    // Of two tables with five rows all are contended.
    let rows = lines.iter().skip(2).take_while(|line| !line.is_empty());
    let writers = rows.map(|line| line.split_whitespace().next().unwrap().parse::<u64>().unwrap());
    let writers: Vec<u64> = writers.collect();
    assert_eq!(writers.len(), 10, "{table}");
    assert!(writers.is_sorted_by(|a, b| a >= b) && writers[9] > 1, "{table}");
    let plain = run(line).succeeded().stdout;
    assert!(!plain.contains("contended rows"), "{plain}");
}

#[test]
fn options_that_clients_have_no_use_for_are_refused() {
    let line = "bench smallbank --device dram --clients 4";
    run(&format!("{line} --in-flight 3")).failed(2, &["--in-flight 3", "4 clients"]);
    run(&format!("{line} --seconds 0")).failed(2, &["0.01 to 86400"]);
    run(&format!("{line} --rate 0")).failed(2, &["0.001"]);
    run(&format!("{line} --clients 0")).failed(2, &["--clients"]);
    for option in ["--epochs 3", "--verify", "--resume", "--ack-log acks"] {
        run(&format!("{line} {option}")).failed(2, &["cannot be used with"]);
    }
    run("bench ycsb --in-flight 10").failed(2, &["--clients"]);
    run(&format!("{line} --in-flight 40 --batch 11")).failed(2, &["--batch 11", "10 calls"]);
    run(&format!("{line} --batch 2")).failed(2, &["--in-flight"]);
    let sizes = "bench ycsb --device dax:/tmp/none --clients 1 --epoch-sizes 5";
    run(sizes).failed(2, &["room for one store"]);
}
