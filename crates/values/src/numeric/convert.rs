//! From and to integers and floating point.

use super::number::{Numeric, Repr};
use crate::{Error, Result, SqlState};

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric(Repr::Small(i128::from(value), 0))
    }
}

impl Numeric {
    /// The number that a `double precision` shows with 15 digits, as PostgreSQL's cast makes it.
    pub fn from_f64(value: f64) -> Result<Numeric> {
        Numeric::from_shown(value, format!("{value:.14e}"))
    }

    /// The number that a `real` shows with 6 digits.
    pub fn from_f32(value: f32) -> Result<Numeric> {
        Numeric::from_shown(f64::from(value), format!("{value:.5e}"))
    }

    fn from_shown(value: f64, shown: String) -> Result<Numeric> {
        if value.is_nan() {
            return Ok(Numeric::NAN);
        }
        if value.is_infinite() {
            return Ok(if value > 0.0 { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY });
        }
        Ok(shown.parse::<Numeric>()?.trimmed())
    }

    /// The nearest `double precision`.
    pub fn to_f64(&self) -> Result<f64> {
        if !self.is_finite() {
            return Ok(match self.signum() {
                0 => f64::NAN,
                sign => f64::INFINITY * f64::from(sign),
            });
        }
        let value: f64 = self.to_string().parse().unwrap_or(f64::NAN);
        if value.is_infinite() {
            return Err(Error::new(
                SqlState::NUMERIC_OUT_OF_RANGE,
                format!("\"{self}\" is out of range for type double precision"),
            ));
        }
        Ok(value)
    }

    /// The nearest integer, halves away from zero.
    pub fn to_i64(&self) -> Result<i64> {
        self.to_integer("bigint")
    }

    /// The nearest `integer`.
    pub fn to_i32(&self) -> Result<i32> {
        self.to_integer("integer")
    }

    /// The nearest `smallint`.
    pub fn to_i16(&self) -> Result<i16> {
        self.to_integer("smallint")
    }

    fn to_integer<T: TryFrom<i128>>(&self, name: &str) -> Result<T> {
        let refused = |message: String| Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message);
        if self.is_nan() {
            let message = format!("cannot convert NaN to {name}");
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if !self.is_finite() {
            let message = format!("cannot convert infinity to {name}");
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        match self.round(0)?.0 {
            Repr::Small(units, _) => {
                T::try_from(units).map_err(|_| refused(format!("{name} out of range")))
            }
            _ => Err(refused(format!("{name} out of range"))),
        }
    }
}
