//! `bench contention` measures calls on hot rows, quiet and busy.

use crate::support::{Room, run};

#[test]
fn hot_rows_are_measured_in_all_variants_and_lose_no_addition() {
    let room = Room::new();
    let file = room.text("contention.json");
    let line = format!(
        "bench contention --quick --rows 1,30 --busy 0,2 --clients 4 --in-flight 50 --reads 2 \
         --value-bytes 100 --zipf --json {file}"
    );
    // It compares the sums of all rows with the calls that were answered.
    let ran = run(&line).succeeded();
    assert!(ran.stdout.contains("no write set"), "{ran:#?}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let settings = report["settings"].as_array().unwrap();
    let at = |setting: &serde_json::Value| (setting["busy"].as_u64(), setting["rows"].as_u64());
    let expected = [(0, 1), (0, 30), (2, 1), (2, 30)].map(|(b, r)| (Some(b), Some(r)));
    assert_eq!(settings.iter().map(at).collect::<Vec<_>>(), expected);
    for setting in settings {
        let variants = setting["variants"].as_array().unwrap();
        assert_eq!(variants.len(), 3);
        for variant in variants {
            assert!(variant["calls_per_s"].as_f64().unwrap() > 0.0, "{variant}");
            assert!(variant["cpu_ns_per_call"].as_f64().unwrap() > 0.0, "{variant}");
        }
        assert!(setting["ratio_to_best_least"].as_f64() <= setting["ratio_to_best"].as_f64());
        assert!(setting["cpu_to_one_worker"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn settings_beyond_their_limits_are_refused() {
    for (option, name) in
        [("--rows 0", "--rows"), ("--busy 65", "--busy"), ("--seconds 0", "seconds")]
    {
        run(&format!("bench contention {option}")).failed(2, &[name]);
    }
}
