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

/// The shortest text that is nearer to the value than to any other `double precision`.
pub fn print_f64(value: f64) -> String {
    let with = |digits: usize| format!("{value:.digits$e}");
    let is_own = |text: &str| text.parse() == Ok(value);
    let shortest = format!("{value:e}");
    print(value, nearest(value, shortest, f64::MANTISSA_DIGITS, with, is_own), 15)
}

/// The shortest text that is nearer to the value than to any other `real`.
pub fn print_f32(value: f32) -> String {
    let with = |digits: usize| format!("{value:.digits$e}");
    let is_own = |text: &str| text.parse() == Ok(value);
    let (wide, shortest) = (f64::from(value), format!("{value:e}"));
    print(wide, nearest(wide, shortest, f32::MANTISSA_DIGITS, with, is_own), 6)
}

/// The most digits after the first one that tell a number from all others.
const DIGITS_MAX: usize = 16;

/// Corrects `shortest`, Rust's text of `value`, where PostgreSQL has another one. `with` makes the
/// text with a number of digits after the first one; `is_own` is true if a text reads back as the
/// value.
///
/// 1. Halfway between two numbers of `bits` bits: PostgreSQL takes more digits.
/// 2. Two texts of one length, and the value in the middle: PostgreSQL takes the even one.
fn nearest(
    value: f64,
    shortest: String,
    bits: u32,
    with: impl Fn(usize) -> String,
    is_own: impl Fn(&str) -> bool,
) -> String {
    let Some(parts) = Digits::of(&shortest) else { return shortest };
    let is_right = |text: &String| {
        is_own(text) && !Digits::of(text).is_some_and(|parts| parts.is_halfway(bits))
    };
    if parts.is_halfway(bits) {
        return (1..=DIGITS_MAX).map(with).find(is_right).unwrap_or(shortest);
    }
    // One digit more, a 5, makes the value itself. That has as many fraction digits as bits.
    if fraction_bits(value) != parts.fraction + 1 {
        return shortest;
    }
    Some(with(parts.count - 1)).filter(is_right).unwrap_or(shortest)
}

/// The digits of a text like `1.5e22`.
struct Digits {
    /// All digits as one integer.
    whole: u64,
    /// The number of digits.
    count: usize,
    /// The number of digits after the decimal point; below zero, of zeros before it.
    fraction: i32,
}

impl Digits {
    /// The digits of `text`; `None` for zero and for what is no finite number.
    fn of(text: &str) -> Option<Digits> {
        let (mantissa, exponent) = text.split_once('e')?;
        let mantissa = mantissa.trim_start_matches('-');
        let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = [first, rest].concat().parse().ok().filter(|whole| *whole != 0)?;
        let fraction = rest.len() as i32 - exponent.parse::<i32>().ok()?;
        Some(Digits { whole, count: first.len() + rest.len(), fraction })
    }

    /// True if the number is halfway between two numbers of `bits` bits: it has one bit more. With
    /// a fraction it is not, as the numbers around have no more digits.
    fn is_halfway(&self, bits: u32) -> bool {
        // 5^27 is the greatest power below 2^64: more zeros make more bits than any number has.
        if !(-27..=0).contains(&self.fraction) {
            return false;
        }
        let odd = u128::from(self.whole >> self.whole.trailing_zeros());
        (odd * 5_u128.pow(self.fraction.unsigned_abs())).ilog2() == bits
    }
}

/// The number of binary digits after the point; below zero, of zeros before it.
fn fraction_bits(value: f64) -> i32 {
    let (bits, stored) = (value.to_bits(), f64::MANTISSA_DIGITS - 1);
    let exponent = (bits >> stored & 0x7ff) as i32;
    let hidden = if exponent == 0 { 0 } else { 1 << stored };
    let mantissa = bits & ((1 << stored) - 1) | hidden;
    // A number without hidden bit has the exponent of the smallest numbers with one.
    1_075 - exponent.max(1) - mantissa.trailing_zeros() as i32
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

    /// Reads a text and shows the number as `double precision`.
    fn shown(text: &str) -> String {
        print_f64(text.parse().unwrap())
    }

    /// Reads a text and shows the number as `real`.
    fn shown_short(text: &str) -> String {
        print_f32(text.parse().unwrap())
    }

    #[test]
    fn texts_halfway_between_two_numbers_are_of_neither() {
        assert_eq!(shown("1e23"), "9.999999999999999e+22");
        assert_eq!(shown("-1e23"), "-9.999999999999999e+22");
        assert_eq!(shown("1e22"), "1e+22");
        assert_eq!(shown("5e22"), "4.9999999999999996e+22");
        assert_eq!(shown("9007199254740993"), "9.007199254740992e+15");
        assert_eq!(shown_short("8589973504"), "8.589974e+09");
    }

    #[test]
    fn of_two_texts_of_one_length_the_even_one_is_taken() {
        assert_eq!(shown_short("3355443.25"), "3.3554432e+06");
        assert_eq!(shown_short("3355443.75"), "3.3554438e+06");
        assert_eq!(shown("562949953421312.25"), "562949953421312.2");
        assert_eq!(shown("-562949953421312.75"), "-562949953421312.8");
    }

    #[test]
    fn texts_read_back_as_the_value() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..200_000_u32 {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            // Few digits, many zeros, and any bits.
            let value = match round % 4 {
                0 => f64::from_bits(bits),
                1 => (bits % 1_000) as f64 * 10_f64.powi((bits >> 32) as i32 % 30),
                2 => (bits >> 10) as f64 / 8.0,
                _ => (bits >> 2) as f64 * 1e3,
            };
            if value.is_finite() {
                assert_eq!(print_f64(value).parse(), Ok(value), "{value:e}");
                let short = value as f32;
                assert!(short.is_infinite() || print_f32(short).parse() == Ok(short), "{short:e}");
            }
        }
    }

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
