//! One value of any type.

use crate::{
    Array, Bits, Date, EnumValue, Interval, Json, Network, Numeric, Time, Timestamp, Type, float,
};
use std::cmp::Ordering;

/// A value, or NULL.
#[derive(Clone, Debug)]
pub enum Datum {
    /// No value.
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`, and numbers of objects
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// Any type of text but `character`; no NUL within.
    Text(Box<str>),
    /// `character`: blanks at the end are shown, and are no part of what is compared.
    Char(Box<str>),
    /// `bytea`
    Bytea(Box<[u8]>),
    /// `uuid`
    Uuid([u8; 16]),
    /// `date`
    Date(Date),
    /// `timestamp`
    Timestamp(Timestamp),
    /// `timestamptz`
    Timestamptz(Timestamp),
    /// `interval`
    Interval(Interval),
    /// `jsonb`
    Jsonb(Box<Json>),
    /// `json`, as it was given.
    Json(Box<str>),
    /// `jsonpath`, in canonical form.
    Jsonpath(Box<str>),
    /// `time`
    Time(Time),
    /// A value of an enum type.
    Enum(EnumValue),
    /// `bit` and `bit varying`
    Bits(Bits),
    /// `inet` and `cidr`
    Network(Box<Network>),
    /// An array.
    Array(Box<Array>),
    /// A row of values.
    Record(Box<[Datum]>),
}

impl Datum {
    /// Text.
    pub fn text(text: impl Into<Box<str>>) -> Datum {
        Datum::Text(text.into())
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// The type; `None` of NULL. Text of any kind but `character` is `text`, bits are
    /// `bit varying`.
    pub fn kind(&self) -> Option<Type> {
        Some(match self {
            Datum::Null => return None,
            Datum::Bool(_) => Type::Bool,
            Datum::Int2(_) => Type::Int2,
            Datum::Int4(_) => Type::Int4,
            Datum::Int8(_) => Type::Int8,
            Datum::Float4(_) => Type::Float4,
            Datum::Float8(_) => Type::Float8,
            Datum::Numeric(_) => Type::Numeric,
            Datum::Text(_) => Type::Text,
            Datum::Char(_) => Type::Char,
            Datum::Bytea(_) => Type::Bytea,
            Datum::Uuid(_) => Type::Uuid,
            Datum::Date(_) => Type::Date,
            Datum::Timestamp(_) => Type::Timestamp,
            Datum::Timestamptz(_) => Type::Timestamptz,
            Datum::Interval(_) => Type::Interval,
            Datum::Jsonb(_) => Type::Jsonb,
            Datum::Json(_) => Type::Json,
            Datum::Jsonpath(_) => Type::Jsonpath,
            Datum::Time(_) => Type::Time,
            Datum::Enum(value) => Type::Enum(value.ty()),
            Datum::Bits(_) => Type::Varbit,
            Datum::Network(network) if network.is_cidr() => Type::Cidr,
            Datum::Network(_) => Type::Inet,
            Datum::Array(array) => return array.element().array(),
            Datum::Record(_) => Type::Record,
        })
    }

    /// Whether a column or parameter of the type may hold it. Text also fits `character`: older
    /// programs say `text` of such constants in what they logged and stored.
    pub fn fits(&self, ty: Type) -> bool {
        self.kind().is_none_or(|kind| match kind {
            Type::Text => ty.is_text(),
            Type::Varbit => ty.is_bits(),
            Type::Int4 => ty == kind || ty.is_object_id(),
            _ => ty == kind,
        })
    }

    /// The order of values of one type, NULL last. Values of two types are ordered by type: the
    /// planner never asks for that, and the order is total all the same.
    pub fn compare(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Null, Datum::Null) => Ordering::Equal,
            (Datum::Null, _) => Ordering::Greater,
            (_, Datum::Null) => Ordering::Less,
            (Datum::Bool(left), Datum::Bool(right)) => left.cmp(right),
            (Datum::Int2(left), Datum::Int2(right)) => left.cmp(right),
            (Datum::Int4(left), Datum::Int4(right)) => left.cmp(right),
            (Datum::Int8(left), Datum::Int8(right)) => left.cmp(right),
            (Datum::Float4(left), Datum::Float4(right)) => {
                float::compare(f64::from(*left), f64::from(*right))
            }
            (Datum::Float8(left), Datum::Float8(right)) => float::compare(*left, *right),
            (Datum::Numeric(left), Datum::Numeric(right)) => left.cmp(right),
            (Datum::Text(left), Datum::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
            (Datum::Char(left), Datum::Char(right) | Datum::Text(right))
            | (Datum::Text(left), Datum::Char(right)) => {
                without_blanks(left).as_bytes().cmp(without_blanks(right).as_bytes())
            }
            (Datum::Bytea(left), Datum::Bytea(right)) => left.cmp(right),
            (Datum::Uuid(left), Datum::Uuid(right)) => left.cmp(right),
            (Datum::Date(left), Datum::Date(right)) => left.cmp(right),
            (Datum::Timestamp(left), Datum::Timestamp(right))
            | (Datum::Timestamptz(left), Datum::Timestamptz(right)) => left.cmp(right),
            (Datum::Interval(left), Datum::Interval(right)) => left.cmp(right),
            (Datum::Jsonb(left), Datum::Jsonb(right)) => left.cmp(right),
            (Datum::Json(left), Datum::Json(right)) => left.as_bytes().cmp(right.as_bytes()),
            (Datum::Jsonpath(left), Datum::Jsonpath(right)) => left.cmp(right),
            (Datum::Time(left), Datum::Time(right)) => left.cmp(right),
            (Datum::Enum(left), Datum::Enum(right)) => left.cmp(right),
            (Datum::Bits(left), Datum::Bits(right)) => left.compare(right),
            (Datum::Network(left), Datum::Network(right)) => left.compare(right),
            (Datum::Array(left), Datum::Array(right)) => left.compare(right),
            (Datum::Record(left), Datum::Record(right)) => compare_fields(left, right),
            _ => self.kind().cmp(&other.kind()),
        }
    }

    /// About how many bytes of memory it takes, for limits.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Datum>() + self.heap_bytes()
    }

    /// About how many bytes of memory it takes beside itself: 0 of a value of fixed length.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Datum::Text(text) | Datum::Char(text) | Datum::Json(text) | Datum::Jsonpath(text) => {
                text.len()
            }
            Datum::Bytea(bytes) => bytes.len(),
            Datum::Bits(bits) => bits.stored().len(),
            Datum::Network(_) => size_of::<Network>(),
            Datum::Numeric(number) => number.heap_bytes(),
            Datum::Jsonb(json) => json_bytes(json),
            Datum::Array(array) => array.items().iter().map(Datum::memory_bytes).sum(),
            Datum::Record(fields) => fields.iter().map(Datum::memory_bytes).sum(),
            _ => 0,
        }
    }
}

/// The first fields that differ decide, and then the number of fields.
fn compare_fields(left: &[Datum], right: &[Datum]) -> Ordering {
    let pairs = left.iter().zip(right).map(|(left, right)| left.compare(right));
    let unequal = pairs.into_iter().find(|order| order.is_ne());
    unequal.unwrap_or_else(|| left.len().cmp(&right.len()))
}

/// What counts of a `character`: all but the blanks at its end.
pub fn without_blanks(text: &str) -> &str {
    let end = text.bytes().rposition(|byte| byte != b' ');
    &text[..end.map_or(0, |last| last + 1)]
}

fn json_bytes(json: &Json) -> usize {
    size_of::<Json>()
        + match json {
            Json::String(text) => text.len(),
            Json::Number(number) => number.heap_bytes(),
            Json::Array(items) => items.iter().map(json_bytes).sum(),
            Json::Object(members) => {
                members.iter().map(|(key, value)| key.len() + 16 + json_bytes(value)).sum()
            }
            _ => 0,
        }
}

/// Equal values of one type, as SQL compares them; NULL is equal to NULL here.
impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Datum {}
