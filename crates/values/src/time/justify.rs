//! Intervals whose whole days and months are moved to the larger parts: days have 24 hours, months
//! 30 days.

use super::interval::Interval;
use super::units::DAY_US;
use crate::{Error, Result, SqlState};

const DAYS_OF_MONTH: i32 = 30;
const MONTHS_OF_YEAR: i32 = 12;
const DAYS_OF_WEEK: i32 = 7;

fn out_of_range() -> Error {
    Error::new(SqlState::DATETIME_OUT_OF_RANGE, "interval out of range")
}

impl Interval {
    /// The interval of `parts`, so many years, months, weeks, days, hours and
    /// minutes, and of `seconds`.
    pub fn of_parts(parts: [i32; 6], seconds: f64) -> Result<Interval> {
        let [years, months, weeks, days, hours, minutes] = parts;
        let sum = |larger: i32, times: i32, own: i32| {
            let all = larger.checked_mul(times).and_then(|all| all.checked_add(own));
            all.ok_or_else(out_of_range)
        };
        let seconds = (seconds * 1e6).round_ties_even();
        if !seconds.is_finite() || seconds.abs() >= i64::MAX as f64 {
            return Err(out_of_range());
        }
        let minutes = i64::from(hours) * 60 + i64::from(minutes);
        let microseconds = minutes.checked_mul(60_000_000);
        let microseconds = microseconds.and_then(|all| all.checked_add(seconds as i64));
        Ok(Interval {
            months: sum(years, MONTHS_OF_YEAR, months)?,
            days: sum(weeks, DAYS_OF_WEEK, days)?,
            microseconds: microseconds.ok_or_else(out_of_range)?,
        })
    }

    /// Whole days of the time as days, and both of one sign.
    pub fn justify_hours(self) -> Result<Interval> {
        Ok(self.with_whole_days()?.with_time_as_days())
    }

    /// Whole months of the days as months, and both of one sign.
    pub fn justify_days(self) -> Result<Interval> {
        let mut made = self.with_whole_months()?;
        if made.months > 0 && made.days < 0 {
            made.days += DAYS_OF_MONTH;
            made.months -= 1;
        } else if made.months < 0 && made.days > 0 {
            made.days -= DAYS_OF_MONTH;
            made.months += 1;
        }
        Ok(made)
    }

    /// Days and months of all parts, which then are of one sign.
    pub fn justify(self) -> Result<Interval> {
        let is_alike = self.days > 0 && self.microseconds > 0;
        let is_alike = is_alike || self.days < 0 && self.microseconds < 0;
        let made = if is_alike { self.with_whole_months()? } else { self };
        let mut made = made.with_whole_days()?.with_whole_months()?;
        let below = |made: &Interval| made.days < 0 || made.days == 0 && made.microseconds < 0;
        let above = |made: &Interval| made.days > 0 || made.days == 0 && made.microseconds > 0;
        if made.months > 0 && below(&made) {
            made.days += DAYS_OF_MONTH;
            made.months -= 1;
        } else if made.months < 0 && above(&made) {
            made.days -= DAYS_OF_MONTH;
            made.months += 1;
        }
        Ok(made.with_time_as_days())
    }

    fn with_whole_days(self) -> Result<Interval> {
        let whole = i32::try_from(self.microseconds / DAY_US).map_err(|_| out_of_range())?;
        let days = self.days.checked_add(whole).ok_or_else(out_of_range)?;
        Ok(Interval { days, microseconds: self.microseconds % DAY_US, ..self })
    }

    fn with_whole_months(self) -> Result<Interval> {
        let months = self.months.checked_add(self.days / DAYS_OF_MONTH).ok_or_else(out_of_range)?;
        Ok(Interval { months, days: self.days % DAYS_OF_MONTH, ..self })
    }

    /// The time of the sign of the days.
    fn with_time_as_days(mut self) -> Interval {
        if self.days > 0 && self.microseconds < 0 {
            self.microseconds += DAY_US;
            self.days -= 1;
        } else if self.days < 0 && self.microseconds > 0 {
            self.microseconds -= DAY_US;
            self.days += 1;
        }
        self
    }
}
