//! The page of tables.

use comfy_table::{CellAlignment, Table, presets};

use super::{AtEnd, Figures, Report, Row};
use crate::disk::SYNC_BYTES;
use crate::settings::{Chosen, TEN};
use bench::report::Spread;

/// For people.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut text = head(report);
    let mut rows = &report.rows[..];
    while let Some(first) = rows.first() {
        let (of_load, rest) = rows.split_at(rows.partition_point(|row| is_same_load(row, first)));
        text += &format!("\n{}\n{}\n", load(report, first), table(of_load));
        rows = rest;
    }
    text + "\n" + &at_end(report)
}

fn head(report: &Report) -> String {
    let mut text = format!(
        "{} rows, values of {} bytes; transactions of {}; callers wait for durable answers\n\
         medians and ranges of {} of {} s\n\
         in {}; fdatasync of {SYNC_BYTES} bytes there: {:.1} us (median)\n",
        report.table_rows,
        report.value_bytes,
        plural(report.operations as u64, "operation"),
        plural(report.rounds, "round"),
        report.seconds,
        report.directory,
        report.fdatasync_p50_ns as f64 / 1000.0
    );
    if let Some(bytes) = report.memory_bytes {
        text += &format!("each in a memory control group of {bytes} bytes\n");
    }
    if !report.not_built.is_empty() {
        let names = report.not_built.join(", ");
        text += &format!("NOT in this build: {names} (--features {names})\n");
    }
    if report.is_memory {
        text += "that directory is in memory: NOTHING was durable; choose another one\n";
    }
    text
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn is_same_load(row: &Row, other: &Row) -> bool {
    let of = |row: &Row| (row.clients, row.read_ratio, row.rows);
    of(row) == of(other)
}

/// What callers did, in words.
fn load(report: &Report, row: &Row) -> String {
    let what = match row.read_ratio {
        0 => "updates".to_string(),
        TEN => "reads".to_string(),
        reads => format!("{reads} reads to {} updates", TEN - reads),
    };
    let of = match row.rows {
        Chosen::All => format!("all {} rows", report.table_rows),
        Chosen::Hot(hot) => plural(hot, "hot row"),
        Chosen::Zipf => format!("all {} rows by Zipf 0.9", report.table_rows),
    };
    format!("{}, {what}, of {of}", plural(row.clients as u64, "caller"))
}

const COLUMNS: [&str; 7] =
    ["", "txn/s", "p50, us", "p99, us", "p50 / fdatasync", "CPU us/txn", "written B/txn"];

fn table(rows: &[Row]) -> Table {
    let mut table = new_table(&COLUMNS);
    for row in rows {
        let why = row.does_not_run.as_ref().map(|why| format!("does not run: {why}"));
        match &row.figures {
            Some(figures) => table.add_row(cells(row, figures)),
            None => table.add_row([row.peer.clone(), why.unwrap_or_default()]),
        };
    }
    table
}

fn cells(row: &Row, of: &Figures) -> [String; 7] {
    let end = if row.does_not_run.is_some() { " (not in all rounds)" } else { "" };
    [
        row.peer.clone() + end,
        ranged(of.per_second, 1.0, 0),
        ranged(of.p50_ns, 1000.0, 1),
        ranged(of.p99_ns, 1000.0, 1),
        ranged(of.p50_of_fdatasync, 1.0, 2),
        ranged(of.cpu_us, 1.0, 1),
        of.written_bytes.map_or_else(|| "-".into(), |written| ranged(written, 1.0, 0)),
    ]
}

/// The median, and the range if there is one.
fn ranged(spread: Spread, unit: f64, digits: usize) -> String {
    let [median, least, most] =
        [spread.median, spread.least, spread.most].map(|of| format!("{:.digits$}", of / unit));
    match least == most {
        true => median,
        false => format!("{median} ({least} to {most})"),
    }
}

const AT_END: [&str; 8] = [
    "at the end",
    "loaded, s",
    "updates",
    "written B/update",
    "on disk, MB",
    "closed, MB",
    "rows checked",
    "durable by",
];

fn at_end(report: &Report) -> String {
    let mut table = new_table(&AT_END);
    table.column_mut(7).into_iter().for_each(|c| c.set_cell_alignment(CellAlignment::Left));
    report.at_end.iter().for_each(|of| {
        table.add_row(end_cells(of));
    });
    let checked = report.at_end.iter().filter(|of| of.checked_rows.is_some()).count();
    let of_all = match checked == report.at_end.len() {
        true => String::new(),
        false => format!("; {} did not run to the end", report.at_end.len() - checked),
    };
    format!(
        "{table}\nclosed and opened again, each of {checked} holds every update that it answered, \
         and nothing else{of_all}\n"
    )
}

fn end_cells(of: &AtEnd) -> [String; 8] {
    let or_not = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    [
        of.peer.clone(),
        or_not(of.load_seconds.map(|seconds| format!("{seconds:.1}"))),
        or_not(of.updates.map(|updates| updates.to_string())),
        or_not(of.written_bytes_per_update.map(|bytes| format!("{bytes:.0}"))),
        or_not(of.disk_bytes.map(megabytes)),
        or_not(of.closed_disk_bytes.map(megabytes)),
        or_not(of.checked_rows.map(|rows| rows.to_string())),
        match &of.does_not_run {
            None => of.way.clone(),
            Some(why) => format!("does not run: {why}"),
        },
    ]
}

fn new_table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(columns);
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    table
}
