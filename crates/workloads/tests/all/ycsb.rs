//! YCSB on the serial oracle: the counters add up, a lost or doubled update is found, keys are
//! distributed as the papers say.

use crate::support::{Run, check_generate_is_deterministic};
use workloads::oracle::Oracle;
use workloads::ycsb::{Contention, USERTABLE, Ycsb, YcsbSettings};
use workloads::{StreamEpoch, View, Workload, digest};

fn keys(workload: &Ycsb, position: u64) -> Vec<u64> {
    let mut args = Vec::new();
    workload.generate(StreamEpoch(0), position, &mut args);
    let words = args[8..88].chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn counters_agree_with_the_answers() {
    for settings in [
        YcsbSettings::paper(1_000, Contention::Medium),
        YcsbSettings::small_rows(1_050, Contention::High),
        YcsbSettings::caracal(1_000, Some(0.9)),
    ] {
        let workload = Ycsb::new(settings).unwrap();
        let mut run = Run::load(&workload);
        assert_eq!(run.check(), Vec::<String>::new());
        run.epochs(&workload, 3, 200);
        assert_eq!(run.counts()[&0], [600, 0, 0]);
        assert_eq!(run.deferred, 0);
        assert_eq!(run.check(), Vec::<String>::new());
    }
}

#[test]
fn a_lost_update_a_stray_row_and_a_missing_row_are_found() {
    let workload = Ycsb::new(YcsbSettings::small_rows(300, Contention::Low)).unwrap();
    let mut run = Run::load(&workload);
    run.epochs(&workload, 1, 50);
    let key = 7_u64.to_be_bytes();
    let row = run.oracle.get(USERTABLE, &key).unwrap();
    let mut wrong = row.clone();
    wrong[0] ^= 1;
    run.oracle.plant(USERTABLE, &key, Some(&wrong));
    assert!(run.check()[0].starts_with("wrong counter: row 7:"), "{:?}", run.check());
    run.oracle.plant(USERTABLE, &key, None);
    assert_eq!(run.check(), ["wrong row count: : found is 299, loaded is 300"]);
    run.oracle.plant(USERTABLE, &key, Some(&row));
    run.oracle.plant(USERTABLE, &300_u64.to_be_bytes(), Some(&row));
    assert_eq!(run.check().len(), 2);
}

#[test]
fn an_update_overwrites_its_part_and_only_that() {
    let settings = YcsbSettings::paper(10, Contention::Low);
    let workload = Ycsb::new(settings).unwrap();
    let mut oracle = Oracle::loaded(&workload);
    let key = 3_u64.to_be_bytes();
    let before = oracle.get(USERTABLE, &key).unwrap();
    let mut args = Vec::new();
    let procedure = workload.generate(StreamEpoch(0), 0, &mut args);
    assert_eq!(args.len(), 8 + 80 + 1000);
    let answers = oracle.run_epoch(&[(procedure, &args)], 0);
    let after = oracle.get(USERTABLE, &key).unwrap();
    assert_eq!(before[..8], 0_u64.to_le_bytes());
    assert_eq!(after[..8], 1_u64.to_le_bytes());
    let place = keys(&workload, 0).iter().position(|&k| k == 3).unwrap();
    assert_eq!(after[8..100], args[88 + place * 100 + 8..88 + place * 100 + 100]);
    assert_eq!(after[100..], before[100..]);
    assert!(matches!(&answers[0], workloads::oracle::OracleAnswer::Committed(o) if o.len() == 8));
}

#[test]
fn keys_are_unique_and_hot_as_told() {
    for (contention, hot_keys) in
        [(Contention::Low, 0), (Contention::Medium, 4), (Contention::High, 7)]
    {
        let workload = Ycsb::new(YcsbSettings::paper(1_000_000, contention)).unwrap();
        let mut hot_seen = 0;
        for position in 0..500 {
            let mut keys = keys(&workload, position);
            hot_seen += keys.iter().filter(|&&key| key < 256).count();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), 10);
            assert!(keys[9] < 1_000_000);
        }
        assert!((hot_keys * 500..hot_keys * 500 + 20).contains(&hot_seen), "{hot_seen}");
    }
}

#[test]
fn spaced_hot_rows_and_skew() {
    let mut settings = YcsbSettings::caracal_contended(10_000_000, Some(0.9));
    let workload = Ycsb::new(settings.clone()).unwrap();
    let mut spaced = 0;
    let mut cold = std::collections::HashMap::new();
    for position in 0..2_000 {
        for key in keys(&workload, position) {
            if key % (1 << 17) == 0 {
                spaced += 1;
            } else {
                *cold.entry(key).or_insert(0_u32) += 1;
            }
        }
    }
    assert!((14_000..14_100).contains(&spaced), "{spaced}");
    let top = cold.values().max().unwrap();
    assert!(*top > 50, "the most frequent cold key came {top} times in 6000");
    settings.rows = 1_000_000;
    let error = Ycsb::new(settings).unwrap_err().to_string();
    assert_eq!(error, "77 hot rows 131072 keys apart do not fit into 1000000 rows");
}

#[test]
fn wrong_settings_are_refused() {
    let good = YcsbSettings::paper(1_000, Contention::High);
    let bad = [
        YcsbSettings { hot_keys: 11, ..good.clone() },
        YcsbSettings { update_bytes: 1001, ..good.clone() },
        YcsbSettings { value_bytes: 7, update_bytes: 7, ..good.clone() },
        YcsbSettings { rows: 9, ..good.clone() },
        YcsbSettings { rows: 255, ..good.clone() },
        YcsbSettings { hot_rows: 6, ..good.clone() },
        YcsbSettings { read_keys: 11, ..good.clone() },
        YcsbSettings { theta: Some(1.0), ..good.clone() },
        YcsbSettings { keys_per_txn: 0, hot_keys: 0, ..good.clone() },
    ];
    for settings in bad {
        assert!(Ycsb::new(settings.clone()).is_err(), "{settings:?}");
    }
}

#[test]
fn generation_and_state_are_deterministic() {
    let workload = Ycsb::new(YcsbSettings::caracal(500, Some(0.9))).unwrap();
    check_generate_is_deterministic(&workload, &workload.clone());
    let digests: Vec<_> = (0..2)
        .map(|_| {
            let mut run = Run::load(&workload);
            run.epochs(&workload, 2, 50);
            digest::state_digest(&workload.tables(), &run.oracle)
        })
        .collect();
    assert_eq!(digests[0], digests[1]);
}
