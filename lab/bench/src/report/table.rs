//! The report as people read it: aligned, with units.

use std::fmt::Write as _;

use bench::RecoverSummary;
use bench::report::{
    Named, Summary, Table, bars, checked, durable, grouped, latency, scale, table, time, wrapped,
};

use super::engine::Report;
use super::head::Head;

const MIB: f64 = 1024.0 * 1024.0;

/// The report in few words.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    heading(&mut text, report);
    let phases = phase_times(report);
    let parts: Vec<_> = phases.iter().map(|(name, ns)| (what(name), *ns)).collect();
    let each = time((report.seconds * 1e9 / report.head.epochs.max(1) as f64) as u64);
    let _ = write!(text, "\nWhere the time of an epoch goes, {each} on average\n{}", bars(&parts));
    after_the_run(&mut text, report);
    let _ = write!(text, "\n{}", summary(report).render());
    text
}

/// Everything that was measured.
#[must_use]
pub fn render_details(report: &Report) -> String {
    let mut text = String::new();
    heading(&mut text, report);
    let _ = writeln!(
        text,
        "inputs were generated outside the timed region ({:.2} s); times and counts are of the {} \
         epochs of the stream; before it each row was written twice, into both of its versions",
        report.generate_seconds, report.head.epochs
    );
    for (title, table) in [
        ("", figures(report)),
        ("Time per phase", phases(report)),
        ("Work", work(report)),
        ("Workers", workers(report)),
        ("Device", device(report)),
        ("Memory", memory(report)),
    ] {
        let _ = writeln!(text, "\n{title}{}{table}", if title.is_empty() { "" } else { "\n" });
    }
    after_the_run(&mut text, report);
    closing(&mut text, report);
    let _ = write!(text, "\n{}", summary(report).render());
    text
}

/// What was done when the epochs had run.
fn after_the_run(text: &mut String, report: &Report) {
    if let Some(found) = &report.recovery {
        let _ = writeln!(
            text,
            "\nRecovery after the run: {} epochs with {} calls replayed from the checkpoint of \
             epoch {}, {} workers; the state digest is as before\n{}",
            found.epochs_replayed,
            found.calls_replayed,
            found.checkpoint_epoch,
            found.workers,
            recovery(found)
        );
    }
    if let Some(share) = &report.limits {
        text.push_str(&crate::share::render(share));
    }
}

fn heading(text: &mut String, report: &Report) {
    let durable = if report.head.durable { "durable" } else { "NOT durable" };
    let Head { workload, design, contention, device, device_note, .. } = &report.head;
    let _ = writeln!(
        text,
        "{workload} on {design}, contention {contention}, {}",
        scale(&report.head.parameters)
    );
    let _ = writeln!(text, "{}", wrapped(&format!("device {device} ({durable}): {device_note}")));
    if !report.state_hash {
        let _ = writeln!(text, "engine without the state hash");
    }
}

fn figures(report: &Report) -> Table {
    let row = |name: &str, value: String, unit: &str| vec![name.into(), value, unit.into()];
    let latency = report.latency_ns;
    let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
    table(
        &["", "value", "unit"],
        vec![
            row("throughput (committed)", grouped(report.throughput_txn_per_s), "txn/s"),
            row("latency p50", ms(latency.p50), "ms"),
            row("latency p99", ms(latency.p99), "ms"),
            row("latency p99.9", ms(latency.p999), "ms"),
            row("time in epochs", format!("{:.3}", report.seconds), "s"),
            row("loading", format!("{:.3}", report.loading_seconds), "s"),
            row("closing (last checkpoint)", format!("{:.3}", report.close_seconds), "s"),
            row("everything together", format!("{:.3}", report.wall_seconds), "s"),
            row("epochs", grouped(report.head.epochs as f64), "epochs"),
            row("epoch size", grouped(report.head.epoch_size as f64), "txn"),
            row("checkpoint every", grouped(report.checkpoint_every as f64), "epochs"),
            row("append", report.append.to_string(), ""),
            row("packing of pieces", report.packing.to_string(), ""),
            row("workers", report.head.workers.to_string(), "threads"),
            row("committed", grouped(report.committed as f64), "txn"),
            row("aborted", grouped(report.aborted as f64), "txn"),
            row("failed", grouped(report.failed as f64), "txn"),
            row("deferred", grouped(report.deferred as f64), "times"),
            row("waiting for the next epoch", grouped(report.waiting as f64), "txn"),
            row("rows", grouped(report.rows as f64), "rows"),
        ],
    )
}

/// Nanoseconds of each phase over all epochs, and of what is between them.
fn phase_times(report: &Report) -> Vec<(&str, f64)> {
    let phases = report.phase_ns.0.iter();
    let mut times: Vec<_> =
        phases.map(|(name, ns)| (name.as_str(), ns.as_f64().unwrap_or(0.0))).collect();
    let measured: f64 = times.iter().map(|(_, ns)| ns).sum();
    times.push(("between phases", (report.seconds * 1e9 - measured).max(0.0)));
    times
}

/// What happens in a phase, for readers of no paper.
fn what(phase: &str) -> &str {
    match phase {
        "serial" => "run one after the other",
        "log_inputs" => "log the inputs",
        "declare" => "declare what is written",
        "insert" => "make new rows",
        "major_gc" => "collect old versions",
        "evict_cache" => "evict cached versions",
        "append" => "order the versions",
        "execute" => "execute",
        "remove" => "remove deleted rows",
        "checkpoint" => "take the checkpoint",
        other => other,
    }
}

fn phases(report: &Report) -> Table {
    let total = report.seconds * 1e9;
    let epochs = report.head.epochs.max(1) as f64;
    let rows = phase_times(report).into_iter().map(|(name, ns)| {
        let share = if total > 0.0 { ns * 100.0 / total } else { 0.0 };
        vec![
            name.replace('_', " "),
            format!("{:.2}", ns / 1e6),
            format!("{:.3}", ns / 1e6 / epochs),
            format!("{share:.1}"),
        ]
    });
    table(&["phase", "ms", "ms per epoch", "%"], rows.collect())
}

/// Counters that belong together: what to show, and its name.
fn counts(counters: &Named, shown: &[(&str, &str)]) -> Table {
    let rows = shown.iter().map(|(label, name)| {
        let per_txn = counters.get(&format!("{name}_per_txn"));
        vec![(*label).to_string(), grouped(counters.get(name)), format!("{per_txn:.3}")]
    });
    table(&["", "total", "per txn"], rows.collect())
}

fn work(report: &Report) -> Table {
    counts(
        &report.counters,
        &[
            ("transient versions", "transient_versions"),
            ("... their memory reused", "versions_reused"),
            ("persistent versions", "persistent_versions"),
            ("ignored versions", "ignored_versions"),
            ("rows written once", "single_write_rows"),
            ("version arrays", "version_arrays"),
            ("moves in version arrays", "insertion_moves"),
            ("rows inserted", "rows_inserted"),
            ("rows removed", "rows_removed"),
            ("minor collections", "minor_collections"),
            ("major collections", "major_collections"),
            ("cache hits", "cache_hits"),
            ("cache misses", "cache_misses"),
            ("cache evictions", "cache_evictions"),
            ("waits for a pending version", "waits"),
            ("declared keys", "declared_keys"),
            ("versions appended", "appends"),
            ("contended row locks", "contended_locks"),
            ("rows handed over in append", "locks_handed_over"),
            ("appends in buffers", "batched_appends"),
            ("looks at other workers' claims", "claims_of_others"),
            ("other workers' versions read", "versions_handed_over"),
            ("final versions read", "final_versions_read"),
            ("pieces", "pieces"),
            ("pieces split off", "pieces_split"),
        ],
    )
}

fn workers(report: &Report) -> Table {
    let balance = &report.balance;
    let row =
        |name: &str, value: f64, unit: &str| vec![name.into(), format!("{value:.2}"), unit.into()];
    let mut rows = vec![
        row("calls run: most by mean", balance.calls_most_to_mean, ""),
        row("versions appended: most by mean", balance.appends_most_to_mean, ""),
        row("pieces split off: most by mean", balance.pieces_most_to_mean, ""),
        row("waiting for the slowest", balance.waiting_percent, "%"),
    ];
    if let (Some(chain), Some(by)) = (balance.chain_calls_per_epoch, balance.calls_by_chain) {
        rows.push(row("longest chain of an epoch", chain, "calls"));
        rows.push(row("calls by that", by, ""));
    }
    table(&["", "value", "unit"], rows)
}

fn device(report: &Report) -> Table {
    counts(
        &report.counters,
        &[
            ("blocks read (256 bytes)", "blocks_read"),
            ("lines read (64 bytes)", "lines_read"),
            ("blocks written (256 bytes)", "blocks_written"),
            ("lines written (64 bytes)", "lines_written"),
            ("bytes written inside an emulated device", "media_bytes_written"),
            ("bytes stored", "bytes_stored"),
            ("bytes stored non-temporally", "bytes_stored_nt"),
            ("bytes logged", "log_bytes"),
            ("flushes (lines)", "flushes"),
            ("fences", "fences"),
        ],
    )
}

fn recovery(found: &RecoverSummary) -> Table {
    let count = |count: Option<u64>| count.map_or_else(String::new, |count| grouped(count as f64));
    let rows = found.parts().into_iter().map(|(part, ms, reads)| {
        let lines = count(reads.map(|reads| reads.lines_read));
        let blocks = count(reads.map(|reads| reads.blocks_read));
        vec![part.to_string(), format!("{ms:.3}"), lines, blocks]
    });
    table(&["part", "ms", "lines read", "blocks read"], rows.collect())
}

fn memory(report: &Report) -> Table {
    let on_device =
        |name: &str| matches!(name, "persistent_rows" | "persistent_values" | "input_log");
    let rows = report.memory_bytes.0.iter().map(|(name, bytes)| {
        let place = if on_device(name) { "device" } else { "DRAM" };
        let mib = bytes.as_f64().unwrap_or(0.0) / MIB;
        vec![name.replace('_', " "), place.to_string(), format!("{mib:.1}")]
    });
    table(&["structure", "where", "MiB"], rows.collect())
}

fn closing(text: &mut String, report: &Report) {
    let Report { epoch, loading_epochs, state_digest, .. } = report;
    let _ = writeln!(
        text,
        "\nstate digest {state_digest} at epoch {epoch} ({loading_epochs} of them loading)"
    );
    if report.state_digest_from == "scan" {
        let _ = writeln!(text, "the digest was computed from all rows after the last epoch");
    }
    if let Some(why) = &report.first_failure {
        let _ = writeln!(text, "first failed transaction: {why}");
    }
}

fn summary(report: &Report) -> Summary {
    let workers = match report.head.workers {
        1 => "1 thread".to_string(),
        workers => format!("{workers} threads"),
    };
    let check = checked(report.checked, report.problems.len());
    Summary {
        throughput: format!(
            "{} transactions per second by {workers}, {} epochs of {}, generated before",
            grouped(report.throughput_txn_per_s),
            grouped(report.head.epochs as f64),
            grouped(report.head.epoch_size as f64)
        ),
        durable: durable(report.head.durable, &report.head.device),
        latency: latency(report.latency_ns, "to the end of their epoch"),
        verified: match report.verified {
            true => format!("{check}; all is as in a serial run"),
            false => format!("{check}; --verify compares with a serial run"),
        },
    }
}
