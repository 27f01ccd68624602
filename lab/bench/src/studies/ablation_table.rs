//! What the options are worth, as people read it: aligned, one block for each work.

use std::fmt::Write as _;

use bench::report::{grouped, table};

use super::ablation::{AblationReport, VariantReport};

const COLUMNS: [&str; 9] = [
    "work",
    "variant",
    "txn/s",
    "ratio",
    "range",
    "lines written",
    "bytes stored",
    "flushes",
    "fences",
];

/// The report as text.
#[must_use]
pub fn render(report: &AblationReport) -> String {
    let AblationReport { workers, device, rounds, .. } = report;
    let mut text = format!(
        "what the engine's options are worth: {rounds} rounds, {workers} workers, device {device}\n\
         txn/s: median of the rounds; ratio: to the engine as it is, in the same round, median and \
         range;\nthe others: counts of a transaction\n"
    );
    if report.quick {
        text.push_str("the sizes are TINY: only the counts mean anything\n");
    }
    let mut rows = Vec::new();
    for work in &report.works {
        let first = [work.work].into_iter().chain(std::iter::repeat(""));
        rows.extend(first.zip(&work.variants).map(|(name, variant)| row(name, variant)));
    }
    let _ = writeln!(text, "\n{}\n", table(&COLUMNS, rows));
    for work in &report.works {
        let _ = writeln!(text, "{}: {}\n  {}", work.work, work.what, work.command);
    }
    text
}

fn row(work: &str, found: &VariantReport) -> Vec<String> {
    let shown = |figure: Option<f64>, show: &dyn Fn(f64) -> String| {
        figure.map_or_else(|| "-".to_string(), show)
    };
    let range = found.ratio_least.zip(found.ratio_most);
    let small = |figure: f64| format!("{figure:.2}");
    vec![
        work.to_string(),
        found.variant.to_string(),
        shown(found.txn_per_s, &grouped),
        shown(found.ratio, &small),
        range.map_or_else(|| "-".to_string(), |(least, most)| format!("{least:.2} to {most:.2}")),
        shown(found.lines_written_per_txn, &small),
        shown(found.bytes_stored_per_txn, &grouped),
        shown(found.flushes_per_txn, &small),
        shown(found.fences_per_txn, &|figure| format!("{figure:.4}")),
    ]
}
