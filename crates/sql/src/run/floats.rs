//! Functions of `double precision`, by crate `libm`: the same bits on every machine. The limits are
//! PostgreSQL's.

use super::double;
use crate::ir::MathFunction;
use values::{Error, Result, SqlState};

/// The radians of a degree.
const RADIANS: f64 = 0.017_453_292_519_943_295;

fn range(message: &str) -> Error {
    Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message.to_owned())
}

fn no_input() -> Error {
    range("input is out of range")
}

/// A result that is neither too large nor too small.
fn checked(value: f64, is_exact_zero: bool) -> Result<f64> {
    if value.is_infinite() {
        return Err(range("value out of range: overflow"));
    }
    if value == 0.0 && !is_exact_zero {
        return Err(range("value out of range: underflow"));
    }
    Ok(value)
}

/// The value, if the input is within these.
fn within(value: f64, low: f64, high: f64) -> Result<f64> {
    if value < low || value > high { Err(no_input()) } else { Ok(value) }
}

/// The value, if it is one of an angle.
fn angle(value: f64) -> Result<f64> {
    if value.is_infinite() { Err(no_input()) } else { Ok(value) }
}

/// What a logarithm is of.
fn positive(value: f64) -> Result<f64> {
    let message = match value {
        _ if value == 0.0 => "cannot take logarithm of zero",
        _ if value < 0.0 => "cannot take logarithm of a negative number",
        _ => return Ok(value),
    };
    Err(Error::new(SqlState::INVALID_LOGARITHM, message))
}

/// The result of a function of one number; `None` if it is of several.
pub(super) fn of_one(function: MathFunction, value: f64) -> Option<Result<f64>> {
    use MathFunction as M;
    let infinite = value.is_infinite();
    Some(match function {
        _ if value.is_nan() => Ok(value),
        M::Exp if infinite => Ok(if value > 0.0 { value } else { 0.0 }),
        M::Exp => checked(double::exp(value), false),
        M::Ln | M::Log10 if value == f64::INFINITY => Ok(value),
        M::Ln => positive(value).map(|value| double::ln(value).value()),
        M::Log10 => positive(value).map(double::log10),
        M::CubeRoot if infinite => Ok(value),
        M::CubeRoot => checked(libm::cbrt(value), value == 0.0),
        M::Degrees if infinite => Ok(value),
        M::Degrees => checked(value / RADIANS, value == 0.0),
        M::Radians if infinite => Ok(value),
        M::Radians => checked(value * RADIANS, value == 0.0),
        M::Sin => angle(value).map(libm::sin),
        M::Cos => angle(value).map(libm::cos),
        M::Tan => angle(value).map(libm::tan),
        M::Cot => angle(value).map(|value| 1.0 / libm::tan(value)),
        M::Asin => within(value, -1.0, 1.0).map(libm::asin),
        M::Acos => within(value, -1.0, 1.0).map(libm::acos),
        M::Atan => Ok(libm::atan(value)),
        M::Sinh => Ok(libm::sinh(value)),
        M::Cosh => Ok(libm::cosh(value)),
        M::Tanh => Ok(libm::tanh(value)),
        M::Asinh => Ok(libm::asinh(value)),
        M::Acosh => within(value, 1.0, f64::INFINITY).map(libm::acosh),
        M::Atanh if value == -1.0 => Ok(f64::NEG_INFINITY),
        M::Atanh if value == 1.0 => Ok(f64::INFINITY),
        M::Atanh => within(value, -1.0, 1.0).map(libm::atanh),
        _ => return degrees(function, value),
    })
}

/// The result of a function of degrees.
fn degrees(function: MathFunction, value: f64) -> Option<Result<f64>> {
    use MathFunction as M;
    Some(match function {
        M::AsinInDegrees => within(value, -1.0, 1.0).map(|value| match value >= 0.0 {
            true => quarter_asin(value),
            false => -quarter_asin(-value),
        }),
        M::AcosInDegrees => within(value, -1.0, 1.0).map(|value| match value >= 0.0 {
            true => quarter_acos(value),
            false => 90.0 + quarter_asin(-value),
        }),
        M::AtanInDegrees => Ok(libm::atan(value) / libm::atan(1.0) * 45.0),
        M::SinOfDegrees => angle(value).map(|value| {
            let (rest, is_negative) = folded(value, [true, true, false]);
            if is_negative { -quarter_sin(rest) } else { quarter_sin(rest) }
        }),
        M::CosOfDegrees => angle(value).map(|value| {
            let (rest, is_negative) = folded(value, [false, false, true]);
            if is_negative { -quarter_cos(rest) } else { quarter_cos(rest) }
        }),
        M::TanOfDegrees => angle(value).map(|value| {
            let (rest, is_negative) = folded(value, [true, true, true]);
            let scaled = quarter_sin(rest) / quarter_cos(rest);
            let scaled = scaled / (quarter_sin(45.0) / quarter_cos(45.0));
            signed(scaled, is_negative)
        }),
        M::CotOfDegrees => angle(value).map(|value| {
            let (rest, is_negative) = folded(value, [true, true, true]);
            let scaled = quarter_cos(rest) / quarter_sin(rest);
            let scaled = scaled / (quarter_cos(45.0) / quarter_sin(45.0));
            signed(scaled, is_negative)
        }),
        _ => return None,
    })
}

/// The value with its sign; no zero below zero.
fn signed(value: f64, is_negative: bool) -> f64 {
    let value = if is_negative { -value } else { value };
    if value == 0.0 { 0.0 } else { value }
}

/// Degrees as an angle of 0 to 90, and whether the result changes its sign: where the angle is
/// below 0, beyond 180, and beyond 90, if `turns` says so.
fn folded(value: f64, turns: [bool; 3]) -> (f64, bool) {
    let (mut value, mut is_negative) = (libm::fmod(value, 360.0), false);
    if value < 0.0 {
        value = -value;
        is_negative ^= turns[0];
    }
    if value > 180.0 {
        value = 360.0 - value;
        is_negative ^= turns[1];
    }
    if value > 90.0 {
        value = 180.0 - value;
        is_negative ^= turns[2];
    }
    (value, is_negative)
}

fn quarter_asin(value: f64) -> f64 {
    match value <= 0.5 {
        true => libm::asin(value) / libm::asin(0.5) * 30.0,
        false => 90.0 - libm::acos(value) / libm::acos(0.5) * 60.0,
    }
}

fn quarter_acos(value: f64) -> f64 {
    match value <= 0.5 {
        true => 90.0 - libm::asin(value) / libm::asin(0.5) * 30.0,
        false => libm::acos(value) / libm::acos(0.5) * 60.0,
    }
}

fn sin_to_30(value: f64) -> f64 {
    libm::sin(value * RADIANS) / libm::sin(30.0 * RADIANS) / 2.0
}

fn cos_to_60(value: f64) -> f64 {
    1.0 - (1.0 - libm::cos(value * RADIANS)) / (1.0 - libm::cos(60.0 * RADIANS)) / 2.0
}

fn quarter_sin(value: f64) -> f64 {
    if value <= 30.0 { sin_to_30(value) } else { cos_to_60(90.0 - value) }
}

fn quarter_cos(value: f64) -> f64 {
    if value <= 60.0 { cos_to_60(value) } else { sin_to_30(90.0 - value) }
}

/// The result of a function of two numbers; `None` if it is of another count.
pub(super) fn of_two(function: MathFunction, left: f64, right: f64) -> Option<Result<f64>> {
    Some(match function {
        MathFunction::Power => power(left, right),
        MathFunction::Atan2 => Ok(libm::atan2(left, right)),
        MathFunction::Atan2InDegrees => Ok(libm::atan2(left, right) / libm::atan(1.0) * 45.0),
        _ => return None,
    })
}

fn power(base: f64, exponent: f64) -> Result<f64> {
    if exponent == 0.0 || base == 1.0 {
        return Ok(1.0);
    }
    if base.is_nan() || exponent.is_nan() {
        return Ok(f64::NAN);
    }
    let refused = |message: &str| Err(Error::new(SqlState::INVALID_POWER, message.to_owned()));
    if base == 0.0 && exponent < 0.0 {
        return refused("zero raised to a negative power is undefined");
    }
    if base < 0.0 && exponent.is_finite() && exponent.floor() != exponent {
        return refused("a negative number raised to a non-integer power yields a complex result");
    }
    if base == 0.0 || base.is_infinite() || exponent.is_infinite() {
        return Ok(if base == -1.0 { 1.0 } else { libm::pow(base, exponent) });
    }
    let size = if base.abs() == 1.0 { 1.0 } else { double::power(base.abs(), exponent) };
    let is_negative = base < 0.0 && libm::fmod(exponent, 2.0) != 0.0;
    checked(if is_negative { -size } else { size }, false)
}

/// The number of the bucket with a value, of so many of equal widths.
pub(super) fn bucket(value: f64, low: f64, high: f64, count: i32) -> Result<i32> {
    let refused = |message: &str| Err(Error::new(SqlState::INVALID_BUCKETS, message.to_owned()));
    if count <= 0 {
        return refused("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return refused("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return refused("lower and upper bounds must be finite");
    }
    if low == high {
        return refused("lower bound cannot equal upper bound");
    }
    let (below, beyond) = match low < high {
        true => (value < low, value >= high),
        false => (value > low, value <= high),
    };
    if below {
        return Ok(0);
    }
    if beyond {
        let next = count.checked_add(1);
        return next.ok_or_else(|| range("integer out of range"));
    }
    let mut place = match (high - low).is_infinite() {
        false => f64::from(count) * ((value - low) / (high - low)),
        true => f64::from(count) * ((value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)),
    };
    // The quotient may have been rounded up.
    if place >= f64::from(count) {
        place = f64::from(count - 1);
    }
    Ok(place as i32 + 1)
}
