//! Bytes that stand for values where equal values must meet: groups, sets, maps of joins, members
//! of a list.
//!
//! Invariant: two lists of values of the same types have the same bytes exactly if
//! [`Datum::compare`] says of each pair that it is equal; NULL is equal to NULL. The bytes are
//! never stored and have no order that means anything.

use crate::{Array, Datum, Json, key, without_blanks};

/// The bytes that stand for these values.
///
/// ```
/// use values::{Datum, identity};
/// let number = |text: &str| [Datum::Numeric(text.parse().unwrap())];
/// assert_eq!(identity::of(&number("1.0")), identity::of(&number("1.00")));
/// assert_ne!(identity::of(&number("1.0")), identity::of(&[Datum::Null]));
/// ```
pub fn of(values: &[Datum]) -> Vec<u8> {
    // Sets keep many of them: a vector that grows has up to twice what it needs.
    let length = values.iter().map(|value| FIXED_BYTES + value.heap_bytes()).sum();
    let mut bytes = Vec::with_capacity(length);
    values.iter().for_each(|value| push(&mut bytes, value));
    bytes
}

/// The bytes that a value has beside its text; most of fixed length have no more.
const FIXED_BYTES: usize = 12;

/// A value that may be NULL: no bytes of one are the beginning of those of another.
const NULLABLE: key::Order = key::Order { descending: false, nulls_first: false, nullable: true };

fn push(bytes: &mut Vec<u8>, value: &Datum) {
    match value {
        Datum::Array(array) => {
            bytes.push(1);
            push_array(bytes, array);
        }
        Datum::Jsonb(json) => {
            bytes.push(1);
            push_json(bytes, json);
        }
        Datum::Record(fields) => {
            bytes.push(1);
            push_length(bytes, fields.len());
            fields.iter().for_each(|field| push(bytes, field));
        }
        Datum::Char(text) => key::push(bytes, &Datum::text(without_blanks(text)), NULLABLE),
        Datum::Json(text) | Datum::Jsonpath(text) => {
            bytes.push(1);
            push_text(bytes, text);
        }
        other => key::push(bytes, other, NULLABLE),
    }
}

/// The dimensions are a part of an array's value, their first subscripts too.
fn push_array(bytes: &mut Vec<u8>, array: &Array) {
    bytes.push(array.dimensions().len() as u8);
    for dimension in array.dimensions() {
        bytes.extend_from_slice(&dimension.length.to_le_bytes());
        bytes.extend_from_slice(&dimension.lower.to_le_bytes());
    }
    array.items().iter().for_each(|item| push(bytes, item));
}

fn push_json(bytes: &mut Vec<u8>, json: &Json) {
    match json {
        Json::Null => bytes.push(0),
        Json::Bool(value) => bytes.push(1 + u8::from(*value)),
        Json::Number(number) => {
            bytes.push(3);
            key::push_numeric(bytes, number);
        }
        Json::String(text) => {
            bytes.push(4);
            push_text(bytes, text);
        }
        Json::Array(items) => {
            bytes.push(5);
            push_length(bytes, items.len());
            items.iter().for_each(|item| push_json(bytes, item));
        }
        Json::Object(members) => {
            bytes.push(6);
            push_length(bytes, members.len());
            for (key, value) in members {
                push_text(bytes, key);
                push_json(bytes, value);
            }
        }
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_length(bytes, text.len());
    bytes.extend_from_slice(text.as_bytes());
}

fn push_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&(length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of JSON no two of which are equal; many of them differ by where a part of them ends.
    const DIFFERENT: [&str; 27] = [
        "null",
        "false",
        "true",
        "0",
        "1",
        "-1",
        "10",
        r#""""#,
        r#""1""#,
        r#""a""#,
        "[]",
        "{}",
        "[null]",
        "[false]",
        "[[]]",
        "[{}]",
        "[[], []]",
        "[[[]]]",
        r#"["a", "b"]"#,
        r#"["ab"]"#,
        r#"["a\u0004b"]"#,
        r#"["a\u0004", "b"]"#,
        r#"{"a": null}"#,
        r#"{"a": {}}"#,
        r#"{"a": "b"}"#,
        r#"{"a\u0004b": null}"#,
        r#"[{"a": []}, {}]"#,
    ];

    #[test]
    fn different_json_has_different_bytes() {
        let of = |text: &str| super::of(&[Datum::Jsonb(Box::new(Json::parse(text).unwrap()))]);
        for (at, one) in DIFFERENT.iter().enumerate() {
            for other in &DIFFERENT[..at] {
                assert_ne!(of(one), of(other), "{one} and {other}");
            }
        }
        assert_eq!(of("[1.0, 10]"), of("[1, 1e1]"));
        assert_eq!(of(r#"{"a": 1, "b": 2}"#), of(r#"{"b": 2.00, "a": 1}"#));
    }
}
