//! `bench ... --model`: says that it is a model, has what runs came to beside it, and refuses
//! designs that it knows nothing of.

use crate::support::run;

const YCSB: &str = "bench ycsb --rows 2000 --hot-rows 20 --hot-keys 7 --pieces --epochs 2 \
                    --epoch-size 200 --workers 2";

#[test]
fn a_model_tells_that_it_is_one_and_how_far_off() {
    for design in [
        "all-dram --split-threshold 8",
        "all-dram --split-threshold 8 --packing whole",
        "all-dram --append row-lock",
        "serial",
        "calvin",
        "bohm",
        "caracal",
        "granola",
        "pwv",
    ] {
        let line = format!("{YCSB} --design {design} --model 1,2,32");
        let report = run(&format!("{line} --json -")).succeeded().json();
        assert_eq!(report["is_model"], true, "{line}");
        let cores: Vec<_> = report["points"].as_array().expect("points").iter().collect();
        assert_eq!(cores.len(), 3, "{line}");
        for point in &cores {
            assert!(point["throughput_txn_per_s"].as_f64() > Some(0.0), "{line}: {point}");
        }
        assert_eq!((&report["workers"], &report["last"]), (&32.into(), cores[2]), "{line}");
        let checks = report["checks"].as_array().expect("checks");
        assert_eq!(checks.len(), 2, "{line}");
        // With one worker the model is what its costs add up to, but for the barriers.
        let error = checks[0]["error_percent"].as_f64().expect("a number");
        assert!(error.abs() < 60.0, "{line}: {error}");
        assert_eq!(report["error_percent"], checks[1]["error_percent"]);
    }
    let text = run(&format!("{YCSB} --design all-dram --model 8")).succeeded().stdout;
    assert!(text.starts_with("A model of ycsb") && text.contains("held against a run"), "{text}");
}

#[test]
fn a_model_of_cut_calls_has_a_shorter_longest_path() {
    let line = format!("{YCSB} --design all-dram --model 8 --model-cut --json -");
    let report = run(&line).succeeded().json();
    assert_eq!(report["is_cut"], true);
    let of = |name: &str| report["contention"][name].as_u64().expect("a number");
    assert!(of("path_cut") * 2 < of("path_whole"), "{}", report["contention"]);
    assert!(of("versions_most") > 20);
    run(&format!("{YCSB} --design all-dram --model-cut")).failed(2, &["--model"]);
}

/// What TPC-C's pieces take out of its longest path is nearly all that cutting every update would.
#[test]
fn a_model_has_the_pieces_that_calls_declare() {
    let tpcc = "bench tpcc --warehouses 1 --items 1000 --customers-per-district 60 --epochs 1 \
                --epoch-size 1000 --design all-dram --model 8 --json -";
    let path = |line: &str| {
        let report = run(line).succeeded().json();
        let of = |name: &str| report["contention"][name].as_u64().expect("a number");
        (of("path_whole"), of("path_pieces"), of("path_cut"))
    };
    let (whole, same, _) = path(tpcc);
    assert_eq!(whole, same, "no call declares a piece");
    let (_, pieces, cut) = path(&format!("{tpcc} --pieces --split-threshold 8"));
    assert!(pieces * 5 < whole, "{whole}, {pieces}");
    assert!(cut <= pieces && pieces < cut * 2, "{pieces}, {cut}");
}

#[test]
fn designs_without_a_model_are_refused() {
    for design in ["aria", "bcdb", "orthrus"] {
        run(&format!("{YCSB} --design {design} --model 8")).failed(2, &["there is no model"]);
    }
    run(&format!("{YCSB} --design bohm --model 0")).failed(2, &["--model"]);
    run(&format!("{YCSB} --design bohm --model 8 --verify")).failed(2, &["--verify"]);
}
