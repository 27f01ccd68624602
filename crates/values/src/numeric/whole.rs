//! Factorials, common divisors and multiples, and the digits behind the point.

use super::number::{Numeric, overflow, power_of_ten};
use crate::{Error, Result, SqlState};
use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

/// The largest number whose factorial has at most as many digits as a number may have.
const FACTORIAL_MAX: i64 = 449;

/// The largest number that divides both, of numbers that are not negative.
fn divisor_of(mut left: BigInt, mut right: BigInt) -> BigInt {
    while !right.is_zero() {
        let rest = left % &right;
        (left, right) = (right, rest);
    }
    left
}

impl Numeric {
    /// The factorial.
    pub fn factorial(number: i64) -> Result<Numeric> {
        if number < 0 {
            let message = "factorial of a negative number is undefined";
            return Err(Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
        }
        if number > FACTORIAL_MAX {
            return Err(overflow());
        }
        let product = (2..=number).fold(BigInt::one(), |product, factor| product * factor);
        Numeric::from_big(product, 0)
    }

    /// The largest number that divides both.
    pub fn greatest_divisor(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NAN);
        }
        let (left, right, scale) = self.aligned_big(other);
        Numeric::from_big(divisor_of(left.abs(), right.abs()), scale)
    }

    /// The smallest number that both divide.
    pub fn least_multiple(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NAN);
        }
        let (left, right, scale) = self.aligned_big(other);
        if left.is_zero() || right.is_zero() {
            return Numeric::from_units(0, scale);
        }
        let divisor = divisor_of(left.abs(), right.abs());
        Numeric::from_big((left / divisor * right).abs(), scale)
    }

    /// The square root, rounded to a scale.
    pub fn sqrt_scaled(&self, scale: u16) -> Result<Numeric> {
        let up = 2 * (usize::from(scale) + 1);
        let radicand = self.units_big() * power_of_ten(up) / power_of_ten(self.scale().into());
        Numeric::from_big((radicand.sqrt() + 5) / 10, scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_factorial_is_the_last_one() {
        assert!(Numeric::factorial(FACTORIAL_MAX).is_ok());
        let next = Numeric::factorial(FACTORIAL_MAX).unwrap();
        assert!(next.multiply(&Numeric::from(FACTORIAL_MAX + 1)).is_err());
        assert!(Numeric::factorial(FACTORIAL_MAX + 1).is_err());
    }
}
