//! Parts of a point in time (`extract`), and points cut to a unit (`date_trunc`).

use super::civil::Civil;
use super::timestamp::Timestamp;
use super::units::DAY_US;
use super::zone::Zone;
use crate::{Error, Numeric, Result, SqlState};

/// What messages call the type.
const TYPE: &str = "timestamp without time zone";

/// A part of a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Microseconds of the minute.
    Microseconds,
    /// Milliseconds of the minute.
    Milliseconds,
    /// Seconds with fraction.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    Day,
    /// 0 (Sunday) to 6.
    DayOfWeek,
    /// 1 (Monday) to 7.
    IsoDayOfWeek,
    /// 1 to 366.
    DayOfYear,
    /// The week of ISO 8601.
    Week,
    /// 1 to 12.
    Month,
    /// 1 to 4.
    Quarter,
    /// The year; before Christ below zero.
    Year,
    /// The year of ISO 8601's week.
    IsoYear,
    /// The year without its last digit.
    Decade,
    /// 1 from the year 1 to the year 100; before Christ below zero.
    Century,
    /// 1 from the year 1 to the year 1000; before Christ below zero.
    Millennium,
    /// Seconds since 1970-01-01.
    Epoch,
}

impl Field {
    /// The field with this name.
    pub fn named(name: &str) -> Option<Field> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microsecond" | "microseconds" => Field::Microseconds,
            "millisecond" | "milliseconds" => Field::Milliseconds,
            "second" | "seconds" => Field::Second,
            "minute" | "minutes" => Field::Minute,
            "hour" | "hours" => Field::Hour,
            "day" | "days" => Field::Day,
            "dow" => Field::DayOfWeek,
            "isodow" => Field::IsoDayOfWeek,
            "doy" => Field::DayOfYear,
            "week" | "weeks" => Field::Week,
            "month" | "months" => Field::Month,
            "quarter" => Field::Quarter,
            "year" | "years" => Field::Year,
            "isoyear" => Field::IsoYear,
            "decade" | "decades" => Field::Decade,
            "century" | "centuries" => Field::Century,
            "millennium" | "millennia" => Field::Millennium,
            "epoch" => Field::Epoch,
            _ => return None,
        })
    }

    /// The field of a point in time, local or UTC as it is given. An infinite one has only the
    /// fields that grow with time; the others are `None`.
    pub fn of(self, at: Timestamp) -> Result<Option<Numeric>> {
        match at.is_finite() {
            true => self.of_finite(at).map(Some),
            false => Ok(self.of_infinite(at)),
        }
    }

    /// The field of a point in time `at` that is not infinite.
    pub(super) fn of_finite(self, at: Timestamp) -> Result<Numeric> {
        let (day, time) = at.split();
        let of_minute = i128::from(time % 60_000_000);
        let days = day.to_days();
        let whole = match self {
            Field::Microseconds => of_minute as i64,
            Field::Milliseconds => return Numeric::from_units(of_minute, 3),
            Field::Second => return Numeric::from_units(of_minute, 6),
            Field::Epoch => {
                let unix = i128::from(at.bits()) + 946_684_800_000_000;
                return Numeric::from_units(unix, 6);
            }
            Field::Minute => time / 60_000_000 % 60,
            Field::Hour => time / 3_600_000_000,
            Field::Day => i64::from(day.day),
            Field::DayOfWeek => weekday(days) % 7,
            Field::IsoDayOfWeek => weekday(days),
            Field::DayOfYear => days - year_begin(day.year) + 1,
            Field::Week => iso_week(days).1,
            Field::Month => i64::from(day.month),
            Field::Quarter => (i64::from(day.month) + 2) / 3,
            Field::Year => shown(day.year),
            Field::IsoYear => shown(iso_week(days).0),
            Field::Decade => day.year.div_euclid(10),
            Field::Century => counted(day.year, 100),
            Field::Millennium => counted(day.year, 1_000),
        };
        Ok(Numeric::from(whole))
    }

    fn of_infinite(self, at: Timestamp) -> Option<Numeric> {
        use Field::{Century, Decade, Epoch, IsoYear, Millennium, Year};
        let grows = matches!(self, Year | IsoYear | Decade | Century | Millennium | Epoch);
        let is_late = at.bits() > 0;
        grows.then_some(if is_late { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY })
    }

    /// The error of the field called `unit` where type `ty` does not have it.
    pub fn unsupported(unit: &str, ty: &str) -> Error {
        let message = format!("unit \"{unit}\" not supported for type {ty}");
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    }

    /// The error of a name `unit` that is none of a field, or of none that type `ty` is cut to.
    pub(super) fn unrecognized(unit: &str, ty: &str) -> Error {
        let message = format!("unit \"{unit}\" not recognized for type {ty}");
        Error::new(SqlState::INVALID_PARAMETER, message)
    }

    /// The field called `unit`. `ty` is the type of the value, for the error that there is none; no
    /// type has those of zones.
    pub fn of_name(unit: &str, ty: &str) -> Result<Field> {
        let is_of_zone = || unit.to_ascii_lowercase().starts_with("timezone");
        Field::named(unit).ok_or_else(|| match is_of_zone() {
            true => Field::unsupported(unit, ty),
            false => Field::unrecognized(unit, ty),
        })
    }
}

/// The number of the period of `years` years that contains `year`. Period 1 begins with the year 1;
/// there is no period 0.
fn counted(year: i64, years: i64) -> i64 {
    let period = (year - 1).div_euclid(years);
    if period >= 0 { period + 1 } else { period }
}

/// There is no year 0.
fn shown(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

fn year_begin(year: i64) -> i64 {
    Civil { year, month: 1, day: 1 }.to_days()
}

/// 1 (Monday) to 7; 2000-01-01 was a Saturday.
fn weekday(days: i64) -> i64 {
    (days + 5).rem_euclid(7) + 1
}

/// Year and week of ISO 8601: the week belongs to the year of its Thursday.
fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days + 4 - weekday(days);
    let year = Civil::from_days(thursday).year;
    (year, (thursday - year_begin(year)) / 7 + 1)
}

/// The beginning of the unit that a point in time is in.
pub fn truncate(unit: &str, at: Timestamp) -> Result<Timestamp> {
    if !at.is_finite() {
        return Ok(at);
    }
    let field = Field::of_name(unit, TYPE)?;
    let (day, time) = at.split();
    let days = day.to_days();
    let (days, time) = match field {
        Field::Microseconds => (days, time),
        Field::Milliseconds => (days, time - time % 1_000),
        Field::Second => (days, time - time % 1_000_000),
        Field::Minute => (days, time - time % 60_000_000),
        Field::Hour => (days, time - time % 3_600_000_000),
        Field::Day => (days, 0),
        Field::Week => (days - weekday(days) + 1, 0),
        Field::Month => (Civil { day: 1, ..day }.to_days(), 0),
        Field::Quarter => {
            (Civil { day: 1, month: (day.month - 1) / 3 * 3 + 1, ..day }.to_days(), 0)
        }
        Field::Year => (year_begin(day.year), 0),
        Field::Decade => (year_begin(day.year.div_euclid(10) * 10), 0),
        Field::Century => (year_begin((day.year - 1).div_euclid(100) * 100 + 1), 0),
        Field::Millennium => (year_begin((day.year - 1).div_euclid(1_000) * 1_000 + 1), 0),
        _ => return Err(Field::unrecognized(unit, TYPE)),
    };
    Timestamp::from_microseconds(i128::from(days) * i128::from(DAY_US) + i128::from(time))
}

/// Truncates `at` by what clocks of `zone` show. Within a day the clocks stay on their side of a
/// change: in the hour that they show twice, each of both has its own beginning.
pub fn truncate_zoned(unit: &str, at: Timestamp, zone: &Zone) -> Result<Timestamp> {
    use Field::{Hour, Microseconds, Milliseconds, Minute, Second};
    let shown = at.to_local(zone)?;
    let begin = truncate(unit, shown)?;
    let is_within_day =
        matches!(Field::named(unit), Some(Hour | Minute | Second | Milliseconds | Microseconds));
    if !is_within_day || !at.is_finite() {
        return begin.to_utc(zone);
    }
    let (day, time) = at.split();
    let since_begin = shown.split().1 - begin.split().1;
    let days = i128::from(day.to_days());
    Timestamp::from_microseconds(days * i128::from(DAY_US) + i128::from(time - since_begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hours_that_clocks_show_twice_have_their_own_beginning() {
        let zone = Zone::named("US/Pacific").unwrap();
        let check = |unit: &str, at: &str, expected: &str| {
            let at = Timestamp::parse(at).unwrap();
            let found = truncate_zoned(unit, at, &zone).unwrap();
            assert_eq!(found, Timestamp::parse(expected).unwrap(), "{unit} of {at:?}");
        };
        // 01:40-07 and 01:40-08.
        check("hour", "2023-11-05 08:40:00", "2023-11-05 08:00:00");
        check("hour", "2023-11-05 09:40:00", "2023-11-05 09:00:00");
        check("minute", "2023-11-05 08:40:30", "2023-11-05 08:40:00");
        check("microseconds", "2023-11-05 08:40:00.5", "2023-11-05 08:40:00.5");
        check("day", "2023-11-05 09:40:00", "2023-11-05 07:00:00");
        check("day", "2023-11-05 20:40:00", "2023-11-05 07:00:00");
        check("month", "2023-11-05 20:40:00", "2023-11-01 07:00:00");
    }

    #[test]
    fn fields_are_postgresqls() {
        let at = Timestamp::parse("2001-02-16 20:38:40.12").unwrap();
        let check = |name: &str, expected: &str| {
            assert_eq!(
                Field::named(name).unwrap().of_finite(at).unwrap().to_string(),
                expected,
                "{name}"
            );
        };
        check("year", "2001");
        check("month", "2");
        check("day", "16");
        check("hour", "20");
        check("second", "40.120000");
        check("milliseconds", "40120.000");
        check("dow", "5");
        check("doy", "47");
        check("quarter", "1");
        check("week", "7");
        check("epoch", "982355920.120000");
        let sunday = Timestamp::parse("2006-01-01").unwrap();
        assert_eq!(Field::IsoYear.of_finite(sunday).unwrap(), Numeric::from(2005));
        assert_eq!(Field::Week.of_finite(sunday).unwrap(), Numeric::from(52));
        for (unit, text) in [
            ("hour", "2001-02-16 20:00:00"),
            ("week", "2001-02-12 00:00:00"),
            ("quarter", "2001-01-01 00:00:00"),
        ] {
            assert_eq!(truncate(unit, at).unwrap().print(), text);
        }
    }
}
