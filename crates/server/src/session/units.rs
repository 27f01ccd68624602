//! Numbers with units, as settings have them: times in milliseconds, memory in kilobytes.

/// What a number counts.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    Milliseconds,
    Kilobytes,
}

/// Units from the largest to the smallest, each with how many of what is counted it is.
type Units = &'static [(&'static str, f64)];

const TIMES: Units = &[
    ("d", 86_400_000.0),
    ("h", 3_600_000.0),
    ("min", 60_000.0),
    ("s", 1_000.0),
    ("ms", 1.0),
    ("us", 0.001),
];
const MEMORY: Units = &[
    ("TB", 1_073_741_824.0),
    ("GB", 1_048_576.0),
    ("MB", 1_024.0),
    ("kB", 1.0),
    ("B", 1.0 / 1_024.0),
];

impl Measure {
    fn units(self) -> Units {
        match self {
            Measure::Milliseconds => TIMES,
            Measure::Kilobytes => MEMORY,
        }
    }

    /// The unit of a number without one.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Measure::Milliseconds => "ms",
            Measure::Kilobytes => "kB",
        }
    }

    /// Reads a number with a unit or without; `None` of what is none, or has more than 32 bits.
    pub(super) fn read(self, text: &str) -> Option<i32> {
        let (number, rest) = leading_number(text.trim_start())?;
        let name = rest.trim();
        let units = self.units();
        let name = if name.is_empty() { self.unit() } else { name };
        let at = units.iter().position(|(unit, _)| *unit == name)?;
        let mut count = number * units[at].1;
        // As PostgreSQL does it: a part of a unit is a number of the next smaller one.
        if let Some((_, smaller)) = units.get(at + 1).filter(|_| number.fract() != 0.0) {
            count = (count / smaller).round_ties_even() * smaller;
        }
        let count = count.round_ties_even();
        (count.abs() <= f64::from(i32::MAX)).then_some(count as i32)
    }

    /// Returns the number in the largest unit that has no fraction.
    pub(super) fn show(self, count: i32) -> String {
        let whole = |unit: &&(&str, f64)| count > 0 && f64::from(count) % unit.1 == 0.0;
        match self.units().iter().find(whole) {
            Some((unit, factor)) => format!("{}{unit}", (f64::from(count) / factor) as i32),
            None => count.to_string(),
        }
    }
}

/// Splits a number from what is behind it. It may be of base 16 or 8, as in C, or have a fraction.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let is_negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (number, rest) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => whole(hex, 16)?,
        None => fractional(digits)?,
    };
    Some((if is_negative { -number } else { number }, rest))
}

/// Splits the digits of a base off.
fn whole(text: &str, base: u32) -> Option<(f64, &str)> {
    let end = text.find(|char: char| !char.is_digit(base)).unwrap_or(text.len());
    let number = u64::from_str_radix(&text[..end], base).ok()?;
    Some((number as f64, &text[end..]))
}

/// Splits a decimal number off, or an octal one without fraction.
fn fractional(text: &str) -> Option<(f64, &str)> {
    let digits = |from: usize| {
        let rest = &text.as_bytes()[from..];
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    let first = end;
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['-', '+']));
        let after = digits(end + 1 + sign);
        end = if after > end + 1 + sign { after } else { end };
    }
    if end == first && text.starts_with('0') {
        return whole(text, 8);
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_shown_with_their_units() {
        let time = |text: &str| Measure::Milliseconds.read(text);
        for (text, expected) in [
            ("0", Some(0)),
            ("1000", Some(1000)),
            ("1.5", Some(2)),
            ("2.5", Some(2)),
            ("1.5s", Some(1500)),
            (" 5 ", Some(5)),
            ("1 min", Some(60_000)),
            ("1.0005s", Some(1000)),
            ("1500us", Some(2)),
            ("1e3", Some(1000)),
            ("0x10", Some(16)),
            ("010", Some(8)),
            (".5s", Some(500)),
            ("5.", Some(5)),
            ("-1", Some(-1)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("25d", None),
            ("1S", None),
            ("1 x", None),
            ("1h 30min", None),
            ("", None),
            ("e", None),
            ("soon", None),
            ("\u{e4}", None),
        ] {
            assert_eq!(time(text), expected, "{text:?}");
        }
        assert_eq!(Measure::Kilobytes.read("1.5MB"), Some(1536));
        assert_eq!(Measure::Kilobytes.read("2000B"), Some(2));
        assert_eq!(Measure::Kilobytes.read("3TB"), None);
        for (count, expected) in
            [(0, "0"), (1, "1ms"), (1000, "1s"), (90_000, "90s"), (86_400_000, "1d"), (-1, "-1")]
        {
            assert_eq!(Measure::Milliseconds.show(count), expected);
        }
        assert_eq!(Measure::Kilobytes.show(10_000), "10000kB");
        assert_eq!(Measure::Kilobytes.show(65_536), "64MB");
    }
}
