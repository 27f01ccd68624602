//! Floating point: PostgreSQL's order, and its shortest text, both ways.
//!
//! Values are kept as bits. The order has -0 equal to 0 and one NaN above all.

use crate::{Error, Result, SqlState};
use std::cmp::Ordering;

/// PostgreSQL's order: -0 is 0, NaN is equal to itself and above all.
pub fn compare(left: f64, right: f64) -> Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
        (left, right) => left.cmp(&right),
    }
}

/// The shortest text that reads back as the value.
pub fn print_f64(value: f64) -> String {
    print(value, format!("{value:e}"), 15)
}

/// The same of a `real`.
pub fn print_f32(value: f32) -> String {
    print(f64::from(value), format!("{value:e}"), 6)
}

/// Rewrites Rust's `1.5e-7` as PostgreSQL shows it: without exponent from 10^-4 up to
/// 10^`fixed_max`.
fn print(value: f64, shortest: String, fixed_max: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    if !(-4..fixed_max).contains(&exponent) {
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{direction}{:02}", exponent.abs());
    }
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let point = exponent + 1;
    if point <= 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(-point as usize));
    }
    let point = point as usize;
    if digits.len() <= point {
        return format!("{sign}{digits}{}", "0".repeat(point - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..point], &digits[point..])
}

/// Reads a `double precision`.
pub fn parse_f64(text: &str) -> Result<f64> {
    let (number, special) = prepare(text, "double precision")?;
    if let Some(special) = special {
        return Ok(special);
    }
    let value: f64 = number.parse().map_err(|_| invalid(text, "double precision"))?;
    check_range(value.is_infinite(), value == 0.0, number, "double precision")?;
    Ok(value)
}

/// Reads a `real`.
pub fn parse_f32(text: &str) -> Result<f32> {
    let (number, special) = prepare(text, "real")?;
    if let Some(special) = special {
        return Ok(special as f32);
    }
    let value: f32 = number.parse().map_err(|_| invalid(text, "real"))?;
    check_range(value.is_infinite(), value == 0.0, number, "real")?;
    Ok(value)
}

fn invalid(text: &str, name: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type {name}: \"{text}\""))
}

/// The text without blanks around, and its value if it names one that is no number. Only digits,
/// signs, point and exponent are left for the parser of the standard library.
fn prepare<'a>(text: &'a str, name: &str) -> Result<(&'a str, Option<f64>)> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let special = match trimmed.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "infinity" | "+infinity" | "inf" | "+inf" => Some(f64::INFINITY),
        "-infinity" | "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    };
    let plain =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    if special.is_none() && (trimmed.is_empty() || !trimmed.bytes().all(plain)) {
        return Err(invalid(text, name));
    }
    Ok((trimmed, special))
}

/// Refuses what is too large, and what is not zero but was read as zero.
fn check_range(infinite: bool, zero: bool, number: &str, name: &str) -> Result<()> {
    let mantissa = number.split(['e', 'E']).next().unwrap_or("");
    let lost = zero && mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if infinite || lost {
        return Err(Error::new(
            SqlState::NUMERIC_OUT_OF_RANGE,
            format!("\"{number}\" is out of range for type {name}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_postgresqls() {
        let check = |value: f64, text: &str| {
            assert_eq!(print_f64(value), text);
            assert_eq!(parse_f64(text).unwrap().to_bits(), value.to_bits(), "{text}");
        };
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.0, "1");
        check(0.1, "0.1");
        check(0.0001, "0.0001");
        check(0.00001, "1e-05");
        check(100000000000000.0, "100000000000000");
        check(1e15, "1e+15");
        check(1.234e-120, "1.234e-120");
        check(-123456.789, "-123456.789");
        check(f64::INFINITY, "Infinity");
        assert_eq!(print_f32(1e6), "1e+06");
        assert_eq!(print_f32(100000.0), "100000");
        assert_eq!(print_f32(0.1), "0.1");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, state) in [
            ("1e400", SqlState::NUMERIC_OUT_OF_RANGE),
            ("1e-400", SqlState::NUMERIC_OUT_OF_RANGE),
            ("", SqlState::INVALID_TEXT),
            ("1.5x", SqlState::INVALID_TEXT),
            ("infinit", SqlState::INVALID_TEXT),
        ] {
            assert_eq!(parse_f64(text).unwrap_err().state(), state, "{text}");
        }
        assert_eq!(parse_f32("1e39").unwrap_err().state(), SqlState::NUMERIC_OUT_OF_RANGE);
        assert_eq!(parse_f64(" 0e-999 ").unwrap(), 0.0);
    }
}
