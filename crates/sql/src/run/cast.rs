//! Casts: the value as one of another type.

use crate::ir::Kind;
use values::{
    Array, Bits, Datum, Error, Json, Numeric, Result, SqlState, Strictness, Time, Timestamp, Type,
    Zone, fit, float, text, without_blanks,
};

/// The value as one of `kind`. The binder lets through only casts that there are.
pub(crate) fn cast(datum: Datum, kind: Kind, strictness: Strictness, zone: &Zone) -> Result<Datum> {
    if datum.is_null() {
        return Ok(datum);
    }
    let converted = match datum {
        Datum::Int4(number) if kind.ty == Type::Bit => bits(i64::from(number), kind),
        Datum::Int8(number) if kind.ty == Type::Bit => bits(number, kind),
        Datum::Text(text) if kind.ty == Type::Char => Datum::Char(text),
        datum if datum.fits(kind.ty) => datum,
        datum => convert(datum, kind.ty, zone)?,
    };
    fit(converted, kind.ty, kind.modifier, strictness)
}

/// The last bits of a number.
fn bits(number: i64, kind: Kind) -> Datum {
    Datum::Bits(Bits::of_number(number, kind.modifier.bits().unwrap_or(1)))
}

fn convert(datum: Datum, ty: Type, zone: &Zone) -> Result<Datum> {
    if ty.is_text() {
        let text = match &datum {
            Datum::Bool(value) => if *value { "true" } else { "false" }.to_owned(),
            Datum::Char(text) => without_blanks(text).to_owned(),
            Datum::Network(network) => network.whole(),
            other => text::print(other, zone),
        };
        return Ok(if ty == Type::Char { Datum::Char(text.into()) } else { Datum::text(text) });
    }
    match (&datum, ty) {
        (Datum::Text(value) | Datum::Char(value), _) => text::parse(ty, value, zone),
        (Datum::Bool(value), Type::Int4) => Ok(Datum::Int4(i32::from(*value))),
        (Datum::Int4(value), Type::Bool) => Ok(Datum::Bool(*value != 0)),
        (Datum::Date(date), Type::Timestamp) => date.midnight().map(Datum::Timestamp),
        (Datum::Date(date), Type::Timestamptz) => {
            date.midnight()?.to_utc(zone).map(Datum::Timestamptz)
        }
        (Datum::Timestamp(at), Type::Date) => at.date().map(Datum::Date),
        (Datum::Timestamptz(at), Type::Date) => at.to_local(zone)?.date().map(Datum::Date),
        (Datum::Timestamp(at), Type::Timestamptz) => at.to_utc(zone).map(Datum::Timestamptz),
        (Datum::Timestamptz(at), Type::Timestamp) => at.to_local(zone).map(Datum::Timestamp),
        (Datum::Time(time), Type::Interval) => Ok(Datum::Interval(time.of_day())),
        (Datum::Timestamp(at), Type::Time) => time_of(*at),
        (Datum::Timestamptz(at), Type::Time) => time_of(at.to_local(zone)?),
        (Datum::Interval(interval), Type::Time) => {
            Time::from_microseconds(0).map(|time| Datum::Time(time.add_interval(*interval)))
        }
        (Datum::Json(text), Type::Jsonb) => text::parse(ty, text, zone),
        (Datum::Network(network), Type::Inet) => Ok(Datum::Network(Box::new(network.to_inet()))),
        (Datum::Network(network), Type::Cidr) => Ok(Datum::Network(Box::new(network.to_cidr()))),
        (Datum::Bits(bits), Type::Int4) if bits.count() <= 32 => {
            Ok(Datum::Int4(bits.number().unwrap_or_default() as u32 as i32))
        }
        (Datum::Bits(bits), Type::Int8) if bits.count() <= 64 => {
            Ok(Datum::Int8(bits.number().unwrap_or_default() as i64))
        }
        (Datum::Bits(_), Type::Int4 | Type::Int8) => Err(out_of_range(ty)),
        (Datum::Jsonb(json), Type::Json) => Ok(Datum::Json(json.to_string().into())),
        (Datum::Jsonb(json), _) if ty.is_number() || ty == Type::Bool => from_json(json, ty),
        (Datum::Array(array), Type::Array(_)) => {
            let element = ty.element().ok_or_else(|| impossible(&datum, ty))?;
            let items = array
                .items()
                .iter()
                .map(|item| cast(item.clone(), Kind::plain(element), Strictness::Explicit, zone));
            let items = items.collect::<Result<Vec<_>>>()?;
            let dimensions = array.dimensions().to_vec();
            Ok(Datum::Array(Box::new(Array::with_dimensions(element, dimensions, items)?)))
        }
        _ if ty.is_object_id() => match number(&datum, Type::Int8)? {
            Datum::Int8(value) => i32::try_from(value)
                .ok()
                .filter(|value| *value >= 0)
                .map(Datum::Int4)
                .ok_or_else(|| Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "OID out of range")),
            _ => Err(impossible(&datum, ty)),
        },
        _ if ty.is_number() => number(&datum, ty),
        _ => Err(impossible(&datum, ty)),
    }
}

/// The time of the day; infinities have none.
fn time_of(at: Timestamp) -> Result<Datum> {
    if !at.is_finite() {
        return Ok(Datum::Null);
    }
    Time::from_microseconds(at.split().1).map(Datum::Time)
}

fn impossible(datum: &Datum, ty: Type) -> Error {
    let from = datum.kind().map_or_else(|| "unknown".to_owned(), Type::name);
    Error::new(SqlState::CANNOT_COERCE, format!("cannot cast type {from} to {}", ty.name()))
}

fn from_json(json: &Json, ty: Type) -> Result<Datum> {
    match json {
        Json::Number(value) if ty.is_number() => number(&Datum::Numeric(value.clone()), ty),
        Json::Bool(value) if ty == Type::Bool => Ok(Datum::Bool(*value)),
        _ => Err(Error::new(
            SqlState::INVALID_PARAMETER,
            format!("cannot cast jsonb value to type {}", ty.name()),
        )),
    }
}

fn out_of_range(ty: Type) -> Error {
    Error::new(SqlState::NUMERIC_OUT_OF_RANGE, format!("{} out of range", ty.name()))
}

/// Between types of numbers.
fn number(datum: &Datum, ty: Type) -> Result<Datum> {
    let whole = match datum {
        Datum::Int2(value) => Some(i64::from(*value)),
        Datum::Int4(value) => Some(i64::from(*value)),
        Datum::Int8(value) => Some(*value),
        _ => None,
    };
    if let Some(value) = whole {
        return match ty {
            Type::Int2 => i16::try_from(value).map(Datum::Int2).map_err(|_| out_of_range(ty)),
            Type::Int4 => i32::try_from(value).map(Datum::Int4).map_err(|_| out_of_range(ty)),
            Type::Int8 => Ok(Datum::Int8(value)),
            Type::Float4 => Ok(Datum::Float4(value as f32)),
            Type::Float8 => Ok(Datum::Float8(value as f64)),
            _ => Ok(Datum::Numeric(Numeric::from(value))),
        };
    }
    match datum {
        Datum::Float4(value) if ty == Type::Numeric => {
            Numeric::from_f32(*value).map(Datum::Numeric)
        }
        Datum::Float4(value) => from_float(f64::from(*value), ty),
        Datum::Float8(value) => from_float(*value, ty),
        Datum::Numeric(value) => match ty {
            Type::Int2 => value.to_i16().map(Datum::Int2),
            Type::Int4 => value.to_i32().map(Datum::Int4),
            Type::Int8 => value.to_i64().map(Datum::Int8),
            Type::Numeric => Ok(Datum::Numeric(value.clone())),
            Type::Float4 if value.is_finite() => {
                float::parse_f32(&value.to_string()).map(Datum::Float4)
            }
            Type::Float4 => Ok(Datum::Float4(value.to_f64()? as f32)),
            _ => value.to_f64().map(Datum::Float8),
        },
        _ => Err(impossible(datum, ty)),
    }
}

fn from_float(value: f64, ty: Type) -> Result<Datum> {
    let rounded = value.round_ties_even();
    let within = |low: f64, end: f64| rounded >= low && rounded < end;
    match ty {
        Type::Int2 if within(-32_768.0, 32_768.0) => Ok(Datum::Int2(rounded as i16)),
        Type::Int4 if within(-2_147_483_648.0, 2_147_483_648.0) => Ok(Datum::Int4(rounded as i32)),
        Type::Int8 if within(-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0) => {
            Ok(Datum::Int8(rounded as i64))
        }
        Type::Numeric => Numeric::from_f64(value).map(Datum::Numeric),
        Type::Float8 => Ok(Datum::Float8(value)),
        Type::Float4 => {
            let narrowed = value as f32;
            let lost = narrowed == 0.0 && value != 0.0;
            if (narrowed.is_infinite() && value.is_finite()) || lost {
                return Err(out_of_range(ty));
            }
            Ok(Datum::Float4(narrowed))
        }
        _ => Err(out_of_range(ty)),
    }
}
