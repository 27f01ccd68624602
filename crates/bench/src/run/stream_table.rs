//! What came of a stream, as people read it.

use std::fmt::Write as _;

use super::stream::StreamReport;
use crate::report::{Summary, checked, durable, grouped, latency, scale};

/// The report as text.
#[must_use]
pub fn render(report: &StreamReport) -> String {
    let StreamReport { workload, device, workers, epochs, epoch_size, .. } = report;
    let mut text = format!(
        "{workload} through the library, {}\ndevice {device}, {workers} threads run transactions, \
         {} calls at a time\n\n",
        scale(&report.parameters),
        grouped(*epoch_size as f64)
    );
    let _ = writeln!(
        text,
        "library     {} epochs; {} committed, {} aborted, {} failed, {} deferred",
        grouped(*epochs as f64),
        grouped(report.committed as f64),
        grouped(report.aborted as f64),
        grouped(report.failed as f64),
        grouped(report.deferred as f64)
    );
    let _ = writeln!(
        text,
        "state       digest {} at epoch {} ({} of them loading), {} rows",
        report.state_digest,
        report.epoch,
        report.loading_epochs,
        grouped(report.rows as f64)
    );
    text.push_str(&summary(report).render());
    if let Some(why) = &report.first_failure {
        let _ = writeln!(text, "first failed transaction: {why}");
    }
    text
}

fn summary(report: &StreamReport) -> Summary {
    let throughput = grouped(report.throughput_txn_per_s);
    let check = checked(report.checked, report.problems.len());
    Summary {
        throughput: format!("{throughput} transactions per second, over {:.1} s", report.seconds),
        durable: durable(report.durable, &report.device),
        latency: latency(report.latency_ns, "to the end of their epoch"),
        verified: match report.verified {
            true => format!("{check}; all is as in a serial run"),
            false => format!("{check}; --verify compares with a serial run"),
        },
    }
}
