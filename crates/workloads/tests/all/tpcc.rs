//! TPC-C on the serial oracle: data and calls follow the rules, the state stays consistent over
//! epochs of both mixes, and orders are delivered in the order of their ids.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Run, check_commit_points, check_generate_is_deterministic, check_pieces};
use workloads::oracle::{Oracle, OracleAnswer};
use workloads::tpcc::schema::{
    CUSTOMERS, CUSTOMERS_BY_NAME, Customer, DELIVERIES, DISTRICT, HISTORY, ITEMS, NEW_ORDERS,
    ORDER_IDS, ORDER_LINES, ORDERS, ORDERS_BY_CUSTOMER, STOCK, WAREHOUSES, district_code,
    district_key,
};
use workloads::tpcc::{Mix, Tpcc, TpccSettings};
use workloads::{StreamEpoch, TableId, View, Workload, code};
use zerocopy::FromBytes;

fn tiny(warehouses: u32, mix: Mix) -> Tpcc {
    Tpcc::new(TpccSettings::tiny(warehouses, mix)).unwrap()
}

fn count(oracle: &Oracle, table: TableId) -> u64 {
    let mut rows = 0;
    oracle.for_each(table, &mut |_, _| rows += 1);
    rows
}

fn little_endian(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(4);
    words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn loaded_data_have_the_right_counts_and_are_consistent() {
    let workload = tiny(2, Mix::Full);
    let run = Run::load(&workload);
    assert_eq!(run.check(), Vec::<String>::new());
    for (table, rows) in [
        (WAREHOUSES, 2),
        (DISTRICT, 20),
        (CUSTOMERS, 1_200),
        (CUSTOMERS_BY_NAME, 1_200),
        (HISTORY, 1_200),
        (ORDERS, 1_200),
        (ORDERS_BY_CUSTOMER, 1_200),
        (NEW_ORDERS, 360),
        (ITEMS, 1_000),
        (STOCK, 2_000),
        (DELIVERIES, 2),
    ] {
        assert_eq!(count(&run.oracle, table), rows, "{table:?}");
    }
    let lines = count(&run.oracle, ORDER_LINES);
    assert!((1_200 * 9..1_200 * 11).contains(&lines), "{lines}");
}

#[test]
fn every_customer_has_one_initial_order() {
    let oracle = Oracle::loaded(&tiny(1, Mix::Full));
    let mut customers = BTreeSet::new();
    oracle.for_each(ORDERS_BY_CUSTOMER, &mut |key, _| {
        customers.insert(u64::from_be_bytes(key.try_into().unwrap()) >> 28);
    });
    assert_eq!(customers.len(), 600);
}

#[test]
fn load_transactions_are_small_and_the_standard_counts_are_right() {
    let workload = Tpcc::new(TpccSettings::standard(3, Mix::Full)).unwrap();
    let per_warehouse = 1 + 400 + 10 * (30 + 188);
    assert_eq!(workload.load_count(), 400 + 3 * per_warehouse);
    let mut kinds = BTreeMap::new();
    for i in 0..workload.load_count() {
        let mut args = Vec::new();
        *kinds.entry(workload.load(i, &mut args)).or_insert(0) += 1;
        assert!(args.len() < 40);
    }
    let expected = [(5, 400), (6, 3), (7, 1_200), (8, 900), (9, 5_640)];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn names_follow_the_rules_in_a_standard_district() {
    let settings =
        TpccSettings { customers_per_district: 3_000, ..TpccSettings::tiny(1, Mix::Full) };
    let workload = Tpcc::new(settings).unwrap();
    let oracle = Oracle::loaded(&workload);
    let mut names = BTreeMap::<_, u32>::new();
    let (mut bad_credit, mut first_names) = (0, BTreeSet::new());
    oracle.for_each(CUSTOMERS, &mut |key, value| {
        let customer = Customer::ref_from_bytes(value).unwrap();
        if key[..4] == district_code(1, 1).to_be_bytes() {
            *names.entry(customer.last).or_default() += 1;
            bad_credit += u32::from(customer.credit == *b"BC");
            first_names.insert(customer.first);
        }
    });
    assert_eq!(names.len(), 1_000);
    assert_eq!(names.values().sum::<u32>(), 3_000);
    assert!(*names.values().max().unwrap() > 8, "last names are allocated evenly");
    assert!((230..370).contains(&bad_credit), "{bad_credit}");
    assert!(first_names.len() > 2_990);
}

#[test]
fn both_mixes_stay_consistent() {
    for (warehouses, mix) in [(1, Mix::Paper), (1, Mix::Full), (3, Mix::Paper), (3, Mix::Full)] {
        let workload = tiny(warehouses, mix);
        let mut run = Run::load(&workload);
        for _ in 0..5 {
            run.epochs(&workload, 1, 400);
            assert_eq!(run.check(), Vec::<String>::new(), "{warehouses} {mix:?}");
        }
        assert_eq!(run.deferred, 0);
        assert!(run.counts().values().all(|counts| counts[2] == 0), "{:?}", run.counts());
    }
}

#[test]
fn the_mix_and_the_rollbacks_have_their_shares() {
    let workload = tiny(2, Mix::Full);
    let mut run = Run::load(&workload);
    run.epochs(&workload, 20, 500);
    assert_eq!(run.check(), Vec::<String>::new());
    let counts = run.counts();
    for (procedure, share) in [(0, 4_500), (1, 4_300), (2, 400), (3, 400), (4, 400)] {
        let all: u64 = counts[&procedure].iter().sum();
        assert!(all.abs_diff(share) < share / 5, "{procedure}: {all}");
    }
    let rolled_back = counts[&0][1];
    assert!((20..80).contains(&rolled_back), "{rolled_back}");
    let only_unused = run.answered.iter().all(|((procedure, _), answer)| match answer {
        OracleAnswer::Aborted(reason) => *procedure == 0 && *reason == code::UNUSED_ITEM,
        answer => matches!(answer, OracleAnswer::Committed(_)),
    });
    assert!(only_unused);
    // Order ids are dense although some orders were rolled back.
    let mut allocation = 0;
    run.oracle.for_each(ORDER_IDS, &mut |_, next| {
        allocation += u64::from_le_bytes(next.try_into().unwrap());
    });
    assert_eq!(allocation, counts[&0][0]);
}

#[test]
fn orders_are_delivered_in_order_and_only_once() {
    let workload = tiny(1, Mix::Full);
    let mut run = Run::load(&workload);
    // Few initial orders and large epochs, so that districts run out of orders.
    run.epochs(&workload, 6, 1_500);
    assert_eq!(run.check(), Vec::<String>::new());
    let mut next = [43_u32; 10];
    let (mut delivered, mut skipped) = (0, 0);
    for ((procedure, _), answer) in &run.answered {
        let (3, OracleAnswer::Committed(output)) = (procedure, answer) else { continue };
        assert_eq!(output.len(), 40);
        for (district, order) in little_endian(output).into_iter().enumerate() {
            if order == 0 {
                skipped += 1;
                continue;
            }
            assert_eq!(order, next[district]);
            next[district] += 1;
            delivered += 1;
        }
    }
    assert!(skipped > 100 && delivered > 2_000, "{delivered} delivered, {skipped} skipped");
    let mut left = 0;
    run.oracle.for_each(NEW_ORDERS, &mut |_, _| left += 1);
    assert_eq!(left + delivered, 180 + run.counts()[&0][0]);
}

#[test]
fn read_only_answers_agree_with_the_state() {
    let workload = tiny(1, Mix::Full);
    let mut run = Run::load(&workload);
    run.epochs(&workload, 2, 300);
    let mut checked = [0; 2];
    for position in 0..200 {
        let mut args = Vec::new();
        let procedure = workload.generate(StreamEpoch(9), position, &mut args);
        if procedure != 2 && procedure != 4 {
            continue;
        }
        let answers = run.oracle.run_epoch(&[(procedure, &args)], 0);
        let OracleAnswer::Committed(output) = &answers[0] else { panic!("{:?}", answers[0]) };
        if procedure == 4 {
            assert!(little_endian(output)[0] <= 300);
            checked[1] += 1;
            continue;
        }
        let code = district_code(1, args[4]);
        let customer = u32::from_le_bytes(output[..4].try_into().unwrap());
        let order = u32::from_le_bytes(output[12..16].try_into().unwrap());
        let mut last = 0;
        run.oracle.for_each(ORDERS, &mut |key, value| {
            if key[..4] == code.to_be_bytes() && value[..4] == customer.to_le_bytes() {
                last = u32::from_be_bytes(key[4..].try_into().unwrap());
            }
        });
        assert_eq!(order, last);
        let lines = (output.len() - 25) / 21;
        assert!((5..=15).contains(&lines) && (output.len() - 25) % 21 == 0);
        checked[0] += 1;
    }
    assert!(checked[0] > 2 && checked[1] > 2, "{checked:?}");
}

#[test]
fn stock_level_counts_what_is_short() {
    let workload = tiny(1, Mix::Full);
    let mut oracle = Oracle::loaded(&workload);
    let mut args = Vec::new();
    let position = (0..).find(|&position| {
        args.clear();
        workload.generate(StreamEpoch(0), position, &mut args) == 4
    });
    assert!(position.is_some());
    let level = |oracle: &mut Oracle, threshold: u32| {
        let mut args = args.clone();
        args[5..9].copy_from_slice(&threshold.to_le_bytes());
        match &oracle.run_epoch(&[(4, &args)], 0)[0] {
            OracleAnswer::Committed(output) => little_endian(output)[0],
            other => panic!("{other:?}"),
        }
    };
    let mut items = BTreeSet::new();
    let code = district_code(1, args[4]);
    oracle.for_each(ORDER_LINES, &mut |key, value| {
        let key = u64::from_be_bytes(key.try_into().unwrap());
        if key >> 40 == u64::from(code) && (key >> 8) as u32 > 40 {
            items.insert(u32::from_le_bytes(value[..4].try_into().unwrap()));
        }
    });
    assert_eq!(level(&mut oracle, 1_000), items.len() as u32);
    assert_eq!(level(&mut oracle, 0), 0);
    let twenty = level(&mut oracle, 20);
    assert!(twenty > 0 && twenty < items.len() as u32 / 2, "{twenty}");
}

#[test]
fn order_ids_continue_the_initial_ones() {
    let workload = tiny(1, Mix::Paper);
    let mut run = Run::load(&workload);
    run.epochs(&workload, 1, 300);
    let mut next = [61_u32; 11];
    for ((procedure, args), answer) in &run.answered {
        let (0, OracleAnswer::Committed(output)) = (procedure, answer) else { continue };
        let district = usize::from(args[20]);
        assert_eq!(u32::from_le_bytes(output[..4].try_into().unwrap()), next[district]);
        next[district] += 1;
    }
    for district in 1..=10_u8 {
        let allocation = run.oracle.get(ORDER_IDS, &district_key(district_code(1, district)));
        assert_eq!(allocation.unwrap()[..4], (next[usize::from(district)] - 61).to_le_bytes());
    }
}

#[test]
fn commit_points_change_nothing_and_aborts_come_before_them() {
    for mix in [Mix::Paper, Mix::Full] {
        let plain = tiny(2, mix);
        let early = TpccSettings { commit_points: true, ..plain.settings().clone() };
        check_commit_points((&plain, &Tpcc::new(early).unwrap()), (3, 1_500), &[0, 1, 3]);
    }
}

/// The longest chain is that of the warehouse's row, whole and cut: all payments. Cut, a link of it
/// is the update of a row, not a call.
#[test]
fn pieces_change_nothing_and_payments_remain_a_chain() {
    for mix in [Mix::Paper, Mix::Full] {
        let whole = tiny(1, mix);
        for commit_points in [false, true] {
            let cut = TpccSettings { pieces: true, commit_points, ..whole.settings().clone() };
            let [before, after] = check_pieces((&whole, &Tpcc::new(cut).unwrap()), (3, 1_500));
            let payments = 1_500 * 40 / 100..1_500 * 46 / 100;
            let are_payments = payments.contains(&before) && payments.contains(&after);
            assert!(are_payments, "{mix:?}: {before}, {after}");
        }
    }
}

/// Orders that no generator makes: the same item twice, and an item that is not there.
#[test]
fn an_order_of_other_items_comes_to_the_same_with_commit_points() {
    let plain = tiny(1, Mix::Paper);
    let early = TpccSettings { commit_points: true, ..plain.settings().clone() };
    let early = Tpcc::new(early).unwrap();
    let order = |change: fn(&mut [u8])| {
        let mut args = Vec::new();
        let is_order = |position: &u64| {
            args.clear();
            plain.generate(StreamEpoch(0), *position, &mut args) == 0
        };
        (0..).find(is_order).expect("an order");
        change(&mut args[22..]);
        args
    };
    let usual = order(|_| ());
    let twice = order(|lines| lines.copy_within(..9, 9));
    let unknown = order(|lines| lines[9..13].copy_from_slice(&1_001_u32.to_le_bytes()));
    for (args, points) in [(usual, 1), (twice, 0), (unknown, 0)] {
        let (mut one, mut other) = (Oracle::loaded(&plain), Oracle::loaded(&early));
        let calls: &[(_, &[u8])] = &[(0, &args)];
        let answers = one.run_epoch(calls, 0);
        assert_eq!(answers, other.run_epoch(calls, 0));
        assert_eq!(matches!(answers[0], OracleAnswer::Aborted(_)), args[31..35] == [0xe9, 3, 0, 0]);
        assert_eq!(other.commit_points(), points);
    }
}

#[test]
fn wrong_settings_are_refused() {
    let good = TpccSettings::tiny(1, Mix::Full);
    for bad in [
        TpccSettings { warehouses: 0, ..good.clone() },
        TpccSettings { warehouses: 1 << 20, ..good.clone() },
        TpccSettings { items: 99, ..good.clone() },
        TpccSettings { customers_per_district: 4_001, ..good.clone() },
    ] {
        assert!(Tpcc::new(bad.clone()).is_err(), "{bad:?}");
    }
}

#[test]
fn generation_is_deterministic() {
    check_generate_is_deterministic(&tiny(2, Mix::Full), &tiny(2, Mix::Full));
}
