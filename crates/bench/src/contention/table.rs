//! What hot rows cost, as people read it: a line for each number of rows and of busy loops.

use std::fmt::Write as _;

use super::study::{ContentionReport, Load, SettingReport};
use crate::report::{grouped, table};

const COLUMNS: [&str; 9] = [
    "busy loops",
    "hot rows",
    "write set",
    "one worker",
    "no write set",
    "ratio",
    "least",
    "cpu ns/call",
    "cpu ratio",
];

/// The report as text.
#[must_use]
pub fn render(report: &ContentionReport) -> String {
    let load = &report.load;
    let Load { workers, clients, in_flight, rounds, seconds, .. } = load;
    let law = if load.zipf { "Zipf" } else { "uniform" };
    let mut text = format!(
        "calls that add to few hot rows ({law}), thousands answered a second: {clients} threads \
         with {in_flight} in flight each,\nvalues of {} bytes, {} reads of other rows, {workers} \
         workers, device dram; medians of {rounds} rounds of {seconds} s\n",
        load.value_bytes, load.reads
    );
    let rows = report.settings.iter().map(row).collect();
    let _ = writeln!(text, "\n{}\n", table(&COLUMNS, rows));
    text.push_str(
        "ratio: a write set to the better of one worker and no write set, in the same round, \
         median and least;\ncpu: processor time a call with a write set, and that to one \
         worker's\n",
    );
    text
}

fn row(setting: &SettingReport) -> Vec<String> {
    let thousands = setting.variants.iter().map(|v| grouped(v.calls_per_s / 1e3));
    let cpu = setting.variants.first().map_or(0.0, |variant| variant.cpu_ns_per_call);
    [setting.busy.to_string(), setting.rows.to_string()]
        .into_iter()
        .chain(thousands)
        .chain([
            format!("{:.2}", setting.ratio_to_best),
            format!("{:.2}", setting.ratio_to_best_least),
            grouped(cpu),
            format!("{:.2}", setting.cpu_to_one_worker),
        ])
        .collect()
}
