//! Length, precision and scale of types.

use super::types::Type;
use crate::{Error, Result, SqlState};

/// The length, precision or scale of a type, as PostgreSQL's `atttypmod` has it; -1 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Modifier(i32);

/// What PostgreSQL adds to lengths.
const HEADER: i32 = 4;
const LENGTH_MAX: i64 = 10_485_760;
const PRECISION_MAX: i64 = 1_000;

impl Modifier {
    /// No length, precision or scale.
    pub const NONE: Modifier = Modifier(-1);

    /// Of the arrays of the system catalog that PostgreSQL calls `int2vector` and `oidvector`,
    /// which are written as numbers with blanks between.
    pub const VECTOR: Modifier = Modifier(0);

    /// Of an array of two numbers that stands for a record `(x, n)`.
    pub const PAIR: Modifier = Modifier(1);

    /// The modifier with this number in PostgreSQL's catalog.
    pub fn from_number(number: i32) -> Modifier {
        Modifier(if number < 0 { -1 } else { number })
    }

    /// The number in PostgreSQL's catalog.
    pub fn number(self) -> i32 {
        self.0
    }

    /// The modifier that a type gets from the numbers in brackets after its name.
    pub fn of(ty: Type, arguments: &[i64]) -> Result<Modifier> {
        let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER, message);
        match (ty.element().unwrap_or(ty), arguments) {
            (_, []) => Ok(Modifier::NONE),
            (Type::Varchar | Type::Char, [length]) => {
                let name = if ty == Type::Char { "char" } else { "varchar" };
                match *length {
                    ..=0 => Err(invalid(format!("length for type {name} must be at least 1"))),
                    1..=LENGTH_MAX => Ok(Modifier(*length as i32 + HEADER)),
                    _ => Err(invalid(format!("length for type {name} cannot exceed {LENGTH_MAX}"))),
                }
            }
            (Type::Numeric, [precision]) => Modifier::of_numeric(*precision, 0),
            (Type::Numeric, [precision, scale]) => Modifier::of_numeric(*precision, *scale),
            (Type::Timestamp | Type::Timestamptz | Type::Interval | Type::Time, [digits]) => {
                match *digits {
                    0..=6 => Ok(Modifier(*digits as i32)),
                    ..0 => Err(invalid(format!(
                        "{}({digits}) precision must not be negative",
                        ty.name()
                    ))),
                    _ => Ok(Modifier(6)),
                }
            }
            _ => Err(Error::new(
                SqlState::SYNTAX_ERROR,
                format!("type modifier is not allowed for type \"{}\"", ty.name()),
            )),
        }
    }

    fn of_numeric(precision: i64, scale: i64) -> Result<Modifier> {
        if !(1..=PRECISION_MAX).contains(&precision) {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER,
                format!("NUMERIC precision {precision} must be between 1 and {PRECISION_MAX}"),
            ));
        }
        if !(-PRECISION_MAX..=PRECISION_MAX).contains(&scale) {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER,
                format!(
                    "NUMERIC scale {scale} must be between -{PRECISION_MAX} and {PRECISION_MAX}"
                ),
            ));
        }
        let (precision, scale) = (precision as i32, scale as i32);
        let packed = Modifier(((precision << 16) | (scale & 0x7ff)) + HEADER);
        assert_eq!(packed.precision_and_scale(), Some((precision, scale)), "both are limited");
        Ok(packed)
    }

    /// The length of a `varchar` or `char` in characters.
    pub fn length(self) -> Option<usize> {
        (self.0 >= HEADER).then(|| (self.0 - HEADER) as usize)
    }

    /// Precision and scale of a `numeric`.
    pub fn precision_and_scale(self) -> Option<(i32, i32)> {
        let packed = self.0.checked_sub(HEADER).filter(|packed| *packed >= 0)?;
        let scale = ((packed & 0x7ff) ^ 1024) - 1024; // 11 bits with a sign
        Some(((packed >> 16) & 0xffff, scale))
    }

    /// The digits of the seconds of a time, timestamp or interval.
    pub fn second_digits(self) -> Option<u32> {
        (0..=6).contains(&self.0).then_some(self.0 as u32)
    }

    /// The name of a type with this modifier, as `format_type` prints it.
    pub fn name(self, ty: Type) -> String {
        let base = ty.element().unwrap_or(ty);
        let brackets = if base == ty { "" } else { "[]" };
        let name = match base {
            Type::Varchar | Type::Char => match self.length() {
                Some(length) => format!("{}({length})", base.name()),
                None => base.name(),
            },
            Type::Numeric => match self.precision_and_scale() {
                Some((precision, scale)) => format!("numeric({precision},{scale})"),
                None => base.name(),
            },
            Type::Timestamp | Type::Timestamptz | Type::Time => match self.second_digits() {
                Some(digits) => base.name().replacen(' ', &format!("({digits}) "), 1),
                None => base.name(),
            },
            Type::Interval => match self.second_digits() {
                Some(digits) => format!("interval({digits})"),
                None => base.name(),
            },
            _ => base.name(),
        };
        name + brackets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_postgresqls() {
        let varchar = Modifier::of(Type::Varchar, &[20]).unwrap();
        assert_eq!((varchar.number(), varchar.length()), (24, Some(20)));
        let numeric = Modifier::of(Type::Numeric, &[10, 2]).unwrap();
        assert_eq!((numeric.number(), numeric.precision_and_scale()), (655_366, Some((10, 2))));
        let negative = Modifier::of(Type::Numeric, &[3, -2]).unwrap();
        assert_eq!(negative.precision_and_scale(), Some((3, -2)));
        assert_eq!(numeric.name(Type::Numeric.array().unwrap()), "numeric(10,2)[]");
        let seconds = Modifier::of(Type::Timestamptz, &[3]).unwrap();
        assert_eq!(seconds.name(Type::Timestamptz), "timestamp(3) with time zone");
        for (ty, arguments) in [
            (Type::Varchar, &[0][..]),
            (Type::Numeric, &[1_001]),
            (Type::Numeric, &[5, 2_000]),
            (Type::Int4, &[3]),
        ] {
            assert!(Modifier::of(ty, arguments).is_err(), "{ty:?} {arguments:?}");
        }
    }
}
