//! What happens, told to `tracing` and `metrics`. Where their features are off this is nothing.
//!
//! Who listens is code of the user's, which may call the database: no lock is held, and it is told
//! so that it gets an error instead of waiting for ever (`body.rs`). If it panics, that is not the
//! database's affair.

#![cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    expect(unused_variables, reason = "each feature takes its part")
)]

use std::time::Duration;

use engine::{EpochOutcome, RecoveryReport, RunningCall};
use storage::EpochNumber;

use crate::error::Error;

#[cfg(any(feature = "tracing", feature = "metrics"))]
use crate::body::callback;

/// A span of `tracing`, until it is dropped.
pub(crate) struct Span {
    #[cfg(feature = "tracing")]
    entered: Option<tracing::span::EnteredSpan>,
}

#[cfg(feature = "tracing")]
impl Drop for Span {
    fn drop(&mut self) {
        callback(|| drop(self.entered.take()));
    }
}

/// A database is being opened.
pub(crate) fn opening(device: &str) -> Span {
    Span {
        #[cfg(feature = "tracing")]
        entered: Some(tracing::info_span!(target: "nvcaracal", "open", device).entered()),
    }
}

/// It is open.
pub(crate) fn opened(device: &str, report: &RecoveryReport, time: Duration) {
    #[cfg(feature = "tracing")]
    {
        for verdict in &report.skipped {
            tracing::warn!(
                target: "nvcaracal",
                epoch = verdict.epoch.0,
                position = verdict.position.0,
                why = verdict.reason,
                "a call was left out of the replay"
            );
        }
        tracing::info!(
            target: "nvcaracal",
            device,
            created = report.created,
            epoch = report.epoch.0,
            rows = report.rows,
            epochs_replayed = report.epochs_replayed,
            calls_replayed = report.calls_replayed,
            us = us(time),
            "opened"
        );
    }
}

#[cfg(feature = "tracing")]
fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// An epoch runs.
pub(crate) fn epoch_span(calls: usize) -> Span {
    #[cfg(feature = "tracing")]
    {
        let mut entered = None;
        callback(|| {
            entered = Some(tracing::debug_span!(target: "nvcaracal", "epoch", calls).entered());
        });
        Span { entered }
    }
    #[cfg(not(feature = "tracing"))]
    Span {}
}

/// An epoch has ended.
pub(crate) fn epoch(
    outcome: &EpochOutcome,
    rows: u64,
    latency: Option<Duration>,
    queued: impl FnOnce() -> usize,
) {
    #[cfg(any(feature = "tracing", feature = "metrics"))]
    let (stats, work) = (&outcome.stats, &outcome.stats.work);
    #[cfg(feature = "tracing")]
    callback(|| {
        tracing::debug!(
            target: "nvcaracal",
            epoch = outcome.epoch.0,
            committed = work.committed,
            aborted = work.aborted,
            failed = work.failed,
            deferred = work.deferred,
            log_bytes = stats.device.log_bytes,
            us = stats.total_ns / 1000,
            "epoch"
        );
    });
    #[cfg(feature = "metrics")]
    callback(|| {
        metrics::counter!("nvcaracal_epochs_total").increment(1);
        metrics::counter!("nvcaracal_log_bytes_total").increment(stats.device.log_bytes);
        metrics::histogram!("nvcaracal_epoch_seconds").record(stats.total_ns as f64 / 1e9);
        if let Some(latency) = latency {
            metrics::histogram!("nvcaracal_answer_seconds").record(latency.as_secs_f64());
        }
        metrics::gauge!("nvcaracal_rows").set(rows as f64);
        metrics::gauge!("nvcaracal_queued_calls").set(queued() as f64);
    });
}

/// The archive of the log fails, or can be written again.
pub(crate) fn archive(epoch: EpochNumber, error: Option<&str>) {
    #[cfg(feature = "tracing")]
    callback(|| match error {
        Some(why) => {
            tracing::warn!(target: "nvcaracal", epoch = epoch.0, why, "the log is not archived");
        }
        None => tracing::info!(target: "nvcaracal", epoch = epoch.0, "the log is archived again"),
    });
    #[cfg(feature = "metrics")]
    callback(|| {
        metrics::gauge!("nvcaracal_archive_fails").set(f64::from(u8::from(error.is_some())));
    });
}

/// For which rows the calls of an epoch contended, if that was asked for.
pub(crate) fn contention(epoch: EpochNumber, rows: &[engine::ContendedRow]) {
    #[cfg(any(feature = "tracing", feature = "metrics"))]
    if !rows.is_empty() {
        let writers = rows.iter().map(|row| u64::from(row.writers)).sum::<u64>();
        let waits = rows.iter().map(|row| row.waits).sum::<u64>();
        #[cfg(feature = "tracing")]
        callback(|| {
            tracing::debug!(
                target: "nvcaracal",
                epoch = epoch.0,
                rows = rows.len(),
                writers,
                waits,
                us = rows.iter().map(|row| row.waited_ns).sum::<u64>() / 1000,
                "contention"
            );
        });
        #[cfg(feature = "metrics")]
        callback(|| {
            metrics::counter!("nvcaracal_contended_writes_total").increment(writers);
            metrics::counter!("nvcaracal_row_waits_total").increment(waits);
        });
    }
}

/// So many calls of a procedure ended like this.
pub(crate) fn calls(procedure: &'static str, outcome: &'static str, calls: u64) {
    #[cfg(feature = "metrics")]
    if calls > 0 {
        let labels = [("procedure", procedure), ("outcome", outcome)];
        callback(|| metrics::counter!("nvcaracal_calls_total", &labels).increment(calls));
    }
}

pub(crate) fn checkpoint(epoch: EpochNumber, time: Duration) {
    #[cfg(feature = "tracing")]
    callback(|| tracing::info!(target: "nvcaracal", epoch = epoch.0, us = us(time), "checkpoint"));
    #[cfg(feature = "metrics")]
    callback(|| metrics::histogram!("nvcaracal_checkpoint_seconds").record(time.as_secs_f64()));
}

/// A call has been running for longer than expected.
pub(crate) fn slow_call(call: &RunningCall, time: Duration) {
    #[cfg(feature = "tracing")]
    callback(|| {
        tracing::warn!(
            target: "nvcaracal",
            procedure = call.procedure,
            epoch = call.epoch.0,
            position = call.position.0,
            us = us(time),
            "a call runs long"
        );
    });
    #[cfg(feature = "metrics")]
    callback(|| {
        let label = [("procedure", call.procedure.clone())];
        metrics::counter!("nvcaracal_slow_calls_total", &label).increment(1);
    });
}

pub(crate) fn full(what: &str) {
    #[cfg(feature = "tracing")]
    callback(|| tracing::info!(target: "nvcaracal", "{what} was full: taking a checkpoint"));
}

pub(crate) fn stopped(error: &Error) {
    #[cfg(feature = "tracing")]
    callback(|| tracing::error!(target: "nvcaracal", why = %error, "stopped"));
}

pub(crate) fn closed() {
    #[cfg(feature = "tracing")]
    callback(|| tracing::info!(target: "nvcaracal", "closed"));
}
