//! The text of a number, both ways.

use super::number::{DIGITS_MAX, Numeric, Repr, SCALE_MAX, overflow};
use crate::{Error, Result, SqlState};
use num_bigint::BigInt;
use std::fmt;
use std::str::FromStr;

/// A larger exponent than any number that fits can have.
const EXPONENT_MAX: i64 = 100_000;

fn invalid(text: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type numeric: \"{text}\""))
}

impl FromStr for Numeric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Numeric> {
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        if let Some(special) = special(trimmed) {
            return Ok(special);
        }
        let (negative, rest) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], exponent(&rest[at + 1..]).ok_or_else(|| invalid(text))?),
            None => (rest, 0),
        };
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && part.is_empty()) || !all_digits(whole) || !all_digits(part) {
            return Err(invalid(text));
        }
        from_digits(negative, whole, part, exponent)
    }
}

/// NaN and the infinities, in any case.
fn special(text: &str) -> Option<Numeric> {
    match text.to_ascii_lowercase().as_str() {
        "nan" => Some(Numeric::NAN),
        "infinity" | "+infinity" | "inf" | "+inf" => Some(Numeric::INFINITY),
        "-infinity" | "-inf" => Some(Numeric::NEGATIVE_INFINITY),
        _ => None,
    }
}

/// The number after an `e`.
fn exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse::<i64>().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX);
    Some(if text.starts_with('-') { -value } else { value })
}

fn from_digits(negative: bool, whole: &str, part: &str, exponent: i64) -> Result<Numeric> {
    let whole = whole.trim_start_matches('0');
    let scale = part.len() as i64 - exponent;
    let digits = whole.len() + part.len();
    if let (Ok(small_scale), true) = (u16::try_from(scale), digits <= 38) {
        let units = whole.bytes().chain(part.bytes());
        let units = units.fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        return Numeric::from_units(if negative { -units } else { units }, small_scale);
    }
    let all = format!("{whole}{part}");
    let all = all.trim_start_matches('0');
    if all.len() > 2 * DIGITS_MAX || scale > 2 * i64::from(SCALE_MAX) {
        return Err(overflow());
    }
    let mut units = BigInt::parse_bytes(all.as_bytes(), 10).unwrap_or_default();
    if negative {
        units = -units;
    }
    if scale < 0 {
        let zero = all.is_empty();
        if !zero && all.len() as i64 - scale > DIGITS_MAX as i64 {
            return Err(overflow());
        }
        let power = if zero { 0 } else { -scale as usize };
        return Numeric::from_big(units * super::number::power_of_ten(power), 0);
    }
    let scale = u16::try_from(scale).map_err(|_| overflow())?;
    Numeric::from_big(units, scale)
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, scale) = match &self.0 {
            Repr::NaN => return f.write_str("NaN"),
            Repr::Infinity => return f.write_str("Infinity"),
            Repr::NegativeInfinity => return f.write_str("-Infinity"),
            Repr::Small(units, scale) => (units.unsigned_abs().to_string(), usize::from(*scale)),
            Repr::Big(units, scale) => (units.magnitude().to_string(), usize::from(*scale)),
        };
        if self.signum() < 0 {
            f.write_str("-")?;
        }
        if scale == 0 {
            return f.write_str(&digits);
        }
        match digits.len().checked_sub(scale) {
            Some(point) if point > 0 => write!(f, "{}.{}", &digits[..point], &digits[point..]),
            _ => write!(f, "0.{digits:0>scale$}"),
        }
    }
}
