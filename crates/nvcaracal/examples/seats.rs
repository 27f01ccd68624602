//! Many threads buy the cheapest free seat, without saying beforehand which one that will be:
//!
//!     cargo run --release -p nvcaracal --example seats -- THREADS SEATS [DEVICE] [SECONDS] [WAY]
//!
//! Each thread keeps a few seats and gives the oldest one back when it has enough, so that there is
//! always something to sell. DEVICE is `dram` if nothing is said, SECONDS is 3. WAY is `table`,
//! where free seats are rows of a table of their own, or `index`, where a seat is one row and free
//! ones are found by an index. The last line is `sold N failed N per_second N`.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nvcaracal::{
    Abort, Data, Database, DeviceSpec, Error, HashTable, Index, Procedure, Stop, Table, Transaction,
};

/// Free seats, cheapest first: price and number.
const FREE: Table<(u32, u32), u8> = Table::ordered("free");
/// Seats that are sold: price and who has it.
const SOLD: HashTable<u32, (u32, u64)> = Table::hash("sold");

/// In the other way a seat is a row, with its price and who has it ...
const SEATS: Table<u32, Seat> = Table::ordered("seats");
/// ... and free seats are found by their price.
const CHEAPEST: Index<u32, u32, Seat> =
    SEATS.index("cheapest", |_, seat| seat.owner.is_none().then_some(seat.price));

#[derive(Debug, Clone, PartialEq, Data)]
struct Seat {
    price: u32,
    owner: Option<u64>,
}

#[derive(Data)]
struct OfferRow {
    first: u32,
    count: u32,
}

#[derive(Data)]
struct BuyByIndex {
    user: u64,
}

#[derive(Data)]
struct RefundRow {
    seat: u32,
    user: u64,
}

#[derive(Data)]
struct Offer {
    first: u32,
    count: u32,
}

#[derive(Data)]
struct BuyCheapest {
    user: u64,
}

#[derive(Data)]
struct Refund {
    seat: u32,
    user: u64,
}

impl Procedure for Offer {
    const NAME: &'static str = "offer";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        for seat in self.first..self.first + self.count {
            tx.insert(FREE, (10 + seat % 90, seat), &0)?;
        }
        Ok(())
    }
}

impl Procedure for BuyCheapest {
    const NAME: &'static str = "buy the cheapest";
    type Output = u32;

    fn run(&self, tx: &mut Transaction) -> Result<u32, Stop> {
        let cheapest = tx.range(FREE, ..).next().transpose()?;
        let ((price, seat), _) = cheapest.ok_or(Abort::new("sold out"))?;
        tx.delete(FREE, (price, seat))?;
        tx.insert(SOLD, seat, &(price, self.user))?;
        Ok(seat)
    }
}

impl Procedure for Refund {
    const NAME: &'static str = "refund";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        let (price, user) = tx.get(SOLD, self.seat)?.ok_or(Abort::new("not sold"))?;
        if user != self.user {
            return Err(Abort::new("somebody else's seat").into());
        }
        tx.delete(SOLD, self.seat)?;
        tx.insert(FREE, (price, self.seat), &0)
    }
}

impl Procedure for OfferRow {
    const NAME: &'static str = "offer row";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        for seat in self.first..self.first + self.count {
            tx.insert(SEATS, seat, &Seat { price: 10 + seat % 90, owner: None })?;
        }
        Ok(())
    }
}

impl Procedure for BuyByIndex {
    const NAME: &'static str = "buy by index";
    type Output = u32;

    fn run(&self, tx: &mut Transaction) -> Result<u32, Stop> {
        let cheapest = tx.range_by(CHEAPEST, ..).next().transpose()?;
        let (seat, row) = cheapest.ok_or(Abort::new("sold out"))?;
        tx.update(SEATS, seat, &Seat { owner: Some(self.user), ..row })?;
        Ok(seat)
    }
}

impl Procedure for RefundRow {
    const NAME: &'static str = "refund row";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        let row = tx.get(SEATS, self.seat)?.ok_or(Abort::new("no such seat"))?;
        if row.owner != Some(self.user) {
            return Err(Abort::new("somebody else's seat").into());
        }
        tx.update(SEATS, self.seat, &Seat { owner: None, ..row })?;
        Ok(())
    }
}

/// How seats are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Table,
    Index,
}

impl Way {
    fn offer(self, db: &Database, (first, count): (u32, u32)) -> Result<(), Error> {
        match self {
            Self::Table => db.call(Offer { first, count }),
            Self::Index => db.call(OfferRow { first, count }),
        }
    }

    fn buy(self, db: &Database, user: u64) -> Result<u32, Error> {
        match self {
            Self::Table => db.call(BuyCheapest { user }),
            Self::Index => db.call(BuyByIndex { user }),
        }
    }

    fn refund(self, db: &Database, seat: u32, user: u64) -> Result<(), Error> {
        match self {
            Self::Table => db.call(Refund { seat, user }),
            Self::Index => db.call(RefundRow { seat, user }),
        }
    }

    /// All seats, free or sold.
    fn seats(self, db: &Database) -> Result<Vec<u32>, Error> {
        let end = db.snapshot()?;
        if self == Self::Index {
            db.check_indexes()?;
            return end.range(SEATS, ..).map(|row| Ok(row?.0)).collect();
        }
        let free = end.range(FREE, ..).map(|row| Ok(row?.0.1));
        free.chain(end.all(SOLD).map(|row| Ok(row?.0))).collect()
    }
}

/// What the threads have counted.
#[derive(Default)]
struct Counts {
    sold: AtomicU64,
    failed: AtomicU64,
}

/// Buys until the time is over; keeps at most so many seats.
fn buy((db, way): (&Database, Way), user: u64, most: usize, until: Instant, counts: &Counts) {
    let mut seats = VecDeque::new();
    while Instant::now() < until {
        if seats.len() == most
            && let Some(seat) = seats.pop_front()
            && let Err(error) = way.refund(db, seat, user)
        {
            eprintln!("refund of seat {seat}: {error}");
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        match way.buy(db, user) {
            Ok(seat) => {
                seats.push_back(seat);
                counts.sold.fetch_add(1, Ordering::Relaxed);
            }
            // Only where there are fewer seats than threads.
            Err(error) if error.is_user_abort() => {}
            Err(error) => {
                eprintln!("purchase by {user}: {error}");
                counts.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn run(
    (threads, seats): (u32, u32),
    device: DeviceSpec,
    time: Duration,
    way: Way,
) -> Result<(), Error> {
    let options = Database::options().table(FREE).table(SOLD).table(SEATS).index(CHEAPEST);
    let options = options.procedure::<Offer>().procedure::<BuyCheapest>().procedure::<Refund>();
    let options =
        options.procedure::<OfferRow>().procedure::<BuyByIndex>().procedure::<RefundRow>();
    let db = options.open_device(device)?;
    for first in (0..seats).step_by(1000) {
        way.offer(&db, (first, 1000.min(seats - first)))?;
    }
    let (counts, started) = (Counts::default(), Instant::now());
    let most = (seats / threads).max(1) as usize;
    std::thread::scope(|scope| {
        for user in 0..u64::from(threads) {
            let (db, counts) = (&db, &counts);
            scope.spawn(move || buy((db, way), user, most, started + time, counts));
        }
    });
    let took = started.elapsed().as_secs_f64();
    let mut all = way.seats(&db)?;
    all.sort_unstable();
    assert!(all.into_iter().eq(0..seats), "each seat is either free or sold");
    let (sold, failed) = (counts.sold.into_inner(), counts.failed.into_inner());
    let stats = db.stats();
    println!("{stats}");
    println!("sold {sold} failed {failed} per_second {:.0}", sold as f64 / took);
    db.close()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: Option<u32>| match arguments.get(at) {
        Some(text) => text.parse().ok().filter(|&number| number > 0),
        None => or,
    };
    let device = arguments.get(2).map_or("dram", String::as_str).parse();
    let way = match arguments.get(4).map(String::as_str) {
        None | Some("table") => Some(Way::Table),
        Some("index") => Some(Way::Index),
        Some(_) => None,
    };
    let (Some(threads), Some(seats), Ok(device), Some(seconds), Some(way)) =
        (number(0, None), number(1, None), device, number(3, Some(3)), way)
    else {
        eprintln!(
            "usage: seats THREADS SEATS [DEVICE] [SECONDS] [table|index], as in \
             `seats 64 1000 dram 3 index`"
        );
        return ExitCode::from(2);
    };
    match run((threads, seats), device, Duration::from_secs(seconds.into()), way) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
