//! The figures as people read them: aligned, with units, beside the reference.

use bench::report::{grouped, table};

use super::{Figure, Report};

/// The figures as text.
#[must_use]
pub fn render(report: &Report) -> String {
    let rows = report.figures.0.iter().map(row).collect();
    let table = table(&["", "this machine", "unit", "reference", "ratio"], rows);
    format!("{}\n{table}\n", heading(report))
}

fn heading(report: &Report) -> String {
    let Report { reference, workers, directory, .. } = report;
    let huge = report.huge_pages_percent.map_or_else(
        || "how much of it on huge pages is not known".to_string(),
        |percent| format!("{percent} % of it on huge pages"),
    );
    let disk = if report.directory_is_memory {
        format!("{directory}, which is only memory: the last figures are of NO disk")
    } else {
        directory.clone()
    };
    let memory = grouped(report.memory_mib as f64);
    format!(
        "what memory, processor and disk of this machine can do, medians of short repetitions\n\
         memory: {memory} MiB, {huge}; workers: {workers}; file: in {disk}\n\
         reference: {reference};\n  its sync of 4 KiB overwrote 100 bytes\n\
         ratio: this machine / reference; above 1 is slower in ns and us, faster in GB/s\n"
    )
}

fn row(figure: &Figure) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    vec![
        figure.limit.what.to_string(),
        three_digits(figure.value),
        figure.limit.unit.name().to_string(),
        or_dash(figure.limit.reference.map(|reference| reference.to_string())),
        or_dash(figure.ratio().map(|ratio| format!("{ratio:.2}"))),
    ]
}

/// Three digits that count, or as many as stand before the point and one.
fn three_digits(value: f64) -> String {
    let behind_point = match value {
        ..1.0 => 3,
        ..10.0 => 2,
        _ => 1,
    };
    format!("{value:.behind_point$}")
}

#[cfg(test)]
mod tests {
    use super::super::{Figures, limits};
    use super::*;

    fn report(directory_is_memory: bool) -> Report {
        let figures = [
            Figure { limit: &limits::READ_DEPENDENT, value: 346.54 },
            Figure { limit: &limits::READ_ALL_WORKERS, value: 20.0 },
        ];
        Report {
            reference: limits::REFERENCE,
            memory_mib: 1024,
            huge_pages_percent: Some(98),
            workers: 2,
            directory: "/somewhere".to_string(),
            directory_is_memory,
            figures: Figures(figures.to_vec()),
        }
    }

    #[test]
    fn rows_have_value_unit_reference_and_ratio() {
        let rows: Vec<_> = report(false).figures.0.iter().map(row).collect();
        assert_eq!(rows[0][1..], ["346.5", "ns", "231", "1.50"]);
        assert_eq!(rows[1][1..], ["20.0", "ns", "-", "-"]);
    }

    #[test]
    fn small_figures_keep_enough_digits_to_compare() {
        let figures = [(&limits::PLAIN_SMALLBANK, 0.1024), (&limits::PLAIN_RMW, 5.126)];
        let rows = figures.map(|(limit, value)| row(&Figure { limit, value }));
        assert_eq!(rows[0][1..], ["0.102", "us", "0.204", "0.50"]);
        assert_eq!(rows[1][1..], ["5.13", "us", "4.93", "1.04"]);
    }

    #[test]
    fn the_heading_says_what_was_measured_and_what_it_is_compared_with() {
        let text = render(&report(false));
        for words in ["1,024 MiB, 98 %", "workers: 2", "in /somewhere\n", limits::REFERENCE] {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
        assert!(render(&report(true)).contains("NO disk"));
        let unknown = Report { huge_pages_percent: None, ..report(false) };
        assert!(render(&unknown).contains("not known"));
    }
}
