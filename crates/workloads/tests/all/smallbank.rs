//! SmallBank on the serial oracle: money is conserved up to what the answers say, a lost cent is
//! found, one in ten of two transaction types aborts.

use crate::support::{Run, check_commit_points, check_generate_is_deterministic};
use workloads::View;
use workloads::oracle::OracleAnswer;
use workloads::smallbank::{ACCOUNTS, CHECKING, SAVINGS, SmallBank, SmallBankSettings};
use workloads::{StreamEpoch, Workload, code};

fn bank(customers: u64) -> SmallBank {
    SmallBank::new(SmallBankSettings::low(customers)).unwrap()
}

#[test]
fn money_agrees_with_the_answers() {
    for settings in [SmallBankSettings::low(1_000), SmallBankSettings::high(10_050)] {
        let workload = SmallBank::new(settings).unwrap();
        let mut run = Run::load(&workload);
        assert_eq!(run.check(), Vec::<String>::new());
        run.epochs(&workload, 4, 2_000);
        assert_eq!(run.check(), Vec::<String>::new());
        assert_eq!(run.deferred, 0);
    }
}

#[test]
fn one_in_ten_of_two_types_aborts() {
    let workload = bank(1_000);
    let mut run = Run::load(&workload);
    run.epochs(&workload, 10, 2_000);
    let counts = run.counts();
    for procedure in 0..5 {
        let [committed, aborted, failed] = counts[&procedure];
        let all = committed + aborted;
        assert!((3_800..4_200).contains(&all), "{procedure}: {all}");
        assert_eq!(failed, 0);
        match procedure {
            1 | 2 => assert!((aborted as f64 / all as f64 - 0.1).abs() < 0.02, "{aborted}"),
            _ => assert_eq!(aborted, 0),
        }
    }
    let codes = run.answered.iter().filter_map(|((procedure, _), answer)| match answer {
        OracleAnswer::Aborted(code) => Some((*procedure, *code)),
        _ => None,
    });
    let expected = [(1, code::NEGATIVE_AMOUNT), (2, code::INSUFFICIENT_FUNDS)];
    assert!(codes.into_iter().all(|pair| expected.contains(&pair)));
}

#[test]
fn commit_points_change_nothing_and_aborts_come_before_them() {
    for settings in [SmallBankSettings::low(1_000), SmallBankSettings::high(4_000)] {
        let early = SmallBankSettings { commit_points: true, ..settings.clone() };
        let (plain, early) = (SmallBank::new(settings).unwrap(), SmallBank::new(early).unwrap());
        check_commit_points((&plain, &early), (3, 2_000), &[1, 2, 3, 4]);
    }
}

#[test]
fn whoever_moves_money_to_himself_has_no_commit_point() {
    let early = SmallBankSettings { commit_points: true, ..SmallBankSettings::low(100) };
    let workload = SmallBank::new(early).unwrap();
    let mut oracle = workloads::oracle::Oracle::loaded(&workload);
    let key = 7_u64.to_be_bytes();
    let balance = |oracle: &workloads::oracle::Oracle, table| {
        i64::from_le_bytes(oracle.get(table, &key).unwrap().try_into().unwrap())
    };
    let money = balance(&oracle, SAVINGS) + balance(&oracle, CHECKING);
    let args = [7_u64.to_le_bytes(), 7_u64.to_le_bytes()].concat();
    let answers = oracle.run_epoch(&[(3, &args)], 0);
    assert!(matches!(answers[0], OracleAnswer::Committed(_)), "{answers:?}");
    assert_eq!((balance(&oracle, SAVINGS), balance(&oracle, CHECKING)), (0, money));
    assert_eq!(oracle.commit_points(), 0);
}

#[test]
fn a_lost_cent_is_found() {
    let workload = bank(300);
    let mut run = Run::load(&workload);
    run.epochs(&workload, 1, 500);
    let key = 200_u64.to_be_bytes();
    for table in [SAVINGS, CHECKING] {
        let row = run.oracle.get(table, &key).unwrap();
        let balance = i64::from_le_bytes(row.as_slice().try_into().unwrap());
        run.oracle.plant(table, &key, Some(&(balance - 1).to_le_bytes()));
        assert!(run.check()[0].starts_with("money not conserved"), "{:?}", run.check());
        run.oracle.plant(table, &key, Some(&row));
        assert_eq!(run.check(), Vec::<String>::new());
    }
}

#[test]
fn other_damage_is_found() {
    let workload = bank(300);
    let mut run = Run::load(&workload);
    let key = 5_u64.to_be_bytes();
    let row = run.oracle.get(ACCOUNTS, &key).unwrap();
    run.oracle.plant(ACCOUNTS, &key, Some(&6_u64.to_le_bytes()));
    assert!(run.check()[0].starts_with("wrong account"));
    run.oracle.plant(ACCOUNTS, &key, None);
    assert_eq!(run.check(), ["wrong row count: accounts: found is 299, customers is 300"]);
    run.oracle.plant(ACCOUNTS, &key, Some(&row));
    let savings = run.oracle.get(SAVINGS, &key).unwrap();
    let balance = i64::from_le_bytes(savings.as_slice().try_into().unwrap());
    run.oracle.plant(SAVINGS, &key, Some(&(-1_i64).to_le_bytes()));
    let other = run.oracle.get(CHECKING, &key).unwrap();
    let other = i64::from_le_bytes(other.as_slice().try_into().unwrap());
    run.oracle.plant(CHECKING, &key, Some(&(other + balance + 1).to_le_bytes()));
    let lines = run.check();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("negative savings"));
}

#[test]
fn hot_customers_get_their_share() {
    let workload = bank(18_000);
    let mut hot = 0;
    for position in 0..10_000 {
        let mut args = Vec::new();
        let procedure = workload.generate(StreamEpoch(0), position, &mut args);
        let customer = u64::from_le_bytes(args[..8].try_into().unwrap());
        assert!(customer < 18_000);
        hot += u32::from(customer < 1_000);
        if procedure == 3 {
            let other = u64::from_le_bytes(args[8..].try_into().unwrap());
            assert_ne!(customer, other);
            assert_eq!(customer < 1_000, other < 1_000);
        }
    }
    assert!((8_850..9_150).contains(&hot), "{hot}");
}

#[test]
fn presets_scale_and_wrong_settings_are_refused() {
    assert_eq!(SmallBankSettings::low(18_000_000).hot_customers, 1_000_000);
    assert_eq!(SmallBankSettings::high(18_000_000).hot_customers, 10_000);
    assert_eq!(SmallBankSettings::high(1_800_000).hot_customers, 1_000);
    let good = SmallBankSettings::low(100);
    for bad in [
        SmallBankSettings { hot_customers: 1, ..good.clone() },
        SmallBankSettings { hot_customers: 99, ..good.clone() },
        SmallBankSettings { hot_probability: 1.5, ..good.clone() },
        SmallBankSettings { customers: 1, ..good.clone() },
    ] {
        assert!(SmallBank::new(bad.clone()).is_err(), "{bad:?}");
    }
}

#[test]
fn generation_is_deterministic() {
    check_generate_is_deterministic(&bank(500), &bank(500));
}
