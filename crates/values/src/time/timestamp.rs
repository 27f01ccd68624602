//! `timestamp` and `timestamptz`: microseconds, or one of two infinities. Which of the two types it
//! is decides how it is read and shown, so both share the type.

use super::civil::Civil;
use super::date::Date;
use super::input::Input;
use super::units::{DAY_US, fraction, out_of_range};
use super::zone::Zone;
use crate::{Error, Interval, Result, SqlState};

/// Microseconds since 2000-01-01 00:00 (of UTC, if it has a zone); the smallest and largest number
/// are the infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// 4713-11-24 00:00 BC.
const MICROSECONDS_MIN: i128 = -211_813_488_000_000_000;
/// The first that is too late: 294277-01-01 00:00.
const MICROSECONDS_END: i128 = 9_223_371_331_200_000_000;

impl Timestamp {
    /// After all others.
    pub const INFINITY: Timestamp = Timestamp(i64::MAX);
    /// Before all others.
    pub const NEGATIVE_INFINITY: Timestamp = Timestamp(i64::MIN);

    /// The point that is so much after 2000-01-01 00:00.
    pub fn from_microseconds(microseconds: i128) -> Result<Timestamp> {
        if (MICROSECONDS_MIN..MICROSECONDS_END).contains(&microseconds) {
            Ok(Timestamp(microseconds as i64))
        } else {
            Err(out_of_range())
        }
    }

    /// The timestamp with these stored bits.
    pub fn from_bits(bits: i64) -> Result<Timestamp> {
        match Timestamp(bits) {
            infinite if !infinite.is_finite() => Ok(infinite),
            Timestamp(microseconds) => Timestamp::from_microseconds(i128::from(microseconds)),
        }
    }

    /// The stored bits: microseconds since 2000-01-01, or an infinity.
    pub fn bits(self) -> i64 {
        self.0
    }

    /// Whether it is a point in time.
    pub fn is_finite(self) -> bool {
        self != Timestamp::INFINITY && self != Timestamp::NEGATIVE_INFINITY
    }

    /// Reads a `timestamp`; a zone in the text is ignored, as PostgreSQL does.
    pub fn parse(text: &str) -> Result<Timestamp> {
        Timestamp::read(text, "timestamp", |local, _| Ok(local))
    }

    /// Reads a `timestamptz`; without a zone in the text it is one of `zone`.
    pub fn parse_zoned(text: &str, zone: &Zone) -> Result<Timestamp> {
        Timestamp::read(text, "timestamp with time zone", |local, own| {
            own.unwrap_or(zone).to_utc(local)
        })
    }

    fn read(
        text: &str,
        name: &str,
        place: impl Fn(i64, Option<&Zone>) -> Result<i64>,
    ) -> Result<Timestamp> {
        let input = Input::parse(text, name)?;
        match input.infinity {
            Some(true) => return Ok(Timestamp::INFINITY),
            Some(false) => return Ok(Timestamp::NEGATIVE_INFINITY),
            None => {}
        }
        let refused = || {
            let message = format!("timestamp out of range: \"{text}\"");
            Error::new(SqlState::DATETIME_OUT_OF_RANGE, message)
        };
        let days = i128::from(input.day(text, name)?.to_days());
        let local = days * i128::from(DAY_US) + i128::from(input.microseconds);
        let local = i64::try_from(local).map_err(|_| refused())?;
        let utc = place(local, input.zone.as_ref()).map_err(|_| refused())?;
        Timestamp::from_microseconds(i128::from(utc)).map_err(|_| refused())
    }

    /// Day and microseconds of the day.
    pub fn split(self) -> (Civil, i64) {
        assert!(self.is_finite(), "an infinity has no day");
        let days = self.0.div_euclid(DAY_US);
        (Civil::from_days(days), self.0.rem_euclid(DAY_US))
    }

    /// The day.
    pub fn date(self) -> Result<Date> {
        match self {
            Timestamp::INFINITY => Ok(Date::INFINITY),
            Timestamp::NEGATIVE_INFINITY => Ok(Date::NEGATIVE_INFINITY),
            Timestamp(microseconds) => Date::from_days(microseconds.div_euclid(DAY_US)),
        }
    }

    /// What clocks of the zone show at this point of UTC.
    pub fn to_local(self, zone: &Zone) -> Result<Timestamp> {
        if !self.is_finite() {
            return Ok(self);
        }
        let offset = i128::from(zone.offset_seconds(self.0)) * 1_000_000;
        Timestamp::from_microseconds(i128::from(self.0) + offset)
    }

    /// The point of UTC at which clocks of the zone show this.
    pub fn to_utc(self, zone: &Zone) -> Result<Timestamp> {
        if !self.is_finite() {
            return Ok(self);
        }
        Timestamp::from_microseconds(i128::from(zone.to_utc(self.0)?))
    }

    /// The sum: months first, then days, then the rest.
    pub fn add_interval(self, interval: Interval) -> Result<Timestamp> {
        if !self.is_finite() {
            return Ok(self);
        }
        let (day, time) = self.split();
        let days = day.add_months(i64::from(interval.months)).to_days() + i64::from(interval.days);
        let local = i128::from(days) * i128::from(DAY_US) + i128::from(time);
        Timestamp::from_microseconds(local + i128::from(interval.microseconds))
    }

    /// The sum for a `timestamptz`: months and days are those of the zone's calendar.
    pub fn add_zoned(self, interval: Interval, zone: &Zone) -> Result<Timestamp> {
        if !self.is_finite() {
            return Ok(self);
        }
        let calendar = Interval { microseconds: 0, ..interval };
        let base = if calendar == Interval::default() {
            self
        } else {
            self.to_local(zone)?.add_interval(calendar)?.to_utc(zone)?
        };
        Timestamp::from_microseconds(i128::from(base.0) + i128::from(interval.microseconds))
    }

    /// The time from the other to this one, in days and less.
    pub fn since(self, other: Timestamp) -> Result<Interval> {
        if !self.is_finite() || !other.is_finite() {
            let message = "cannot subtract infinite timestamps";
            return Err(Error::new(SqlState::DATETIME_OUT_OF_RANGE, message));
        }
        let total = self.0.checked_sub(other.0).ok_or_else(out_of_range)?;
        Ok(Interval { months: 0, days: (total / DAY_US) as i32, microseconds: total % DAY_US })
    }

    /// Rounded to so many digits of the second, halves away from zero.
    pub fn round(self, digits: u32) -> Result<Timestamp> {
        if !self.is_finite() || digits >= 6 {
            return Ok(self);
        }
        let unit = 10_i128.pow(6 - digits);
        let half = if self.0 < 0 { -unit / 2 } else { unit / 2 };
        Timestamp::from_microseconds((i128::from(self.0) + half) / unit * unit)
    }

    /// The text of a `timestamp`.
    pub fn print(self) -> String {
        self.print_with("")
    }

    /// The text of a `timestamptz`, as clocks of the zone show it.
    pub fn print_zoned(self, zone: &Zone) -> String {
        if !self.is_finite() {
            return self.print();
        }
        let offset = zone.offset_seconds(self.0);
        let local = Timestamp(self.0.saturating_add(i64::from(offset) * 1_000_000));
        let (sign, rest) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
        let mut shown = format!("{sign}{:02}", rest / 3600);
        if rest % 3600 != 0 {
            shown += &format!(":{:02}", rest / 60 % 60);
        }
        if rest % 60 != 0 {
            shown += &format!(":{:02}", rest % 60);
        }
        local.print_with(&shown)
    }

    fn print_with(self, offset: &str) -> String {
        match self {
            Timestamp::INFINITY => return "infinity".to_owned(),
            Timestamp::NEGATIVE_INFINITY => return "-infinity".to_owned(),
            _ => {}
        }
        let (day, time) = self.split();
        let (year, before_christ) = day.shown_year();
        let seconds = time / 1_000_000;
        let mut text = format!(
            "{year:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            day.month,
            day.day,
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
        text += &fraction(time % 1_000_000);
        text += offset;
        if before_christ { text + " BC" } else { text }
    }
}
