//! How many rows are inserted in a second: into a table with none, one and two indexes, by calls
//! that predict what they write and by calls that do not.
//!
//!     cargo run --release -p nvcaracal --example inserts -- [ROWS [THREADS]]
//!
//! Each of the threads submits its calls one after the other and waits for the last. Calls that
//! predict run on all workers, the others in the serial parts of epochs.

use std::error::Error;
use std::thread;
use std::time::Instant;

use nvcaracal::{
    Database, DeviceSpec, Index, Procedure, Stop, Table, Ticket, Transaction, WriteSet, plain,
};

plain! {
    struct Order { user: u64, cents: u64 }
    struct Insert { id: u64, predicts: u64 }
}

const ORDERS: Table<u64, Order> = Table::ordered("orders");
const BY_USER: Index<u64, u64, Order> = ORDERS.index("by user", |_, order| Some(order.user));
const BY_CENTS: Index<u64, u64, Order> =
    ORDERS.unique_index("by cents", |_, order| Some(order.cents));

impl Procedure for Insert {
    const NAME: &'static str = "insert";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        match self.predicts {
            0 => set.unknown(),
            _ => set.insert(ORDERS, self.id),
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        tx.insert(ORDERS, self.id, &Order { user: self.id % 1000, cents: self.id })
    }
}

/// Rows that are inserted in a second.
fn per_second(
    indexes: usize,
    predicts: u64,
    rows: u64,
    threads: u64,
) -> Result<f64, nvcaracal::Error> {
    let options = Database::options().table(ORDERS).procedure::<Insert>();
    let options = if indexes > 0 { options.index(BY_USER) } else { options };
    let options = if indexes > 1 { options.index(BY_CENTS) } else { options };
    let db = options.open_device(DeviceSpec::Dram)?;
    let begun = Instant::now();
    thread::scope(|scope| {
        let submit = |thread: u64| {
            let mut last: Option<Ticket<()>> = None;
            for row in (thread..rows).step_by(threads as usize) {
                let id = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                last = Some(db.submit(Insert { id, predicts })?);
            }
            last.map_or(Ok(()), Ticket::wait)
        };
        let submitters: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || submit(thread))).collect();
        submitters.into_iter().try_for_each(|one| one.join().expect("a thread does not panic"))
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(db.snapshot()?.count(ORDERS, ..)?, rows, "every row is there");
    Ok(rows as f64 / seconds)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let rows = arguments.next().transpose()?.unwrap_or(800_000);
    let threads = arguments.next().transpose()?.unwrap_or(8).max(1);
    println!("{rows} rows, {threads} threads, inserts a second");
    println!("{:>8} {:>12} {:>12}", "indexes", "predicted", "not");
    for indexes in 0..=2 {
        let predicted = per_second(indexes, 1, rows, threads)?;
        let not = per_second(indexes, 0, rows, threads)?;
        println!("{indexes:>8} {predicted:>12.0} {not:>12.0}");
    }
    Ok(())
}
