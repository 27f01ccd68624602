//! Functions of numbers: each of `double precision`, `numeric` or whole numbers.

use super::floats;
use crate::ir::MathFunction;
use std::cmp::Ordering;
use values::{Datum, Error, Numeric, Result, SqlState};

/// The result; `None` if the function does not take these types.
pub(super) fn call(function: MathFunction, arguments: &[Datum]) -> Option<Result<Datum>> {
    Some(match arguments {
        [Datum::Float8(value)] => floats::of_one(function, *value)?.map(Datum::Float8),
        [Datum::Float8(left), Datum::Float8(right)] => {
            floats::of_two(function, *left, *right)?.map(Datum::Float8)
        }
        [Datum::Numeric(value)] => return exact(function, value),
        [Datum::Numeric(left), Datum::Numeric(right)] => {
            exact_of_two(function, left, right)?.map(Datum::Numeric)
        }
        [Datum::Int8(value)] if function == MathFunction::Factorial => {
            Numeric::factorial(*value).map(Datum::Numeric)
        }
        [Datum::Int4(left), Datum::Int4(right)] => {
            let (left, right) = (i64::from(*left), i64::from(*right));
            let result = whole(function, left, right)?;
            result
                .and_then(|value| i32::try_from(value).map_err(|_| out_of_range("integer")))
                .map(Datum::Int4)
        }
        [Datum::Int8(left), Datum::Int8(right)] => whole(function, *left, *right)?.map(Datum::Int8),
        [Datum::Float8(value), Datum::Float8(low), Datum::Float8(high), Datum::Int4(count)] => {
            floats::bucket(*value, *low, *high, *count).map(Datum::Int4)
        }
        [Datum::Numeric(value), Datum::Numeric(low), Datum::Numeric(high), Datum::Int4(count)] => {
            bucket(value, low, high, *count).map(Datum::Int4)
        }
        [value, Datum::Array(bounds)] if function == MathFunction::BucketOfBounds => {
            bucket_of(value, bounds.items())
        }
        _ => return None,
    })
}

fn out_of_range(name: &str) -> Error {
    Error::new(SqlState::NUMERIC_OUT_OF_RANGE, format!("{name} out of range"))
}

/// Functions of one `numeric`.
fn exact(function: MathFunction, value: &Numeric) -> Option<Result<Datum>> {
    let scale = |value: &Numeric| match value.is_finite() {
        true => Datum::Int4(i32::from(value.scale())),
        false => Datum::Null,
    };
    Some(match function {
        MathFunction::Exp => value.exp().map(Datum::Numeric),
        MathFunction::Ln => value.ln().map(Datum::Numeric),
        MathFunction::Log10 => Numeric::from(10).logarithm(value).map(Datum::Numeric),
        MathFunction::Scale => Ok(scale(value)),
        MathFunction::MinScale => Ok(scale(&value.trimmed())),
        MathFunction::TrimScale => Ok(Datum::Numeric(value.trimmed())),
        _ => return None,
    })
}

fn exact_of_two(
    function: MathFunction,
    left: &Numeric,
    right: &Numeric,
) -> Option<Result<Numeric>> {
    Some(match function {
        MathFunction::Log => left.logarithm(right),
        MathFunction::Power => left.raised(right),
        MathFunction::GreatestDivisor => left.greatest_divisor(right),
        MathFunction::LeastMultiple => left.least_multiple(right),
        _ => return None,
    })
}

/// Divisors and multiples of whole numbers.
fn whole(function: MathFunction, left: i64, right: i64) -> Option<Result<i64>> {
    let divisor = divisor_of(left.unsigned_abs(), right.unsigned_abs());
    let name = "bigint";
    Some(match function {
        MathFunction::GreatestDivisor => i64::try_from(divisor).map_err(|_| out_of_range(name)),
        MathFunction::LeastMultiple if left == 0 || right == 0 => Ok(0),
        MathFunction::LeastMultiple => {
            let product = (left.unsigned_abs() / divisor).checked_mul(right.unsigned_abs());
            let product = product.and_then(|product| i64::try_from(product).ok());
            product.ok_or_else(|| out_of_range(name))
        }
        _ => return None,
    })
}

fn divisor_of(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// The number of the bucket with a value, of so many of equal widths.
fn bucket(value: &Numeric, low: &Numeric, high: &Numeric, count: i32) -> Result<i32> {
    let refused = |message: &str| Err(Error::new(SqlState::INVALID_BUCKETS, message.to_owned()));
    if count <= 0 {
        return refused("count must be greater than zero");
    }
    if [value, low, high].iter().any(|number| number.is_nan()) {
        return refused("operand, lower bound, and upper bound cannot be NaN");
    }
    if !low.is_finite() || !high.is_finite() {
        return refused("lower and upper bounds must be finite");
    }
    let order = low.cmp(high);
    let (below, beyond) = match order {
        Ordering::Equal => return refused("lower bound cannot equal upper bound"),
        Ordering::Less => (value < low, value >= high),
        Ordering::Greater => (value > low, value <= high),
    };
    if below {
        return Ok(0);
    }
    if beyond {
        return count.checked_add(1).ok_or_else(|| out_of_range("integer"));
    }
    let counted = Numeric::from(i64::from(count)).multiply(&value.subtract(low)?)?;
    let place = counted.divide_truncated(&high.subtract(low)?)?.to_i32()?;
    Ok(place.min(count - 1) + 1)
}

/// The count of sorted bounds that are not above a value.
fn bucket_of(value: &Datum, bounds: &[Datum]) -> Result<Datum> {
    if bounds.iter().any(Datum::is_null) {
        let message = "thresholds array must not contain NULLs";
        return Err(Error::new(SqlState::NULL_NOT_ALLOWED, message));
    }
    let count = bounds.partition_point(|bound| bound.compare(value).is_le());
    Ok(Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX)))
}
