//! What clients saw, as people read it.

use std::fmt::Write as _;

use super::clients::{ClientsReport, ClientsRun};
use crate::report::{Summary, checked, durable, grouped, latency, scale, table, time};

/// The report as text.
#[must_use]
pub fn render(report: &ClientsReport) -> String {
    let ClientsReport { workload, device, workers, clients, in_flight, batch, .. } = report;
    let mut text = format!(
        "{workload} through the library, {}\ndevice {device}, {workers} threads run transactions, \
         {clients} threads call, {in_flight} calls in flight{}{}\n",
        scale(&report.parameters),
        if *batch > 1 { format!(", submitted {batch} at a time") } else { String::new() },
        report.rate.map_or_else(String::new, |rate| format!(", {} a second", grouped(rate)))
    );
    if !report.by_epoch_size.is_empty() {
        let columns = ["calls of an epoch, at most", "on average", "txn/s", "p50", "p99", "p99.9"];
        let runs = report.by_epoch_size.iter().map(row).collect();
        let _ = writeln!(text, "\nThroughput against latency\n{}", table(&columns, runs));
    }
    if let Some(contention) = &report.contention {
        let _ = write!(text, "\n{contention}");
    }
    let _ = writeln!(text, "\nlibrary     {}", library(&report.run));
    if let Some(alone) = &report.engine {
        let _ = writeln!(
            text,
            "engine      {} transactions per second alone, in epochs of {}: the library gives \
             {:.0} % of that",
            grouped(alone.throughput_txn_per_s),
            grouped(alone.epoch_size as f64),
            alone.share_percent
        );
    }
    text.push_str(&summary(report).render());
    if let Some(why) = &report.run.first_failure {
        let _ = writeln!(text, "first failed transaction: {why}");
    }
    text
}

fn row(run: &ClientsRun) -> Vec<String> {
    let seen = run.client_latency_ns;
    vec![
        run.epoch_calls_max.map_or_else(String::new, |calls| grouped(calls as f64)),
        grouped(run.calls_per_epoch),
        grouped(run.throughput_txn_per_s),
        time(seen.p50),
        time(seen.p99),
        time(seen.p999),
    ]
}

fn library(run: &ClientsRun) -> String {
    format!(
        "{} epochs of {:.1} calls; {} committed, {} aborted, {} failed, {} deferred",
        grouped(run.epochs as f64),
        run.calls_per_epoch,
        grouped(run.committed as f64),
        grouped(run.aborted as f64),
        grouped(run.failed as f64),
        grouped(run.deferred as f64)
    )
}

fn summary(report: &ClientsReport) -> Summary {
    let run = &report.run;
    let throughput = grouped(run.throughput_txn_per_s);
    let since = if report.rate.is_some() { "arrival" } else { "call" };
    Summary {
        throughput: format!("{throughput} transactions per second, over {:.1} s", run.seconds),
        durable: durable(report.durable, &report.device),
        latency: latency(run.client_latency_ns, &format!("from {since} to answer, at a client")),
        verified: checked(report.checked, report.problems.len()),
    }
}
