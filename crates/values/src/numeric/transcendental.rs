//! Exponentials, logarithms and powers, rounded to the scales that PostgreSQL gives them.
//!
//! Numbers are computed as integers of units of a power of two. The precision is that of the result
//! and some bits more, so only what lies within them of a tie of two digits may be rounded
//! otherwise than PostgreSQL does.

use super::digits::leading_groups;
use super::number::{DIGITS_MAX, Numeric, SCALE_MAX, overflow, power_of_ten};
use crate::{Error, Result, SqlState};
use num_bigint::{BigInt, Sign};
use num_traits::{One, Signed, Zero};
use std::f64::consts::{LN_10, LOG10_E};

/// The digits that PostgreSQL computes at least.
const SIGNIFICANT_MIN: i64 = 16;
/// Estimates of a result's weight are limited to this.
const RESULT_WEIGHT_MAX: f64 = 2_000.0;
/// Bits beyond those of the result.
const GUARD_BITS: u64 = 64;
/// Digits behind the point of powers with whole exponents.
const POWER_DIGITS: u16 = 16;

/// The bits that so many decimal digits take.
fn bits_of(digits: i64) -> u64 {
    digits.max(0) as u64 * 3_322 / 1_000 + 1
}

/// A scale within the limits.
fn limited(scale: i64) -> u16 {
    scale.clamp(0, i64::from(SCALE_MAX)) as u16
}

/// The inverse hyperbolic tangent of 1 / `divisor`, in units of 2^-`bits`.
fn atanh_of_fraction(divisor: u32, bits: u64) -> BigInt {
    let square = divisor * divisor;
    let mut power = (BigInt::one() << bits) / divisor;
    let (mut sum, mut odd) = (power.clone(), 1_u32);
    while !power.is_zero() {
        power /= square;
        odd += 2;
        sum += &power / odd;
    }
    sum
}

/// The natural logarithm of 2, in units of 2^-`bits`.
fn ln_2(bits: u64) -> BigInt {
    let inner = bits + 16;
    let sum = 18 * atanh_of_fraction(26, inner) - 2 * atanh_of_fraction(4_801, inner)
        + 8 * atanh_of_fraction(8_749, inner);
    sum >> 16
}

/// The exponential of `x`, both in units of 2^-`bits`.
fn exp_fixed(x: &BigInt, bits: u64) -> BigInt {
    let halvings = 4 + bits.isqrt() / 4;
    let inner = bits + halvings + GUARD_BITS / 2;
    let x = x << (inner - bits);
    // x = times * ln 2 + rest, with a rest between 0 and ln 2.
    let rough = ln_2(inner);
    let times: BigInt = floor_div(&x, &rough);
    let rest = (&x - times.clone() * rough) >> halvings;
    let one = BigInt::one() << inner;
    let (mut sum, mut term, mut number) = (&one + &rest, rest.clone(), 1_u32);
    while !term.is_zero() {
        number += 1;
        term = ((term * &rest) >> inner) / number;
        sum += &term;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) >> inner;
    }
    let shift = i64::try_from(&times).unwrap_or(i64::MIN) - (inner - bits) as i64;
    if shift >= 0 { sum << shift as u64 } else { sum >> shift.unsigned_abs() }
}

/// The quotient, rounded down.
fn floor_div(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let quotient = dividend / divisor;
    if dividend.is_negative() && &quotient * divisor != *dividend { quotient - 1 } else { quotient }
}

/// The natural logarithm of a number above zero, in units of 2^-`bits`.
fn ln_fixed(number: &Numeric, bits: u64) -> BigInt {
    let (units, divisor) = (number.units_big(), power_of_ten(usize::from(number.scale())));
    let roots = 2 + bits.isqrt() / 8;
    let inner = bits + 2 * roots + GUARD_BITS / 2;
    // number = fraction * 2^exponent, with a fraction between 1/2 and 2.
    let exponent = units.bits() as i64 - divisor.bits() as i64;
    let shift = inner as i64 - exponent;
    let mut fraction = match shift >= 0 {
        true => (units << shift as u64) / divisor,
        false => units / (divisor << shift.unsigned_abs()),
    };
    for _ in 0..roots {
        fraction = (fraction << inner).sqrt();
    }
    // ln f = 2 atanh((f - 1) / (f + 1))
    let one = BigInt::one() << inner;
    let z = ((&fraction - &one) << inner) / (&fraction + &one);
    let square = (&z * &z) >> inner;
    let (mut power, mut sum, mut odd) = (z.clone(), z, 1_u32);
    while !power.is_zero() && power != -BigInt::one() {
        power = (power * &square) >> inner;
        odd += 2;
        sum += &power / odd;
    }
    let of_fraction = sum << (roots + 1);
    (of_fraction + ln_2(inner) * exponent) >> (inner - bits)
}

/// The number of units of 2^-`bits`, rounded to a scale.
fn rounded(value: BigInt, bits: u64, scale: u16) -> Result<Numeric> {
    let is_negative = value.sign() == Sign::Minus;
    let scaled = value.abs() * power_of_ten(usize::from(scale));
    let half = BigInt::one() << (bits - 1);
    let units = (scaled + half) >> bits;
    Numeric::from_big(if is_negative { -units } else { units }, scale)
}

/// A number in units of 2^-`bits`.
fn fixed(number: &Numeric, bits: u64) -> BigInt {
    let divisor = power_of_ten(usize::from(number.scale()));
    floor_div(&(number.units_big() << bits), &divisor)
}

/// The weight of the first decimal digit of a natural logarithm, as PostgreSQL estimates it.
fn weight_of_ln(number: &Numeric) -> Result<i64> {
    let [low, high] = [9, 11].map(|units| Numeric::from_units(units, 1));
    if *number >= low? && *number <= high? {
        let (weight, first, _) = leading_groups(&number.subtract(&Numeric::ONE)?);
        return Ok(if first == 0 { 0 } else { weight * 4 + i64::from(first.ilog10()) });
    }
    let (weight, digits, groups) = leading_groups(number);
    let behind = (weight - i64::from(groups > 1)) * 4;
    let digits = if groups > 1 { digits_of_two(number) } else { f64::from(digits) };
    let ln = libm::log(digits) + behind as f64 * LN_10;
    Ok(libm::log10(ln.abs()) as i64)
}

/// The first two groups of four digits.
fn digits_of_two(number: &Numeric) -> f64 {
    let digits = super::Digits::of(number, 4).map(|digits| digits.digits).unwrap_or_default();
    let group = |at: usize| f64::from(digits.get(at).copied().unwrap_or(0));
    group(0) * 10_000.0 + group(1)
}

fn logarithm_error(number: &Numeric) -> Option<Error> {
    let message = match number.signum() {
        0 if !number.is_nan() => "cannot take logarithm of zero",
        -1 => "cannot take logarithm of a negative number",
        _ => return None,
    };
    Some(Error::new(SqlState::INVALID_LOGARITHM, message))
}

/// About what a number is, within what `double precision` has.
fn rough(number: &Numeric) -> f64 {
    number.to_f64().unwrap_or(f64::INFINITY * f64::from(number.signum()))
}

/// The digits of a result with so many whole ones, of a number of a scale.
fn digits_of(weight: f64, scale: u16) -> usize {
    let whole = weight.abs().min(RESULT_WEIGHT_MAX) as usize;
    whole + usize::from(scale).max(SIGNIFICANT_MIN as usize)
}

impl Numeric {
    /// About how many digits the exponential is computed with.
    pub fn digits_of_exp(&self) -> usize {
        digits_of(rough(self) * LOG10_E, self.scale())
    }

    /// About how many digits the logarithm is computed with.
    pub fn digits_of_ln(&self) -> usize {
        SIGNIFICANT_MIN as usize + usize::from(self.scale())
    }

    /// About how many digits a power is computed with.
    pub fn digits_of_power(&self, exponent: &Numeric) -> usize {
        let weight = rough(exponent) * libm::log10(rough(&self.abs()));
        let scale = self.scale().max(exponent.scale());
        digits_of(if weight.is_nan() { 0.0 } else { weight }, scale)
    }

    /// The exponential.
    pub fn exp(&self) -> Result<Numeric> {
        if !self.is_finite() {
            return Ok(if self.signum() < 0 { Numeric::ZERO } else { self.clone() });
        }
        let weight = rough(self) * LOG10_E;
        let weight = weight.clamp(-RESULT_WEIGHT_MAX, RESULT_WEIGHT_MAX);
        let scale = limited((SIGNIFICANT_MIN - weight as i64).max(i64::from(self.scale())));
        if weight > DIGITS_MAX as f64 {
            return Err(overflow());
        }
        if weight < -(f64::from(SCALE_MAX) + 10.0) {
            return Numeric::from_units(0, scale);
        }
        let bits = bits_of(i64::from(scale) + (weight as i64).max(0)) + GUARD_BITS;
        rounded(exp_fixed(&fixed(self, bits), bits), bits, scale)
    }

    /// The natural logarithm.
    pub fn ln(&self) -> Result<Numeric> {
        if let Some(error) = logarithm_error(self) {
            return Err(error);
        }
        if !self.is_finite() {
            return Ok(self.clone());
        }
        let scale = SIGNIFICANT_MIN - weight_of_ln(self)?;
        let scale = limited(scale.max(i64::from(self.scale())));
        let bits = bits_of(i64::from(scale)) + GUARD_BITS;
        rounded(ln_fixed(self, bits), bits, scale)
    }

    /// The logarithm of `number` to this base.
    pub fn logarithm(&self, number: &Numeric) -> Result<Numeric> {
        if self.is_nan() || number.is_nan() {
            return Ok(Numeric::NAN);
        }
        if let Some(error) = logarithm_error(self).or_else(|| logarithm_error(number)) {
            return Err(error);
        }
        match (self.is_finite(), number.is_finite()) {
            (true, true) => {}
            (false, false) => return Ok(Numeric::NAN),
            (false, true) => return Ok(Numeric::ZERO),
            (true, false) => return Ok(Numeric::INFINITY),
        }
        let weights = [weight_of_ln(self)?, weight_of_ln(number)?];
        let scale = (SIGNIFICANT_MIN - (weights[1] - weights[0]))
            .max(i64::from(self.scale()))
            .max(i64::from(number.scale()));
        let scale = limited(scale);
        let digits = i64::from(scale) + 2 * weights[0].abs() + weights[1].abs();
        let bits = bits_of(digits) + GUARD_BITS;
        let (base, of_number) = (ln_fixed(self, bits), ln_fixed(number, bits));
        if *self == Numeric::ONE || base.is_zero() {
            return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        rounded((of_number << bits) / base, bits, scale)
    }

    /// The power, with at least 16 digits that count.
    ///
    /// # Errors
    /// A negative number has no power with a fraction as exponent, and zero none below zero.
    pub fn raised(&self, exponent: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.raised_special(exponent)? {
            return Ok(special);
        }
        let whole = exponent.to_i32().ok();
        let whole = whole.filter(|whole| Numeric::from(i64::from(*whole)) == *exponent);
        if let Some(whole) = whole
            && let Ok(power) = self.power(whole)
        {
            return power.round(i32::from(self.scale().max(POWER_DIGITS)));
        }
        let is_whole = exponent.truncate(0)? == *exponent;
        if self.signum() == 0 {
            return Numeric::from_units(0, POWER_DIGITS);
        }
        if self.signum() < 0 && !is_whole {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(Error::new(SqlState::INVALID_POWER, message));
        }
        let is_odd = exponent.remainder(&Numeric::from(2))?.signum() != 0;
        let base = self.abs();
        let weight = rough(exponent) * rough_ln(&base)? * LOG10_E;
        if weight > DIGITS_MAX as f64 {
            return Err(overflow());
        }
        if weight < -2.0 * RESULT_WEIGHT_MAX {
            return Numeric::from_units(0, SCALE_MAX);
        }
        let scale = match whole {
            Some(_) => i64::from(POWER_DIGITS).max(i64::from(self.scale())),
            None => (SIGNIFICANT_MIN - weight as i64)
                .max(i64::from(self.scale()))
                .max(i64::from(exponent.scale())),
        };
        let scale = limited(scale);
        let whole_bits = exponent.abs().truncate(0)?.units_big().bits();
        let bits = bits_of(i64::from(scale) + (weight as i64).max(0)) + whole_bits + GUARD_BITS;
        let product = (ln_fixed(&base, bits) * fixed(exponent, bits)) >> bits;
        let power = rounded(exp_fixed(&product, bits), bits, scale)?;
        Ok(if self.signum() < 0 && is_odd { power.negate() } else { power })
    }

    /// Powers of and to what is no number, and those of one and to zero.
    fn raised_special(&self, exponent: &Numeric) -> Result<Option<Numeric>> {
        let one = || Numeric::from_units(1, 0).map(Some);
        if self.signum() == 0 && !self.is_nan() && exponent.signum() < 0 {
            let message = "zero raised to a negative power is undefined";
            return Err(Error::new(SqlState::INVALID_POWER, message));
        }
        if self.is_finite() && exponent.is_finite() {
            return Ok(None);
        }
        let is_zero = |number: &Numeric| number.signum() == 0 && !number.is_nan();
        if is_zero(exponent) || *self == Numeric::ONE {
            return one();
        }
        if self.is_nan() || exponent.is_nan() {
            return Ok(Some(Numeric::NAN));
        }
        let (large, small) = (Numeric::INFINITY, Numeric::ZERO);
        if !exponent.is_finite() {
            let size = self.abs();
            return Ok(Some(match size.cmp(&Numeric::ONE) {
                std::cmp::Ordering::Equal => Numeric::ONE,
                order if order.is_gt() == (exponent.signum() > 0) => large,
                _ => small,
            }));
        }
        if self.signum() < 0 && exponent.truncate(0)? != *exponent {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(Error::new(SqlState::INVALID_POWER, message));
        }
        if exponent.signum() < 0 {
            return Ok(Some(small));
        }
        if self.signum() > 0 {
            return Ok(Some(large));
        }
        let is_odd = exponent.remainder(&Numeric::from(2))?.signum() != 0;
        Ok(Some(if is_odd { Numeric::NEGATIVE_INFINITY } else { large }))
    }
}

/// About the natural logarithm of a number above zero.
fn rough_ln(number: &Numeric) -> Result<f64> {
    let bits = bits_of(8 - weight_of_ln(number)?.min(0)) + GUARD_BITS;
    let scale = limited(8 - weight_of_ln(number)?);
    rounded(ln_fixed(number, bits), bits, scale)?.to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Numeric {
        text.parse().unwrap()
    }

    #[test]
    fn results_have_the_digits_of_postgresql() {
        let check = |result: Result<Numeric>, expected: &str| {
            assert_eq!(result.unwrap().to_string(), expected);
        };
        check(number("1.0").exp(), "2.7182818284590452");
        check(number("-5.5").exp(), "0.004086771438464067");
        check(number("0.0").exp(), "1.0000000000000000");
        check(number("2.0").ln(), "0.6931471805599453");
        check(number("1").ln(), "0.0000000000000000");
        check(number("2.0").logarithm(&number("64.0")), "6.0000000000000000");
        check(number("10").logarithm(&number("100.0")), "2.0000000000000000");
        check(number("2.0").raised(&number("0.5")), "1.4142135623730950");
        check(number("-2").raised(&number("3")), "-8.0000000000000000");
        assert!(number("-2").raised(&number("0.5")).is_err());
        assert!(number("0").ln().is_err());
        assert!(number("3000").exp().is_err());
        check(number("-3000").exp().map(|zero| zero.trimmed()), "0");
    }

    #[test]
    fn exponentials_and_logarithms_undo_each_other() {
        for text in ["0.3", "1.00000000000000000001", "7", "12345.678", "1e30", "3e-30"] {
            let own = number(text);
            let own = own.round(60).unwrap();
            let back = own.ln().unwrap().exp().unwrap();
            let difference = back.subtract(&own).unwrap().abs();
            assert!(difference < own.multiply(&number("1e-50")).unwrap(), "{text} {back}");
        }
    }
}
