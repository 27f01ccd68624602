//! What a run took: counts, what a transaction costs by them, and the report.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use super::settings::Settings;
use crate::engines::Recovery;
use crate::ground::{Area, Footprint, Part, Task, Traffic};

/// What went to and from the device, of a transaction.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Counts {
    /// Lines read, as the modelled cache has it if there is one.
    pub lines_read: f64,
    /// Times that the processor waits for lines, if those that one access misses come at once, up
    /// to ten; if a cache is modelled.
    pub load_waits: f64,
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
    /// Lines written, by what was stored in them, if a cache is modelled.
    pub written_by_part: BTreeMap<&'static str, PartLines>,
}

/// Lines of a structure that a transaction writes to the device.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct PartLines {
    /// Flushed.
    pub flushed: f64,
    /// Pushed out of the modelled cache.
    pub pushed_out: f64,
    /// Stored past the cache.
    pub past_cache: f64,
}

impl PartLines {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> f64 {
        self.flushed + self.pushed_out + self.past_cache
    }
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
    /// The same if lines that one access misses come at once.
    pub per_second_overlapped: AtLatencies,
    /// The same if a fence took so long.
    pub per_second_by_sync: AtSyncs,
    /// Shares of that time at 320 ns, in per cent, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<Shares>,
}

/// What a transaction's time is for (the paper's 5.5), in per cent.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Shares {
    /// Tuples, the allocator, files.
    pub storage: f64,
    /// Logs, checkpoints, commits of directories.
    pub recovery: f64,
    /// Trees and filters.
    pub index: f64,
    /// The rest, compaction among it.
    pub other: f64,
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
    /// Of both, those of loading what was in checkpoints and tables.
    pub lines_loaded: u64,
    /// Of both, those of making the log's changes again.
    pub lines_redone: u64,
    /// Slots that the allocators looked at.
    pub slots: u64,
    /// Slots that they freed.
    pub freed: u64,
    /// Transactions that were durable, and are there.
    pub durable: u64,
}

impl RecoveryCounts {
    /// Those of a partition.
    pub(crate) fn of(did: &Recovery, took: Duration, durable: u64) -> Self {
        Self {
            seconds: took.as_secs_f64(),
            redone: did.redone,
            undone: did.undone,
            lines_read: did.engine.counters.lines_read,
            lines_written: did.engine.counters.lines_written,
            lines_loaded: did.loaded_lines,
            lines_redone: did.redone_lines,
            slots: did.slots,
            freed: did.freed,
            durable,
        }
    }
}

/// What a run took.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The engine's name.
    pub engine: &'static str,
    /// The device.
    pub device: String,
    /// `ycsb` or `tpcc`.
    pub workload: &'static str,
    /// The mix.
    pub mix: &'static str,
    /// The skew; of YCSB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew: Option<&'static str>,
    /// Threads.
    pub partitions: u64,
    /// Tuples of all; of YCSB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuples: Option<u64>,
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
    /// Whether every tuple was compared; of TPC-C every answer, too.
    pub verified: bool,
}

/// What one partition's thread comes back with.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) seconds: f64,
    pub(crate) cpu_ns: u64,
    pub(crate) traffic: Traffic,
    pub(crate) footprint: Footprint,
    pub(crate) recovery: Option<RecoveryCounts>,
}

/// What a transaction costs that took so much of the processor.
pub(crate) fn cost(cpu_ns: f64, counts: &Counts) -> Cost {
    let per_second = |load_ns: f64| 1e9 / (cpu_ns + device_ns(counts, load_ns));
    let overlapped = |load_ns: f64| {
        1e9 / (cpu_ns + counts.load_waits * load_ns + counts.lines_written * STORE_NS)
    };
    let by_sync =
        |sync_ns: f64| 1e9 / (cpu_ns + device_ns(counts, 320.0) + counts.fences * sync_ns);
    Cost {
        cpu_ns,
        per_second: AtLatencies::of(per_second),
        per_second_overlapped: AtLatencies::of(overlapped),
        per_second_by_sync: AtSyncs {
            at_10: by_sync(10.0),
            at_100: by_sync(100.0),
            at_1000: by_sync(1000.0),
            at_10000: by_sync(10_000.0),
        },
        shares: None,
    }
}

/// Shares of the time of tasks: of the processor in a run without a modelled cache, and of the
/// device in one with it.
pub(crate) fn shares(plain: &[Done], cached: &[Done]) -> Shares {
    let ns = |task: Task| {
        let plain: u64 = plain.iter().map(|done| done.traffic.ledger.spent(task).ns).sum();
        let device = |done: &Done| {
            let spent = done.traffic.ledger.spent(task);
            spent.lines_read as f64 * 320.0 + spent.lines_written as f64 * STORE_NS
        };
        plain as f64 + cached.iter().map(device).sum::<f64>()
    };
    let all: f64 = Task::ALL.into_iter().map(ns).sum();
    let share = |task| 100.0 * ns(task) / all.max(1.0);
    Shares {
        storage: share(Task::Storage),
        recovery: share(Task::Recovery),
        index: share(Task::Index),
        other: share(Task::Other),
    }
}

/// Nanoseconds of a line's store at 9.5 GB/s.
pub(crate) const STORE_NS: f64 = 64.0 / 9.5;

/// The device's time of a transaction: stores at 9.5 GB/s, and loads that take so long.
fn device_ns(counts: &Counts, load_ns: f64) -> f64 {
    counts.lines_read * load_ns + counts.lines_written * STORE_NS
}

/// What partitions came to.
pub(crate) fn report(settings: &Settings, parts: &[Done]) -> Report {
    let sum = |of: &dyn Fn(&Done) -> u64| parts.iter().map(of).sum::<u64>();
    let each = |of: &dyn Fn(&Traffic) -> u64| {
        sum(&|done| of(&done.traffic)) as f64 / settings.transactions.max(1) as f64
    };
    let has_cache = settings.options.modelled.cache.is_some();
    let lines = |part: Part| PartLines {
        flushed: each(&|t| t.ledger.written(part).flushed),
        pushed_out: each(&|t| t.ledger.written(part).pushed_out),
        past_cache: each(&|t| t.ledger.written(part).past_cache),
    };
    let by_part = Part::ALL.into_iter().filter(|_| has_cache);
    let by_part = by_part.map(|part| (part.name(), lines(part)));
    let counts = Counts {
        lines_read: each(&|t| t.counters.lines_read),
        load_waits: each(&|t| t.ledger.waits()),
        lines_written: each(&|t| if has_cache { t.cache.stores } else { t.counters.lines_written }),
        bytes_stored: each(&|t| t.counters.bytes_stored + t.counters.bytes_stored_nt),
        fences: each(&|t| t.syncs),
        system_calls: each(&|t| t.system_calls),
        copied_bytes: each(&|t| t.copied_bytes),
        written_memory: each(&|t| t.written.memory),
        written_log: each(&|t| t.written.log),
        written_table: each(&|t| t.written.table),
        written_by_part: by_part.collect(),
    };
    let seconds = parts.iter().map(|done| done.seconds).fold(0.0, f64::max);
    let footprint = Area::ALL
        .iter()
        .map(|area| (format!("{area:?}").to_lowercase(), sum(&|done| done.footprint.of(*area))));
    Report {
        modelled_ns: has_cache.then(|| AtLatencies::of(|load_ns| device_ns(&counts, load_ns))),
        footprint: footprint.collect(),
        recovery: recoveries(parts),
        verified: settings.verify,
        ..Report::new(settings.engine.name(), settings, counts, seconds)
    }
}

impl Report {
    fn new(engine: &'static str, settings: &Settings, counts: Counts, seconds: f64) -> Self {
        Self {
            engine,
            device: settings.device.to_string(),
            workload: if settings.tpcc.is_some() { "tpcc" } else { "ycsb" },
            mix: if settings.tpcc.is_some() { "full" } else { settings.mix.name() },
            skew: settings.tpcc.is_none().then(|| settings.skew.name()),
            partitions: settings.partitions,
            tuples: settings.tpcc.is_none().then_some(settings.tuples),
            transactions: settings.transactions,
            seconds,
            transactions_per_second: settings.transactions as f64 / seconds,
            counts,
            modelled_ns: None,
            cost: None,
            footprint: BTreeMap::new(),
            recovery: None,
            verified: false,
        }
    }

    /// That of another engine on the same work, whose transactions take so much of the processor;
    /// what they cost, if that was asked for.
    #[must_use]
    pub fn of_another(
        engine: &'static str,
        settings: &Settings,
        counts: Counts,
        seconds: f64,
        cpu_ns: f64,
    ) -> Self {
        let cost = settings.cost.then(|| cost(cpu_ns, &counts));
        let modelled_ns = Some(AtLatencies::of(|load_ns| device_ns(&counts, load_ns)));
        Self { modelled_ns, cost, ..Self::new(engine, settings, counts, seconds) }
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
        sum.lines_loaded += one.lines_loaded;
        sum.lines_redone += one.lines_redone;
        sum.slots += one.slots;
        sum.freed += one.freed;
        sum.durable += one.durable;
    }
    all
}

/// A report as text.
#[must_use]
pub fn render(report: &Report) -> String {
    let Report { engine, device, mix, partitions, transactions, counts, .. } = report;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<34}{value}").expect("memory");
    };
    line("engine, device", format!("{engine}, {device}"));
    match (report.skew, report.tuples) {
        (Some(skew), Some(tuples)) => {
            line("YCSB", format!("{mix}, {skew} skew, {tuples} tuples, {partitions} partitions"));
        }
        _ => line("TPC-C", format!("{mix} mix, {partitions} partitions of a warehouse")),
    }
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
    for (part, lines) in counts.written_by_part.iter().filter(|(_, lines)| lines.all() > 0.0) {
        let PartLines { flushed, pushed_out, past_cache } = lines;
        let kinds =
            format!("{flushed:.2} flushed, {pushed_out:.2} pushed out, {past_cache:.2} past");
        line(&format!("lines written, {part}"), kinds);
    }
    let three =
        |AtLatencies { at_160, at_320, at_1280 }| format!("{at_160:.0}, {at_320:.0}, {at_1280:.0}");
    if let Some(ns) = report.modelled_ns {
        line("device ns at 160, 320, 1280 ns", three(ns));
    }
    if let Some(cost) = &report.cost {
        line("processor ns", format!("{:.0}", cost.cpu_ns));
        line("transactions/s at these, by cost", three(cost.per_second));
        if let Some(Shares { storage, recovery, index, other }) = cost.shares {
            let kinds = format!("{storage:.0}, {recovery:.0}, {index:.0}, {other:.0} per cent");
            line("storage, recovery, index, other", kinds);
        }
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
