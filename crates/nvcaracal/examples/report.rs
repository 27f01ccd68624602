//! A reader counts all rows of a snapshot again and again while many threads write:
//!
//!     cargo run --release -p nvcaracal --example report -- ROWS THREADS [DEVICE] [SECONDS]
//!
//! Prints how long epochs took, and how long the writers waited, without the reader and beside it.
//! DEVICE is `dram` if nothing is said, SECONDS is 3, for each of the two.

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use nvcaracal::{
    Abort, Database, DeviceSpec, Error, Procedure, Stop, Table, Transaction, WriteSet,
};

const ROWS: Table<u64, u64> = Table::ordered("rows");
/// Rows that are loaded at once.
const LOAD: u64 = 10_000;

nvcaracal::plain! {
    struct Load { from: u64, to: u64 }
    struct Add { row: u64 }
}

impl Procedure for Load {
    const NAME: &'static str = "load";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        (self.from..self.to).for_each(|row| set.insert(ROWS, row));
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        (self.from..self.to).try_for_each(|row| tx.insert(ROWS, row, &0))
    }
}

impl Procedure for Add {
    const NAME: &'static str = "add";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.update(ROWS, self.row);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        let value = tx.get(ROWS, self.row)?.ok_or(Abort::new("no such row"))?;
        tx.update(ROWS, self.row, &(value + 1))?;
        Ok(())
    }
}

/// What the writers saw.
#[derive(Default)]
struct Seen {
    waits: Vec<Duration>,
    counts: Vec<Duration>,
}

/// Writes from many threads for a while; with a reader, counts all rows meanwhile.
fn run(
    db: &Database,
    (rows, threads): (u64, u64),
    time: Duration,
    reads: bool,
) -> Result<Seen, Error> {
    let until = Instant::now() + time;
    let waits = Mutex::new(Vec::new());
    let mut counts = Vec::new();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..threads)
            .map(|number| {
                let waits = &waits;
                scope.spawn(move || -> Result<(), Error> {
                    let (mut own, mut next) = (Vec::new(), number);
                    while Instant::now() < until {
                        next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let started = Instant::now();
                        db.call(Add { row: (next >> 20) % rows })?;
                        own.push(started.elapsed());
                    }
                    waits.lock().expect("no panic while locked").extend(own);
                    Ok(())
                })
            })
            .collect();
        while reads && Instant::now() < until {
            let started = Instant::now();
            let counted = db.snapshot()?.count(ROWS, ..)?;
            assert_eq!(counted, rows, "a snapshot has all rows");
            counts.push(started.elapsed());
        }
        writers.into_iter().try_for_each(|writer| writer.join().expect("no panic"))
    })?;
    let mut waits = waits.into_inner().expect("no panic while locked");
    waits.sort_unstable();
    counts.sort_unstable();
    Ok(Seen { waits, counts })
}

fn report(name: &str, seen: &Seen) {
    let at = |share: f64| seen.waits[((seen.waits.len() - 1) as f64 * share) as usize];
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{name:>7} {:>9} calls, wait p50 {:>7.3} ms, p99 {:>7.3} ms, longest {:>7.3} ms",
        seen.waits.len(),
        ms(at(0.5)),
        ms(at(0.99)),
        ms(at(1.0))
    );
    if let Some(count) = seen.counts.get(seen.counts.len() / 2) {
        let times = seen.counts.len();
        println!("{:>7} counted all rows {times} times, median {:.1} ms", "", ms(*count));
    }
}

fn start(rows: u64, threads: u64, device: DeviceSpec, time: Duration) -> Result<(), Error> {
    let options = Database::options().table(ROWS).procedure::<Load>().procedure::<Add>();
    let db = options.open_device(device)?;
    for from in (0..rows).step_by(LOAD as usize) {
        db.call(Load { from, to: rows.min(from + LOAD) })?;
    }
    report("alone", &run(&db, (rows, threads), time, false)?);
    report("beside", &run(&db, (rows, threads), time, true)?);
    db.close()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: Option<u64>| match arguments.get(at) {
        Some(text) => text.parse().ok().filter(|&number| number > 0),
        None => or,
    };
    let device = arguments.get(2).map_or("dram", String::as_str).parse();
    let (Some(rows), Some(threads), Ok(device), Some(seconds)) =
        (number(0, None), number(1, None), device, number(3, Some(3)))
    else {
        eprintln!(
            "usage: report ROWS THREADS [DEVICE] [SECONDS], as in `report 1000000 64 dram 3`"
        );
        return ExitCode::from(2);
    };
    match start(rows, threads, device, Duration::from_secs(seconds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
