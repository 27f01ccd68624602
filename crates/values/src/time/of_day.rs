//! `time`: a time of the day, without a zone.

use super::input::Input;
use super::interval::Interval;
use super::units::{DAY_US, fraction};
use crate::{Error, Result, SqlState};
use std::fmt;

/// Microseconds since midnight; 24:00 is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The time that is so many microseconds after midnight.
    pub fn from_microseconds(microseconds: i64) -> Result<Time> {
        if (0..=DAY_US).contains(&microseconds) {
            return Ok(Time(microseconds));
        }
        Err(Error::new(SqlState::DATETIME_OUT_OF_RANGE, "time out of range"))
    }

    /// Microseconds since midnight, which are the stored bits.
    pub fn microseconds(self) -> i64 {
        self.0
    }

    /// Reads PostgreSQL's forms of a time; a date before it and a zone behind it count for nothing.
    pub fn parse(text: &str) -> Result<Time> {
        let input = Input::parse_time(text)?;
        Time::from_microseconds(input.microseconds)
    }

    /// The time so much later, around midnight; whole days and months count for nothing.
    #[must_use]
    pub fn add_interval(self, interval: Interval) -> Time {
        // Both are less than a day, so their sum is none that overflows.
        Time((self.0 + interval.microseconds % DAY_US).rem_euclid(DAY_US))
    }

    /// From the other to this one.
    pub fn since(self, other: Time) -> Interval {
        Interval { months: 0, days: 0, microseconds: self.0 - other.0 }
    }

    /// The interval since midnight.
    pub fn of_day(self) -> Interval {
        Interval { months: 0, days: 0, microseconds: self.0 }
    }

    /// Rounded to so many digits of the second, halves up.
    #[must_use]
    pub fn round(self, digits: u32) -> Time {
        let unit = 10_i64.pow(6 - digits.min(6));
        Time((self.0 + unit / 2) / unit * unit)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1_000_000;
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        write!(f, "{hours:02}:{minutes:02}:{:02}{}", seconds % 60, fraction(self.0 % 1_000_000))
    }
}
