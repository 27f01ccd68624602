//! Functions of dates, times and intervals.

use super::context::Context;
use crate::ir::{Function, TimeFunction};
use values::time::{
    Civil, Field, Read, age, bin, divided, field_of, read_form, scaled, shown, time_of_day,
};
use values::{Date, Datum, Error, Interval, Result, SqlState, Time, Timestamp};

/// The longest form of `to_char`.
const FORM_BYTES_MAX: usize = 10_000;

/// The result, if the function is one of these and takes these types.
pub(super) fn call(
    function: Function,
    arguments: &[Datum],
    context: &Context,
) -> Option<Result<Datum>> {
    let interval = |result: Result<Interval>| result.map(Datum::Interval);
    Some(match (function, arguments) {
        (Function::Extract, [Datum::Text(name), Datum::Interval(value)]) => extract(name, *value),
        // Fields that these have are taken of a point in time and of an interval.
        (Function::Extract, [Datum::Text(name), Datum::Date(_)]) => no_field(name, "date"),
        (Function::Extract, [Datum::Text(name), Datum::Time(_)]) => {
            no_field(name, "time without time zone")
        }
        (Function::Age, [Datum::Timestamp(later), Datum::Timestamp(earlier)]) => {
            interval(age(*later, *earlier))
        }
        (Function::Age, [Datum::Timestamptz(later), Datum::Timestamptz(earlier)]) => {
            let local = |at: &Timestamp| at.to_local(&context.zone);
            interval(local(later).and_then(|later| age(later, local(earlier)?)))
        }
        (Function::MakeDate, [Datum::Int4(year), Datum::Int4(month), Datum::Int4(day)]) => {
            day_of(*year, *month, *day)
                .and_then(|civil| Date::from_days(civil.to_days()))
                .map(Datum::Date)
        }
        (Function::MakeTime, [Datum::Int4(hour), Datum::Int4(minute), Datum::Float8(second)]) => {
            match time_of_day(*hour, *minute, *second) {
                Some(time) => Time::from_microseconds(time).map(Datum::Time),
                None => Err(time_out_of_range(*hour, *minute, *second)),
            }
        }
        (
            Function::MakeTimestamp,
            [Datum::Int4(year), Datum::Int4(month), Datum::Int4(day), time @ ..],
        ) => made(*year, *month, *day, time)?.map(Datum::Timestamp),
        (
            Function::DateBin,
            [Datum::Interval(stride), Datum::Timestamp(at), Datum::Timestamp(origin)],
        ) => bin(*stride, *at, *origin).map(Datum::Timestamp),
        (
            Function::DateBin,
            [Datum::Interval(stride), Datum::Timestamptz(at), Datum::Timestamptz(origin)],
        ) => bin(*stride, *at, *origin).map(Datum::Timestamptz),
        (Function::IsFinite, [Datum::Timestamp(at) | Datum::Timestamptz(at)]) => {
            Ok(Datum::Bool(at.is_finite()))
        }
        (Function::IsFinite, [Datum::Date(date)]) => Ok(Datum::Bool(date.is_finite())),
        (Function::FromEpoch, [Datum::Float8(seconds)]) => from_epoch(*seconds),
        (Function::TimeText, [Datum::Timestamp(at), Datum::Text(form)]) => text(*at, 0, form),
        (Function::TimeText, [Datum::Timestamptz(at), Datum::Text(form)]) => {
            let offset = context.zone.offset_seconds(at.bits());
            at.to_local(&context.zone).and_then(|local| text(local, offset, form))
        }
        (Function::Scale, [Datum::Interval(value), Datum::Float8(factor)]) => {
            interval(scaled(*value, *factor))
        }
        (Function::ScaleDown, [Datum::Interval(value), Datum::Float8(divisor)]) => {
            interval(divided(*value, *divisor))
        }
        _ => return None,
    })
}

/// The result of more functions of times; `None` of other types.
pub(super) fn more(
    function: TimeFunction,
    arguments: &[Datum],
    context: &Context,
) -> Option<Result<Datum>> {
    use TimeFunction as T;
    let interval = |result: Result<Interval>| result.map(Datum::Interval);
    Some(match (function, arguments) {
        (T::MakeInterval, [parts @ .., Datum::Float8(seconds)]) => {
            interval(Interval::of_parts(whole_parts(parts)?, *seconds))
        }
        (T::MakeZoned, [Datum::Timestamp(local)]) => {
            local.to_utc(&context.zone).map(Datum::Timestamptz)
        }
        (T::JustifyDays, [Datum::Interval(value)]) => interval(value.justify_days()),
        (T::JustifyHours, [Datum::Interval(value)]) => interval(value.justify_hours()),
        (T::JustifyInterval, [Datum::Interval(value)]) => interval(value.justify()),
        (T::IsFiniteInterval, [Datum::Interval(_)]) => Ok(Datum::Bool(true)),
        (T::ToDate, [Datum::Text(text), Datum::Text(form)]) => {
            read(text, form).and_then(|read| read.local.date()).map(Datum::Date)
        }
        (T::ToTimestamp, [Datum::Text(text), Datum::Text(form)]) => {
            read(text, form).and_then(|read| zoned(&read, context)).map(Datum::Timestamptz)
        }
        _ => return None,
    })
}

fn whole_parts(parts: &[Datum]) -> Option<[i32; 6]> {
    let whole = |part: &Datum| match part {
        Datum::Int4(value) => Some(*value),
        _ => None,
    };
    parts.iter().map(whole).collect::<Option<Vec<i32>>>()?.try_into().ok()
}

fn read(text: &str, form: &str) -> Result<Read> {
    if form.len() > FORM_BYTES_MAX {
        let message = format!("a form of to_date has at most {FORM_BYTES_MAX} bytes");
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    read_form(text, form)
}

/// The point in time on clocks of the zone that was stated, or of the session.
fn zoned(read: &Read, context: &Context) -> Result<Timestamp> {
    match read.offset_seconds {
        None => read.local.to_utc(&context.zone),
        Some(seconds) => {
            let shift = i128::from(seconds) * 1_000_000;
            Timestamp::from_microseconds(i128::from(read.local.bits()) - shift)
        }
    }
}

fn extract(name: &str, value: Interval) -> Result<Datum> {
    const TYPE: &str = "interval";
    let field = Field::of_name(name, TYPE)?;
    field_of(field, value)
        .unwrap_or_else(|| Err(Field::unsupported(name, TYPE)))
        .map(Datum::Numeric)
}

/// The error that type `ty` has no field called `name`.
fn no_field(name: &str, ty: &str) -> Result<Datum> {
    Field::of_name(name, ty).and_then(|_| Err(Field::unsupported(name, ty)))
}

fn out_of_range(what: &str) -> Error {
    Error::new(SqlState::DATETIME_OUT_OF_RANGE, format!("{what} out of range"))
}

/// The day of a calendar; years before Christ are below zero.
fn day_of(year: i32, month: i32, day: i32) -> Result<Civil> {
    let own = i64::from(if year < 0 { year + 1 } else { year });
    let part = |value: i32| u32::try_from(value).ok();
    let civil = part(month).zip(part(day)).and_then(|(month, day)| Civil::new(own, month, day));
    civil.filter(|_| year != 0).ok_or_else(|| {
        let message = format!("date field value out of range: {year}-{month:02}-{day:02}");
        Error::new(SqlState::DATETIME_OUT_OF_RANGE, message)
    })
}

fn time_out_of_range(hour: i32, minute: i32, second: f64) -> Error {
    let message = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
    Error::new(SqlState::DATETIME_OUT_OF_RANGE, message)
}

fn made(year: i32, month: i32, day: i32, time: &[Datum]) -> Option<Result<Timestamp>> {
    let [Datum::Int4(hour), Datum::Int4(minute), Datum::Float8(second)] = time else { return None };
    Some(day_of(year, month, day).and_then(|civil| {
        let time = time_of_day(*hour, *minute, *second)
            .ok_or_else(|| time_out_of_range(*hour, *minute, *second))?;
        let midnight = Date::from_days(civil.to_days())?.midnight()?;
        Timestamp::from_microseconds(i128::from(midnight.bits()) + i128::from(time))
    }))
}

/// Seconds since 1970.
fn from_epoch(seconds: f64) -> Result<Datum> {
    const UNIX_US: i128 = 946_684_800_000_000;
    let at = match seconds {
        _ if seconds.is_nan() => {
            let message = "timestamp cannot be NaN";
            return Err(Error::new(SqlState::DATETIME_OUT_OF_RANGE, message));
        }
        f64::INFINITY => Timestamp::INFINITY,
        f64::NEG_INFINITY => Timestamp::NEGATIVE_INFINITY,
        _ if seconds.abs() > 1e13 => return Err(out_of_range("timestamp")),
        _ => {
            let microseconds = (seconds * 1e6).round_ties_even() as i128;
            Timestamp::from_microseconds(microseconds - UNIX_US)?
        }
    };
    Ok(Datum::Timestamptz(at))
}

fn text(at: Timestamp, offset_seconds: i32, form: &str) -> Result<Datum> {
    if !at.is_finite() || form.is_empty() {
        return Ok(Datum::Null);
    }
    if form.len() > FORM_BYTES_MAX {
        let message = format!("a form of to_char has at most {FORM_BYTES_MAX} bytes");
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    shown(at, offset_seconds, form).map(Datum::text)
}
