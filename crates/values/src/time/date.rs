//! `date`: a day, or one of two infinities.

use super::civil::Civil;
use super::input::Input;
use super::timestamp::Timestamp;
use super::units::DAY_US;
use crate::{Error, Result, SqlState};
use std::fmt;

/// Days since 2000-01-01. The smallest and largest number are the infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i32);

/// 4713-11-24 BC, day 0 of the Julian count.
const DAYS_MIN: i64 = -2_451_545;
/// 5874897-12-31.
const DAYS_MAX: i64 = 2_145_031_948;

fn out_of_range() -> Error {
    Error::new(SqlState::DATETIME_OUT_OF_RANGE, "date out of range")
}

impl Date {
    /// After all days.
    pub const INFINITY: Date = Date(i32::MAX);
    /// Before all days.
    pub const NEGATIVE_INFINITY: Date = Date(i32::MIN);

    /// The day that is `days` after 2000-01-01.
    pub fn from_days(days: i64) -> Result<Date> {
        if (DAYS_MIN..=DAYS_MAX).contains(&days) {
            Ok(Date(days as i32))
        } else {
            Err(out_of_range())
        }
    }

    /// The date with these stored bits.
    pub fn from_bits(bits: i32) -> Result<Date> {
        match Date(bits) {
            infinite if !infinite.is_finite() => Ok(infinite),
            Date(days) => Date::from_days(i64::from(days)),
        }
    }

    /// The stored bits: days since 2000-01-01, or an infinity.
    pub fn bits(self) -> i32 {
        self.0
    }

    /// Whether it is a day.
    pub fn is_finite(self) -> bool {
        self != Date::INFINITY && self != Date::NEGATIVE_INFINITY
    }

    /// Reads PostgreSQL's forms of a date, in style ISO with month before day.
    pub fn parse(text: &str) -> Result<Date> {
        let input = Input::parse(text, "date")?;
        match input.infinity {
            Some(true) => return Ok(Date::INFINITY),
            Some(false) => return Ok(Date::NEGATIVE_INFINITY),
            None => {}
        }
        Date::from_days(input.day(text, "date")?.to_days()).map_err(|_| {
            Error::new(SqlState::DATETIME_OUT_OF_RANGE, format!("date out of range: \"{text}\""))
        })
    }

    /// The day `days` later; infinities stay.
    pub fn add_days(self, days: i64) -> Result<Date> {
        if !self.is_finite() {
            return Ok(self);
        }
        Date::from_days(i64::from(self.0).checked_add(days).ok_or_else(out_of_range)?)
    }

    /// Days from the other to this one.
    pub fn days_since(self, other: Date) -> Result<i32> {
        if !self.is_finite() || !other.is_finite() {
            let message = "cannot subtract infinite dates";
            return Err(Error::new(SqlState::DATETIME_OUT_OF_RANGE, message));
        }
        self.0.checked_sub(other.0).ok_or_else(out_of_range)
    }

    /// Midnight of the day, as a timestamp without zone.
    pub fn midnight(self) -> Result<Timestamp> {
        match self {
            Date::INFINITY => Ok(Timestamp::INFINITY),
            Date::NEGATIVE_INFINITY => Ok(Timestamp::NEGATIVE_INFINITY),
            Date(days) => Timestamp::from_microseconds(i128::from(days) * i128::from(DAY_US))
                .map_err(|_| {
                    Error::new(SqlState::DATETIME_OUT_OF_RANGE, "date out of range for timestamp")
                }),
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Date::INFINITY => f.write_str("infinity"),
            Date::NEGATIVE_INFINITY => f.write_str("-infinity"),
            Date(days) => {
                let day = Civil::from_days(i64::from(days));
                let (year, before_christ) = day.shown_year();
                write!(f, "{year:04}-{:02}-{:02}", day.month, day.day)?;
                if before_christ { f.write_str(" BC") } else { Ok(()) }
            }
        }
    }
}
