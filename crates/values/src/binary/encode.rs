//! From a value to bytes.

use super::{
    JSONB_VERSION, JSONPATH_VERSION, NUMERIC_INFINITY, NUMERIC_NAN, NUMERIC_NEGATIVE,
    NUMERIC_NEGATIVE_INFINITY, NUMERIC_POSITIVE,
};
use crate::numeric::Digits;
use crate::{Array, Datum, Numeric, Type};

/// Appends the bytes of a value; none of NULL, which callers tell apart.
pub fn encode(datum: &Datum, bytes: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => bytes.push(u8::from(*value)),
        Datum::Int2(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        Datum::Int4(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        Datum::Int8(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        Datum::Float4(value) => bytes.extend_from_slice(&value.to_bits().to_be_bytes()),
        Datum::Float8(value) => bytes.extend_from_slice(&value.to_bits().to_be_bytes()),
        Datum::Numeric(value) => encode_numeric(value, bytes),
        Datum::Text(text) | Datum::Char(text) | Datum::Json(text) => {
            bytes.extend_from_slice(text.as_bytes())
        }
        Datum::Jsonpath(text) => {
            bytes.push(JSONPATH_VERSION);
            bytes.extend_from_slice(text.as_bytes());
        }
        Datum::Bytea(value) => bytes.extend_from_slice(value),
        Datum::Network(network) => network.push_binary(bytes),
        Datum::Bits(bits) => {
            bytes.extend_from_slice(&(bits.count() as u32).to_be_bytes());
            bytes.extend_from_slice(bits.bytes());
        }
        Datum::Uuid(value) => bytes.extend_from_slice(value),
        Datum::Date(date) => bytes.extend_from_slice(&date.bits().to_be_bytes()),
        Datum::Timestamp(at) | Datum::Timestamptz(at) => {
            bytes.extend_from_slice(&at.bits().to_be_bytes());
        }
        Datum::Interval(interval) => {
            bytes.extend_from_slice(&interval.microseconds.to_be_bytes());
            bytes.extend_from_slice(&interval.days.to_be_bytes());
            bytes.extend_from_slice(&interval.months.to_be_bytes());
        }
        Datum::Jsonb(json) => {
            bytes.push(JSONB_VERSION);
            bytes.extend_from_slice(json.to_string().as_bytes());
        }
        Datum::Time(time) => bytes.extend_from_slice(&time.microseconds().to_be_bytes()),
        Datum::Enum(value) => bytes.extend_from_slice(value.label().as_bytes()),
        Datum::Array(array) => encode_array(array, bytes),
        Datum::Record(fields) => encode_record(fields, bytes),
    }
}

/// The number of fields, and of each its type, the number of its bytes and these.
fn encode_record(fields: &[Datum], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(fields.len() as i32).to_be_bytes());
    for field in fields {
        let ty = field.kind().unwrap_or(Type::Text);
        bytes.extend_from_slice(&ty.oid().number().to_be_bytes());
        let at = bytes.len();
        bytes.extend_from_slice(&(-1_i32).to_be_bytes());
        if !field.is_null() {
            encode(field, bytes);
            let length = ((bytes.len() - at - 4) as i32).to_be_bytes();
            bytes[at..at + 4].copy_from_slice(&length);
        }
    }
}

/// Number of digits to base 10,000, weight of the first, sign, scale, digits.
fn encode_numeric(number: &Numeric, bytes: &mut Vec<u8>) {
    let (weight, sign, digits) = match Digits::of(number, 4) {
        Some(Digits { negative, weight, digits }) => {
            (weight as i16, if negative { NUMERIC_NEGATIVE } else { NUMERIC_POSITIVE }, digits)
        }
        None => (
            0,
            match number.signum() {
                0 => NUMERIC_NAN,
                1 => NUMERIC_INFINITY,
                _ => NUMERIC_NEGATIVE_INFINITY,
            },
            Vec::new(),
        ),
    };
    bytes.extend_from_slice(&(digits.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&weight.to_be_bytes());
    bytes.extend_from_slice(&sign.to_be_bytes());
    // What PostgreSQL sends as the scale of infinities.
    let scale = if matches!(sign, NUMERIC_INFINITY | NUMERIC_NEGATIVE_INFINITY) {
        32
    } else {
        number.scale()
    };
    bytes.extend_from_slice(&scale.to_be_bytes());
    for digit in digits {
        bytes.extend_from_slice(&digit.to_be_bytes());
    }
}

/// Dimensions, whether there are NULLs, type, bounds, then each item with its length.
fn encode_array(array: &Array, bytes: &mut Vec<u8>) {
    let nulls = array.items().iter().any(Datum::is_null);
    bytes.extend_from_slice(&(array.dimensions().len() as u32).to_be_bytes());
    bytes.extend_from_slice(&u32::from(nulls).to_be_bytes());
    bytes.extend_from_slice(&array.element().oid().number().to_be_bytes());
    for dimension in array.dimensions() {
        bytes.extend_from_slice(&dimension.length.to_be_bytes());
        bytes.extend_from_slice(&dimension.lower.to_be_bytes());
    }
    for item in array.items() {
        let at = bytes.len();
        bytes.extend_from_slice(&(-1_i32).to_be_bytes());
        if !item.is_null() {
            encode(item, bytes);
            let length = ((bytes.len() - at - 4) as u32).to_be_bytes();
            bytes[at..at + 4].copy_from_slice(&length);
        }
    }
}
