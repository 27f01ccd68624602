//! A number as digits to a base that is a power of ten, aligned at the decimal point: what
//! PostgreSQL's binary form has to base 10,000, and the bytes of keys to base 100.

use super::number::{Numeric, SCALE_MAX, digits_count, magnitude, overflow, power_of_ten};
use crate::Result;
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::Zero;

/// Digits to base 10^`width`, the most significant first, without zeros at either end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digits {
    /// Whether the number is below zero.
    pub negative: bool,
    /// The power of the base that the first digit counts.
    pub weight: i64,
    /// The digits.
    pub digits: Vec<u16>,
}

/// The most groups that a number can have: what is longer is refused before it is computed.
const GROUPS_MAX: usize = 1_024;

impl Digits {
    /// The digits of a finite number to base 10^`width` (2 or 4); `None` of what is no number.
    pub fn of(number: &Numeric, width: usize) -> Option<Digits> {
        assert!(width == 2 || width == 4, "a group of digits fits 16 bits");
        let (units, scale) = number.to_big()?;
        // Zeros after the last digit make the point fall between two groups.
        let pad = (width - usize::from(scale) % width) % width;
        let groups_after = ((usize::from(scale) + pad) / width) as i64;
        let padded = magnitude(&units) * power_of_ten(pad);
        let decimal = padded.magnitude().to_radix_be(10);
        let mut digits = Vec::with_capacity(decimal.len() / width + 1);
        if !padded.is_zero() {
            let head = decimal.len() % width;
            let (first, rest) = decimal.split_at(head);
            let group =
                |part: &[u8]| part.iter().fold(0_u16, |sum, digit| sum * 10 + u16::from(*digit));
            if !first.is_empty() {
                digits.push(group(first));
            }
            digits.extend(rest.chunks(width).map(group));
        }
        let weight = digits.len() as i64 - 1 - groups_after;
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let weight = if digits.is_empty() { 0 } else { weight };
        Some(Digits { negative: units.sign() == Sign::Minus, weight, digits })
    }

    /// The number that these digits are, with `scale` digits after the point; digits beyond are
    /// cut.
    pub fn to_numeric(&self, width: usize, scale: u16) -> Result<Numeric> {
        let weight_max = GROUPS_MAX as i64;
        let long = self.digits.len() > GROUPS_MAX || self.weight.abs() > weight_max;
        if scale > SCALE_MAX || long {
            return Err(overflow());
        }
        let base = 10_u32.pow(width as u32);
        let units = self.digits.iter().fold(BigUint::zero(), |sum, digit| sum * base + *digit);
        // The last digit counts base^(weight - len + 1).
        let exponent =
            (self.weight - self.digits.len() as i64 + 1) * width as i64 + i64::from(scale);
        let units = BigInt::from(units);
        let units = if exponent >= 0 {
            units * power_of_ten(exponent as usize)
        } else {
            units / power_of_ten(-exponent as usize)
        };
        Numeric::from_big(if self.negative { -units } else { units }, scale)
    }
}

/// Weight and value of the first group of four digits: what PostgreSQL chooses scales by. Zero has
/// 0, 0.
pub(super) fn leading_group(number: &Numeric) -> (i64, u32) {
    let Some((units, scale)) = number.to_big() else { return (0, 0) };
    let count = digits_count(&units) as i64;
    if count == 0 {
        return (0, 0);
    }
    let exponent = count - i64::from(scale) - 1; // of the first decimal digit
    let weight = exponent.div_euclid(4);
    let kept = exponent - weight * 4 + 1; // decimal digits of the first group
    let units = magnitude(&units);
    let group = if count >= kept {
        units / power_of_ten((count - kept) as usize)
    } else {
        units * power_of_ten((kept - count) as usize)
    };
    (weight, u32::try_from(&group).unwrap_or(u32::MAX))
}

/// Weight and value of the first group of four digits, and how many groups there are; 0, 0, 0 of
/// zero.
pub(super) fn leading_groups(number: &Numeric) -> (i64, u32, usize) {
    let groups = Digits::of(number, 4).map_or(0, |digits| digits.digits.len());
    let (weight, first) = leading_group(number);
    (weight, first, groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_aligned_at_the_point() {
        let check = |text: &str, width: usize, weight: i64, digits: &[u16]| {
            let number: Numeric = text.parse().unwrap();
            let found = Digits::of(&number, width).unwrap();
            assert_eq!((found.weight, found.digits.as_slice()), (weight, digits), "{text}");
            assert_eq!(found.to_numeric(width, number.scale()).unwrap().to_string(), text);
        };
        check("12345.678", 4, 1, &[1, 2345, 6780]);
        check("0.00012", 4, -1, &[1, 2000]);
        check("0.000012", 4, -2, &[1200]);
        check("-100", 2, 1, &[1]);
        check("0.00", 2, 0, &[]);
        check("1000000", 2, 3, &[1]);
    }

    #[test]
    fn the_longest_digits_are_read_or_refused() {
        for (weight, count, scale) in [
            (1_024, 1_024, SCALE_MAX),
            (1_024, 1, SCALE_MAX),
            (-1_024, 1_024, SCALE_MAX),
            (-1_024, 1_024, 0),
            (-1_024, 1, SCALE_MAX),
        ] {
            let digits = Digits { negative: false, weight, digits: vec![9_999; count] };
            let read = digits.to_numeric(4, scale);
            assert_eq!(read.is_ok(), weight < 0, "{weight} {count} {scale}");
        }
    }

    #[test]
    fn the_first_group_is_postgresqls() {
        let check =
            |text: &str, expected| assert_eq!(leading_group(&text.parse().unwrap()), expected);
        check("1", (0, 1));
        check("3", (0, 3));
        check("12345", (1, 1));
        check("0.5", (-1, 5000));
        check("0.00001234", (-2, 1234));
        check("0", (0, 0));
    }
}
