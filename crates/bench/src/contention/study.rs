//! What few hot rows cost callers of the library, beside what else they could do.
//!
//! Threads keep calls in flight that each add one to one of so many rows, through the library with
//! its defaults: with a write set on all workers, with a write set on one worker, and without a
//! write set. The variants run alternately within each round and are compared within it. Loops that
//! only burn time may run beside them, as on a machine that is shared. At the end the rows hold as
//! many additions as calls were answered, or the run is an error.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nvcaracal::{
    Database, DeviceSpec, HashTable, Options, Stop as Ended, Table, Transaction, WriteSet,
    procedure,
};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::report::{median, ratio};
use crate::{BenchError, Progress, Result};

/// Rows that are added to. The first 8 bytes of a value are its count.
const ROWS: HashTable<u64, Vec<u8>> = Table::hash("rows");
/// Rows that calls read besides.
const OTHERS: HashTable<u64, u64> = Table::hash("others");
const OTHERS_COUNT: u64 = 50_000;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Numbers of hot rows, each at least 1.
    pub rows: Vec<u64>,
    /// Numbers of loops beside the database.
    pub busy: Vec<usize>,
    /// What the calls do, and how often.
    pub load: Load,
    /// Shows how far it is.
    pub progress: Progress,
}

/// The calls of every run.
#[derive(Debug, Clone, Serialize)]
pub struct Load {
    /// Workers of the variant with a write set.
    pub workers: usize,
    /// Threads that make calls.
    pub clients: usize,
    /// Calls that each of them has in flight.
    pub in_flight: usize,
    /// Bytes of a value, 8 to 1000.
    pub value_bytes: usize,
    /// Other rows that a call reads.
    pub reads: u64,
    /// Whether row k is written in proportion to 1 / (k + 1), instead of all alike.
    pub zipf: bool,
    /// How often each variant runs.
    pub rounds: usize,
    /// How long it runs each time.
    pub seconds: f64,
}

impl Settings {
    /// Runs that there will be.
    fn runs(&self) -> usize {
        self.rows.len() * self.busy.len() * self.load.rounds * VARIANTS.len()
    }
}

/// How the calls are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Variant {
    name: &'static str,
    has_write_set: bool,
    /// Workers, if not all.
    workers: Option<usize>,
}

const VARIANTS: [Variant; 3] = [
    Variant { name: "write set", has_write_set: true, workers: None },
    Variant { name: "write set, one worker", has_write_set: true, workers: Some(1) },
    Variant { name: "no write set", has_write_set: false, workers: None },
];

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct ContentionReport {
    /// The calls.
    #[serde(flatten)]
    pub load: Load,
    /// One entry for each number of hot rows and of busy loops.
    pub settings: Vec<SettingReport>,
}

/// All variants at one setting.
#[derive(Debug, Clone, Serialize)]
pub struct SettingReport {
    /// Hot rows.
    pub rows: u64,
    /// Loops beside the database.
    pub busy: usize,
    /// Medians over the rounds.
    pub variants: Vec<VariantReport>,
    /// Median over the rounds of throughput with a write set, by that of the better one of the
    /// others in the same round.
    pub ratio_to_best: f64,
    /// The least of them.
    pub ratio_to_best_least: f64,
    /// Median over the rounds of processor time a call with a write set, by that with one worker.
    pub cpu_to_one_worker: f64,
}

/// One variant.
#[derive(Debug, Clone, Serialize)]
pub struct VariantReport {
    /// Which.
    pub name: &'static str,
    /// Calls answered a second.
    pub calls_per_s: f64,
    /// Nanoseconds of processors a call, clients included.
    pub cpu_ns_per_call: f64,
}

/// How much contention there is, and how busy the machine is.
#[derive(Debug, Clone, Copy)]
struct Setting {
    /// Hot rows.
    rows: u64,
    /// Loops beside the database.
    busy: usize,
}

/// One run of a variant.
#[derive(Debug, Clone, Copy)]
struct Run {
    calls_per_s: f64,
    cpu_ns: f64,
}

/// Runs all variants at all settings.
///
/// # Errors
/// If a database cannot be opened, a call is not answered, or the rows do not hold every addition.
pub fn run(settings: &Settings) -> Result<ContentionReport> {
    let bar = settings.progress.bar("contention", settings.runs() as u64, "runs");
    let mut reports = Vec::new();
    for &busy in &settings.busy {
        for &rows in &settings.rows {
            let (setting, mut rounds) = (Setting { rows, busy }, Vec::new());
            for _ in 0..settings.load.rounds {
                let mut round = Vec::new();
                for variant in VARIANTS {
                    bar.say(format!("{rows} rows, {busy} busy loops, {}", variant.name));
                    round.push(run_variant(&settings.load, variant, setting)?);
                    bar.step(String::new());
                }
                rounds.push(round);
            }
            reports.push(report(setting, &rounds));
        }
    }
    Ok(ContentionReport { load: settings.load.clone(), settings: reports })
}

/// Compares the variants of each round with each other.
fn report(setting: Setting, rounds: &[Vec<Run>]) -> SettingReport {
    let of = |figure: &dyn Fn(&[Run]) -> f64| -> Vec<f64> {
        rounds.iter().map(|round| figure(round)).collect()
    };
    let to_best = of(&|round| {
        let best = round[1].calls_per_s.max(round[2].calls_per_s);
        ratio(round[0].calls_per_s, best)
    });
    let variants = VARIANTS.iter().enumerate().map(|(at, variant)| VariantReport {
        name: variant.name,
        calls_per_s: median(of(&|round| round[at].calls_per_s)),
        cpu_ns_per_call: median(of(&|round| round[at].cpu_ns)),
    });
    SettingReport {
        rows: setting.rows,
        busy: setting.busy,
        variants: variants.collect(),
        ratio_to_best_least: to_best.iter().copied().fold(f64::INFINITY, f64::min),
        ratio_to_best: median(to_best),
        cpu_to_one_worker: median(of(&|round| ratio(round[0].cpu_ns, round[1].cpu_ns))),
    }
}

/// The same work with a write set and without one.
fn add_one(
    tx: &mut Transaction,
    row: u64,
    seed: u64,
    reads: u64,
) -> std::result::Result<(), Ended> {
    let mut sum = 0;
    for read in 0..reads {
        let key = mix(seed.wrapping_add(read)) % OTHERS_COUNT;
        sum ^= tx.get(OTHERS, key)?.unwrap_or(0);
    }
    let mut value = tx.get(ROWS, row)?.ok_or("no such row")?;
    let (count, rest) = value.split_first_chunk_mut().expect("it has 8 bytes at least");
    *count = (u64::from_le_bytes(*count) + 1).to_le_bytes();
    if let Some(last) = rest.last_mut() {
        *last = sum as u8;
    }
    tx.update(ROWS, row, &value).map(drop)
}

fn row(call: &Declared, set: &mut WriteSet) {
    set.update(ROWS, call.row);
}

#[procedure(write_set = row)]
fn declared(
    tx: &mut Transaction,
    row: u64,
    seed: u64,
    reads: u64,
) -> std::result::Result<(), Ended> {
    add_one(tx, row, seed, reads)
}

#[procedure]
fn undeclared(
    tx: &mut Transaction,
    row: u64,
    seed: u64,
    reads: u64,
) -> std::result::Result<(), Ended> {
    add_one(tx, row, seed, reads)
}

#[procedure]
fn fill(tx: &mut Transaction, rows: u64, value_bytes: u64) -> std::result::Result<(), Ended> {
    (0..rows).try_for_each(|row| tx.insert(ROWS, row, &vec![0; value_bytes as usize]))?;
    (0..OTHERS_COUNT).try_for_each(|row| tx.insert(OTHERS, row, &row))
}

/// A number that looks random (the mixer of splitmix64).
fn mix(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Which row a call writes.
enum Choice {
    Uniform(u64),
    /// Sums of 1 / (k + 1).
    Zipf(Vec<f64>),
}

impl Choice {
    fn new(rows: u64, zipf: bool) -> Self {
        if !zipf {
            return Self::Uniform(rows);
        }
        let mut sum = 0.0;
        let add = |row: u64| {
            sum += 1.0 / (row + 1) as f64;
            sum
        };
        Self::Zipf((0..rows).map(add).collect())
    }

    fn row(&self, seed: u64) -> u64 {
        match self {
            Self::Uniform(rows) => seed % rows,
            Self::Zipf(sums) => {
                let share = (seed >> 11) as f64 / (1_u64 << 53) as f64;
                let at = share * sums.last().expect("there is a row");
                sums.partition_point(|&sum| sum <= at) as u64
            }
        }
    }
}

fn run_variant(load: &Load, variant: Variant, setting: Setting) -> Result<Run> {
    let Setting { rows, busy } = setting;
    let workers = variant.workers.unwrap_or(load.workers);
    let options: Options = Database::options()
        .table(ROWS)
        .table(OTHERS)
        .procedure::<Declared>()
        .procedure::<Undeclared>()
        .procedure::<Fill>()
        .workers(workers);
    let db = options.open_device(DeviceSpec::Dram)?;
    db.call(Fill { rows, value_bytes: load.value_bytes as u64 })?;
    let (answered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let choice = Choice::new(rows, load.zipf);
    let (cpu, begun) = (cpu_ns(ClockId::ProcessCPUTime), Instant::now());
    let clients = Clients { db: &db, load, variant, choice, begun, answered: &answered };
    let (burned, result) = thread::scope(|scope| {
        let burn = || scope.spawn(|| burn(&is_over));
        let loops: Vec<_> = (0..busy).map(|_| burn()).collect();
        let client = |number| {
            let (clients, is_over) = (&clients, &is_over);
            scope.spawn(move || {
                clients.run(number).inspect_err(|_| is_over.store(true, Ordering::Relaxed))
            })
        };
        let clients: Vec<_> = (0..load.clients as u64).map(client).collect();
        let results: Vec<_> = clients.into_iter().map(|c| c.join().expect("no panic")).collect();
        is_over.store(true, Ordering::Relaxed);
        let burned: u64 = loops.into_iter().map(|l| l.join().expect("no panic")).sum();
        (burned, results.into_iter().collect::<Result<Vec<()>>>())
    });
    result?;
    let took = begun.elapsed();
    let cpu = cpu_ns(ClockId::ProcessCPUTime).saturating_sub(cpu).saturating_sub(burned);
    let calls = answered.into_inner();
    check(&db, rows, calls)?;
    db.close()?;
    Ok(Run {
        calls_per_s: calls as f64 / took.as_secs_f64(),
        cpu_ns: ratio(cpu as f64, calls as f64),
    })
}

/// What the clients of a run share.
struct Clients<'a> {
    db: &'a Database,
    load: &'a Load,
    variant: Variant,
    choice: Choice,
    begun: Instant,
    /// Calls that were answered.
    answered: &'a AtomicU64,
}

impl Clients<'_> {
    /// One of them: keeps calls in flight until the time is over.
    fn run(&self, number: u64) -> Result<()> {
        let Self { db, load, .. } = *self;
        let reads = load.reads;
        let mut seed = mix(number);
        loop {
            let mut tickets = Vec::with_capacity(load.in_flight);
            for _ in 0..load.in_flight {
                seed = mix(seed);
                let row = self.choice.row(seed);
                tickets.push(match self.variant.has_write_set {
                    true => db.submit(Declared { row, seed, reads })?,
                    false => db.submit(Undeclared { row, seed, reads })?,
                });
            }
            for ticket in tickets {
                ticket.wait()?;
            }
            self.answered.fetch_add(load.in_flight as u64, Ordering::Relaxed);
            // At least once, however late the thread begins.
            if self.begun.elapsed() >= Duration::from_secs_f64(load.seconds) {
                return Ok(());
            }
        }
    }
}

/// Uses a processor until it is over; nanoseconds of it.
fn burn(is_over: &AtomicBool) -> u64 {
    let mut number = 1;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..1000 {
            number = std::hint::black_box(mix(number));
        }
    }
    cpu_ns(ClockId::ThreadCPUTime)
}

/// Every answered call added one.
fn check(db: &Database, rows: u64, calls: u64) -> Result<()> {
    let mut sum = 0;
    for row in 0..rows {
        let value = db.get(ROWS, row)?.unwrap_or_default();
        sum += value.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
    }
    if sum != calls {
        let what = format!("{calls} calls were answered, and the rows hold {sum} additions");
        return Err(BenchError::Difference(what));
    }
    Ok(())
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
