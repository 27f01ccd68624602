//! A workload on a deterministic rival of `testbed`: the same data and the same epochs as for the
//! engine, in DRAM, and a report whose fields have the same names.

use std::fmt::Write as _;

use bench::clock::{cpu_ns, seconds};
use bench::report::{self, Latency, Named, Summary, ratio};
use bench::{BenchError, Result};
use pmem::DeviceSpec;
use serde::Serialize;

use super::deterministic::Deterministic;
use crate::report::{Head, Ran};
use crate::{Job, Settings};

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchRivalReport {
    /// What ran where. A batch is what the engine calls an epoch.
    #[serde(flatten)]
    pub head: Head,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that aborted on purpose.
    pub aborted: u64,
    /// Time in batches.
    pub seconds: f64,
    /// Committed transactions per second of that time.
    pub throughput_txn_per_s: f64,
    /// Nanoseconds that all threads ran, of a transaction.
    pub cpu_ns_per_txn: f64,
    /// How long the batch of a transaction took: all of it is answered at its end.
    pub latency_ns: Latency,
    /// What the engine counted: totals, then `..._per_txn` (of committed and aborted ones).
    pub counters: Named,
    /// Digest of all tables at the end, 32 hexadecimal digits.
    pub state_digest: String,
    /// Whether every answer and the state were compared with the serial oracle.
    pub verified: bool,
}

/// Runs a job on a deterministic rival.
///
/// # Errors
/// `Usage` for another device than DRAM; whatever stops the run.
pub fn run_deterministic(
    job: &Job,
    engine: Deterministic,
    spec: &DeviceSpec,
    settings: &Settings,
) -> Result<BatchRivalReport> {
    if *spec != DeviceSpec::Dram {
        let what = format!("design {} runs on dram, not on {spec}", engine.name());
        return Err(BenchError::Usage(what));
    }
    let of_rival = testbed::Settings {
        options: testbed::Options::new(settings.engine.workers),
        rounds: settings.epochs,
        // The data is loaded twice, as for the engine, so that all memory has been used once.
        warm_up_rounds: 0,
        calls_per_round: job.parameters().epoch_size,
        verify: settings.verify,
        recover: false,
        cpu_ns,
    };
    let report = job.run_deterministic(engine, &of_rival)?;
    let ran = Ran {
        workers: report.workers,
        epochs: of_rival.rounds,
        epoch_size: of_rival.calls_per_round,
    };
    let mut head = Head::new(job, engine.name(), ran);
    head.device = spec.to_string();
    head.device_note = "memory of the process: no inputs are logged, nothing is kept".to_string();
    Ok(BatchRivalReport::new(head, &report, of_rival.verify))
}

impl BatchRivalReport {
    fn new(head: Head, report: &testbed::BatchReport, verified: bool) -> Self {
        let seconds = seconds(report.elapsed_ns);
        let at = |quantile| report.latency_ns.value_at_quantile(quantile);
        Self {
            head,
            committed: report.committed,
            aborted: report.aborted,
            seconds,
            throughput_txn_per_s: ratio(report.committed as f64, seconds),
            cpu_ns_per_txn: ratio(report.cpu_ns as f64, report.calls() as f64),
            latency_ns: Latency { p50: at(0.5), p99: at(0.99), p999: at(0.999) },
            counters: counters(report),
            state_digest: format!("{:032x}", report.digest),
            verified,
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
            "a transaction: {:.3} waits of {:.1} spins in all, {:.3} hand-overs, {:.2} messages,\n\
             {:.2} versions, {:.3} runs that were thrown away",
            per_txn("waits"),
            per_txn("spins"),
            per_txn("hand_overs"),
            per_txn("messages"),
            per_txn("versions"),
            per_txn("reruns"),
        );
        let verified = match self.verified {
            true => "every answer and the state are those of a serial run",
            false => "nothing was asked for (--verify)",
        };
        let summary = Summary {
            throughput: format!(
                "{:.0} transactions per second, {workers} workers, {epochs} batches of \
                 {epoch_size}",
                self.throughput_txn_per_s
            ),
            durable: report::durable(false, device),
            latency: report::latency(self.latency_ns, "the batch of a transaction"),
            verified: verified.to_string(),
        };
        text + &summary.render()
    }
}

fn counters(report: &testbed::BatchReport) -> Named {
    let counts = &report.counts;
    let totals = vec![
        ("waits", counts.waits.waits),
        ("spins", counts.waits.spins),
        ("hand_overs", counts.hand_overs),
        ("messages", counts.messages),
        ("versions", counts.versions),
        ("reruns", counts.reruns),
        ("producer_runs", counts.producer_runs),
        ("fallbacks", counts.fallbacks),
        ("minor_collections", counts.minor_collections),
        ("major_collections", counts.major_collections),
    ];
    Named::with_ratios(totals, report.calls())
}
