//! Numbers, dates and intervals: nothing wraps, what does not fit is an error.

use crate::ir::Function;
use values::{Datum, Error, Numeric, Result, SqlState, Timestamp, Zone};

/// Digits behind the point that powers have at least.
const POWER_DIGITS: u16 = 16;

fn out_of_range(name: &str) -> Error {
    Error::new(SqlState::NUMERIC_OUT_OF_RANGE, format!("{name} out of range"))
}

fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// The result, if the function is one of numbers or times and takes these types.
pub(super) fn call(function: Function, arguments: &[Datum], zone: &Zone) -> Option<Result<Datum>> {
    if let Some(result) = shifted(function, arguments) {
        return Some(Ok(result));
    }
    Some(match arguments {
        [Datum::Int2(left), Datum::Int2(right)] => {
            integers(function, i64::from(*left), i64::from(*right), "smallint")?
                .and_then(|value| narrow(value, "smallint").map(Datum::Int2))
        }
        [Datum::Int4(left), Datum::Int4(right)] if function != Function::Round => {
            integers(function, i64::from(*left), i64::from(*right), "integer")?
                .and_then(|value| narrow(value, "integer").map(Datum::Int4))
        }
        [Datum::Int8(left), Datum::Int8(right)] => {
            integers(function, *left, *right, "bigint")?.map(Datum::Int8)
        }
        [Datum::Float8(left), Datum::Float8(right)] => {
            floats(function, *left, *right)?.map(Datum::Float8)
        }
        [Datum::Float4(left), Datum::Float4(right)] => {
            floats(function, f64::from(*left), f64::from(*right))?.and_then(narrow_float)
        }
        [Datum::Numeric(left), Datum::Numeric(right)] => {
            numerics(function, left, right)?.map(Datum::Numeric)
        }
        [Datum::Numeric(value), Datum::Int4(digits)] => match function {
            Function::Round => value.round(*digits).map(Datum::Numeric),
            Function::Truncate => value.truncate(*digits).map(Datum::Numeric),
            _ => return None,
        },
        [_, _] => return times(function, arguments, zone),
        [value] => return one(function, value),
        _ => return None,
    })
}

/// Bits moved, as far as there are others in their place.
fn shifted(function: Function, arguments: &[Datum]) -> Option<Datum> {
    let is_left = function == Function::ShiftLeft;
    if !is_left && function != Function::ShiftRight {
        return None;
    }
    let [value, Datum::Int4(count)] = arguments else { return None };
    let count = *count as u32;
    Some(match value {
        Datum::Int2(value) => {
            let value = i32::from(*value);
            let moved = if is_left { value.wrapping_shl(count) } else { value.wrapping_shr(count) };
            Datum::Int2(moved as i16)
        }
        Datum::Int4(value) if is_left => Datum::Int4(value.wrapping_shl(count)),
        Datum::Int4(value) => Datum::Int4(value.wrapping_shr(count)),
        Datum::Int8(value) if is_left => Datum::Int8(value.wrapping_shl(count)),
        Datum::Int8(value) => Datum::Int8(value.wrapping_shr(count)),
        _ => return None,
    })
}

fn narrow<T: TryFrom<i64>>(value: i64, name: &str) -> Result<T> {
    T::try_from(value).map_err(|_| out_of_range(name))
}

fn narrow_float(value: f64) -> Result<Datum> {
    let narrowed = value as f32;
    if narrowed.is_infinite() && value.is_finite() {
        return Err(Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "value out of range: overflow"));
    }
    Ok(Datum::Float4(narrowed))
}

fn integers(function: Function, left: i64, right: i64, name: &str) -> Option<Result<i64>> {
    let divide = matches!(function, Function::Divide | Function::Modulo);
    if divide && right == 0 {
        return Some(Err(division_by_zero()));
    }
    let result = match function {
        Function::Add => left.checked_add(right),
        Function::Subtract => left.checked_sub(right),
        Function::Multiply => left.checked_mul(right),
        Function::Divide => left.checked_div(right),
        // The only overflow, of the smallest number by -1, has no remainder.
        Function::Modulo => Some(left.checked_rem(right).unwrap_or(0)),
        Function::BitAnd => Some(left & right),
        Function::BitOr => Some(left | right),
        Function::BitXor => Some(left ^ right),
        _ => return None,
    };
    Some(result.ok_or_else(|| out_of_range(name)))
}

fn floats(function: Function, left: f64, right: f64) -> Option<Result<f64>> {
    let result = match function {
        Function::Add => left + right,
        Function::Subtract => left - right,
        Function::Multiply => left * right,
        Function::Divide if right == 0.0 && !left.is_nan() => return Some(Err(division_by_zero())),
        Function::Divide => left / right,
        _ => return None,
    };
    let overflow = result.is_infinite() && left.is_finite() && right.is_finite();
    let lost = result == 0.0
        && left != 0.0
        && match function {
            Function::Multiply => right != 0.0,
            Function::Divide => right.is_finite(),
            _ => false,
        };
    Some(match (overflow, lost) {
        (true, _) => {
            Err(Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "value out of range: overflow"))
        }
        (_, true) => {
            Err(Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "value out of range: underflow"))
        }
        _ => Ok(result),
    })
}

fn numerics(function: Function, left: &Numeric, right: &Numeric) -> Option<Result<Numeric>> {
    Some(match function {
        Function::Add => left.add(right),
        Function::Subtract => left.subtract(right),
        Function::Multiply => left.multiply(right),
        Function::Divide => left.divide(right),
        Function::Modulo => left.remainder(right),
        Function::DivideWhole => left.divide_truncated(right),
        Function::PowerRounded => numerics(Function::Power, left, right)?
            .and_then(|power| power.round(i32::from(left.scale().max(POWER_DIGITS)))),
        Function::Power => match right.to_i32() {
            Ok(exponent) if Numeric::from(i64::from(exponent)) == *right => left.power(exponent),
            _ => Err(Error::unsupported("power of numeric with a fraction as exponent", "")),
        },
        _ => return None,
    })
}

/// Functions of one argument.
fn one(function: Function, value: &Datum) -> Option<Result<Datum>> {
    let whole = |value: i64, name: &str| match function {
        Function::Negate => Some(value.checked_neg().ok_or_else(|| out_of_range(name))),
        Function::Abs => Some(value.checked_abs().ok_or_else(|| out_of_range(name))),
        Function::BitNot => Some(Ok(!value)),
        _ => None,
    };
    Some(match value {
        Datum::Int2(value) => whole(i64::from(*value), "smallint")?
            .and_then(|value| narrow(value, "smallint").map(Datum::Int2)),
        Datum::Int4(value) => whole(i64::from(*value), "integer")?
            .and_then(|value| narrow(value, "integer").map(Datum::Int4)),
        Datum::Int8(value) => whole(*value, "bigint")?.map(Datum::Int8),
        Datum::Float4(value) => one_float(function, f64::from(*value))?.and_then(narrow_float),
        Datum::Float8(value) => one_float(function, *value)?.map(Datum::Float8),
        Datum::Numeric(value) => match function {
            Function::Negate => Ok(value.negate()),
            Function::Abs => Ok(value.abs()),
            Function::Sign if value.is_nan() => Ok(Numeric::NAN),
            Function::Sign => Ok(Numeric::from(i64::from(value.signum()))),
            Function::Floor => value.floor(),
            Function::Ceiling => value.ceiling(),
            Function::Round => value.round(0),
            Function::Truncate => value.truncate(0),
            Function::SquareRoot => value.sqrt(),
            _ => return None,
        }
        .map(Datum::Numeric),
        Datum::Interval(value) if function == Function::Negate => {
            value.negate().map(Datum::Interval)
        }
        _ => return None,
    })
}

fn one_float(function: Function, value: f64) -> Option<Result<f64>> {
    Some(match function {
        Function::Negate => Ok(-value),
        Function::Abs => Ok(value.abs()),
        // Neither more nor less than zero: -0, and NaN.
        Function::Sign if value == 0.0 || value.is_nan() => Ok(0.0),
        Function::Sign => Ok(value.signum()),
        Function::Floor => Ok(value.floor()),
        Function::Ceiling => Ok(value.ceil()),
        Function::Round => Ok(value.round_ties_even()),
        Function::Truncate => Ok(value.trunc()),
        Function::SquareRoot if value < 0.0 => {
            Err(Error::new(SqlState::INVALID_POWER, "cannot take square root of a negative number"))
        }
        // The square root is correctly rounded on every machine.
        Function::SquareRoot => Ok(value.sqrt()),
        _ => return None,
    })
}

/// Sums and differences of dates, times and intervals. Days of a `timestamptz` are those of the
/// zone.
fn times(function: Function, arguments: &[Datum], zone: &Zone) -> Option<Result<Datum>> {
    let negative = match function {
        Function::Add => false,
        Function::Subtract => true,
        _ => return None,
    };
    let since = |left: &Timestamp, right: &Timestamp| left.since(*right).map(Datum::Interval);
    Some(match (arguments.first()?, arguments.get(1)?) {
        (Datum::Date(left), Datum::Date(right)) if negative => {
            left.days_since(*right).map(Datum::Int4)
        }
        (Datum::Date(date), Datum::Int4(days)) => {
            let days = i64::from(*days);
            date.add_days(if negative { -days } else { days }).map(Datum::Date)
        }
        (Datum::Timestamp(left), Datum::Timestamp(right))
        | (Datum::Timestamptz(left), Datum::Timestamptz(right))
            if negative =>
        {
            since(left, right)
        }
        (Datum::Time(left), Datum::Time(right)) if negative => {
            Ok(Datum::Interval(left.since(*right)))
        }
        (Datum::Time(time), Datum::Interval(interval)) => {
            let interval = if negative { interval.negate() } else { Ok(*interval) };
            interval.map(|interval| Datum::Time(time.add_interval(interval)))
        }
        (Datum::Timestamp(at), Datum::Interval(interval)) => {
            let interval = if negative { interval.negate() } else { Ok(*interval) };
            interval.and_then(|interval| at.add_interval(interval)).map(Datum::Timestamp)
        }
        (Datum::Timestamptz(at), Datum::Interval(interval)) => {
            let interval = if negative { interval.negate() } else { Ok(*interval) };
            interval.and_then(|interval| at.add_zoned(interval, zone)).map(Datum::Timestamptz)
        }
        (Datum::Interval(left), Datum::Interval(right)) => {
            let right = if negative { right.negate() } else { Ok(*right) };
            right.and_then(|right| left.add(&right)).map(Datum::Interval)
        }
        _ => return None,
    })
}
