//! What a comparison came to, for machines and for people.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::measure::Measured;
use crate::peer::Settings;

/// One database with one number of callers.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name and version.
    pub peer: String,
    /// Callers that waited at the same time.
    pub clients: usize,
    /// Updates that were answered.
    pub updates: u64,
    /// The same in a second.
    pub per_second: f64,
    /// Half of the updates took at most this, nanoseconds.
    pub p50_ns: u64,
    /// 99 of 100 took at most this.
    pub p99_ns: u64,
    /// `p50_ns` in units of what the disk took by itself shortly before.
    pub p50_of_fdatasync: f64,
}

impl Row {
    pub(crate) fn new(peer: String, clients: usize, found: &Measured, fdatasync_ns: u64) -> Self {
        let p50_ns = found.waited_ns.value_at_quantile(0.5);
        Self {
            peer,
            clients,
            updates: found.updates,
            per_second: found.updates as f64 / found.took.as_secs_f64(),
            p50_ns,
            p99_ns: found.waited_ns.value_at_quantile(0.99),
            p50_of_fdatasync: p50_ns as f64 / fdatasync_ns.max(1) as f64,
        }
    }
}

/// All of them.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Where the databases were.
    pub directory: String,
    /// That is in memory, so that nothing was durable.
    pub is_memory: bool,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// Rows of the table.
    pub table_rows: u64,
    /// The median time that the disk takes to make 4,096 bytes durable, nanoseconds: of several
    /// measurements, one for each number of callers.
    pub fdatasync_p50_ns: u64,
    /// What was measured.
    pub rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(
        settings: &Settings,
        fdatasync_p50_ns: u64,
        is_memory: bool,
        rows: Vec<Row>,
    ) -> Self {
        Self {
            directory: settings.directory.display().to_string(),
            is_memory,
            seconds: settings.time.as_secs_f64(),
            table_rows: settings.rows,
            fdatasync_p50_ns,
            rows,
        }
    }
}

/// For people.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(["peer", "callers", "updates/s", "p50, us", "p99, us", "p50 / fdatasync"]);
    for row in &report.rows {
        table.add_row([
            row.peer.clone(),
            row.clients.to_string(),
            format!("{:.0}", row.per_second),
            format!("{:.1}", row.p50_ns as f64 / 1000.0),
            format!("{:.1}", row.p99_ns as f64 / 1000.0),
            format!("{:.2}", row.p50_of_fdatasync),
        ]);
    }
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    let mut text = format!(
        "durable updates of one row of {} at random, each waited for; {} s for each row below\n\
         in {}; fdatasync of 4,096 bytes there: {:.1} us (median)\n",
        report.table_rows,
        report.seconds,
        report.directory,
        report.fdatasync_p50_ns as f64 / 1000.0
    );
    if report.is_memory {
        text += "that directory is in memory: NOTHING was durable; choose another one\n";
    }
    text += &format!("{table}\nevery update that was answered is there, in each of them\n");
    text
}
