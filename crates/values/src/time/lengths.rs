//! What is computed of intervals, and of two points in time: fields, multiples, ages.

use super::civil::Civil;
use super::fields::Field;
use super::interval::Interval;
use super::timestamp::Timestamp;
use super::units::DAY_US;
use crate::{Error, Numeric, Result, SqlState};

const HOUR_US: i64 = 3_600_000_000;
const MINUTE_US: i64 = 60_000_000;
const SECOND_US: i64 = 1_000_000;

fn out_of_range() -> Error {
    Error::new(SqlState::DATETIME_OUT_OF_RANGE, "interval out of range")
}

/// A field of an interval; `None` if intervals do not have it.
pub fn field_of(field: Field, interval: Interval) -> Option<Result<Numeric>> {
    let (years, months) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    let time = interval.microseconds;
    let of_minute = i128::from(time % MINUTE_US);
    Some(Ok(Numeric::from(match field {
        Field::Microseconds => time % MINUTE_US,
        Field::Milliseconds => return Some(Numeric::from_units(of_minute, 3)),
        Field::Second => return Some(Numeric::from_units(of_minute, 6)),
        Field::Minute => time / MINUTE_US % 60,
        Field::Hour => time / HOUR_US,
        Field::Day => i64::from(interval.days),
        Field::Month => months,
        Field::Quarter => months / 3 + 1,
        Field::Year => years,
        Field::Decade => years / 10,
        Field::Century => years / 100,
        Field::Millennium => years / 1_000,
        Field::Epoch => {
            // A year has 365 days and a quarter, a month of less has 30.
            let quarters = i128::from(years) * 1_461 + i128::from(months) * 120;
            let days = quarters * i128::from(DAY_US / 4);
            let rest = i128::from(interval.days) * i128::from(DAY_US) + i128::from(time);
            return Some(Numeric::from_units(days + rest, 6));
        }
        _ => return None,
    })))
}

/// Removes the parts of `interval` that are smaller than `unit`.
pub fn truncate_interval(unit: &str, interval: Interval) -> Result<Interval> {
    const TYPE: &str = "interval";
    let months = |count: i32| Interval {
        months: interval.months - interval.months % count,
        ..Interval::default()
    };
    let time = |us: i64| Interval {
        microseconds: interval.microseconds - interval.microseconds % us,
        ..interval
    };
    Ok(match Field::of_name(unit, TYPE)? {
        Field::Millennium => months(12_000),
        Field::Century => months(1_200),
        Field::Decade => months(120),
        Field::Year => months(12),
        Field::Quarter => months(3),
        Field::Month => months(1),
        Field::Day => Interval { microseconds: 0, ..interval },
        Field::Hour => time(HOUR_US),
        Field::Minute => time(MINUTE_US),
        Field::Second => time(SECOND_US),
        Field::Milliseconds => time(SECOND_US / 1_000),
        Field::Microseconds => interval,
        Field::Week => {
            let error = Field::unsupported(unit, TYPE);
            return Err(error.with_detail("Months usually have fractional weeks."));
        }
        _ => return Err(Field::unrecognized(unit, TYPE)),
    })
}

/// So many times the interval: what is no whole month becomes days of 30, what is no whole day
/// hours, as in PostgreSQL.
pub fn scaled(interval: Interval, factor: f64) -> Result<Interval> {
    multiple(interval, |part| part * factor)
}

/// The interval by a number.
pub fn divided(interval: Interval, divisor: f64) -> Result<Interval> {
    if divisor == 0.0 {
        return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    multiple(interval, |part| part / divisor)
}

fn multiple(interval: Interval, times: impl Fn(f64) -> f64) -> Result<Interval> {
    let rounded = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let whole = |value: f64| match value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX) {
        true => Ok(value as i32),
        false => Err(out_of_range()),
    };
    let (month_parts, day_parts) =
        (times(f64::from(interval.months)), times(f64::from(interval.days)));
    let (months, mut days) = (whole(month_parts)?, whole(day_parts)?);
    let of_month = rounded((month_parts - f64::from(months)) * 30.0);
    let mut seconds =
        rounded((day_parts - f64::from(days) + of_month - of_month.trunc()) * 86_400.0);
    if seconds.abs() >= 86_400.0 {
        let more = (seconds / 86_400.0).trunc();
        days = days.checked_add(more as i32).ok_or_else(out_of_range)?;
        seconds -= more * 86_400.0;
    }
    days = days.checked_add(whole(of_month)?).ok_or_else(out_of_range)?;
    let time = (times(interval.microseconds as f64) + seconds * 1e6).round_ties_even();
    // The bounds are numbers that a float has.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&time) {
        return Err(out_of_range());
    }
    Ok(Interval { months, days, microseconds: time as i64 })
}

/// How much later one point is than another in years, months, days and a time, as calendars count.
pub fn age(later: Timestamp, earlier: Timestamp) -> Result<Interval> {
    if !later.is_finite() || !earlier.is_finite() {
        let message = "cannot subtract infinite timestamps";
        return Err(Error::new(SqlState::DATETIME_OUT_OF_RANGE, message));
    }
    if later < earlier {
        return counted(earlier, later)?.negate();
    }
    counted(later, earlier)
}

/// The age of the later one, which is not below zero.
fn counted(later: Timestamp, earlier: Timestamp) -> Result<Interval> {
    let ((to, to_time), (from, from_time)) = (later.split(), earlier.split());
    let mut microseconds = to_time - from_time;
    let mut days = i64::from(to.day) - i64::from(from.day);
    let mut months = (to.year - from.year) * 12 + i64::from(to.month) - i64::from(from.month);
    if microseconds < 0 {
        microseconds += DAY_US;
        days -= 1;
    }
    while days < 0 {
        // A month is as long as that of the earlier point.
        days += month_days(from);
        months -= 1;
    }
    let fits = |value: i64| i32::try_from(value).map_err(|_| out_of_range());
    Ok(Interval { months: fits(months)?, days: fits(days)?, microseconds })
}

fn month_days(day: Civil) -> i64 {
    let first = Civil { day: 1, ..day };
    first.add_months(1).to_days() - first.to_days()
}

/// The begin of the stretch of this length that a point is in, of those that touch `origin`.
pub fn bin(stride: Interval, at: Timestamp, origin: Timestamp) -> Result<Timestamp> {
    let refused = |message: &str| Error::new(SqlState::DATETIME_OUT_OF_RANGE, message.to_owned());
    if !at.is_finite() {
        return Ok(at);
    }
    if !origin.is_finite() {
        return Err(refused("origin out of range"));
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let length = i128::from(stride.days) * i128::from(DAY_US) + i128::from(stride.microseconds);
    if length <= 0 {
        return Err(refused("stride must be greater than zero"));
    }
    let since = i128::from(at.bits()) - i128::from(origin.bits());
    Timestamp::from_microseconds(i128::from(at.bits()) - since.rem_euclid(length))
}

/// Seconds of the day from its parts.
pub fn time_of_day(hour: i32, minute: i32, second: f64) -> Option<i64> {
    let within = (0..=24).contains(&hour) && (0..60).contains(&minute);
    if !within || !(0.0..=60.0).contains(&second) {
        return None;
    }
    let rest = (second * SECOND_US as f64).round_ties_even() as i64;
    let time = i64::from(hour) * HOUR_US + i64::from(minute) * MINUTE_US + rest;
    (time <= DAY_US).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_multiples_are_postgresqls() {
        let of = |name: &str, text: &str| {
            let field = Field::named(name).unwrap();
            field_of(field, Interval::parse(text).unwrap()).unwrap().unwrap().to_string()
        };
        assert_eq!(of("epoch", "1 day 2 hours"), "93600.000000");
        assert_eq!(of("epoch", "1 year 1 mon"), "34149600.000000");
        assert_eq!(of("minute", "90 minutes"), "30");
        assert_eq!(of("hour", "49:30:00"), "49");
        assert_eq!(of("second", "-1.5 seconds"), "-1.500000");
        assert!(field_of(Field::DayOfWeek, Interval::default()).is_none());
        let times = |text: &str, factor: f64| {
            scaled(Interval::parse(text).unwrap(), factor).unwrap().to_string()
        };
        assert_eq!(times("1 hour", 2.5), "02:30:00");
        assert_eq!(times("1 month 1 day", 0.5), "15 days 12:00:00");
        assert_eq!(times("1 year", -0.1), "-1 mons -6 days");
        assert!(scaled(Interval::parse("1000000 years").unwrap(), 1e9).is_err());
        let half = divided(Interval::parse("2 days 3 hours").unwrap(), 2.0).unwrap();
        assert_eq!(half.to_string(), "1 day 01:30:00");
        assert!(divided(half, 0.0).is_err());
    }

    #[test]
    fn ages_are_postgresqls() {
        let check = |later: &str, earlier: &str, expected: &str| {
            let at = |text: &str| Timestamp::parse(text).unwrap();
            assert_eq!(age(at(later), at(earlier)).unwrap().to_string(), expected);
        };
        check("2024-03-01", "2023-01-15", "1 year 1 mon 17 days");
        check("2024-03-01", "2000-02-29", "24 years 1 day");
        check("2023-01-15", "2024-03-01", "-1 years -1 mons -17 days");
        check("2024-01-01 10:00", "2024-01-01 11:30", "-01:30:00");
        check("2001-04-10", "1957-06-13", "43 years 9 mons 27 days");
    }
}
