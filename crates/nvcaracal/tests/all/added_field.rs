//! The guide's example of a field that is added to a type (docs/guide/schema-changes.md), as a
//! program and its successor live with it: rows of both versions on a file, over closes and kills.
//!
//! The example's own code ended before an order was inserted by the second program. The first such
//! insert destroyed the store: orders of eight bytes are rows of one line, longer ones are not.

use pmem::AnyDevice;
use std::path::Path;

use nvcaracal::{Data, Database, Options, Stop, Table, Transaction, procedure};

use crate::common::copy;

#[derive(Debug, Clone, PartialEq, Data)]
struct OrderV1 {
    cents: u64,
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = OrderV1)]
struct Order {
    cents: u64,
    gift_for: Option<String>,
}

impl From<OrderV1> for Order {
    fn from(OrderV1 { cents }: OrderV1) -> Self {
        Self { cents, gift_for: None }
    }
}

const BEFORE: Table<u64, OrderV1> = Table::ordered("orders");
const ORDERS: Table<u64, Order> = Table::ordered("orders");

#[procedure]
fn old_order(tx: &mut Transaction, number: u64, cents: u64) -> Result<(), Stop> {
    tx.insert(BEFORE, number, &OrderV1 { cents })
}

#[procedure]
fn place(tx: &mut Transaction, number: u64, order: &Order) -> Result<(), Stop> {
    tx.insert(ORDERS, number, order)
}

#[procedure]
fn give(tx: &mut Transaction, number: u64, to: &str) -> Result<(), Stop> {
    let order = tx.get(ORDERS, number)?.ok_or("no such order")?;
    tx.update(ORDERS, number, &Order { gift_for: Some(to.to_string()), ..order })?;
    Ok(())
}

#[procedure]
fn cancel(tx: &mut Transaction, number: u64) -> Result<bool, Stop> {
    tx.delete(ORDERS, number)
}

fn options() -> Options {
    Database::options().workers(2).data_bytes_max(1 << 30)
}

fn second() -> Options {
    options().table(ORDERS).procedure::<Place>().procedure::<Give>().procedure::<Cancel>()
}

fn order(cents: u64, gift_for: Option<&str>) -> Order {
    Order { cents, gift_for: gift_for.map(str::to_string) }
}

/// Opens a store, compares its rows, closes it and checks it.
fn assert_rows(dir: &Path, expected: &[(u64, Order)]) {
    let db = second().open(dir).unwrap();
    let rows: Vec<_> = db.snapshot().unwrap().range(ORDERS, ..).map(Result::unwrap).collect();
    assert_eq!(rows, expected);
    db.close().unwrap();
    let file = pmem::File::open(dir, &pmem::FileOptions::new(1 << 30, 1 << 30)).unwrap();
    let report = storage::check::check(AnyDevice::new(file)).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// O-93: what the guide does, and what a program does after it.
#[test]
fn o_93_the_guides_orders_get_a_field() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("shop"), dir.path().join("killed"));
    let db = options().table(BEFORE).procedure::<OldOrder>().open(&path).unwrap();
    for number in 1..=4 {
        db.call(OldOrder { number, cents: number * 100 }).unwrap();
    }
    db.close().unwrap();

    let db = second().open(&path).unwrap();
    db.call(Give { number: 1, to: "Grace".into() }).unwrap();
    // None of these fits a row of eight bytes: one is a little longer, one much longer.
    db.call(Place { number: 5, order: order(500, None) }).unwrap();
    db.call(Place { number: 6, order: order(600, Some(&"Ada".repeat(100))) }).unwrap();
    db.call(Place { number: 7, order: order(700, Some("Edsger")) }).unwrap();
    db.call(Give { number: 5, to: "Barbara".into() }).unwrap();
    assert!(db.call(Cancel { number: 2 }).unwrap() && db.call(Cancel { number: 7 }).unwrap());
    copy(&path, &killed);
    db.close().unwrap();
    let mut expected = vec![
        (1, order(100, Some("Grace"))),
        (3, order(300, None)),
        (4, order(400, None)),
        (5, order(500, Some("Barbara"))),
        (6, order(600, Some(&"Ada".repeat(100)))),
    ];
    assert_rows(&killed, &expected);
    assert_rows(&path, &expected);

    // Rows that were read back change, and come again.
    let db = second().open(&path).unwrap();
    db.call(Give { number: 4, to: "Alan".into() }).unwrap();
    db.call(Place { number: 2, order: order(20, None) }).unwrap();
    db.call(Place { number: 6, order: order(66, None) }).unwrap();
    db.close().unwrap();
    expected[2].1 = order(400, Some("Alan"));
    expected[4].1 = order(66, None);
    expected.insert(1, (2, order(20, None)));
    assert_rows(&path, &expected);
}
