//! Types of values, with PostgreSQL's names and object ids, and their modifiers.

use crate::{Error, Result, SqlState};

/// The type of a value, without length or precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`
    Numeric,
    /// `text`
    Text,
    /// `character varying`
    Varchar,
    /// `character`, with blanks at its end
    Char,
    /// `bytea`
    Bytea,
    /// `uuid`
    Uuid,
    /// `date`
    Date,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    Timestamptz,
    /// `interval`
    Interval,
    /// `jsonb`
    Jsonb,
    /// An array of one of the others.
    Array(Element),
}

/// The type of an array's items; made by [`Type::array`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Element(u8);

/// What is known of a type that is no array. The place in the table is the type's code in stored
/// bytes.
struct Known {
    ty: Type,
    name: &'static str,
    oid: u32,
    array_oid: u32,
    fixed_bytes: Option<usize>,
}

const fn known(
    ty: Type,
    name: &'static str,
    oid: u32,
    array_oid: u32,
    fixed_bytes: Option<usize>,
) -> Known {
    Known { ty, name, oid, array_oid, fixed_bytes }
}

const KNOWN: [Known; 17] = [
    known(Type::Bool, "boolean", 16, 1000, Some(1)),
    known(Type::Int2, "smallint", 21, 1005, Some(2)),
    known(Type::Int4, "integer", 23, 1007, Some(4)),
    known(Type::Int8, "bigint", 20, 1016, Some(8)),
    known(Type::Float4, "real", 700, 1021, Some(4)),
    known(Type::Float8, "double precision", 701, 1022, Some(8)),
    known(Type::Numeric, "numeric", 1700, 1231, None),
    known(Type::Text, "text", 25, 1009, None),
    known(Type::Varchar, "character varying", 1043, 1015, None),
    known(Type::Char, "character", 1042, 1014, None),
    known(Type::Bytea, "bytea", 17, 1001, None),
    known(Type::Uuid, "uuid", 2950, 2951, Some(16)),
    known(Type::Date, "date", 1082, 1182, Some(4)),
    known(Type::Timestamp, "timestamp without time zone", 1114, 1115, Some(8)),
    known(Type::Timestamptz, "timestamp with time zone", 1184, 1185, Some(8)),
    known(Type::Interval, "interval", 1186, 1187, Some(16)),
    known(Type::Jsonb, "jsonb", 3802, 3807, None),
];

/// Set in the stored code of an array.
const ARRAY_BIT: u8 = 0x80;

impl Type {
    /// All types that are no arrays.
    pub fn scalars() -> impl Iterator<Item = Type> {
        KNOWN.iter().map(|known| known.ty)
    }

    fn known(self) -> &'static Known {
        match self {
            Type::Array(Element(code)) => &KNOWN[usize::from(code)],
            _ => KNOWN.iter().find(|known| known.ty == self).expect("each type is in the table"),
        }
    }

    /// The array type with items of this type; `None` of an array, as arrays of arrays are one
    /// array with more dimensions.
    pub fn array(self) -> Option<Type> {
        let code = KNOWN.iter().position(|known| known.ty == self)?;
        Some(Type::Array(Element(code as u8)))
    }

    /// The type of an array's items.
    pub fn element(self) -> Option<Type> {
        match self {
            Type::Array(_) => Some(self.known().ty),
            _ => None,
        }
    }

    /// The code of the type in stored bytes.
    pub fn code(self) -> u8 {
        match self {
            Type::Array(Element(code)) => code | ARRAY_BIT,
            _ => KNOWN.iter().position(|known| known.ty == self).unwrap_or(0) as u8,
        }
    }

    /// The type with this code.
    pub fn from_code(code: u8) -> Option<Type> {
        let known = KNOWN.get(usize::from(code & !ARRAY_BIT))?;
        if code & ARRAY_BIT == 0 { Some(known.ty) } else { known.ty.array() }
    }

    /// PostgreSQL's name, as `format_type` prints it.
    pub fn name(self) -> String {
        let known = self.known();
        match self {
            Type::Array(_) => format!("{}[]", known.name),
            _ => known.name.to_owned(),
        }
    }

    /// PostgreSQL's object id.
    pub fn oid(self) -> u32 {
        let known = self.known();
        if matches!(self, Type::Array(_)) { known.array_oid } else { known.oid }
    }

    /// The type with this object id.
    pub fn from_oid(oid: u32) -> Option<Type> {
        let known = KNOWN.iter().find(|known| known.oid == oid || known.array_oid == oid)?;
        if known.oid == oid { Some(known.ty) } else { known.ty.array() }
    }

    /// The number of bytes of all its values in rows, if they all have the same.
    pub fn fixed_bytes(self) -> Option<usize> {
        if matches!(self, Type::Array(_)) { None } else { self.known().fixed_bytes }
    }

    /// The number of bytes that PostgreSQL's `RowDescription` gives: -1 for varying ones.
    pub fn wire_bytes(self) -> i16 {
        self.fixed_bytes().map_or(-1, |bytes| bytes as i16)
    }

    /// Whether values may be in keys of tables and indexes.
    pub fn may_be_key(self) -> bool {
        !matches!(self, Type::Array(_) | Type::Jsonb)
    }

    /// Whether it is one of the three types of text.
    pub fn is_text(self) -> bool {
        matches!(self, Type::Text | Type::Varchar | Type::Char)
    }

    /// Whether it is a type of numbers.
    pub fn is_number(self) -> bool {
        self.is_integer() || matches!(self, Type::Float4 | Type::Float8 | Type::Numeric)
    }

    /// Whether it is a type of integers.
    pub fn is_integer(self) -> bool {
        matches!(self, Type::Int2 | Type::Int4 | Type::Int8)
    }
}

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
            (Type::Timestamp | Type::Timestamptz | Type::Interval, [digits]) => match *digits {
                0..=6 => Ok(Modifier(*digits as i32)),
                ..0 => {
                    Err(invalid(format!("{}({digits}) precision must not be negative", ty.name())))
                }
                _ => Ok(Modifier(6)),
            },
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
        Ok(Modifier((((precision as i32) << 16) | (scale as i32 & 0x7ff)) + HEADER))
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

    /// The digits of the seconds of a timestamp or interval.
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
            Type::Timestamp | Type::Timestamptz => match self.second_digits() {
                Some(digits) => {
                    base.name().replacen("timestamp", &format!("timestamp({digits})"), 1)
                }
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
    fn codes_and_object_ids_name_one_type() {
        for ty in Type::scalars() {
            let array = ty.array().unwrap();
            for ty in [ty, array] {
                assert_eq!(Type::from_code(ty.code()), Some(ty));
                assert_eq!(Type::from_oid(ty.oid()), Some(ty));
            }
            assert_eq!(array.element(), Some(ty));
            assert_eq!(array.array(), None);
        }
        assert_eq!(Type::from_code(17), None);
        assert_eq!(Type::from_oid(2), None);
    }

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
