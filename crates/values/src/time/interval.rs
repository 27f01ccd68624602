//! `interval`: months, days and microseconds, which do not add up to one number; compared as
//! PostgreSQL does, with months of 30 days and days of 24 hours.

use super::interval_fields::{IntervalFields, Smallest};
use super::interval_text;
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
        Interval::parse_as(text, IntervalFields::ALL)
    }

    /// Reads an interval of a type with these `fields`, as [`Interval::parse`] does. A number
    /// without a unit counts the smallest of them.
    pub fn parse_as(text: &str, fields: IntervalFields) -> Result<Interval> {
        Ok(interval_text::read(text, fields)?.cut(fields))
    }

    /// Cuts what is in fields that are smaller than these.
    pub fn cut(self, fields: IntervalFields) -> Interval {
        let months = |months| Interval { months, days: 0, microseconds: 0 };
        let time = |unit: i64| Interval { microseconds: self.microseconds / unit * unit, ..self };
        match fields.smallest() {
            Smallest::Year => months(self.months / 12 * 12),
            Smallest::Month => months(self.months),
            Smallest::Day => Interval { microseconds: 0, ..self },
            Smallest::Hour => time(3_600_000_000),
            Smallest::Minute => time(60_000_000),
            Smallest::Second => self,
        }
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
        for text in ["", "@", "1 fortnight", "x", "P", "PX", "1:2:3:4", "- day"] {
            let error = Interval::parse(text).unwrap_err();
            assert_eq!(error.state(), SqlState::INVALID_DATETIME, "{text}");
        }
        let error = Interval::parse("999999999999 years").unwrap_err();
        assert_eq!(error.state(), SqlState::INTERVAL_OVERFLOW);
    }

    #[test]
    fn intervals_compare_by_length() {
        let parse = |text: &str| Interval::parse(text).unwrap();
        assert_eq!(parse("1 mon"), parse("30 days"));
        assert_eq!(parse("1 day"), parse("24:00:00"));
        assert!(parse("1 mon") < parse("31 days"));
    }

    #[test]
    fn smaller_fields_are_cut() {
        let text = "1 year 2 mons 3 days 04:05:06.7";
        let check = |name: &str, expected: &str| {
            let fields = IntervalFields::named(name).unwrap();
            let cut = Interval::parse(text).unwrap().cut(fields);
            assert_eq!(cut.to_string(), expected, "{name}");
        };
        check("year", "1 year");
        check("month", "1 year 2 mons");
        check("year to month", "1 year 2 mons");
        check("day", "1 year 2 mons 3 days");
        check("day to hour", "1 year 2 mons 3 days 04:00:00");
        check("hour", "1 year 2 mons 3 days 04:00:00");
        check("hour to minute", "1 year 2 mons 3 days 04:05:00");
        check("minute to second", text);
    }
}
