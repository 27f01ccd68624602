//! `interval`: months, days and microseconds, which do not add up to one number; compared as
//! PostgreSQL does, with months of 30 days and days of 24 hours.

use super::units::{DAY_US, fraction};
use crate::{Error, Result, SqlState};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A length of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Months, also those of years.
    pub months: i32,
    /// Days, also those of weeks.
    pub days: i32,
    /// The rest.
    pub microseconds: i64,
}

fn out_of_range() -> Error {
    Error::new(SqlState::DATETIME_OUT_OF_RANGE, "interval out of range")
}

impl Interval {
    /// The length that intervals are compared by, in microseconds.
    pub fn length(&self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(DAY_US) + i128::from(self.microseconds)
    }

    /// The sum, part by part.
    pub fn add(&self, other: &Interval) -> Result<Interval> {
        Ok(Interval {
            months: self.months.checked_add(other.months).ok_or_else(out_of_range)?,
            days: self.days.checked_add(other.days).ok_or_else(out_of_range)?,
            microseconds: self
                .microseconds
                .checked_add(other.microseconds)
                .ok_or_else(out_of_range)?,
        })
    }

    /// The sign of each part turned.
    pub fn negate(&self) -> Result<Interval> {
        Ok(Interval {
            months: self.months.checked_neg().ok_or_else(out_of_range)?,
            days: self.days.checked_neg().ok_or_else(out_of_range)?,
            microseconds: self.microseconds.checked_neg().ok_or_else(out_of_range)?,
        })
    }

    /// Rounded to so many digits of the second, halves away from zero.
    pub fn round(self, digits: u32) -> Result<Interval> {
        if digits >= 6 {
            return Ok(self);
        }
        let unit = 10_i64.pow(6 - digits);
        let half = if self.microseconds < 0 { -unit / 2 } else { unit / 2 };
        let raised = self.microseconds.checked_add(half).ok_or_else(out_of_range)?;
        Ok(Interval { microseconds: raised / unit * unit, ..self })
    }

    /// Reads PostgreSQL's forms: `1 year 2 mons 3 days 04:05:06`, `@ 1 hour ago`, ISO 8601
    /// (`P1Y2M3DT4H`), `1-2` (years and months).
    pub fn parse(text: &str) -> Result<Interval> {
        let mut sum = Sum::default();
        let trimmed = text.trim();
        let read = match trimmed.strip_prefix('P') {
            Some(body) => sum.iso(body),
            None => sum.words(trimmed),
        };
        let invalid = || {
            let message = format!("invalid input syntax for type interval: \"{text}\"");
            Error::new(SqlState::INVALID_DATETIME, message)
        };
        read.ok_or_else(invalid)?;
        sum.finish().ok_or_else(|| {
            let message = format!("interval field value out of range: \"{text}\"");
            Error::new(SqlState::DATETIME_OUT_OF_RANGE, message)
        })
    }
}

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        self.length() == other.length()
    }
}

impl Eq for Interval {}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Interval) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Interval) -> Ordering {
        self.length().cmp(&other.length())
    }
}

impl Hash for Interval {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.length().hash(state);
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let (years, months) = (self.months / 12, self.months % 12);
        let mut negative_before = false;
        for (value, name) in [(years, "year"), (months, "mon"), (self.days, "day")] {
            if value != 0 {
                let sign = if negative_before && value > 0 { "+" } else { "" };
                let plural = if value == 1 { "" } else { "s" };
                parts.push(format!("{sign}{value} {name}{plural}"));
                negative_before = value < 0;
            }
        }
        if self.microseconds != 0 || parts.is_empty() {
            let time = self.microseconds.unsigned_abs();
            let sign = match self.microseconds {
                ..0 => "-",
                _ if negative_before => "+",
                _ => "",
            };
            let seconds = time / 1_000_000;
            parts.push(format!(
                "{sign}{:02}:{:02}:{:02}{}",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60,
                fraction((time % 1_000_000) as i64)
            ));
        }
        f.write_str(&parts.join(" "))
    }
}

/// The parts while they are read: wide, so that nothing overflows on the way.
#[derive(Default)]
struct Sum {
    months: i128,
    days: i128,
    microseconds: i128,
}

/// A number with a fraction of up to 15 digits: units of 10^-15.
type Parts = i128;

/// The parts of one.
const ONE: i128 = 1_000_000_000_000_000;

/// The nearest whole number; `parts` in the middle go to zero, as microseconds do in PostgreSQL.
fn nearest(parts: Parts) -> i128 {
    let (whole, rest) = (parts / ONE, parts % ONE);
    if 2 * rest.abs() > ONE { whole + rest.signum() } else { whole }
}

/// The nearest whole number; `parts` in the middle go to the even one, as months do in PostgreSQL.
fn nearest_or_even(parts: Parts) -> i128 {
    let (whole, rest) = (parts / ONE, parts % ONE);
    let is_up = 2 * rest.abs() > ONE || (2 * rest.abs() == ONE && whole % 2 != 0);
    if is_up { whole + rest.signum() } else { whole }
}

impl Sum {
    /// Adds an `amount` of a unit; a fraction of a month becomes days, of a day microseconds.
    fn add(&mut self, amount: Parts, unit: &str) -> Option<()> {
        let day = i128::from(DAY_US);
        let months = match unit {
            "y" | "yr" | "yrs" | "year" | "years" => 12,
            "mon" | "mons" | "month" | "months" => 1,
            "decade" | "decades" | "dec" | "decs" => 120,
            "century" | "centuries" | "c" | "cent" => 1_200,
            "millennium" | "millennia" | "mil" | "mils" => 12_000,
            _ => 0,
        };
        if months > 0 {
            let total = amount.saturating_mul(months);
            if months == 1 {
                self.months += total / ONE;
                return self.add(total % ONE * 30, "day");
            }
            self.months += nearest_or_even(total);
            return Some(());
        }
        let days = match unit {
            "w" | "week" | "weeks" => 7,
            "d" | "day" | "days" => 1,
            _ => 0,
        };
        if days > 0 {
            let total = amount.saturating_mul(days);
            self.days += total / ONE;
            self.microseconds += nearest(total % ONE * day);
            return Some(());
        }
        let microseconds = match unit {
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 1_000,
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => 1,
            _ => return None,
        };
        self.microseconds += nearest(amount.saturating_mul(microseconds));
        Some(())
    }

    fn words(&mut self, text: &str) -> Option<()> {
        let lower = text.to_ascii_lowercase();
        let mut words = lower.split_ascii_whitespace().flat_map(split_number).peekable();
        if words.peek() == Some(&"@") {
            words.next();
        }
        words.peek()?;
        let mut ago = false;
        while let Some(word) = words.next() {
            if word == "ago" {
                ago = true;
                if words.peek().is_some() {
                    return None;
                }
            } else if word.contains(':') {
                self.clock(word)?;
            } else if let Some((years, months)) = year_month(word) {
                self.add(years, "year")?;
                self.add(months, "mon")?;
            } else {
                let amount = parts(word)?;
                match words.peek() {
                    Some(next) if next.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                        let unit = words.next()?;
                        self.add(amount, unit)?;
                    }
                    Some(next) if next.contains(':') => self.add(amount, "day")?,
                    _ => self.add(amount, "second")?,
                }
            }
        }
        if ago {
            (self.months, self.days, self.microseconds) =
                (-self.months, -self.days, -self.microseconds);
        }
        Some(())
    }

    /// `[-]HH:MM[:SS[.ffffff]]`
    fn clock(&mut self, word: &str) -> Option<()> {
        let (sign, body) = match word.strip_prefix('-') {
            Some(body) => (-1, body),
            None => (1, word.strip_prefix('+').unwrap_or(word)),
        };
        let mut fields = body.split(':');
        let whole = |field: &str| {
            let plain = field.bytes().all(|byte| byte.is_ascii_digit());
            if plain { parts(field) } else { None }
        };
        let hours = whole(fields.next()?)?;
        let minutes = whole(fields.next()?)?;
        let seconds = fields.next().map_or(Some(0), parts)?;
        if fields.next().is_some() || minutes >= 60 * ONE || !(0..60 * ONE).contains(&seconds) {
            return None;
        }
        let seconds = hours * 3_600 + minutes * 60 + seconds;
        self.microseconds += sign * nearest(seconds.saturating_mul(1_000_000));
        Some(())
    }

    /// ISO 8601's designators, after the `P`.
    fn iso(&mut self, body: &str) -> Option<()> {
        let (mut rest, mut time) = (body, false);
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('T') {
                (rest, time) = (after, true);
                continue;
            }
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let amount = parts(&rest[..end])?;
            let unit = match (&rest[end..=end], time) {
                ("Y", false) => "year",
                ("M", false) => "mon",
                ("W", false) => "week",
                ("D", false) => "day",
                ("H", true) => "hour",
                ("M", true) => "min",
                ("S", true) => "sec",
                _ => return None,
            };
            self.add(amount, unit)?;
            rest = &rest[end + 1..];
        }
        Some(())
    }

    fn finish(self) -> Option<Interval> {
        Some(Interval {
            months: i32::try_from(self.months).ok()?,
            days: i32::try_from(self.days).ok()?,
            microseconds: i64::try_from(self.microseconds).ok()?,
        })
    }
}

/// `3days` is a number and a unit.
fn split_number(word: &str) -> impl Iterator<Item = &str> {
    let number = word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    let at = word.find(|c: char| c.is_ascii_alphabetic()).filter(|at| number && *at > 0);
    let (first, second) = match at {
        Some(at) => (&word[..at], Some(&word[at..])),
        None => (word, None),
    };
    std::iter::once(first).chain(second)
}

/// `1-2`: years and months, with one sign.
fn year_month(word: &str) -> Option<(Parts, Parts)> {
    let (sign, body) = match word.strip_prefix('-') {
        Some(body) => (-1, body),
        None => (1, word),
    };
    let (years, months) = body.split_once('-')?;
    let (years, months) = (parts(years)?, parts(months)?);
    (0..12 * ONE).contains(&months).then_some((sign * years, sign * months))
}

fn parts(text: &str) -> Option<Parts> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = body.split_once('.').unwrap_or((body, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || !digits(whole) || !digits(part) || whole.len() > 19
    {
        return None;
    }
    let part: String = part.chars().chain(std::iter::repeat('0')).take(15).collect();
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let value = whole * ONE + part.parse::<i128>().ok()?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_and_shown_as_by_postgresql() {
        let check = |text: &str, shown: &str| {
            assert_eq!(Interval::parse(text).unwrap().to_string(), shown, "{text}");
        };
        check("1 year 2 mons 3 days 04:05:06", "1 year 2 mons 3 days 04:05:06");
        check("@ 1 minute ago", "-00:01:00");
        check("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5");
        check("1-2", "1 year 2 mons");
        check("3 4:05:06", "3 days 04:05:06");
        check("1.5 days", "1 day 12:00:00");
        check("1.5 months", "1 mon 15 days");
        check("2h 30min", "02:30:00");
        check("90 minutes", "01:30:00");
        check("-1 day 02:03:00", "-1 days +02:03:00");
        check("0", "00:00:00");
        check("2 weeks", "14 days");
        check("1 century", "100 years");
        check("250", "00:04:10");
        check("1.2345678 s", "00:00:01.234568");
        check("-1.2345678 s", "-00:00:01.234568");
        check("0.9999999 s", "00:00:01");
        check("1:2:3.9999999", "01:02:04");
        check("0.0000005 s", "00:00:00");
        check("0.0000001 day", "00:00:00.00864");
        check("0.99 years", "1 year");
        check("0.125 years", "2 mons");
        check("0.375 years", "4 mons");
        check("0.33 months", "9 days 21:36:00");
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for text in ["", "@", "1 fortnight", "x", "P", "PX", "1:2:3:4", "1:60", "ago 1", "- day"] {
            let error = Interval::parse(text).unwrap_err();
            assert_eq!(error.state(), SqlState::INVALID_DATETIME, "{text}");
        }
        let error = Interval::parse("999999999999 years").unwrap_err();
        assert_eq!(error.state(), SqlState::DATETIME_OUT_OF_RANGE);
    }

    #[test]
    fn intervals_compare_by_length() {
        let parse = |text: &str| Interval::parse(text).unwrap();
        assert_eq!(parse("1 mon"), parse("30 days"));
        assert_eq!(parse("1 day"), parse("24:00:00"));
        assert!(parse("1 mon") < parse("31 days"));
    }
}
