//! How long a read by key and a read of 100 rows in order take, alone and beside writers, each of
//! which waits until its update is durable: NVCaracal in memory and on a file (the rows in a
//! snapshot taken for each read), and SQLite (write-ahead log, a reader with a connection of its
//! own).
//!
//!     cargo run --release -p nvcaracal-peers --example reads -- 32 [SECONDS [ROUNDS]]

use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use comfy_table::Table;
use hdrhistogram::Histogram;
use nvcaracal::{Database, DeviceSpec, Stop, Transaction, WriteSet, procedure};
use rusqlite::Connection;

const ROWS: u64 = 10_000;
const RANGE_ROWS: u64 = 100;
const NUMBERS: nvcaracal::Table<u64, u64> = nvcaracal::Table::ordered("numbers");

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn row(call: &Add, set: &mut WriteSet) {
    set.insert(NUMBERS, call.row);
}

#[procedure(write_set = row)]
fn add(tx: &mut Transaction, row: u64) -> std::result::Result<(), Stop> {
    let number = tx.get(NUMBERS, row)?.unwrap_or(0) + 1;
    tx.insert(NUMBERS, row, &number)
}

/// A store with numbers in rows.
trait Store: Sync {
    fn add(&self, row: u64) -> Result<()>;
    /// Reads a row with what a thread has for reading.
    fn reader(&self) -> Result<Box<dyn FnMut(u64) -> Result<u64> + '_>>;
    /// Adds up the first [`RANGE_ROWS`] rows from a key on.
    fn range_reader(&self) -> Result<Box<dyn FnMut(u64) -> Result<u64> + '_>>;
}

impl Store for Database {
    fn add(&self, row: u64) -> Result<()> {
        Ok(self.call(Add { row })?)
    }

    fn reader(&self) -> Result<Box<dyn FnMut(u64) -> Result<u64> + '_>> {
        Ok(Box::new(|row| Ok(self.get(NUMBERS, row)?.unwrap_or(0))))
    }

    fn range_reader(&self) -> Result<Box<dyn FnMut(u64) -> Result<u64> + '_>> {
        Ok(Box::new(|row| {
            let snapshot = self.snapshot()?;
            let rows = snapshot.range(NUMBERS, row..).take(RANGE_ROWS as usize);
            Ok(rows.map(|row| Ok(row?.1)).sum::<nvcaracal::Result<u64>>()?)
        }))
    }
}

/// SQLite has one writer at a time.
struct Sqlite<'p> {
    path: &'p Path,
    writer: Mutex<Connection>,
}

impl<'p> Sqlite<'p> {
    fn open(path: &'p Path) -> Result<Self> {
        let writer = Connection::open(path)?;
        writer.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE numbers (id INTEGER PRIMARY KEY, number INTEGER NOT NULL);",
        )?;
        Ok(Self { path, writer: Mutex::new(writer) })
    }

    /// Writes all rows, in one transaction.
    fn fill(&self) -> Result<()> {
        let writer = self.writer.lock().map_err(|_| "a writer panicked")?;
        let fill = format!(
            "WITH RECURSIVE ids (id) AS (VALUES (0) UNION ALL SELECT id + 1 FROM ids WHERE id < {})
             INSERT INTO numbers SELECT id, 1 FROM ids",
            ROWS - 1
        );
        writer.execute(&fill, [])?;
        Ok(())
    }
}

impl Store for Sqlite<'_> {
    fn add(&self, row: u64) -> Result<()> {
        let writer = self.writer.lock().map_err(|_| "a writer panicked")?;
        let mut add = writer.prepare_cached(
            "INSERT INTO numbers VALUES (?1, 1) ON CONFLICT (id) DO UPDATE SET number = number + 1",
        )?;
        add.execute([row as i64])?;
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn FnMut(u64) -> Result<u64> + '_>> {
        let reader = Connection::open(self.path)?;
        reader.busy_timeout(Duration::from_secs(60))?;
        Ok(Box::new(move |row| {
            let mut get = reader.prepare_cached("SELECT number FROM numbers WHERE id = ?1")?;
            let mut rows = get.query([row as i64])?;
            Ok(rows.next()?.map_or(Ok(0), |row| row.get::<_, i64>(0))? as u64)
        }))
    }

    fn range_reader(&self) -> Result<Box<dyn FnMut(u64) -> Result<u64> + '_>> {
        let reader = Connection::open(self.path)?;
        reader.busy_timeout(Duration::from_secs(60))?;
        Ok(Box::new(move |row| {
            let mut get = reader
                .prepare_cached("SELECT number FROM numbers WHERE id >= ?1 ORDER BY id LIMIT ?2")?;
            let mut rows = get.query([row as i64, RANGE_ROWS as i64])?;
            let mut sum = 0;
            while let Some(row) = rows.next()? {
                sum += row.get::<_, i64>(0)? as u64;
            }
            Ok(sum)
        }))
    }
}

/// Numbers that look random, for a thread.
fn random_rows(thread: u64) -> impl FnMut() -> u64 {
    let mut random = (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % ROWS
    }
}

/// What the reader of a run does.
#[derive(Clone, Copy)]
enum Reads {
    None,
    Rows,
    Ranges,
}

/// Runs one reader beside `writers` writers. Returns how long its reads took, and updates a second.
fn run(
    store: &dyn Store,
    reads: Reads,
    writers: u64,
    time: Duration,
) -> Result<(Histogram<u64>, f64)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let write = |writer| {
            let mut next = random_rows(writer);
            let mut updates = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                store.add(next())?;
                updates += 1;
            }
            Ok::<_, Box<dyn Error + Send + Sync>>(updates)
        };
        let writers: Vec<_> = (0..writers).map(|w| scope.spawn(move || write(w))).collect();
        let mut took = Histogram::new(3)?;
        let started = Instant::now();
        let reader = match reads {
            Reads::None => None,
            Reads::Rows => Some(store.reader()?),
            Reads::Ranges => Some(store.range_reader()?),
        };
        if let Some(mut read) = reader {
            let mut next = random_rows(1 << 32);
            while started.elapsed() < time {
                let begun = Instant::now();
                read(next())?;
                took += begun.elapsed().as_nanos() as u64;
            }
        } else {
            thread::sleep(time);
        }
        let seconds = started.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        let mut updates = 0;
        for writer in writers {
            updates += writer.join().map_err(|_| "a writer panicked")??;
        }
        Ok((took, updates as f64 / seconds))
    })
}

/// The middle one.
fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The table of one kind of reads: medians of interleaved rounds.
fn compare(
    stores: &[(&str, &dyn Store); 3],
    (name, reads): (&str, Reads),
    (writers, time, rounds): (u64, Duration, usize),
) -> Result<Table> {
    let mut found = vec![vec![Vec::<f64>::new(); 6]; stores.len()];
    for round in 0..=rounds {
        for ((store_name, store), found) in stores.iter().zip(&mut found) {
            eprintln!("a read {name}, round {round} of {rounds}: {store_name}");
            let (_, writes_alone) = run(*store, Reads::None, writers, time)?;
            let (alone, _) = run(*store, reads, 0, time)?;
            let (beside, writes) = run(*store, reads, writers, time)?;
            if round == 0 {
                continue;
            }
            let us = |of: &Histogram<u64>, q| of.value_at_quantile(q) as f64 / 1000.0;
            let all = [(&alone, 0.5), (&alone, 0.99), (&beside, 0.5), (&beside, 0.99)];
            let all = all.map(|(of, quantile)| us(of, quantile));
            let all = all.into_iter().chain([writes_alone, writes / writes_alone]);
            found.iter_mut().zip(all).for_each(|(column, value)| column.push(value));
        }
    }
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    let beside = format!("beside {writers}");
    table.set_header([
        &format!("a read {name}, us"),
        "p50 alone",
        "p99 alone",
        &format!("p50 {beside}"),
        &format!("p99 {beside}"),
        "updates/s without reader",
        "with reader, of that",
    ]);
    for ((name, _), found) in stores.iter().zip(found) {
        let cells = found.into_iter().map(median).enumerate().map(|(column, value)| match column {
            4 => format!("{value:.0}"),
            5 => format!("{value:.2}"),
            _ => format!("{value:.1}"),
        });
        table.add_row([(*name).to_string()].into_iter().chain(cells));
    }
    Ok(table)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.into());
    let (writers, seconds) = (next("32").parse()?, next("1").parse()?);
    let rounds: usize = next("3").parse()?;
    let time = Duration::from_secs_f64(seconds);
    let dir = tempfile::tempdir_in(".")?;
    let options = || Database::options().table(NUMBERS).procedure::<Add>();
    let (memory, file) =
        (options().open_device(DeviceSpec::Dram)?, options().open(dir.path().join("store"))?);
    let path = dir.path().join("sqlite");
    let sqlite = Sqlite::open(&path)?;
    let stores: [(&str, &dyn Store); 3] =
        [("NVCaracal, memory", &memory), ("NVCaracal, file", &file), ("SQLite", &sqlite)];
    for database in [&memory, &file] {
        let mut batch = database.batch();
        for row in 0..ROWS {
            batch.add(&Add { row })?;
        }
        batch.submit()?.wait();
    }
    sqlite.fill()?;
    for (name, reads) in [("by key", Reads::Rows), ("of 100 rows", Reads::Ranges)] {
        println!("{}", compare(&stores, (name, reads), (writers, time, rounds))?);
    }
    Ok(())
}
