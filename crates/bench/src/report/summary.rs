//! A result in few words: bars of where the time went, and four lines at the end.

use std::fmt::Write as _;

use super::numbers::Latency;

/// Columns of a line.
const COLUMNS: usize = 100;
/// Parts of less than one in so many are not shown.
const LEAST_SHARE: f64 = 1000.0;
/// Columns of the longest bar.
const BAR_COLUMNS: usize = 40;

/// What a result comes to, in the order in which it is shown.
pub struct Summary {
    /// How much was done.
    pub throughput: String,
    /// Whether it survives.
    pub durable: String,
    /// How long callers waited.
    pub latency: String,
    /// What it was compared with.
    pub verified: String,
}

impl Summary {
    /// The four lines.
    pub fn render(&self) -> String {
        let Self { throughput, durable, latency, verified } = self;
        format!(
            "throughput  {throughput}\ndurable     {durable}\nlatency     {latency}\nverified    \
             {verified}\n"
        )
    }
}

/// Whether answers survive, and where.
pub fn durable(is_durable: bool, device: &str) -> String {
    match is_durable {
        true => format!("yes: every answered transaction is on {device}"),
        false => format!("NO: {device} forgets everything with the process"),
    }
}

/// Percentiles of waiting times.
pub fn latency(latency: Latency, whose: &str) -> String {
    let Latency { p50, p99, p999 } = latency;
    format!("{} for half, {} for 99 %, {} for 99.9 % ({whose})", time(p50), time(p99), time(p999))
}

/// A time in the unit that suits it.
pub fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} us", ns as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        100_000_000..1_000_000_000 => format!("{:.0} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// A bar for each part, the longest over all columns; parts that hardly took time are left out.
pub fn bars(parts: &[(&str, f64)]) -> String {
    let sum: f64 = parts.iter().map(|(_, ns)| ns).sum();
    let most = parts.iter().map(|(_, ns)| *ns).fold(0.0, f64::max);
    let width = parts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, ns) in parts.iter().filter(|(_, ns)| *ns * LEAST_SHARE > sum) {
        let columns = (ns / most * BAR_COLUMNS as f64).round() as usize;
        let (bar, percent) = ("#".repeat(columns), 100.0 * ns / sum);
        let _ = writeln!(text, "  {name:<width$}  {bar:<BAR_COLUMNS$}  {percent:>4.1} %");
    }
    text
}

/// Words in lines of at most so many columns, those after the first indented.
pub fn wrapped(words: &str) -> String {
    let (mut text, mut columns) = (String::new(), 0);
    for word in words.split_whitespace() {
        if columns > 0 && columns + 1 + word.len() > COLUMNS {
            text.push_str("\n  ");
            columns = 2;
        } else if columns > 0 {
            text.push(' ');
            columns += 1;
        }
        text.push_str(word);
        columns += word.len();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_or_four() {
        let shown: Vec<_> = [950, 12_345, 1_234_567, 123_456_789, 12_345_678_900].map(time).into();
        assert_eq!(shown, ["0.9 us", "12 us", "1.23 ms", "123 ms", "12.35 s"]);
    }

    #[test]
    fn long_lines_are_wrapped_between_words() {
        let text = wrapped(&"word ".repeat(30));
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("  word")));
        assert_eq!(text.split_whitespace().count(), 30);
    }

    #[test]
    fn the_longest_bar_has_all_columns_and_no_part_is_shown_that_took_no_time() {
        let text = bars(&[("read", 30.0), ("nothing", 0.0), ("write", 10.0)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], format!("  read     {}  75.0 %", "#".repeat(40)));
        assert_eq!(lines[1], format!("  write    {:<40}  25.0 %", "#".repeat(13)));
        assert_eq!(lines.len(), 2);
    }
}
