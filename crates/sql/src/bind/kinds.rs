//! Types by their names, and which of them become which others.

use crate::catalog::Catalog;
use crate::ir::Kind;
use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, DateTimeField, ExactNumberInfo, Interval,
    ObjectName, TimezoneInfo,
};
use values::{Error, IntervalFields, Modifier, Result, SqlState, Type};

/// The type that a statement names.
pub(crate) fn kind_of(catalog: &Catalog, data_type: &DataType) -> Result<Kind> {
    let unknown = || unknown_type(data_type);
    let digits = |digits: &Option<u64>| digits.iter().map(|digits| *digits as i64).collect();
    let (ty, arguments): (Type, Vec<i64>) = match data_type {
        DataType::Bool | DataType::Boolean => (Type::Bool, vec![]),
        DataType::Int2(None) | DataType::SmallInt(None) => (Type::Int2, vec![]),
        DataType::Int(None) | DataType::Int4(None) | DataType::Integer(None) => {
            (Type::Int4, vec![])
        }
        DataType::Int8(None) | DataType::BigInt(None) => (Type::Int8, vec![]),
        DataType::Real | DataType::Float4 => (Type::Float4, vec![]),
        DataType::Float8 | DataType::DoublePrecision => (Type::Float8, vec![]),
        DataType::Double(ExactNumberInfo::None) => (Type::Float8, vec![]),
        DataType::Float(info) => match info {
            ExactNumberInfo::Precision(1..=24) => (Type::Float4, vec![]),
            ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => (Type::Float8, vec![]),
            _ => return Err(unknown()),
        },
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => {
            let arguments = match info {
                ExactNumberInfo::None => vec![],
                ExactNumberInfo::Precision(precision) => vec![*precision as i64],
                ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                    vec![*precision as i64, *scale]
                }
            };
            (Type::Numeric, arguments)
        }
        DataType::Text => (Type::Text, vec![]),
        DataType::Varchar(length) | DataType::CharacterVarying(length) => {
            (Type::Varchar, length_of(length))
        }
        DataType::Char(None) | DataType::Character(None) => (Type::Char, vec![1]),
        DataType::Char(length) | DataType::Character(length) => (Type::Char, length_of(length)),
        DataType::Bytea => (Type::Bytea, vec![]),
        DataType::Bit(length) => (Type::Bit, vec![digit_or_one(length)]),
        DataType::BitVarying(length) | DataType::VarBit(length) => (Type::Varbit, digits(length)),
        DataType::Uuid => (Type::Uuid, vec![]),
        DataType::Date => (Type::Date, vec![]),
        DataType::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            (Type::Timestamp, digits(precision))
        }
        DataType::Timestamp(precision, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            (Type::Timestamptz, digits(precision))
        }
        DataType::Time(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            (Type::Time, digits(precision))
        }
        DataType::Interval { fields, precision } => {
            let fields = fields.as_ref().map(ToString::to_string);
            return interval_of(fields.as_deref(), *precision);
        }
        DataType::JSONB => (Type::Jsonb, vec![]),
        DataType::JSON => (Type::Json, vec![]),
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => {
            let element = kind_of(catalog, element)?;
            // Arrays of arrays are one type with their element's.
            let ty = element.ty.array().unwrap_or(element.ty);
            return Ok(Kind { ty, modifier: element.modifier });
        }
        DataType::Regclass => (Type::Regclass, vec![]),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            (type_named(catalog, name)?.ok_or_else(unknown)?, vec![])
        }
        _ => return Err(unknown()),
    };
    Ok(Kind { ty, modifier: Modifier::of(ty, &arguments)? })
}

fn digit_or_one(digits: &Option<u64>) -> i64 {
    digits.map_or(1, |digits| i64::try_from(digits).unwrap_or(i64::MAX))
}

/// The type of an interval with these fields, such as `HOUR TO SECOND`, and so many digits of the
/// second.
pub(crate) fn interval_of(fields: Option<&str>, digits: Option<u64>) -> Result<Kind> {
    let refused = |name: &str| {
        let message = format!("an interval has no fields \"{name}\"");
        Error::new(SqlState::SYNTAX_ERROR, message)
    };
    let fields = match fields.map(str::to_ascii_lowercase) {
        Some(name) => IntervalFields::named(&name).ok_or_else(|| refused(&name))?,
        None => IntervalFields::ALL,
    };
    if digits.is_some() && !fields.has_seconds() {
        let message = "only an interval with seconds has a precision";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let digits = digits.map(|digits| i64::try_from(digits).unwrap_or(i64::MAX));
    Ok(Kind { ty: Type::Interval, modifier: Modifier::of_interval(fields, digits)? })
}

/// The type that `INTERVAL '1' HOUR TO SECOND(2)` states.
pub(crate) fn kind_of_interval(written: &Interval) -> Result<Kind> {
    let field = |field: &DateTimeField| field.to_string();
    let fields = match (&written.leading_field, &written.last_field) {
        (Some(first), Some(last)) => Some(format!("{} TO {}", field(first), field(last))),
        (Some(first), None) => Some(field(first)),
        (None, _) => None,
    };
    let digits = written.fractional_seconds_precision.or(written.leading_precision);
    interval_of(fields.as_deref(), digits)
}

/// Types of PostgreSQL that are not here.
const REFUSED: &[&str] = &[
    "box",
    "circle",
    "daterange",
    "hstore",
    "int4range",
    "int8range",
    "line",
    "lseg",
    "ltree",
    "macaddr",
    "macaddr8",
    "money",
    "numrange",
    "path",
    "pg_lsn",
    "point",
    "polygon",
    "time",
    "timetz",
    "tsquery",
    "tsrange",
    "tstzrange",
    "tsvector",
    "xml",
    "citext",
];

fn unknown_type(data_type: &DataType) -> Error {
    let shown = data_type.to_string().to_ascii_lowercase();
    let word = shown.split([' ', '(']).next().unwrap_or_default();
    if REFUSED.contains(&word) {
        return Error::unsupported(format!("type {shown} is not supported"), "Use text.");
    }
    let message = format!("type \"{data_type}\" does not exist");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

/// A type by its name in the catalog, which may have its schema before it.
///
/// # Errors
/// That its schema does not exist.
fn type_named(catalog: &Catalog, name: &ObjectName) -> Result<Option<Type>> {
    let written = super::name::written_name(name)?;
    let known = crate::system::type_named(&written.own);
    let made = || Ok(catalog.type_named(&catalog.type_of(&written)?));
    match written.schema.as_deref() {
        None if known.is_some() => Ok(known),
        Some("pg_catalog") => Ok(known),
        _ => made(),
    }
}

fn length_of(length: &Option<CharacterLength>) -> Vec<i64> {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => {
            vec![i64::try_from(*length).unwrap_or(i64::MAX)]
        }
        _ => Vec::new(),
    }
}

/// How willing a cast must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Willing {
    /// Only what loses nothing: in expressions.
    Implicit,
    /// What a column takes: INSERT and UPDATE.
    Assignment,
    /// What CAST asks for.
    Explicit,
}

/// Where a type stands in the order in which numbers become others by themselves.
fn rank(ty: Type) -> Option<u8> {
    Some(match ty {
        Type::Int2 => 0,
        Type::Int4 => 1,
        Type::Int8 => 2,
        Type::Numeric => 3,
        Type::Float4 => 4,
        Type::Float8 => 5,
        Type::Date => 10,
        Type::Timestamp => 11,
        Type::Timestamptz => 12,
        _ => return None,
    })
}

fn are_json(from: Type, to: Type) -> bool {
    matches!((from, to), (Type::Json, Type::Jsonb) | (Type::Jsonb, Type::Json))
}

/// Whether a value of one type is assigned to a column of another.
pub(crate) fn may_assign(from: Type, to: Type) -> bool {
    may_cast(from, to, Willing::Assignment)
}

/// Whether one type becomes another.
pub(super) fn may_cast(from: Type, to: Type, willing: Willing) -> bool {
    if from == to || (from.is_text() && to.is_text()) {
        return true;
    }
    if to.is_object_id() && (from.is_object_id() || from.is_integer()) {
        return true;
    }
    if from.is_object_id() && matches!(to, Type::Int4 | Type::Int8) {
        return willing >= Willing::Assignment;
    }
    if to == Type::Time && matches!(from, Type::Timestamp | Type::Timestamptz | Type::Interval) {
        return willing >= Willing::Assignment;
    }
    if (from, to) == (Type::Cidr, Type::Inet) {
        return true;
    }
    if (from, to) == (Type::Inet, Type::Cidr) {
        return willing >= Willing::Assignment;
    }
    if from.is_bits() && to.is_bits() {
        return true;
    }
    if matches!((from, to), (Type::Int4 | Type::Int8, Type::Bit))
        || matches!((from, to), (Type::Bit, Type::Int4 | Type::Int8))
    {
        return willing == Willing::Explicit;
    }
    if (from, to) == (Type::Time, Type::Interval) {
        return true;
    }
    let same_family = match (rank(from), rank(to)) {
        (Some(low), Some(high)) if low / 10 == high / 10 => Some(low < high),
        _ => None,
    };
    match willing {
        Willing::Implicit => same_family == Some(true),
        Willing::Assignment => {
            let are_texts = match (from.element(), to.element()) {
                (Some(from), Some(to)) => from.is_text() && to.is_text(),
                _ => false,
            };
            same_family.is_some() || to.is_text() || are_json(from, to) || are_texts
        }
        Willing::Explicit => {
            same_family.is_some()
                || are_json(from, to)
                || to.is_text()
                || from.is_text()
                || matches!((from, to), (Type::Bool, Type::Int4) | (Type::Int4, Type::Bool))
                || (from == Type::Jsonb && (to.is_number() || to == Type::Bool))
                || match (from.element(), to.element()) {
                    (Some(from), Some(to)) => may_cast(from, to, willing),
                    _ => false,
                }
        }
    }
}

/// The type that an operator gives both.
pub(super) fn common(left: Type, right: Type) -> Option<Type> {
    let float = |ty| matches!(ty, Type::Float4 | Type::Float8);
    let are_numbers = left.is_number() && right.is_number();
    match left != right && are_numbers && (float(left) || float(right)) {
        true => Some(Type::Float8),
        false => chosen(left, right),
    }
}

/// The type of an expression whose value is one of both, as of CASE: `real` where one is an
/// integer.
pub(super) fn chosen(left: Type, right: Type) -> Option<Type> {
    if left == right {
        Some(left)
    } else if left.is_text() && right.is_text() {
        // The first one is PostgreSQL's choice, where neither is better.
        Some(if left == Type::Char { left } else { Type::Text })
    } else if may_cast(right, left, Willing::Implicit) {
        // The first one also where both would do, as of oid and regclass.
        Some(left)
    } else {
        may_cast(left, right, Willing::Implicit).then_some(right)
    }
}

/// The type in which an operator compares values of two types: text beats `character`, whose blanks
/// at the end count for nothing, and that beats text of a length.
pub(super) fn compared(left: Type, right: Type) -> Option<Type> {
    match (left, right) {
        (Type::Char, Type::Char | Type::Varchar) | (Type::Varchar, Type::Char) => Some(Type::Char),
        (left, right) if left.is_text() && right.is_text() => Some(Type::Text),
        (left, right) => common(left, right),
    }
}

/// Refuses values that nothing compares: `json` may say the same in several ways.
pub(super) fn check_compares(ty: Option<Type>, operator: &str) -> Result<()> {
    let Some(ty @ (Type::Json | Type::Jsonpath)) = ty else { return Ok(()) };
    let message = format!("could not identify an {operator} operator for type {}", ty.name());
    let error = Error::new(SqlState::UNDEFINED_FUNCTION, message);
    Err(match (ty, operator) {
        (Type::Json, _) => error.with_hint("Cast it to jsonb."),
        (_, "ordering") => {
            error.with_hint("Use an explicit ordering operator or modify the query.")
        }
        _ => error,
    })
}

/// The quantifier of a comparison with the rows of a query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantifier {
    Any,
    All,
}
