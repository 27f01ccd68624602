//! Runs an engine on YCSB, a thread for each partition, and says what it took.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use pmem::{Device, DeviceSpec, Dram, Emulated};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::engines::{Cow, Engine, Inp, Log, NvmCow, NvmInp, NvmLog};
use crate::ground::{Area, Footprint, Traffic};
use crate::options::Options;
use crate::partition::Partition;
use crate::ycsb::{COLUMNS, Mix, Skew, Work, Ycsb};
use crate::{Error, Result};

/// The engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineName {
    /// [`Inp`]
    Inp,
    /// [`Cow`]
    Cow,
    /// [`Log`]
    Log,
    /// [`NvmInp`]
    NvmInp,
    /// [`NvmCow`]
    NvmCow,
    /// [`NvmLog`]
    NvmLog,
}

impl EngineName {
    /// All, in the order of the paper.
    pub const ALL: [Self; 6] =
        [Self::Inp, Self::Cow, Self::Log, Self::NvmInp, Self::NvmCow, Self::NvmLog];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inp => "inp",
            Self::Cow => "cow",
            Self::Log => "log",
            Self::NvmInp => "nvm-inp",
            Self::NvmCow => "nvm-cow",
            Self::NvmLog => "nvm-log",
        }
    }

    /// What it is.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Inp => "updates in place; a log and checkpoints in files",
            Self::Cow => "copies of pages with tuples in them, in a file",
            Self::Log => "an LSM tree of files, and a log",
            Self::NvmInp => "updates in place; a log of pointers, which undoes",
            Self::NvmCow => "copies of tuples, and of pages with their addresses, in memory",
            Self::NvmLog => "an LSM tree of MemTables; a log of pointers, which undoes",
        }
    }
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The engine.
    pub engine: EngineName,
    /// `dram` or `emulated:...`; every partition gets one.
    pub device: DeviceSpec,
    /// Threads, each with a partition of its own.
    pub partitions: u64,
    /// Tuples of all partitions.
    pub tuples: u64,
    /// Transactions of all partitions.
    pub transactions: u64,
    /// How many of them read.
    pub mix: Mix,
    /// How much they agree.
    pub skew: Skew,
    /// Names the data and the transactions.
    pub seed: u64,
    /// Whether to compare every tuple with what it must be.
    pub verify: bool,
    /// Whether to end without ending the last group, and open the stores again.
    pub recover: bool,
    /// Whether to run the same once more in DRAM without a modelled cache, for what it costs.
    pub cost: bool,
    /// How the engine is made.
    pub options: Options,
}

/// What went to and from the device, of a transaction.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Counts {
    /// Lines read, as the modelled cache has it if there is one.
    pub lines_read: f64,
    /// Lines written, likewise.
    pub lines_written: f64,
    /// Bytes stored, past the cache too.
    pub bytes_stored: f64,
    /// Fences.
    pub fences: f64,
    /// System calls.
    pub system_calls: f64,
    /// Bytes that those copied.
    pub copied_bytes: f64,
    /// Bytes that the engine wrote into memory (the paper's Table 3) ...
    pub written_memory: f64,
    /// ... into a log ...
    pub written_log: f64,
    /// ... and into the table's durable form.
    pub written_table: f64,
}

/// A number at three latencies of a load: 160 ns, 320 ns and 1,280 ns (the paper's 1, 2 and 8
/// times that of DRAM).
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct AtLatencies {
    /// At 160 ns.
    pub at_160: f64,
    /// At 320 ns.
    pub at_320: f64,
    /// At 1,280 ns.
    pub at_1280: f64,
}

impl AtLatencies {
    fn of(at: impl Fn(f64) -> f64) -> Self {
        Self { at_160: at(160.0), at_320: at(320.0), at_1280: at(1280.0) }
    }
}

/// A number at four latencies of making a change durable, beside a load of 320 ns.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct AtSyncs {
    /// At 10 ns.
    pub at_10: f64,
    /// At 100 ns.
    pub at_100: f64,
    /// At 1,000 ns.
    pub at_1000: f64,
    /// At 10,000 ns.
    pub at_10000: f64,
}

/// What a transaction costs, neighbours of the machine apart: time of the processor, measured in
/// DRAM without a modelled cache, and the modelled time of the device.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// Nanoseconds of the processor, system calls as charged among them.
    pub cpu_ns: f64,
    /// Transactions a second of a partition, by both.
    pub per_second: AtLatencies,
    /// The same if a fence took so long.
    pub per_second_by_sync: AtSyncs,
}

/// What recoveries did, all partitions together.
#[derive(Debug, Default, Clone, Serialize)]
pub struct RecoveryCounts {
    /// The longest, allocator included.
    pub seconds: f64,
    /// Changes made again.
    pub redone: u64,
    /// Changes undone.
    pub undone: u64,
    /// Lines that the engines read.
    pub lines_read: u64,
    /// Lines that they wrote.
    pub lines_written: u64,
    /// Slots that the allocators looked at.
    pub slots: u64,
    /// Slots that they freed.
    pub freed: u64,
    /// Transactions that were durable, and are there.
    pub durable: u64,
}

/// What a run took.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The engine's name.
    pub engine: &'static str,
    /// The device.
    pub device: String,
    /// The mix.
    pub mix: &'static str,
    /// The skew.
    pub skew: &'static str,
    /// Threads.
    pub partitions: u64,
    /// Tuples of all.
    pub tuples: u64,
    /// Transactions of all.
    pub transactions: u64,
    /// Time of the transactions, without the load.
    pub seconds: f64,
    /// Transactions in a second.
    pub transactions_per_second: f64,
    /// Of one transaction.
    pub counts: Counts,
    /// Nanoseconds of waiting for the device of one transaction, at 9.5 GB/s for stores, if a cache
    /// is modelled.
    pub modelled_ns: Option<AtLatencies>,
    /// What a transaction costs, if that was asked for and a cache is modelled.
    pub cost: Option<Cost>,
    /// Most bytes in use at a time, by what they are for.
    pub footprint: BTreeMap<String, u64>,
    /// The recoveries, if there were any.
    pub recovery: Option<RecoveryCounts>,
    /// Whether every tuple was compared.
    pub verified: bool,
}

/// What one partition's thread comes back with.
#[derive(Default)]
struct Done {
    seconds: f64,
    cpu_ns: u64,
    traffic: Traffic,
    footprint: Footprint,
    recovery: Option<RecoveryCounts>,
}

/// Runs an engine.
///
/// # Errors
/// The engine's; [`Error::Corrupt`] if a tuple is not what it must be.
pub fn run(settings: &Settings) -> Result<Report> {
    let (mut report, _) = run_once(settings)?;
    if settings.cost && report.modelled_ns.is_some() {
        let mut plain = settings.clone();
        plain.options.modelled.cache = None;
        (plain.device, plain.verify, plain.recover) = (DeviceSpec::Dram, false, false);
        let (_, cpu_ns) = run_once(&plain)?;
        report.cost = Some(cost(cpu_ns, &report.counts));
    }
    Ok(report)
}

fn cost(cpu_ns: f64, counts: &Counts) -> Cost {
    let per_second = |load_ns: f64| 1e9 / (cpu_ns + device_ns(counts, load_ns));
    let by_sync =
        |sync_ns: f64| 1e9 / (cpu_ns + device_ns(counts, 320.0) + counts.fences * sync_ns);
    Cost {
        cpu_ns,
        per_second: AtLatencies::of(per_second),
        per_second_by_sync: AtSyncs {
            at_10: by_sync(10.0),
            at_100: by_sync(100.0),
            at_1000: by_sync(1000.0),
            at_10000: by_sync(10_000.0),
        },
    }
}

/// The device's time of a transaction: stores at 9.5 GB/s, and loads that take so long.
fn device_ns(counts: &Counts, load_ns: f64) -> f64 {
    counts.lines_read * load_ns + counts.lines_written * 64.0 / 9.5
}

/// A run, and nanoseconds of the processor that a transaction of it took.
fn run_once(settings: &Settings) -> Result<(Report, f64)> {
    match settings.engine {
        EngineName::Inp => on_device::<Inp<Dram>, Inp<Emulated>>(settings),
        EngineName::Cow => on_device::<Cow<Dram>, Cow<Emulated>>(settings),
        EngineName::Log => on_device::<Log<Dram>, Log<Emulated>>(settings),
        EngineName::NvmInp => on_device::<NvmInp<Dram>, NvmInp<Emulated>>(settings),
        EngineName::NvmCow => on_device::<NvmCow<Dram>, NvmCow<Emulated>>(settings),
        EngineName::NvmLog => on_device::<NvmLog<Dram>, NvmLog<Emulated>>(settings),
    }
}

fn on_device<A: Engine<Dram>, B: Engine<Emulated>>(settings: &Settings) -> Result<(Report, f64)> {
    // Address space; memory is mapped when it is used.
    let of_all = (settings.tuples + settings.transactions) * 16_000 + (1 << 30);
    let limit = (of_all / settings.partitions).min(1 << 40);
    match settings.device {
        DeviceSpec::Dram => on_partitions::<_, A>(settings, || Ok(Dram::new(limit, 0)?)),
        DeviceSpec::Emulated(profile) => {
            on_partitions::<_, B>(settings, || Ok(Emulated::new(profile, limit, 0)?))
        }
        _ => Err(Error::Limit("the engines run on dram and emulated devices".into())),
    }
}

fn on_partitions<D: Device, E: Engine<D>>(
    settings: &Settings,
    device: impl Fn() -> Result<D> + Sync,
) -> Result<(Report, f64)> {
    let begins = Barrier::new(settings.partitions as usize);
    let parts: Result<Vec<Done>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.partitions)
            .map(|partition| {
                let (begins, device) = (&begins, &device);
                scope.spawn(move || one_partition::<D, E, _>(settings, partition, device, begins))
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().expect("a partition panicked"));
        ended.collect()
    });
    let parts = parts?;
    let cpu_ns: u64 = parts.iter().map(|done| done.cpu_ns).sum();
    Ok((report(settings, &parts), cpu_ns as f64 / settings.transactions.max(1) as f64))
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The part of a number that falls to a partition.
fn share(of: u64, partitions: u64, partition: u64) -> u64 {
    of / partitions + u64::from(partition < of % partitions)
}

fn one_partition<D: Device, E: Engine<D>, F: Fn() -> Result<D> + Sync>(
    settings: &Settings,
    partition: u64,
    device: &F,
    begins: &Barrier,
) -> Result<Done> {
    let ycsb = Ycsb {
        tuples: share(settings.tuples, settings.partitions, partition),
        mix: settings.mix,
        skew: settings.skew,
        seed: settings.seed,
        partition,
    };
    let loaded = ycsb.check().and_then(|()| {
        let device = Arc::new(device()?);
        let schema = Ycsb::schema()?;
        let mut to = Partition::<D, E>::create(Arc::clone(&device), &schema, &settings.options)?;
        load(&ycsb, &mut to)?;
        Ok((device, to))
    });
    // All come here, those that failed too.
    begins.wait();
    let (device, mut to) = loaded?;
    let before = to.engine().traffic();
    let count = share(settings.transactions, settings.partitions, partition);
    let committed_before = ycsb.tuples;
    let (start, cpu_start_ns) = (Instant::now(), thread_cpu_ns());
    let mut newest = vec![0; ycsb.tuples as usize * COLUMNS];
    for position in 0..count {
        match ycsb.transaction(position) {
            Work::Read(tuple) => {
                to.get(0, &Ycsb::key(tuple))?;
            }
            Work::Update { tuple, column } => {
                let value = ycsb.value(tuple, column, position + 1);
                to.update(0, &Ycsb::key(tuple), &[(column, &value)])?;
            }
        }
        to.commit()?;
    }
    if !settings.recover {
        to.flush()?;
    }
    let (seconds, cpu_ns) = (start.elapsed().as_secs_f64(), thread_cpu_ns() - cpu_start_ns);
    let traffic = to.engine().traffic().since(&before);
    let (_, footprint) = to.engine().footprint();
    let durable = to.engine().durable() - committed_before;
    for position in 0..durable {
        if let Work::Update { tuple, column } = ycsb.transaction(position) {
            newest[tuple as usize * COLUMNS + column] = position + 1;
        }
    }
    let mut done = Done { seconds, cpu_ns, traffic, footprint, recovery: None };
    if settings.recover {
        drop(to);
        let (recovered, counts) = recover::<D, E>(device, settings, durable)?;
        to = recovered;
        done.recovery = Some(counts);
    }
    if settings.verify {
        verify(&ycsb, &mut to, &newest)?;
    }
    Ok(done)
}

fn load<D: Device, E: Engine<D>>(ycsb: &Ycsb, to: &mut Partition<D, E>) -> Result<()> {
    for tuple in 0..ycsb.tuples {
        to.insert(0, &Ycsb::key(tuple), &ycsb.row(tuple))?;
        to.commit()?;
    }
    to.flush()
}

fn recover<D: Device, E: Engine<D>>(
    device: Arc<D>,
    settings: &Settings,
    durable: u64,
) -> Result<(Partition<D, E>, RecoveryCounts)> {
    let start = Instant::now();
    let (recovered, did) = Partition::open(device, &Ycsb::schema()?, &settings.options)?;
    let counts = RecoveryCounts {
        seconds: start.elapsed().as_secs_f64(),
        redone: did.redone,
        undone: did.undone,
        lines_read: did.engine.counters.lines_read,
        lines_written: did.engine.counters.lines_written,
        slots: did.slots,
        freed: did.freed,
        durable,
    };
    Ok((recovered, counts))
}

/// Compares every tuple with what the transactions made of it; `newest` has the position of the
/// last update of each column.
fn verify<D: Device, E: Engine<D>>(
    ycsb: &Ycsb,
    of: &mut Partition<D, E>,
    newest: &[u64],
) -> Result<()> {
    for tuple in 0..ycsb.tuples {
        let row = of.get(0, &Ycsb::key(tuple))?;
        let row = row.ok_or_else(|| Error::Corrupt(format!("tuple {tuple} is not there")))?;
        for (column, value) in row.iter().enumerate() {
            let position = newest[tuple as usize * COLUMNS + column];
            if *value != ycsb.value(tuple, column, position) {
                return Err(Error::Corrupt(format!(
                    "column {column} of tuple {tuple} is not as transaction {position} left it"
                )));
            }
        }
    }
    Ok(())
}

fn report(settings: &Settings, parts: &[Done]) -> Report {
    let sum = |of: &dyn Fn(&Done) -> u64| parts.iter().map(of).sum::<u64>();
    let each = |of: &dyn Fn(&Traffic) -> u64| {
        sum(&|done| of(&done.traffic)) as f64 / settings.transactions.max(1) as f64
    };
    let has_cache = settings.options.modelled.cache.is_some();
    let counts = Counts {
        lines_read: each(&|t| t.counters.lines_read),
        lines_written: each(&|t| if has_cache { t.cache.stores } else { t.counters.lines_written }),
        bytes_stored: each(&|t| t.counters.bytes_stored + t.counters.bytes_stored_nt),
        fences: each(&|t| t.syncs),
        system_calls: each(&|t| t.system_calls),
        copied_bytes: each(&|t| t.copied_bytes),
        written_memory: each(&|t| t.written.memory),
        written_log: each(&|t| t.written.log),
        written_table: each(&|t| t.written.table),
    };
    let modelled_ns = has_cache.then(|| AtLatencies::of(|load_ns| device_ns(&counts, load_ns)));
    let seconds = parts.iter().map(|done| done.seconds).fold(0.0, f64::max);
    let footprint = Area::ALL
        .iter()
        .map(|area| (format!("{area:?}").to_lowercase(), sum(&|done| done.footprint.of(*area))));
    Report {
        engine: settings.engine.name(),
        device: settings.device.to_string(),
        mix: settings.mix.name(),
        skew: settings.skew.name(),
        partitions: settings.partitions,
        tuples: settings.tuples,
        transactions: settings.transactions,
        seconds,
        transactions_per_second: settings.transactions as f64 / seconds,
        counts,
        modelled_ns,
        cost: None,
        footprint: footprint.collect(),
        recovery: recoveries(parts),
        verified: settings.verify,
    }
}

fn recoveries(parts: &[Done]) -> Option<RecoveryCounts> {
    let mut all: Option<RecoveryCounts> = None;
    for one in parts.iter().filter_map(|done| done.recovery.as_ref()) {
        let sum = all.get_or_insert_with(RecoveryCounts::default);
        sum.seconds = sum.seconds.max(one.seconds);
        sum.redone += one.redone;
        sum.undone += one.undone;
        sum.lines_read += one.lines_read;
        sum.lines_written += one.lines_written;
        sum.slots += one.slots;
        sum.freed += one.freed;
        sum.durable += one.durable;
    }
    all
}

/// A report as text.
#[must_use]
pub fn render(report: &Report) -> String {
    let Report { engine, device, mix, skew, partitions, tuples, transactions, counts, .. } = report;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<34}{value}").expect("memory");
    };
    line("engine, device", format!("{engine}, {device}"));
    line("YCSB", format!("{mix}, {skew} skew, {tuples} tuples, {partitions} partitions"));
    line("transactions", format!("{transactions} in {:.3} s", report.seconds));
    line("transactions/s", format!("{:.0}", report.transactions_per_second));
    for (name, value) in [
        ("lines read a transaction", counts.lines_read),
        ("lines written", counts.lines_written),
        ("bytes stored", counts.bytes_stored),
        ("fences", counts.fences),
        ("system calls", counts.system_calls),
        ("bytes copied by them", counts.copied_bytes),
        ("bytes for memory", counts.written_memory),
        ("bytes for a log", counts.written_log),
        ("bytes for the table", counts.written_table),
    ] {
        line(name, format!("{value:.2}"));
    }
    let three =
        |AtLatencies { at_160, at_320, at_1280 }| format!("{at_160:.0}, {at_320:.0}, {at_1280:.0}");
    if let Some(ns) = report.modelled_ns {
        line("device ns at 160, 320, 1280 ns", three(ns));
    }
    if let Some(cost) = &report.cost {
        line("processor ns", format!("{:.0}", cost.cpu_ns));
        line("transactions/s at these, by cost", three(cost.per_second));
    }
    let parts = report.footprint.iter().map(|(area, bytes)| format!("{area} {}", bytes >> 10));
    line("most KiB in use", parts.collect::<Vec<_>>().join(", "));
    if let Some(done) = &report.recovery {
        let (redone, undone, read) = (done.redone, done.undone, done.lines_read);
        line("recovery", format!("{redone} redone, {undone} undone, {read} lines read"));
        line("allocator", format!("{} slots, {} freed", done.slots, done.freed));
        line("recovered in", format!("{:.6} s", done.seconds));
    }
    if report.verified {
        line("verified", "every tuple is as the durable transactions left it".into());
    }
    text
}
