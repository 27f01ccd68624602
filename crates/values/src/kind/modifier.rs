//! Length, precision and scale of types.

use super::types::Type;
use crate::{Error, IntervalFields, Result, SqlState};

/// The length, precision or scale of a type, as PostgreSQL's `atttypmod` has it; -1 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Modifier(i32);

/// What PostgreSQL adds to lengths.
const HEADER: i32 = 4;
/// The part of an interval's number that says how many digits seconds have, if it is no limit.
const ALL_DIGITS: i32 = 0xffff;
const LENGTH_MAX: i64 = 10_485_760;
const LENGTH_OF_BITS_MAX: i64 = crate::BITS_MAX as i64;
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
            (Type::Bit | Type::Varbit, [length]) => {
                let name = if ty == Type::Bit { "bit" } else { "varbit" };
                match *length {
                    ..=0 => Err(invalid(format!("length for type {name} must be at least 1"))),
                    1..=LENGTH_OF_BITS_MAX => Ok(Modifier(*length as i32)),
                    _ => Err(invalid(format!(
                        "length for type {name} cannot exceed {LENGTH_OF_BITS_MAX}"
                    ))),
                }
            }
            (Type::Numeric, [precision]) => Modifier::of_numeric(*precision, 0),
            (Type::Numeric, [precision, scale]) => Modifier::of_numeric(*precision, *scale),
            (Type::Timestamp | Type::Timestamptz | Type::Time, [digits]) => {
                second_digits(&ty.name(), *digits).map(Modifier)
            }
            (Type::Interval, [digits]) => Modifier::of_interval(IntervalFields::ALL, Some(*digits)),
            _ => Err(Error::new(
                SqlState::SYNTAX_ERROR,
                format!("type modifier is not allowed for type \"{}\"", ty.name()),
            )),
        }
    }

    /// The modifier of an `interval` with these `fields` and `digits` of the second; `None` for all
    /// digits.
    pub fn of_interval(fields: IntervalFields, digits: Option<i64>) -> Result<Modifier> {
        let digits = match digits {
            Some(digits) => second_digits("INTERVAL", digits)?,
            None if fields == IntervalFields::ALL => return Ok(Modifier::NONE),
            None => ALL_DIGITS,
        };
        Ok(Modifier(i32::from(fields.mask()) << 16 | digits))
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

    /// The number of bits of a `bit`, and the most of a `bit varying`.
    pub fn bits(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }

    /// Precision and scale of a `numeric`.
    pub fn precision_and_scale(self) -> Option<(i32, i32)> {
        let packed = self.0.checked_sub(HEADER).filter(|packed| *packed >= 0)?;
        let scale = ((packed & 0x7ff) ^ 1024) - 1024; // 11 bits with a sign
        Some(((packed >> 16) & 0xffff, scale))
    }

    /// The digits of the seconds of a time, timestamp or interval.
    pub fn second_digits(self) -> Option<u32> {
        let digits = if self.0 < 0 { self.0 } else { self.0 & ALL_DIGITS };
        (0..=6).contains(&digits).then_some(digits as u32)
    }

    /// The fields of an `interval`.
    pub fn interval_fields(self) -> IntervalFields {
        let mask = u16::try_from(self.0 >> 16).unwrap_or_default();
        IntervalFields::of_mask(mask).unwrap_or(IntervalFields::ALL)
    }

    /// The number in PostgreSQL's catalog for a type. A number that was kept of an `interval` may
    /// be that of its digits alone.
    pub fn number_of(self, ty: Type) -> i32 {
        let is_interval = ty.element().unwrap_or(ty) == Type::Interval;
        match self.second_digits() {
            Some(digits) if is_interval => {
                i32::from(self.interval_fields().mask()) << 16 | digits as i32
            }
            _ => self.0,
        }
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
            Type::Bit | Type::Varbit => match self.bits() {
                Some(count) => format!("{}({count})", base.name()),
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
            Type::Interval => {
                let fields = self.interval_fields().name().map(|name| format!(" {name}"));
                let digits = self.second_digits().map(|digits| format!("({digits})"));
                base.name() + &fields.unwrap_or_default() + &digits.unwrap_or_default()
            }
            _ => base.name(),
        };
        name + brackets
    }
}

/// The digits of seconds that a type states, of which there are six at most.
fn second_digits(name: &str, digits: i64) -> Result<i32> {
    if digits < 0 {
        let message = format!("{name}({digits}) precision must not be negative");
        return Err(Error::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(digits.min(6) as i32)
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
        let interval = Modifier::of(Type::Interval, &[2]).unwrap();
        let kept = Modifier::from_number(2);
        for modifier in [interval, kept] {
            assert_eq!(modifier.number_of(Type::Interval), 2_147_418_114);
            assert_eq!(modifier.name(Type::Interval), "interval(2)");
        }
        let fields = IntervalFields::named("hour to second").unwrap();
        let limited = Modifier::of_interval(fields, Some(3)).unwrap();
        assert_eq!(limited.number_of(Type::Interval), 469_762_051);
        assert_eq!(limited.name(Type::Interval), "interval hour to second(3)");
        assert_eq!((limited.interval_fields(), limited.second_digits()), (fields, Some(3)));
        let day = Modifier::of_interval(IntervalFields::named("day").unwrap(), None).unwrap();
        assert_eq!((day.number(), day.second_digits()), (589_823, None));
        assert_eq!(day.name(Type::Interval), "interval day");
        assert_eq!(Modifier::NONE.number_of(Type::Interval), -1);
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
