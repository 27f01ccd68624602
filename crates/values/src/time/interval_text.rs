//! Reads the text of intervals: PostgreSQL's forms, and ISO 8601's with designators or without.

use super::input::is_keyword;
use super::interval::Interval;
use super::interval_fields::{IntervalFields, Smallest};
use super::pieces::{Piece, Shape, pieces};
use super::units::DAY_US;
use crate::{Error, Result, SqlState};

/// Why a text is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Syntax,
    /// A field is too large.
    Field,
    /// The fields are too large together.
    Whole,
}

type Read<T> = std::result::Result<T, Refused>;

/// Reads an interval of a type with these `fields`, the smallest of which a number without a unit
/// counts. The value may have smaller ones.
pub(super) fn read(text: &str, fields: IntervalFields) -> Result<Interval> {
    let read = match words(text, fields) {
        Err(Refused::Syntax) => iso(text),
        other => other,
    };
    read.and_then(Sum::finish).map_err(|refused| match refused {
        Refused::Syntax => {
            let message = format!("invalid input syntax for type interval: \"{text}\"");
            Error::new(SqlState::INVALID_DATETIME, message)
        }
        Refused::Field => {
            let message = format!("interval field value out of range: \"{text}\"");
            Error::new(SqlState::INTERVAL_OVERFLOW, message)
        }
        Refused::Whole => Error::new(SqlState::DATETIME_OUT_OF_RANGE, "interval out of range"),
    })
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

/// A unit of numbers; each may be said once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    fn named(name: &str) -> Option<Unit> {
        // PostgreSQL looks at so many letters of a word.
        const LETTERS: usize = 10;
        Some(match name.get(..LETTERS).unwrap_or(name) {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
            _ => return None,
        })
    }

    fn of(smallest: Smallest) -> Unit {
        match smallest {
            Smallest::Year => Unit::Year,
            Smallest::Month => Unit::Month,
            Smallest::Day => Unit::Day,
            Smallest::Hour => Unit::Hour,
            Smallest::Minute => Unit::Minute,
            Smallest::Second => Unit::Second,
        }
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

const SECONDS: u16 =
    1 << Unit::Microsecond as u16 | 1 << Unit::Millisecond as u16 | 1 << Unit::Second as u16;
const TIME: u16 = SECONDS | 1 << Unit::Minute as u16 | 1 << Unit::Hour as u16;

/// The parts while they are read: wide, so that nothing overflows on the way.
#[derive(Default)]
struct Sum {
    years: i128,
    months: i128,
    days: i128,
    microseconds: i128,
}

impl Sum {
    /// Adds an `amount` of a unit; a fraction of a month becomes days, of a day microseconds.
    fn add(&mut self, amount: Parts, unit: Unit) {
        let years = match unit {
            Unit::Year => 1,
            Unit::Decade => 10,
            Unit::Century => 100,
            Unit::Millennium => 1_000,
            Unit::Month => {
                self.months += amount / ONE;
                return self.add(amount % ONE * 30, Unit::Day);
            }
            Unit::Week => return self.add(amount * 7, Unit::Day),
            Unit::Day => {
                self.days += amount / ONE;
                self.microseconds += nearest(amount % ONE * i128::from(DAY_US));
                return;
            }
            Unit::Hour => return self.add_time(amount, 3_600_000_000),
            Unit::Minute => return self.add_time(amount, 60_000_000),
            Unit::Second => return self.add_time(amount, 1_000_000),
            Unit::Millisecond => return self.add_time(amount, 1_000),
            Unit::Microsecond => return self.add_time(amount, 1),
        };
        self.years += amount / ONE * years;
        self.months += nearest_or_even(amount % ONE * years * 12);
    }

    fn add_time(&mut self, amount: Parts, microseconds: i128) {
        self.microseconds += amount / ONE * microseconds + nearest(amount % ONE * microseconds);
    }

    fn finish(self) -> Read<Interval> {
        let narrow = |value: i128| i32::try_from(value).map_err(|_| Refused::Field);
        let (years, months) = (narrow(self.years)?, narrow(self.months)?);
        let days = narrow(self.days)?;
        let microseconds = i64::try_from(self.microseconds).map_err(|_| Refused::Field)?;
        let months = i64::from(years) * 12 + i64::from(months);
        let months = i32::try_from(months).map_err(|_| Refused::Whole)?;
        Ok(Interval { months, days, microseconds })
    }
}

/// What has been read of a text with words, from its end to its begin: units come behind numbers.
struct Words {
    sum: Sum,
    /// The unit of the number before; `None` where there is none for it.
    unit: Option<Unit>,
    /// Bits of the units that have been said.
    said: u16,
}

fn words(text: &str, fields: IntervalFields) -> Read<Sum> {
    let pieces = pieces(text, is_keyword).ok_or(Refused::Syntax)?;
    let smallest = Unit::of(fields.smallest());
    let mut words = Words { sum: Sum::default(), unit: Some(smallest), said: 0 };
    let mut is_ago = false;
    for piece in pieces.iter().rev() {
        match piece.shape {
            Shape::Word if piece.text == "ago" => {
                is_ago = true;
                words.unit = None;
            }
            Shape::Word => {
                words.unit = Some(Unit::named(&piece.text).ok_or(Refused::Syntax)?);
            }
            Shape::Time => words.clock(&piece.text, 1, fields)?,
            Shape::Number | Shape::Date | Shape::Offset => words.number(piece, fields)?,
        }
    }
    let Words { mut sum, said, .. } = words;
    if said == 0 {
        return Err(Refused::Syntax);
    }
    if is_ago {
        let Sum { years, months, days, microseconds } = sum;
        sum = Sum { years: -years, months: -months, days: -days, microseconds: -microseconds };
    }
    Ok(sum)
}

impl Words {
    fn say(&mut self, units: u16) -> Read<()> {
        if self.said & units != 0 {
            return Err(Refused::Syntax);
        }
        self.said |= units;
        Ok(())
    }

    /// `HH:MM[:SS[.ffffff]]` or `MM:SS.ffffff`
    fn clock(&mut self, text: &str, sign: i128, fields: IntervalFields) -> Read<()> {
        let time = clock(text, fields)?;
        self.say(TIME)?;
        self.sum.microseconds += sign * time;
        self.unit = Some(Unit::Day);
        Ok(())
    }

    /// A number of the unit that is behind it, or years and months.
    fn number(&mut self, piece: &Piece, fields: IntervalFields) -> Read<()> {
        let text = piece.text.as_str();
        if piece.shape == Shape::Offset && text.contains(':') {
            let sign = if text.starts_with('-') { -1 } else { 1 };
            if clock(&text[1..], fields).is_ok() {
                return self.clock(&text[1..], sign, fields);
            }
        }
        let (sign, body) = signed(text);
        if let Some((years, months)) = body.split_once('-') {
            let (years, months) = (whole(years)?, whole(months)?);
            if months >= 12 {
                return Err(Refused::Field);
            }
            self.unit = Some(Unit::Month);
            self.say(Unit::Month.bit())?;
            self.sum.years += sign * years;
            self.sum.months += sign * months;
            return Ok(());
        }
        let amount = sign * decimal(body)?;
        let unit = self.unit.ok_or(Refused::Syntax)?;
        let has_fraction = unit == Unit::Second && amount % ONE != 0;
        self.say(if has_fraction { SECONDS } else { unit.bit() })?;
        self.sum.add(amount, unit);
        if unit == Unit::Hour {
            self.unit = Some(Unit::Day);
        }
        Ok(())
    }
}

/// Microseconds of what clocks show, without a sign.
fn clock(text: &str, fields: IntervalFields) -> Read<i128> {
    let (body, fraction) = match text.split_once('.') {
        Some((body, digits)) => (body, Some(decimal(&format!("0.{digits}"))?)),
        None => (text, None),
    };
    let mut parts = body.split(':').map(|part| match part {
        "" => Ok(0),
        part => whole(part),
    });
    let mut next = || parts.next().transpose();
    let (first, second, third) = (next()?, next()?, next()?);
    let (Some(mut hours), Some(mut minutes), None) = (first, second, next()?) else {
        return Err(Refused::Syntax);
    };
    let mut seconds = third.unwrap_or(0);
    if third.is_none() && (fraction.is_some() || fields.is_minute_to_second()) {
        (hours, minutes, seconds) = (0, hours, minutes);
    }
    if minutes > 59 || seconds > 60 {
        return Err(Refused::Field);
    }
    let fraction = nearest(fraction.unwrap_or(0) * 1_000_000);
    Ok((hours * 3_600 + minutes * 60 + seconds) * 1_000_000 + fraction)
}

/// The sign of a text, and the text without it.
fn signed(text: &str) -> (i128, &str) {
    match text.strip_prefix('-') {
        Some(body) => (-1, body),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Digits as a number of at most 64 bits.
fn whole(digits: &str) -> Read<i128> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::Syntax);
    }
    digits.parse::<i64>().map(i128::from).map_err(|_| Refused::Field)
}

/// Digits, perhaps with a point and a fraction.
fn decimal(text: &str) -> Read<Parts> {
    const FRACTION_DIGITS: usize = 15;
    let (before, fraction) = text.split_once('.').unwrap_or((text, ""));
    let before = if before.is_empty() && text != "." { 0 } else { whole(before)? };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::Syntax);
    }
    let digits = fraction.chars().chain(std::iter::repeat('0')).take(FRACTION_DIGITS);
    let digits: String = digits.collect();
    Ok(before * ONE + whole(&digits)?)
}

/// What is left of a text of ISO 8601.
struct Iso<'a> {
    rest: &'a str,
    sum: Sum,
    /// Whether `T` was before.
    is_time: bool,
    /// Whether there was a designator in this part.
    has_field: bool,
}

/// Units of the form without designators, in their order: `0001-02-03` or `04:05:06`.
const DATE_UNITS: [Unit; 3] = [Unit::Year, Unit::Month, Unit::Day];
const TIME_UNITS: [Unit; 3] = [Unit::Hour, Unit::Minute, Unit::Second];

fn iso(text: &str) -> Read<Sum> {
    let rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(Refused::Syntax)?;
    let mut iso = Iso { rest, sum: Sum::default(), is_time: false, has_field: false };
    while !iso.rest.is_empty() {
        if let Some(rest) = iso.rest.strip_prefix('T') {
            (iso.rest, iso.is_time, iso.has_field) = (rest, true, false);
        } else {
            iso.field()?;
        }
    }
    Ok(iso.sum)
}

impl Iso<'_> {
    /// A number with what it counts, or all of a date or a time without designators.
    fn field(&mut self) -> Read<()> {
        let (amount, digits) = self.number()?;
        let unit = match (self.rest.chars().next(), self.is_time) {
            (Some('Y'), false) => Unit::Year,
            (Some('M'), false) => Unit::Month,
            (Some('W'), false) => Unit::Week,
            (Some('D'), false) => Unit::Day,
            (Some('H'), true) => Unit::Hour,
            (Some('M'), true) => Unit::Minute,
            (Some('S'), true) => Unit::Second,
            (None | Some('T' | '-'), false) | (None | Some(':'), true) if !self.has_field => {
                return self.without_designators(amount, digits);
            }
            _ => return Err(Refused::Syntax),
        };
        self.rest = &self.rest[1..];
        self.has_field = true;
        self.sum.add(amount, unit);
        Ok(())
    }

    /// A date or time whose first number, with so many `digits`, was read.
    fn without_designators(&mut self, first: Parts, digits: usize) -> Read<()> {
        let (between, units, basic) = match self.is_time {
            false => ('-', DATE_UNITS, 8),
            true => (':', TIME_UNITS, 6),
        };
        let ends = |rest: &str| rest.is_empty() || !self.is_time && rest.starts_with('T');
        if digits == basic && ends(self.rest) {
            let (all, fraction) = (first / ONE, first % ONE);
            let parts = [all / 10_000, all / 100 % 100, all % 100].map(|part| part * ONE);
            let parts = [parts[0], parts[1], parts[2] + fraction];
            parts.into_iter().zip(units).for_each(|(part, unit)| self.sum.add(part, unit));
            return Ok(());
        }
        self.sum.add(first, units[0]);
        for unit in &units[1..] {
            if self.rest.is_empty() || !self.is_time && self.rest.starts_with('T') {
                return Ok(());
            }
            self.rest = self.rest.strip_prefix(between).ok_or(Refused::Syntax)?;
            let (amount, _) = self.number()?;
            self.sum.add(amount, *unit);
        }
        match self.rest.is_empty() || !self.is_time && self.rest.starts_with('T') {
            true => Ok(()),
            false => Err(Refused::Syntax),
        }
    }

    /// The next number, and how many digits it has before its point.
    fn number(&mut self) -> Read<(Parts, usize)> {
        let text = self.rest;
        let (sign, body) = match text.strip_prefix(['-', '+']) {
            Some(body) => (if text.starts_with('-') { -1 } else { 1 }, body),
            None => (1, text),
        };
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = body.find(|c| !is_number(c)).unwrap_or(body.len());
        let (number, mut rest) = body.split_at(end);
        let digits = number.find('.').unwrap_or(number.len());
        let mut amount = decimal(number)?;
        if let Some((power, after)) = exponent(rest) {
            amount = raised(amount, power)?;
            rest = after;
        }
        const LARGEST: i128 = 1_000_000_000_000_000;
        if amount > LARGEST * ONE {
            return Err(Refused::Field);
        }
        self.rest = rest;
        Ok((sign * amount, digits))
    }
}

/// The exponent that a text begins with, and the rest; `None` if it begins with something else.
fn exponent(text: &str) -> Option<(i32, &str)> {
    let body = text.strip_prefix(['e', 'E'])?;
    let digits = body.strip_prefix(['-', '+']).unwrap_or(body);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let at = body.len() - digits.len() + count;
    let power = body[..at].parse::<i32>().ok().filter(|_| count > 0)?;
    Some((power, &body[at..]))
}

/// The amount times a power of ten.
fn raised(amount: Parts, power: i32) -> Read<Parts> {
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match (factor, power < 0) {
        (Some(factor), false) => amount.checked_mul(factor).ok_or(Refused::Field),
        (Some(factor), true) => Ok(amount / factor),
        (None, true) => Ok(0),
        (None, false) if amount == 0 => Ok(0),
        (None, false) => Err(Refused::Field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 15 answers to a text as `interval`: a value, or the code of an error.
    #[test]
    fn all_forms_are_read_as_by_postgresql() {
        let cases = include_str!("interval_texts.txt");
        let mut count = 0;
        for line in cases.lines().filter(|line| !line.starts_with('#')) {
            let parts: Vec<&str> = line.split('|').collect();
            let [text, plain, hour, minute_to_second] = parts[..] else { panic!("{line}") };
            let (hours, seconds) = ("hour", "minute to second");
            for (name, expected) in [("", plain), (hours, hour), (seconds, minute_to_second)] {
                let fields = IntervalFields::named(name).unwrap_or(IntervalFields::ALL);
                let found = match read(text, fields) {
                    Ok(interval) => interval.cut(fields).to_string(),
                    Err(error) => error.state().code().to_owned(),
                };
                assert_eq!(found, expected, "'{text}'::interval {name}");
            }
            count += 1;
        }
        assert!(count > 100, "{count} texts");
    }
}
