//! A box office: asynchronous callers buy the cheapest seats of an event, give some back, and pay
//! each other; a report reads while they do.
//!
//!     cargo run --release -p nvcaracal --example tickets [DIRECTORY]
//!
//! The first run makes the store with last year's program, whose orders said less. Then, and in
//! every further run, this year's program opens it and sells another event.

use std::path::Path;

use nvcaracal::{
    Data, Database, Error, HashTable, Index, Key, Sequence, Stop, Table, Transaction, procedure,
};
use tokio::task::JoinSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Key, Data)]
struct EventId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Key, Data)]
struct UserId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Key, Data)]
struct SeatKey {
    event: EventId,
    row: u16,
    number: u16,
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Seat {
    cents: i64,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Data)]
enum State {
    Free,
    Sold { order: u64 },
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Wallet {
    name: String,
    cents: i64,
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = OrderOfLastYear)]
struct Order {
    user: UserId,
    seat: SeatKey,
    cents: i64,
    gift_for: Option<String>,
    is_refunded: bool,
}

#[derive(Data)]
struct OrderOfLastYear {
    user: UserId,
    seat: SeatKey,
    cents: i64,
}

impl From<OrderOfLastYear> for Order {
    fn from(OrderOfLastYear { user, seat, cents }: OrderOfLastYear) -> Self {
        Self { user, seat, cents, gift_for: None, is_refunded: false }
    }
}

const EVENT_IDS: Sequence = Sequence::new("event ids");
const EVENTS: Table<EventId, String> = Table::ordered("events");
const SEATS: Table<SeatKey, Seat> = Table::ordered("seats");
const WALLETS: HashTable<UserId, Wallet> = Table::hash("wallets");
const ORDERS: Table<u64, Order> = Table::ordered("orders");

const FREE: Index<(EventId, i64), SeatKey, Seat> =
    SEATS.index("free", |key, seat| (seat.state == State::Free).then_some((key.event, seat.cents)));
const BY_USER: Index<UserId, u64, Order> = ORDERS.index("by user", |_, order| Some(order.user));

/// Why a call was refused: its caller gets this back.
#[derive(Debug, PartialEq, Data, thiserror::Error)]
enum Refusal {
    #[error("sold out")]
    SoldOut,
    #[error("{0:?} has no wallet")]
    NoWallet(UserId),
    #[error("{missing} cents are missing")]
    TooExpensive { missing: i64 },
    #[error("there is no such order, or no longer")]
    NothingToRefund,
}

/// Puts money into a wallet, or takes some out.
fn pay(tx: &mut Transaction, user: UserId, cents: i64) -> Result<(), Stop> {
    let wallet = tx.get(WALLETS, user)?.ok_or(Refusal::NoWallet(user))?;
    let cents = wallet.cents + cents;
    if cents < 0 {
        Err(Refusal::TooExpensive { missing: -cents })?;
    }
    tx.update(WALLETS, user, &Wallet { cents, ..wallet })?;
    Ok(())
}

#[procedure(sequences(EVENT_IDS))]
fn announce(tx: &mut Transaction, title: &String, rows: u16, seats: u16) -> Result<EventId, Stop> {
    let event = EventId(tx.sequence_number(0) as u32);
    tx.insert(EVENTS, event, title)?;
    for (row, number) in (0..rows).flat_map(|row| (0..seats).map(move |number| (row, number))) {
        let seat = Seat { cents: 5000 - 100 * i64::from(row), state: State::Free };
        tx.insert(SEATS, SeatKey { event, row, number }, &seat)?;
    }
    Ok(event)
}

#[procedure]
fn enrol(tx: &mut Transaction, user: UserId, name: String, cents: i64) -> Result<(), Stop> {
    tx.insert(WALLETS, user, &Wallet { name, cents })
}

/// Buys the cheapest free seat. The number is the caller's, so that the call can be repeated.
#[procedure]
fn buy(
    tx: &mut Transaction,
    number: u64,
    event: EventId,
    user: UserId,
    gift_for: Option<String>,
) -> Result<SeatKey, Stop> {
    if let Some(done) = tx.get(ORDERS, number)? {
        return Ok(done.seat);
    }
    let cheapest = tx.range_by(FREE, (event, 0)..=(event, i64::MAX)).next();
    let (seat, Seat { cents, .. }) = cheapest.transpose()?.ok_or(Refusal::SoldOut)?;
    pay(tx, user, -cents)?;
    tx.update(SEATS, seat, &Seat { cents, state: State::Sold { order: number } })?;
    tx.insert(ORDERS, number, &Order { user, seat, cents, gift_for, is_refunded: false })?;
    Ok(seat)
}

#[procedure]
fn refund(tx: &mut Transaction, number: u64) -> Result<i64, Stop> {
    let order = tx.get(ORDERS, number)?.filter(|order| !order.is_refunded);
    let order = order.ok_or(Refusal::NothingToRefund)?;
    let (user, cents) = (order.user, order.cents);
    tx.update(SEATS, order.seat, &Seat { cents, state: State::Free })?;
    tx.update(ORDERS, number, &Order { is_refunded: true, ..order })?;
    pay(tx, user, cents)?;
    Ok(cents)
}

#[procedure]
fn transfer(tx: &mut Transaction, from: UserId, to: UserId, cents: i64) -> Result<(), Stop> {
    pay(tx, from, -cents)?;
    pay(tx, to, cents)
}

/// Last year's program: it knew less of orders, and had no indexes.
mod last_year {
    use super::*;

    const ORDERS: Table<u64, OrderOfLastYear> = Table::ordered("orders");

    #[procedure]
    fn sell_at_the_door(
        tx: &mut Transaction,
        number: u64,
        user: UserId,
        seat: SeatKey,
    ) -> Result<(), Stop> {
        let Seat { cents, .. } = tx.get(SEATS, seat)?.ok_or("there is no such seat")?;
        tx.update(SEATS, seat, &Seat { cents, state: State::Sold { order: number } })?;
        tx.insert(ORDERS, number, &OrderOfLastYear { user, seat, cents })
    }

    pub(super) fn run(path: &Path) -> Result<(), Error> {
        let options = Database::options().sequence(EVENT_IDS).table(EVENTS).table(SEATS);
        let options = options.table(ORDERS).procedure::<Announce>().procedure::<SellAtTheDoor>();
        let db = options.open(path)?;
        let event = db.call(Announce { title: "First night".into(), rows: 1, seats: 3 })?;
        let seat = SeatKey { event, row: 0, number: 1 };
        db.call(SellAtTheDoor { number: 1, user: UserId(1), seat })?;
        db.close()
    }
}

fn open(path: &Path) -> Result<Database, Error> {
    let options = Database::options().sequence(EVENT_IDS).table(EVENTS).table(SEATS);
    let options = options.table(WALLETS).table(ORDERS).index(FREE).index(BY_USER);
    let options = options.procedure::<Announce>().procedure::<Enrol>().procedure::<Buy>();
    options.procedure::<Refund>().procedure::<Transfer>().open(path)
}

/// Users buy at once until the event is sold out; then every tenth gives the ticket back.
async fn sell(db: &Database, event: EventId, first: u64) -> Result<(), Error> {
    let mut users = JoinSet::new();
    for i in 0..300 {
        let (db, user) = (db.clone(), UserId(i as u32 % 100));
        users.spawn(async move {
            let gift_for = (i % 7 == 0).then(|| "Grace".to_string());
            db.call_async(Buy { number: first + i, event, user, gift_for }).await?;
            db.call_async(Transfer { from: user, to: UserId(0), cents: 1 }).await?;
            Ok::<_, Error>(first + i)
        });
    }
    let mut sold = Vec::new();
    while let Some(user) = users.join_next().await {
        match user.expect("users do not panic") {
            Ok(number) => sold.push(number),
            Err(error) if error.abort_as() != Some(Refusal::SoldOut) => return Err(error),
            Err(_) => {}
        }
    }
    let mut back = JoinSet::new();
    for number in sold.into_iter().filter(|number| number % 10 == 0) {
        let db = db.clone();
        back.spawn(async move { db.call_async(Refund { number }).await });
    }
    while let Some(user) = back.join_next().await {
        user.expect("users do not panic")?;
    }
    Ok(())
}

/// What was sold, all of one moment: rows of last year are read as what they are now.
fn report(db: &Database) -> Result<(), Error> {
    let snapshot = db.snapshot()?;
    for row in snapshot.range(EVENTS, ..) {
        let (event, title) = row?;
        let orders = snapshot.range(ORDERS, ..).filter_map(Result::ok).map(|(_, order)| order);
        let (refunded, kept): (Vec<_>, Vec<_>) =
            orders.filter(|order| order.seat.event == event).partition(|order| order.is_refunded);
        let gifts = kept.iter().filter(|order| order.gift_for.is_some()).count();
        let cents: i64 = kept.iter().map(|order| order.cents).sum();
        let (kept, back) = (kept.len(), refunded.len());
        println!("{title}: {kept} sold, {gifts} of them gifts, {back} given back, {cents} cents");
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1).map_or(std::env::temp_dir().join("tickets"), Into::into);
    if !path.exists() {
        last_year::run(&path)?;
    }
    let db = open(&path)?;
    for user in 0..100 {
        db.call(Enrol { user: UserId(user), name: format!("user {user}"), cents: 50_000 })?;
    }
    let event = db.call(Announce { title: "A matinee".into(), rows: 10, seats: 20 })?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(sell(&db, event, u64::from(event.0) * 1000))?;
    report(&db)?;
    let orders = db.snapshot()?.range_by(BY_USER, UserId(1)..=UserId(1)).count();
    println!("user 1 has ordered {orders} times, {:?}", db.get(WALLETS, UserId(1))?);
    let refused = db.call(Buy { number: 1 << 40, event, user: UserId(777), gift_for: None });
    println!("user 777 buys: {}", refused.expect_err("there is no such user"));
    db.close()
}
