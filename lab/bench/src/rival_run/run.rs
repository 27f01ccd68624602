//! A workload on a rival engine of `testbed`: the same data, stream and device, and a report whose
//! fields have the same names as that of the engine.
//!
//! Rivals run on emulated persistent memory: without added time (`emulated:none`) that is DRAM with
//! flushes and fences. Those that log to a file run on `file`.

use std::fmt::Write as _;
use std::sync::Arc;

use bench::clock::{cpu_ns, seconds};
use bench::report::{self, Latency, Named, Summary, add_counters, ratio};
use bench::{BenchError, Result};
use pmem::{Counters, Description, DeviceSpec, Emulated, File, FileOptions};
use serde::Serialize;

use super::device::RivalDevice;
use super::rivals::Rival;
use crate::cost::{Answered, Cost, Took};
use crate::report::{Head, Ran};
use crate::{Job, Settings};

/// Cache of an engine that has one, unless it is given.
pub const RIVAL_CACHE_BYTES: u64 = 256 << 20;

/// What transactions know of others, in reports.
const SERIALIZABLE: &str = "serializable";
const SNAPSHOTS: &str = "snapshots";

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RivalReport {
    /// What ran where. Epochs are rounds of the stream, of as many calls as the engine's epochs.
    #[serde(flatten)]
    pub head: Head,
    /// Most bytes of cached rows.
    pub cache_bytes: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that aborted on purpose.
    pub aborted: u64,
    /// Runs of transactions that were rolled back because of others.
    pub retries: u64,
    /// Time in rounds.
    pub seconds: f64,
    /// Committed transactions per second of that time.
    pub throughput_txn_per_s: f64,
    /// Nanoseconds that all threads ran, of a transaction. Time that the device takes is in it.
    pub cpu_ns_per_txn: f64,
    /// What a transaction costs: that, with the device's part, as throughput and latency.
    pub cost: Cost,
    /// From the beginning of a transaction until it may be answered.
    pub latency_ns: Latency,
    /// What was counted in rounds: totals, then `..._per_txn` (of committed and aborted ones).
    pub counters: Named,
    /// Digest of all tables at the end, 32 hexadecimal digits.
    pub state_digest: String,
    /// What `verified` is about.
    pub isolation: &'static str,
    /// Whether every answer and the state were compared with the serial oracle, in the order in
    /// which the engine says that they took place; or, where transactions read snapshots, with what
    /// these allow.
    pub verified: bool,
    /// What the recovery after the run took, by part; absent if that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Named>,
}

/// Runs a job on a rival.
///
/// # Errors
/// `Usage` for a device that the rival does not run on; whatever stops the run.
pub fn run_rival(
    job: &Job,
    rival: Rival,
    spec: &DeviceSpec,
    settings: &Settings,
) -> Result<RivalReport> {
    let device = open(rival, spec, settings)?;
    let mut options = testbed::Options::new(settings.engine.workers);
    options.cache_bytes = settings.engine.cache_bytes;
    options.group_us = settings.group_us;
    let of_rival = testbed::Settings {
        options,
        rounds: settings.epochs,
        // The engine loads twice: so all memory of these has been used once, too.
        warm_up_rounds: 1,
        calls_per_round: job.parameters().epoch_size,
        verify: settings.verify,
        recover: settings.recover,
        cpu_ns,
    };
    let report = job.run_rival(rival, &device, &of_rival)?;
    Ok(RivalReport::new(job, rival, &device.description(), &report, &of_rival))
}

/// Opens the device of a run.
fn open(rival: Rival, spec: &DeviceSpec, settings: &Settings) -> Result<RivalDevice> {
    if settings.memory_limit_bytes.is_some() {
        let what =
            format!("design {} keeps all rows in memory: no --memory-limit-bytes", rival.name());
        return Err(BenchError::Usage(what));
    }
    let (image, log) = (settings.image_limit_bytes, settings.log_limit_bytes);
    match spec {
        DeviceSpec::Emulated(profile) if !rival.logs_to_file() => {
            Ok(RivalDevice::Emulated(Arc::new(Emulated::new(*profile, image, log)?)))
        }
        DeviceSpec::File(directory) if rival.logs_to_file() => {
            let options = FileOptions::new(image, log);
            Ok(RivalDevice::File(Arc::new(File::open(directory, &options)?)))
        }
        other => {
            let device = if rival.logs_to_file() { "file:DIR" } else { "emulated[:PROFILE]" };
            let name = rival.name();
            let what = format!("design {name} runs on --device {device}, not on {other}");
            Err(BenchError::Usage(what))
        }
    }
}

impl RivalReport {
    fn new(
        job: &Job,
        rival: Rival,
        device: &Description,
        report: &testbed::Report,
        settings: &testbed::Settings,
    ) -> Self {
        let ran = Ran {
            workers: report.workers,
            epochs: settings.rounds,
            epoch_size: settings.calls_per_round,
        };
        let mut head = Head::new(job, rival.name(), ran);
        head.describe_device(device);
        let seconds = seconds(report.elapsed_ns);
        let at = |quantile| report.latency_ns.value_at_quantile(quantile);
        Self {
            head,
            cache_bytes: settings.options.cache_bytes,
            committed: report.committed,
            aborted: report.aborted,
            retries: report.retries,
            seconds,
            throughput_txn_per_s: ratio(report.committed as f64, seconds),
            cpu_ns_per_txn: ratio(report.cpu_ns as f64, (report.committed + report.aborted) as f64),
            cost: cost(rival, report, settings.options.group_us),
            latency_ns: Latency { p50: at(0.5), p99: at(0.99), p999: at(0.999) },
            counters: counters(report),
            state_digest: format!("{:032x}", report.digest),
            isolation: if rival.is_serializable() { SERIALIZABLE } else { SNAPSHOTS },
            verified: settings.verify,
            recovery: report.recovery.as_ref().map(recovery),
        }
    }

    /// The result in few words.
    #[must_use]
    pub fn render(&self) -> String {
        let head = &self.head;
        let Head { workload, design, device, workers, epochs, epoch_size, .. } = head;
        let mut text = String::new();
        let scale = report::scale(&head.parameters);
        let _ = writeln!(text, "{workload} on {design}, contention {}, {scale}", head.contention);
        let note = format!("device {device}: {}", head.device_note);
        let _ = writeln!(text, "{}\n", report::wrapped(&note));
        let per_txn = |name: &str| self.counters.get(&format!("{name}_per_txn"));
        let _ = writeln!(
            text,
            "retries     {:.3} a transaction; blocks of 256 bytes read {:.2}, written {:.2}",
            per_txn("retries"),
            per_txn("blocks_read"),
            per_txn("blocks_written"),
        );
        self.render_regions(&mut text);
        if let Some(recovery) = &self.recovery {
            let _ = writeln!(
                text,
                "recovery    {} in all; the state digest is as before",
                report::time(recovery.get("all_ns") as u64)
            );
        }
        let verified = match self.verified {
            true if self.isolation == SNAPSHOTS => {
                "every answer and the state are what snapshot isolation allows"
            }
            true => "every answer and the state are those of a serial run",
            false => "nothing was asked for (--verify)",
        };
        let summary = Summary {
            throughput: format!(
                "{:.0} transactions per second, {workers} workers, {epochs} rounds of {epoch_size}",
                self.throughput_txn_per_s
            ),
            durable: report::durable(head.durable, device),
            latency: report::latency(self.latency_ns, "from its beginning to its answer"),
            verified: verified.to_string(),
        };
        text + &summary.render()
    }

    /// What happened to atomic regions, if there were any.
    fn render_regions(&self, text: &mut String) {
        let per_txn = |name: &str| self.counters.get(&format!("{name}_per_txn"));
        if per_txn("regions_ended") == 0.0 {
            return;
        }
        let what = match testbed::has_hardware_regions() {
            true => "of the processor",
            false => "of software, with a model of aborts",
        };
        let _ = writeln!(
            text,
            "regions     {:.2} a transaction, {what}; aborts: conflicts {:.4}, sets {:.4},\n\
             \x20           log inside {:.4}, own checks {:.4}; under locks {:.4}",
            per_txn("regions_ended"),
            per_txn("regions_aborted_conflict"),
            per_txn("regions_aborted_write_set") + per_txn("regions_aborted_read_set"),
            per_txn("regions_aborted_forbidden"),
            per_txn("regions_gave_up"),
            per_txn("regions_fallbacks"),
        );
    }
}

fn cost(rival: Rival, report: &testbed::Report, group_us: u64) -> Cost {
    let (cpu_ns, added_ns) =
        (report.per_call(report.cpu_ns), report.per_call(report.counters.added_ns));
    let answered = match rival.has_timed_groups() {
        true => Answered::InGroupsOfNs(group_us as f64 * 1e3),
        false => Answered::OneByOne,
    };
    Cost::of(Took { workers: report.workers, cpu_ns, added_ns }, answered)
}

fn counters(report: &testbed::Report) -> Named {
    let testbed::Counts { regions, .. } = report.counts;
    let mut totals = vec![
        ("retries", report.retries),
        ("tuples_written", report.counts.tuples_written),
        ("old_versions_read", report.counts.old_versions_read),
        ("cache_misses", report.counts.cache_misses),
        ("cache_evictions", report.counts.evictions),
        ("log_records", report.counts.log_records),
        ("log_checkpoints", report.counts.checkpoints),
        ("regions_ended", regions.ended),
        ("regions_aborted_conflict", regions.conflicts),
        ("regions_aborted_write_set", regions.write_sets),
        ("regions_aborted_read_set", regions.read_sets),
        ("regions_aborted_forbidden", regions.forbidden),
        ("regions_gave_up", regions.gave_up),
        ("regions_aborted_unknown", regions.unknown),
        ("regions_fallbacks", regions.fallbacks),
    ];
    add_counters(&mut totals, &report.counters);
    Named::with_ratios(totals, report.committed + report.aborted)
}

fn recovery(report: &testbed::RecoveryReport) -> Named {
    let parts = [
        ("find_committed_ns", report.find_committed_ns),
        ("build_ns", report.build_ns),
        ("finish_ns", report.finish_ns),
    ];
    let Counters { blocks_read, lines_read, .. } = report.counters;
    let mut named = Named::default();
    named.count("all_ns", parts.iter().map(|(_, ns)| ns).sum());
    let counts = [
        ("pages", report.pages),
        ("versions", report.versions),
        ("rows", report.rows),
        ("uncommitted", report.uncommitted),
        ("blocks_read", blocks_read),
        ("lines_read", lines_read),
    ];
    parts.into_iter().chain(counts).for_each(|(name, value)| named.count(name, value));
    named
}
