//! The type, and how its parts are made and read.

use crate::{Error, Result, SqlState};
use num_bigint::{BigInt, Sign};
use num_traits::{Pow, Signed, Zero};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The most decimal digits of a number, those after the point included.
pub const DIGITS_MAX: usize = 1_000;

/// The most digits after the point.
pub const SCALE_MAX: u16 = 1_000;

/// An exact decimal number, or one of the three values that are none.
///
/// ```
/// use values::Numeric;
/// let price: Numeric = "1.50".parse().unwrap();
/// assert_eq!(price, "1.5".parse().unwrap());
/// assert_eq!(price.add(&price).unwrap().to_string(), "3.00");
/// ```
#[derive(Clone, Debug)]
pub struct Numeric(pub(super) Repr);

#[derive(Clone, Debug)]
pub(super) enum Repr {
    Small(i128, u16),
    Big(Box<BigInt>, u16),
    NegativeInfinity,
    Infinity,
    NaN,
}

/// Powers of ten that fit an `i128`.
pub(super) const POWERS: [i128; 39] = {
    let mut powers = [1_i128; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// No limit of digits, scale or groups leads to a larger exponent.
const EXPONENT_MAX: usize = 10 * DIGITS_MAX;

/// A power of ten, of any size that a number needs.
pub(super) fn power_of_ten(exponent: usize) -> BigInt {
    assert!(exponent <= EXPONENT_MAX, "limits of digits and scales bound the work");
    match POWERS.get(exponent) {
        Some(power) => BigInt::from(*power),
        None => BigInt::from(10).pow(exponent),
    }
}

/// The number of decimal digits; 0 for zero.
pub(super) fn digits_count(units: &BigInt) -> usize {
    if units.is_zero() {
        return 0;
    }
    // 1233 / 4096 is a little less than log10(2), so the guess is exact or too small.
    let bits = units.bits() as usize;
    let mut digits = (bits.saturating_sub(1)) * 1233 / 4096;
    while units.magnitude() >= power_of_ten(digits).magnitude() {
        digits += 1;
    }
    digits
}

/// The error of a number with too many digits.
pub(super) fn overflow() -> Error {
    Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "value overflows numeric format")
        .with_detail(format!("a numeric has at most {DIGITS_MAX} digits"))
}

impl Numeric {
    /// Zero.
    pub const ZERO: Numeric = Numeric(Repr::Small(0, 0));
    /// One.
    pub const ONE: Numeric = Numeric(Repr::Small(1, 0));
    /// What is no number: above all others when sorted, and equal to itself.
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Above all numbers.
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    /// Below all numbers.
    pub const NEGATIVE_INFINITY: Numeric = Numeric(Repr::NegativeInfinity);

    /// `units` times 10^-`scale`.
    pub fn from_units(units: i128, scale: u16) -> Result<Numeric> {
        if scale > SCALE_MAX { Err(overflow()) } else { Ok(Numeric(Repr::Small(units, scale))) }
    }

    /// The same of an integer of any size.
    pub fn from_big(units: BigInt, scale: u16) -> Result<Numeric> {
        if scale > SCALE_MAX {
            return Err(overflow());
        }
        if let Ok(small) = i128::try_from(&units) {
            return Ok(Numeric(Repr::Small(small, scale)));
        }
        if digits_count(&units) > DIGITS_MAX {
            return Err(overflow());
        }
        Ok(Numeric(Repr::Big(Box::new(units), scale)))
    }

    /// Units and scale, if it is a number.
    pub fn to_big(&self) -> Option<(BigInt, u16)> {
        match &self.0 {
            Repr::Small(units, scale) => Some((BigInt::from(*units), *scale)),
            Repr::Big(units, scale) => Some(((**units).clone(), *scale)),
            _ => None,
        }
    }

    /// The bytes of memory that it takes beside itself: 0 of up to 38 digits.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Big(units, _) => size_of::<BigInt>() + units.bits() as usize / 8,
            _ => 0,
        }
    }

    /// The digits after the point; 0 for what is no number.
    pub fn scale(&self) -> u16 {
        match self.0 {
            Repr::Small(_, scale) | Repr::Big(_, scale) => scale,
            _ => 0,
        }
    }

    /// Whether it is a number: neither NaN nor an infinity.
    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small(..) | Repr::Big(..))
    }

    /// Whether it is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    /// -1, 0 or 1; 0 for NaN.
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Repr::Small(units, _) => units.signum() as i32,
            Repr::Big(units, _) => match units.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
            Repr::Infinity => 1,
            Repr::NegativeInfinity => -1,
            Repr::NaN => 0,
        }
    }

    /// The sign turned.
    pub fn negate(&self) -> Numeric {
        match &self.0 {
            Repr::Small(units, scale) => match units.checked_neg() {
                Some(units) => Numeric(Repr::Small(units, *scale)),
                None => Numeric(Repr::Big(Box::new(-BigInt::from(*units)), *scale)),
            },
            Repr::Big(units, scale) => {
                let negated = -(**units).clone();
                match i128::try_from(&negated) {
                    Ok(small) => Numeric(Repr::Small(small, *scale)),
                    Err(_) => Numeric(Repr::Big(Box::new(negated), *scale)),
                }
            }
            Repr::Infinity => Numeric::NEGATIVE_INFINITY,
            Repr::NegativeInfinity => Numeric::INFINITY,
            Repr::NaN => Numeric::NAN,
        }
    }

    /// Without its sign.
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 { self.negate() } else { self.clone() }
    }

    /// Where it stands among what is no number: negative infinity, numbers, infinity, NaN.
    fn rank(&self) -> u8 {
        match self.0 {
            Repr::NegativeInfinity => 0,
            Repr::Small(..) | Repr::Big(..) => 1,
            Repr::Infinity => 2,
            Repr::NaN => 3,
        }
    }

    /// The order of two numbers, by what they are worth.
    fn compare_finite(&self, other: &Numeric) -> Ordering {
        match self.aligned_small(other) {
            Some((left, right, _)) => left.cmp(&right),
            None => {
                let (left, right, _) = self.aligned_big(other);
                left.cmp(&right)
            }
        }
    }

    /// Both in units of the finer scale, if they are small and stay so.
    pub(super) fn aligned_small(&self, other: &Numeric) -> Option<(i128, i128, u16)> {
        let (Repr::Small(left, left_scale), Repr::Small(right, right_scale)) = (&self.0, &other.0)
        else {
            return None;
        };
        let scale = *left_scale.max(right_scale);
        let up = |units: i128, own: u16| match scale - own {
            0 => Some(units),
            up => units.checked_mul(*POWERS.get(usize::from(up))?),
        };
        Some((up(*left, *left_scale)?, up(*right, *right_scale)?, scale))
    }

    /// Both in units of the finer scale; zero of what is no number.
    pub(super) fn aligned_big(&self, other: &Numeric) -> (BigInt, BigInt, u16) {
        let scale = self.scale().max(other.scale());
        let up = |number: &Numeric| {
            number.units_big() * power_of_ten(usize::from(scale - number.scale()))
        };
        (up(self), up(other), scale)
    }

    /// Units; zero of what is no number.
    pub(super) fn units_big(&self) -> BigInt {
        self.to_big().map_or_else(BigInt::zero, |(units, _)| units)
    }

    /// The same number with the fewest digits after the point.
    pub fn trimmed(&self) -> Numeric {
        let Some((mut units, mut scale)) = self.to_big() else { return self.clone() };
        let ten = BigInt::from(10);
        while scale > 0 && (&units % &ten).is_zero() {
            units /= &ten;
            scale -= 1;
        }
        match i128::try_from(&units) {
            Ok(small) => Numeric(Repr::Small(small, scale)),
            Err(_) => Numeric(Repr::Big(Box::new(units), scale)),
        }
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        let ranks = self.rank().cmp(&other.rank());
        if ranks == Ordering::Equal && self.is_finite() {
            self.compare_finite(other)
        } else {
            ranks
        }
    }
}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        if let Some((units, scale)) = self.trimmed().to_big() {
            units.hash(state);
            scale.hash(state);
        }
    }
}

/// The magnitude of a number as a big integer, for what works on digits.
pub(super) fn magnitude(units: &BigInt) -> BigInt {
    units.abs()
}
