//! Each of TPC-C's consistency conditions can fail: one value is damaged, and exactly the
//! conditions that it is part of complain.

use std::collections::BTreeSet;

use crate::support::Run;
use workloads::tpcc::schema::{
    CUSTOMERS, CUSTOMERS_BY_NAME, Customer, DISTRICT, HISTORY, History, NEW_ORDERS, ORDER_IDS,
    ORDER_LINES, ORDERS, ORDERS_BY_CUSTOMER, Order, OrderLine, STOCK, Site, Stock, WAREHOUSES,
    customer_key, district_code, district_key, line_key, order_key, warehouse_key,
};
use workloads::tpcc::{Mix, Tpcc, TpccSettings};
use workloads::{TableId, View};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

struct Damage {
    run: Run,
    code: u32,
    /// An order of the district that is not delivered, and not the newest or oldest of those.
    undelivered: u32,
}

impl Damage {
    fn new() -> Self {
        let workload = Tpcc::new(TpccSettings::tiny(1, Mix::Full)).unwrap();
        let mut run = Run::load(&workload);
        run.epochs(&workload, 2, 300);
        assert_eq!(run.check(), Vec::<String>::new());
        let code = district_code(1, 4);
        let mut orders = Vec::new();
        run.oracle.for_each(NEW_ORDERS, &mut |key, _| {
            if key[..4] == code.to_be_bytes() {
                orders.push(u32::from_be_bytes(key[4..].try_into().unwrap()));
            }
        });
        assert!(orders.len() >= 3);
        Self { run, code, undelivered: orders[orders.len() / 2] }
    }

    fn change<R>(&mut self, table: TableId, key: &[u8], change: impl FnOnce(&mut R))
    where
        R: FromBytes + IntoBytes + KnownLayout + Immutable,
    {
        let mut value = self.run.oracle.get(table, key).unwrap();
        change(R::mut_from_bytes(&mut value).unwrap());
        self.run.oracle.plant(table, key, Some(&value));
    }

    fn remove(&mut self, table: TableId, key: &[u8]) {
        assert!(self.run.oracle.get(table, key).is_some());
        self.run.oracle.plant(table, key, None);
    }

    fn first_key(&self, table: TableId) -> Vec<u8> {
        let mut first = Vec::new();
        self.run.oracle.for_each(table, &mut |key, _| {
            if first.is_empty() {
                first = key.to_vec();
            }
        });
        first
    }
}

/// Damages a good state, then expects these kinds of complaints.
fn check(expected: &[&str], damage: impl FnOnce(&mut Damage)) {
    let mut state = Damage::new();
    damage(&mut state);
    let lines = state.run.check();
    let kinds: BTreeSet<_> = lines.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(kinds, expected.iter().copied().collect::<BTreeSet<_>>(), "{lines:#?}");
}

#[test]
fn condition_1_and_8_warehouse_ytd() {
    check(&["condition 1", "condition 8"], |state| {
        state.change(WAREHOUSES, &warehouse_key(1), |row: &mut Site| row.ytd += 1);
    });
}

#[test]
fn condition_2_next_order_id() {
    check(&["condition 2"], |state| {
        let key = district_key(state.code);
        let value = state.run.oracle.get(ORDER_IDS, &key).unwrap();
        let next = u64::from_le_bytes(value.try_into().unwrap()) + 1;
        state.run.oracle.plant(ORDER_IDS, &key, Some(&next.to_le_bytes()));
    });
}

#[test]
fn condition_3_hole_in_new_orders() {
    check(&["condition 3", "condition 5", "condition 11"], |state| {
        state.remove(NEW_ORDERS, &order_key(state.code, state.undelivered));
    });
}

#[test]
fn condition_4_and_6_missing_line() {
    check(&["condition 4", "condition 6"], |state| {
        state.remove(ORDER_LINES, &line_key(state.code, state.undelivered, 2));
    });
}

#[test]
fn condition_5_and_7_carrier_of_an_undelivered_order() {
    check(&["condition 5", "condition 7"], |state| {
        let key = order_key(state.code, state.undelivered);
        state.change(ORDERS, &key, |row: &mut Order| row.carrier = 3);
    });
}

#[test]
fn condition_6_and_4_line_count() {
    check(&["condition 4", "condition 6"], |state| {
        let key = order_key(state.code, state.undelivered);
        state.change(ORDERS, &key, |row: &mut Order| row.line_count += 1);
    });
}

#[test]
fn condition_7_delivery_date_taken_away() {
    check(&["condition 7"], |state| {
        let key = line_key(state.code, 1, 1);
        state.change(ORDER_LINES, &key, |row: &mut OrderLine| row.delivery_date = 0.into());
    });
}

#[test]
fn condition_8_9_and_10_history() {
    check(&["condition 8", "condition 9", "condition 10"], |state| {
        let key = state.first_key(HISTORY);
        state.change(HISTORY, &key, |row: &mut History| row.amount += 1);
    });
}

#[test]
fn condition_9_district_ytd() {
    check(&["condition 1", "condition 9", "payments"], |state| {
        let key = district_key(state.code);
        state.change(DISTRICT, &key, |row: &mut Site| row.ytd += 1);
    });
}

#[test]
fn condition_10_and_12_balance() {
    check(&["condition 10", "condition 12"], |state| {
        let key = customer_key(state.code, 7);
        state.change(CUSTOMERS, &key, |row: &mut Customer| row.account.balance += 1);
    });
}

#[test]
fn condition_11_delivery_count() {
    check(&["condition 11", "deliveries"], |state| {
        let key = customer_key(state.code, 7);
        state.change(CUSTOMERS, &key, |row: &mut Customer| row.account.delivery_count += 1);
    });
}

#[test]
fn condition_12_ytd_payment() {
    check(&["condition 12"], |state| {
        let key = customer_key(state.code, 7);
        state.change(CUSTOMERS, &key, |row: &mut Customer| row.account.ytd_payment += 1);
    });
}

#[test]
fn indexes_and_stock_against_the_answers() {
    check(&["index"], |state| {
        let key = state.first_key(CUSTOMERS_BY_NAME);
        state.remove(CUSTOMERS_BY_NAME, &key);
        let key = state.first_key(ORDERS_BY_CUSTOMER);
        state.remove(ORDERS_BY_CUSTOMER, &key);
    });
    check(&["stock"], |state| {
        let key = state.first_key(STOCK);
        state.change(STOCK, &key, |row: &mut Stock| row.level.ytd += 1);
    });
}

#[test]
fn a_committed_order_that_vanished_whole_is_found() {
    // All conditions still hold: only the answers know that there was one more.
    check(&["index", "orders"], |state| {
        let mut newest = 0;
        state.run.oracle.for_each(NEW_ORDERS, &mut |key, _| {
            if key[..4] == state.code.to_be_bytes() {
                newest = u32::from_be_bytes(key[4..].try_into().unwrap());
            }
        });
        let code = state.code;
        state.remove(NEW_ORDERS, &order_key(code, newest));
        state.remove(ORDERS, &order_key(code, newest));
        for line in 1..=15 {
            state.run.oracle.plant(ORDER_LINES, &line_key(code, newest, line), None);
        }
        let key = district_key(code);
        let value = state.run.oracle.get(ORDER_IDS, &key).unwrap();
        let next = u64::from_le_bytes(value.try_into().unwrap()) - 1;
        state.run.oracle.plant(ORDER_IDS, &key, Some(&next.to_le_bytes()));
    });
}

#[test]
fn stray_and_unreadable_rows_are_named() {
    check(&["condition 2", "condition 11", "index", "orders", "stray row"], |state| {
        let row = state.run.oracle.get(ORDERS, &order_key(state.code, 1)).unwrap();
        let mut order = row.clone();
        Order::mut_from_bytes(&mut order).unwrap().line_count = 0;
        state.run.oracle.plant(ORDERS, &order_key(state.code, u32::MAX), Some(&order));
    });
    let kinds = ["unreadable row", "missing customer", "condition 11", "deliveries", "index"];
    check(&kinds, |state| {
        // A customer whom no delivery has reached would leave condition 11 alone: take all of them.
        for customer in 1..=60 {
            let key = customer_key(state.code, customer);
            state.run.oracle.plant(CUSTOMERS, &key, Some(b"short"));
        }
    });
}
