//! Sums, products, quotients and roundings, with the scales that PostgreSQL gives them.

use super::digits::leading_group;
use super::number::{Numeric, POWERS, Repr, SCALE_MAX, power_of_ten};
use crate::{Error, Result, SqlState};
use num_bigint::BigInt;
use num_traits::Signed;

/// PostgreSQL computes quotients and roots to at least this many digits.
const SIGNIFICANT_MIN: i64 = 16;

fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// The quotient rounded to the nearest integer, halves away from zero.
fn divide_rounded(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let quotient = dividend / divisor;
    let rest = dividend - &quotient * divisor;
    if rest.abs() * 2 < divisor.abs() {
        quotient
    } else if (dividend.is_negative()) == (divisor.is_negative()) {
        quotient + 1
    } else {
        quotient - 1
    }
}

impl Numeric {
    /// The sum; its scale is the larger one.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let Some((left, right, scale)) = self.aligned_small(other)
            && let Some(sum) = left.checked_add(right)
        {
            return Numeric::from_units(sum, scale);
        }
        match (&self.0, &other.0) {
            (Repr::NaN, _) | (_, Repr::NaN) => Ok(Numeric::NAN),
            (Repr::Infinity, Repr::NegativeInfinity) | (Repr::NegativeInfinity, Repr::Infinity) => {
                Ok(Numeric::NAN)
            }
            (Repr::Infinity | Repr::NegativeInfinity, _) => Ok(self.clone()),
            (_, Repr::Infinity | Repr::NegativeInfinity) => Ok(other.clone()),
            _ => {
                let (left, right, scale) = self.aligned_big(other);
                Numeric::from_big(left + right, scale)
            }
        }
    }

    /// The difference; its scale is the larger one.
    pub fn subtract(&self, other: &Numeric) -> Result<Numeric> {
        self.add(&other.negate())
    }

    /// The product; its scale is the sum of both, at most [`SCALE_MAX`].
    pub fn multiply(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            let sign = self.signum() * other.signum();
            return Ok(match (self.is_nan() || other.is_nan(), sign) {
                (true, _) | (_, 0) => Numeric::NAN,
                (_, 1) => Numeric::INFINITY,
                _ => Numeric::NEGATIVE_INFINITY,
            });
        }
        let scale = self.scale() + other.scale();
        if let (Repr::Small(left, _), Repr::Small(right, _)) = (&self.0, &other.0)
            && scale <= SCALE_MAX
            && let Some(product) = left.checked_mul(*right)
        {
            return Numeric::from_units(product, scale);
        }
        let (left, right) = (self.units_big(), other.units_big());
        let mut product = left * right;
        if scale > SCALE_MAX {
            product = divide_rounded(&product, &power_of_ten(usize::from(scale - SCALE_MAX)));
        }
        Numeric::from_big(product, scale.min(SCALE_MAX))
    }

    /// The quotient, to as many digits as PostgreSQL gives: at least 16 that count, and at least
    /// the scales of both.
    pub fn divide(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.divide_special(other)? {
            return Ok(special);
        }
        let (weight, first) = leading_group(self);
        let (other_weight, other_first) = leading_group(other);
        let quotient_weight = weight - other_weight - i64::from(first <= other_first);
        let scale = (SIGNIFICANT_MIN - quotient_weight * 4)
            .max(i64::from(self.scale()))
            .max(i64::from(other.scale()))
            .clamp(0, i64::from(SCALE_MAX));
        // dividend / 10^a over divisor / 10^b, in units of 10^-scale
        let shift = scale + i64::from(other.scale()) - i64::from(self.scale());
        let (mut dividend, mut divisor) = (self.units_big(), other.units_big());
        if shift >= 0 {
            dividend *= power_of_ten(shift as usize);
        } else {
            divisor *= power_of_ten(-shift as usize);
        }
        Numeric::from_big(divide_rounded(&dividend, &divisor), scale as u16)
    }

    /// The quotient's integer part.
    pub fn divide_truncated(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.divide_special(other)? {
            return Ok(special);
        }
        let (dividend, divisor, _) = self.aligned_big(other);
        Numeric::from_big(dividend / divisor, 0)
    }

    /// What is left of the division, with the dividend's sign.
    pub fn remainder(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.signum() == 0 {
            return Err(division_by_zero());
        }
        if !self.is_finite() {
            return Ok(Numeric::NAN);
        }
        if !other.is_finite() {
            return Ok(self.clone());
        }
        let (dividend, divisor, scale) = self.aligned_big(other);
        Numeric::from_big(dividend % divisor, scale)
    }

    /// Quotients by zero, by infinities, and of what is no number.
    fn divide_special(&self, other: &Numeric) -> Result<Option<Numeric>> {
        if self.is_nan() || other.is_nan() {
            return Ok(Some(Numeric::NAN));
        }
        if other.signum() == 0 {
            return Err(division_by_zero());
        }
        Ok(match (self.is_finite(), other.is_finite()) {
            (true, true) => None,
            (true, false) => Some(Numeric::ZERO),
            (false, false) => Some(Numeric::NAN),
            (false, true) if self.signum() == other.signum() => Some(Numeric::INFINITY),
            (false, true) => Some(Numeric::NEGATIVE_INFINITY),
        })
    }

    /// Rounded to `digits` after the point, halves away from zero; fewer than 0 round before it.
    pub fn round(&self, digits: i32) -> Result<Numeric> {
        self.rescale(digits, divide_rounded)
    }

    /// Cut to `digits` after the point.
    pub fn truncate(&self, digits: i32) -> Result<Numeric> {
        self.rescale(digits, |dividend, divisor| dividend / divisor)
    }

    /// The largest integer that is not above.
    pub fn floor(&self) -> Result<Numeric> {
        let cut = self.truncate(0)?;
        if self < &cut { cut.subtract(&Numeric::ONE) } else { Ok(cut) }
    }

    /// The smallest integer that is not below.
    pub fn ceiling(&self) -> Result<Numeric> {
        self.negate().floor().map(|floor| floor.negate())
    }

    fn rescale(&self, digits: i32, divide: fn(&BigInt, &BigInt) -> BigInt) -> Result<Numeric> {
        if !self.is_finite() {
            return Ok(self.clone());
        }
        let digits = digits.clamp(-(2 * i32::from(SCALE_MAX)), i32::from(SCALE_MAX));
        let scale = i32::from(self.scale());
        if digits == scale {
            return Ok(self.clone());
        }
        if let Repr::Small(units, _) = self.0
            && digits > scale
            && let Some(power) = POWERS.get((digits - scale) as usize)
            && let Some(units) = units.checked_mul(*power)
        {
            return Numeric::from_units(units, digits as u16);
        }
        let units = self.units_big();
        if digits > scale {
            return Numeric::from_big(
                units * power_of_ten((digits - scale) as usize),
                digits as u16,
            );
        }
        let cut = divide(&units, &power_of_ten((scale - digits) as usize));
        if digits >= 0 {
            return Numeric::from_big(cut, digits as u16);
        }
        Numeric::from_big(cut * power_of_ten(-digits as usize), 0)
    }

    /// Rounded to the scale of `numeric(precision, scale)`, if its digits then fit.
    pub fn fit(&self, precision: i32, scale: i32) -> Result<Numeric> {
        let refused = |value: String| {
            Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "numeric field overflow")
                .with_detail(format!("A field with precision {precision}, scale {scale} {value}."))
        };
        if self.is_nan() {
            return Ok(self.clone());
        }
        if !self.is_finite() {
            return Err(refused("cannot hold an infinite value".to_owned()));
        }
        let rounded = self.round(scale)?;
        let whole = precision - scale;
        let limit = Numeric::from_big(power_of_ten(whole.unsigned_abs() as usize), 0)?;
        let limit = if whole >= 0 { limit } else { Numeric::ONE.divide(&limit)? };
        if rounded.abs() >= limit {
            let bound = if whole == 0 { "1".to_owned() } else { format!("10^{whole}") };
            return Err(refused(format!("must round to an absolute value less than {bound}")));
        }
        Ok(rounded)
    }

    /// The square root.
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.signum() < 0 {
            return Err(Error::new(
                SqlState::INVALID_POWER,
                "cannot take square root of a negative number",
            ));
        }
        if !self.is_finite() {
            return Ok(Numeric::INFINITY);
        }
        let (weight, _) = leading_group(self);
        let scale = (SIGNIFICANT_MIN - ((weight + 1) * 4 / 2 - 1))
            .max(i64::from(self.scale()))
            .clamp(0, i64::from(SCALE_MAX));
        // The root of units * 10^(2 * (scale + 1) - own scale), with one digit more to round by.
        let up = 2 * (scale + 1) - i64::from(self.scale());
        let radicand = self.units_big() * power_of_ten(up.max(0) as usize);
        Numeric::from_big(divide_rounded(&radicand.sqrt(), &BigInt::from(10)), scale as u16)
    }

    /// The power with an integer exponent, exact if it is not negative.
    pub fn power(&self, exponent: i32) -> Result<Numeric> {
        let mut left = exponent.unsigned_abs();
        let (mut result, mut square) = (Numeric::ONE, self.clone());
        while left > 0 {
            if left & 1 == 1 {
                result = result.multiply(&square)?;
            }
            left >>= 1;
            if left > 0 {
                square = square.multiply(&square)?;
            }
        }
        if exponent >= 0 {
            return Ok(result);
        }
        if self.signum() == 0 && !self.is_nan() {
            return Err(Error::new(
                SqlState::INVALID_POWER,
                "zero raised to a negative power is undefined",
            ));
        }
        Numeric::ONE.divide(&result)
    }
}
